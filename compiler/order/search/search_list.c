/* search_list.c: orders of one chunk per rank, by the clock.
 *
 * All ranks run at once. A rank that is free takes an I that is there, or else
 * an F that is there and has room, or else a W. Unlike the rounds of
 * search_build.c it hands back every I at once, so that they wait at the first
 * ranks and not at the last, which shortens the tail. */
#include "search_linear.h"

#include <math.h>
#include <stdlib.h>

typedef struct Next {
    int kind;
    double begin;  // INFINITY: nothing is known to come
} Next;

typedef struct Floor {
    const Problem *q;
    const ListRecipe *recipe;
    const int *warm;  // [rank]
    Sequence *orders;
    double *end[SEARCH_KINDS];  // [rank * microbatches + micro]
    double *left
        [SEARCH_W];  // [rank] when the last message for an F, an I left its wire
    double *clock, *memory;   // [rank]
    double *post;             // [rank] end of the action before its last
    int *done[SEARCH_KINDS];  // [rank]
    Next *next;               // [rank]
} Floor;

static bool has_room(const Floor *x, int kind, int r)
{
    return x->memory[r] + action_growth(x->q, kind, r) <=
           x->q->limit[r] * (1 + 1e-9);
}

/* When the message for the rank's next F or I leaves its wire, or 0 where it needs
 * none; INFINITY: not known, or none is left. */
static double carried(const Floor *x, int kind, int r)
{
    const Problem *q = x->q;
    int micro = x->done[kind][r], from = kind == SEARCH_F ? r - 1 : r + 1;
    if (micro == q->microbatches ||
        (kind == SEARCH_I && micro == x->done[SEARCH_F][r]))
        return INFINITY;
    if (from < 0 || from == q->ranks)
        return 0;
    if (x->done[kind][from] <= micro)
        return INFINITY;
    return off_wire(q, boundary_before(kind, r),
                    x->end[kind][from * q->microbatches + micro],
                    x->left[kind][r], x->post[r]);
}

/* When the rank's next F or I is there; INFINITY as above. */
static double arrival(const Floor *x, int kind, int r)
{
    bool alone = kind == SEARCH_F ? r == 0 : r + 1 == x->q->ranks;
    double left = carried(x, kind, r);
    return alone ? left : left + x->q->message[boundary_before(kind, r)];
}

/* What the rank does next, as far as is known. */
static Next choose(const Floor *x, int r)
{
    const Problem *q = x->q;
    double now = x->clock[r], back = fmax(now, arrival(x, SEARCH_I, r)),
           forth = fmax(now, arrival(x, SEARCH_F, r));
    int flying = x->done[SEARCH_F][r] - x->done[SEARCH_I][r];
    bool weight = x->done[SEARCH_W][r] < x->done[SEARCH_I][r];
    if (x->done[SEARCH_I][r] == 0)
        return x->done[SEARCH_F][r] < x->warm[r] ? (Next){SEARCH_F, forth}
                                                 : (Next){SEARCH_I, back};
    bool room = has_room(x, SEARCH_F, r);
    if (!room && forth <= now && back > now && weight)
        return (Next){SEARCH_W, now};
    if (!room || flying > x->warm[r] + x->recipe->extra)
        forth = INFINITY;
    if (!has_room(x, SEARCH_I, r))
        back = INFINITY;
    bool first = x->recipe->forward_first ? forth <= back : forth < back;
    Next soon = first ? (Next){SEARCH_F, forth} : (Next){SEARCH_I, back};
    double over = now + q->time[SEARCH_W][r] - soon.begin;
    if (weight && soon.begin > now &&
        (over <= x->recipe->over * q->time[SEARCH_W][r] || isinf(soon.begin)))
        return (Next){SEARCH_W, now};
    return soon;
}

static void commit(Floor *x, int r)
{
    const Problem *q = x->q;
    Next n = x->next[r];
    if (n.kind != SEARCH_W)
        x->left[n.kind][r] = carried(x, n.kind, r);
    x->post[r] = x->clock[r];
    x->clock[r] = n.begin + q->time[n.kind][r];
    x->end[n.kind][r * q->microbatches + x->done[n.kind][r]++] = x->clock[r];
    x->memory[r] += action_growth(q, n.kind, r);
    x->orders[r].at[x->orders[r].count++] = (short)(r * SEARCH_KINDS + n.kind);
    for (int k = r - 1; k <= r + 1; k++)
        if (k >= 0 && k < q->ranks)
            x->next[k] = choose(x, k);
}

static bool run_floor(Floor *x)
{
    const Problem *q = x->q;
    long left = (long)SEARCH_KINDS * q->ranks * q->microbatches;
    for (int r = 0; r < q->ranks; r++)
        x->next[r] = choose(x, r);
    for (; left > 0; left--) {
        int r = 0;
        for (int k = 1; k < q->ranks; k++)
            if (x->next[k].begin < x->next[r].begin)
                r = k;
        if (isinf(x->next[r].begin))
            return false;
        commit(x, r);
    }
    return true;
}

bool list_orders(const Problem *q, const ListRecipe *recipe, const int *warm,
                 Sequence *orders)
{
    size_t ranks = (size_t)q->ranks, cells = ranks * (size_t)q->microbatches;
    double *numbers = calloc(SEARCH_KINDS * cells + 5 * ranks, sizeof *numbers);
    int *counts = calloc(SEARCH_KINDS * ranks, sizeof *counts);
    Next *next = calloc(ranks, sizeof *next);
    Floor x = {.q = q, .recipe = recipe, .warm = warm, .orders = orders};
    if (!numbers || !counts || !next)
        abort();
    for (int k = 0; k < SEARCH_KINDS; k++) {
        x.end[k] = numbers + (size_t)k * cells;
        x.done[k] = counts + (size_t)k * ranks;
    }
    x.clock = numbers + SEARCH_KINDS * cells;
    x.memory = x.clock + ranks;
    x.post = x.memory + ranks;
    x.left[SEARCH_F] = x.post + ranks;
    x.left[SEARCH_I] = x.left[SEARCH_F] + ranks;
    x.next = next;
    for (int r = 0; r < q->ranks; r++)
        orders[r].count = 0;
    bool all = run_floor(&x);
    free(numbers);
    free(counts);
    free(next);
    return all;
}
