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
    double *ahead;            // [rank] the work it has not yet run
    Next *next;               // [rank]
    int *
        first;  // [leaves + rank] rank; above, the one of two that begins first
    int leaves;
    long long placed;
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

/* Renews the choice of a rank, and the tree above it, whose root is at 1. */
static void renew(Floor *x, int rank)
{
    x->next[rank] = choose(x, rank);
    for (int at = (x->leaves + rank) / 2; at > 0; at /= 2) {
        int a = x->first[2 * at], b = x->first[2 * at + 1];
        x->first[at] = b < 0 || (a >= 0 && x->next[a].begin <= x->next[b].begin)
                           ? a
                           : b;
    }
}

/* The rank that receives what an F or an I of this one makes, if it waits for the
 * message of this micro-batch; -1: none does. */
static int waiting(const Floor *x, int kind, int r, int micro)
{
    int to = kind == SEARCH_F ? r + 1 : r - 1;
    if (kind == SEARCH_W || to < 0 || to == x->q->ranks)
        return -1;
    return x->done[kind][to] == micro ? to : -1;
}

static void commit(Floor *x, int r)
{
    const Problem *q = x->q;
    Next n = x->next[r];
    int micro = x->done[n.kind][r];
    if (n.kind != SEARCH_W)
        x->left[n.kind][r] = carried(x, n.kind, r);
    x->post[r] = x->clock[r];
    x->clock[r] = n.begin + q->time[n.kind][r];
    x->end[n.kind][r * q->microbatches + x->done[n.kind][r]++] = x->clock[r];
    x->memory[r] += action_growth(q, n.kind, r);
    x->ahead[r] -= q->time[n.kind][r];
    x->orders[r].at[x->orders[r].count++] = (short)(r * SEARCH_KINDS + n.kind);
    x->placed++;
    renew(x, r);
    int other = waiting(x, n.kind, r, micro);
    if (other >= 0)
        renew(x, other);
}

/* False: a rank waits for ever, or the value will be above `most`. */
static bool run_floor(Floor *x, double most)
{
    const Problem *q = x->q;
    double first[q->ranks];
    long left = (long)SEARCH_KINDS * q->ranks * q->microbatches;
    for (int i = 0; i < 2 * x->leaves; i++)
        x->first[i] = i >= x->leaves && i < x->leaves + q->ranks ? i - x->leaves
                                                                 : -1;
    for (int r = q->ranks - 1; r >= 0; r--)
        x->next[r].begin = INFINITY;
    for (int r = 0; r < q->ranks; r++)
        renew(x, r);
    for (; left > 0; left--) {
        int r = x->first[1];
        if (isinf(x->next[r].begin))
            return false;
        if (x->orders[r].count == 0)
            first[r] = q->metric == METRIC_SPAN ? x->next[r].begin : 0;
        commit(x, r);
        if (x->clock[r] + x->ahead[r] - first[r] > most)
            return false;
    }
    return true;
}

bool list_orders(const Problem *q, const ListRecipe *recipe, const int *warm,
                 double most, Sequence *orders, long long *timed)
{
    size_t ranks = (size_t)q->ranks, cells = ranks * (size_t)q->microbatches;
    double *numbers = room(SEARCH_KINDS * cells + 6 * ranks, sizeof *numbers);
    int *counts = room(SEARCH_KINDS * ranks, sizeof *counts);
    Next *next = room(ranks, sizeof *next);
    Floor x = {.q = q, .recipe = recipe, .warm = warm, .orders = orders};
    for (x.leaves = 1; x.leaves < q->ranks; x.leaves *= 2) {
    }
    x.first = room(2 * (size_t)x.leaves, sizeof *x.first);
    for (int k = 0; k < SEARCH_KINDS; k++) {
        x.end[k] = numbers + (size_t)k * cells;
        x.done[k] = counts + (size_t)k * ranks;
    }
    x.clock = numbers + SEARCH_KINDS * cells;
    x.memory = x.clock + ranks;
    x.post = x.memory + ranks;
    x.left[SEARCH_F] = x.post + ranks;
    x.left[SEARCH_I] = x.left[SEARCH_F] + ranks;
    x.ahead = x.left[SEARCH_I] + ranks;
    x.next = next;
    for (int r = 0; r < q->ranks; r++) {
        orders[r].count = 0;
        x.ahead[r] = work_in_parts(q, r);
    }
    bool all = run_floor(&x, most);
    *timed += x.placed;
    free(numbers);
    free(counts);
    free(next);
    free(x.first);
    return all;
}
