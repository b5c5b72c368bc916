/* search_linear.c: the search for orders of one chunk per rank.
 *
 * Recipes give some hundred whole orders in the time of a few moves; the best
 * are then annealed in turn, cool ones first, for a recipe's order is mostly
 * right and a hot start would lose it; but where a rank's whole pattern has to
 * change only a hot start finds the way. As soon as an order reaches the bound
 * there is nothing left to look for. */
#include "search_linear.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEPT = 4,  // orders that are annealed
    LISTS = 20,
    ROUNDS = 12  // recipes
};

/* How the warm-up is chosen, by the time H from a rank's first F to the arrival
 * of its first I (search_bound.c): one forward less than the rank before, two
 * less, all that end before H, all that begin before H, or of the last two the
 * first unless it leaves more idle time than the bound has. */
typedef enum {
    WARM_ONE,
    WARM_TWO,
    WARM_BELOW,
    WARM_ABOVE,
    WARM_IDLE,
    WARM_KINDS
} WarmKind;

typedef struct Pool {
    const Problem *q;
    Arena *arena;
    double bound;
    int seed;
    Sequence *orders[KEPT + 1];  // [KEPT]: to try in
    double value[KEPT];          // of the metric, smallest first
    int count;
    int passes;       // anneals so far
    long long timed;  // actions
} Pool;

static long long actions(const Problem *q)
{
    return (long long)SEARCH_KINDS * q->ranks * q->microbatches;
}

static bool done(const Pool *p)
{
    return p->count > 0 && p->value[0] <= p->bound * (1 + 1e-9);
}

static int warm_count(const Problem *q, WarmKind kind, int r, double head,
                      double idle)
{
    const double most = 1e6;  // where a forward takes no time
    double forward = q->time[SEARCH_F][r],
           share = forward > 0 ? fmin(head / forward, most) : most;
    int behind = q->ranks - 1 - r, below = (int)floor(share + 1e-9),
        above = (int)ceil(share - 1e-9);
    switch (kind) {
    case WARM_ONE: return behind + 1;
    case WARM_TWO: return 2 * behind + 1;
    case WARM_BELOW: return below;
    case WARM_ABOVE: return above;
    default: return head - below * forward <= idle ? below : above;
    }
}

/* From the last rank to the first, then down to what memory leaves: each rank
 * needs `slope` forwards less than the one before, at least one less. */
static void choose_warm(const Problem *q, WarmKind kind, double idle,
                        double slope, int *warm)
{
    double head = 0;
    for (int r = q->ranks - 1; r >= 0; r--) {
        double most = q->limit[r] / q->held[r] + 1e-9;
        head += q->time[SEARCH_F][r];
        if (r + 1 < q->ranks)
            head += q->time[SEARCH_I][r + 1] + 2 * crossing(q, r + 1);
        warm[r] = (int)fmax(1, fmin(most, warm_count(q, kind, r, head, idle)));
        head = fmax(head, warm[r] * q->time[SEARCH_F][r]);
    }
    for (int r = 1; r < q->ranks; r++) {
        int most = (int)fmin(warm[r - 1] - 1, warm[0] - slope * r);
        warm[r] = warm[r] < most ? warm[r] : most > 1 ? most : 1;
    }
    for (int r = 0; r < q->ranks; r++)
        if (warm[r] > q->microbatches)
            warm[r] = q->microbatches;
}

static void copy_orders(const Problem *q, Sequence *to, const Sequence *from)
{
    for (int r = 0; r < q->ranks; r++) {
        to[r].count = from[r].count;
        memcpy(to[r].at, from[r].at, (size_t)from[r].count * sizeof *to[r].at);
    }
}

/* Takes orders[KEPT] among the best, unless one of the same value is there. */
static void enter(Pool *p)
{
    Result result;
    Sequence *fresh = p->orders[KEPT];
    p->timed += actions(p->q);
    if (!order_result(p->q, fresh, &result, NULL))
        return;
    double value = metric_of(p->q, &result);
    int at = 0;
    while (at < p->count && p->value[at] < value * (1 - 1e-12))
        at++;
    if (at == KEPT || (at < p->count && p->value[at] <= value * (1 + 1e-12)))
        return;
    int last = p->count < KEPT ? p->count++ : KEPT - 1;
    p->orders[KEPT] = p->orders[last];
    for (; last > at; last--) {
        p->orders[last] = p->orders[last - 1];
        p->value[last] = p->value[last - 1];
    }
    p->orders[at] = fresh;
    p->value[at] = value;
}

/* The i-th of so many, each once, those that follow one another far apart. */
static int scattered(int i, int count)
{
    int step = (int)(0.618 * count) + 1, a = step, b = count;
    while (b > 0) {
        int rest = a % b;
        a = b;
        b = rest;
        if (b == 0 && a > 1) {
            a = ++step;
            b = count;
        }
    }
    return (int)((long long)i * step % count);
}

static bool build(Pool *p, int number, const int *warm)
{
    double most = p->count == KEPT ? p->value[KEPT - 1] : INFINITY;
    Sequence *fresh = p->orders[KEPT];
    if (number < LISTS) {
        ListRecipe recipe = {number / 10 - 1, number % 2,
                             number / 2 % 5 * 0.25};
        return list_orders(p->q, &recipe, warm, most, fresh, &p->timed);
    }
    number -= LISTS;
    RoundsRecipe recipe = {number % 2, number / 2 % 2,
                           number / 4 > 0 ? number / 4 : -1};
    return rounds_orders(p->q, &recipe, warm, most, fresh, &p->timed);
}

/* The recipes with every warm-up, as far as `until` goes, but until one has given
 * an order; scattered, so that some of each sort come first. */
static void try_recipes(Pool *p, long long until)
{
    enum {
        STEPS = 6,
        WARMS = STEPS * WARM_KINDS,
        ALL = WARMS * (LISTS + ROUNDS)
    };
    const Problem *q = p->q;
    double busiest = 0;
    int *warm = arena_take(p->arena, (size_t)q->ranks * sizeof *warm);
    for (int r = 0; r < q->ranks; r++)
        busiest = fmax(busiest, work_in_parts(q, r));
    double idle = (p->bound - busiest) * (1 + 1e-6);
    for (int i = 0; i < ALL && !done(p) && (p->count == 0 || p->timed < until);
         i++) {
        int number = scattered(i, ALL), kind = number % WARM_KINDS,
            step = number / WARM_KINDS % STEPS;
        choose_warm(q, kind, idle, 1 + step * 0.125, warm);
        if (build(p, number / WARMS, warm))
            enter(p);
    }
}

/* A rank's order with `more` micro-batches put in after I number `cut`. */
static void lengthen(Sequence *to, const Sequence *from, int cut, int more)
{
    int seen = 0, weights = 0, at = 0, count = 0;
    int first = from->at[0] / SEARCH_KINDS * SEARCH_KINDS;
    for (; seen <= cut; at++) {
        int kind = from->at[at] - first;
        seen += kind == SEARCH_I;
        weights += kind == SEARCH_W;
        to->at[count++] = from->at[at];
    }
    for (int i = 0; i < more; i++) {
        if (weights <= cut)
            to->at[count++] = (short)(first + SEARCH_W);
        to->at[count++] = (short)(first + SEARCH_F);
        to->at[count++] = (short)(first + SEARCH_I);
        if (weights > cut)
            to->at[count++] = (short)(first + SEARCH_W);
    }
    for (; at < from->count; at++)
        to->at[count++] = from->at[at];
    to->count = count;
}

/* The metric, if each rank is as much later as the micro-batches put in are long. */
static double lengthened(const Problem *q, const Sequence *orders, int more,
                         double *room)
{
    int count = SEARCH_KINDS * q->microbatches;
    double *start[q->ranks], most = 0;
    Result result;
    for (int r = 0; r < q->ranks; r++)
        start[r] = room + r * count;
    if (!order_result(q, orders, &result, start))
        return INFINITY;
    for (int r = 0; r < q->ranks; r++) {
        int last = orders[r].at[count - 1];
        double end = start[r][count - 1] +
                     q->time[last % SEARCH_KINDS][last / SEARCH_KINDS];
        double from = q->metric == METRIC_SPAN ? start[r][0] : 0;
        most = fmax(most,
                    end - from + more * rank_work(q, r) / q->microbatches);
    }
    return most;
}

/* Orders for fewer micro-batches, made longer in every place, as far as `until`
 * goes.
 *
 *     rank 0   F F F F . . I|W F I|W F I W F I ...
 *     rank 1     F F F . I|W F I|W F I W F I
 *
 * If each rank has its W and its F there, all that follows comes later by just
 * the work put in, and no idle time is added: then no place is better. */
static void try_longer(Pool *p, const Pool *from, long long until)
{
    const Sequence *shorter = from->orders[0];
    int microbatches = from->q->microbatches,
        more = p->q->microbatches - microbatches;
    double *room = arena_take(p->arena,
                              (size_t)actions(from->q) * sizeof *room);
    double least = lengthened(from->q, shorter, more, room) * (1 + 1e-9);
    for (int i = 0; i < microbatches && !done(p) && p->timed < until; i++) {
        int cut = scattered(i, microbatches);
        for (int r = 0; r < p->q->ranks; r++)
            lengthen(&p->orders[KEPT][r], &shorter[r], cut, more);
        p->timed += actions(p->q);
        if (order_fits(p->q, p->orders[KEPT]))
            enter(p);
        if (p->count > 0 && p->value[0] <= least)
            return;
    }
}

/* Anneals the best orders, and for a hot start each in turn, until `budget` is
 * used up. The more ranks, the less heat: a move then delays more of them.
 * Places in a rank's order are short there. */
static void improve(Pool *p, long long budget)
{
    enum { HEATS = 6, HOT = 4 };
    static const double heats[HEATS] = {0.02, 0.02, 0.1, 0.02, 0.5, 0.05};
    long long slice = 2000 * actions(p->q), until = p->timed + budget;
    double scale = 8 / fmax(8, p->q->ranks);
    if (SEARCH_KINDS * p->q->microbatches > SHRT_MAX)
        return;
    for (; p->timed < until && !done(p); p->passes++) {
        int pass = p->passes % HEATS,
            from = pass == HOT ? p->passes / HEATS % p->count : 0;
        long long left = until - p->timed;
        copy_orders(p->q, p->orders[KEPT], p->orders[from]);
        p->timed += improve_orders(p->q, p->orders[KEPT], p->bound,
                                   scale * heats[pass], p->seed + p->passes,
                                   left < slice ? left : slice);
        enter(p);
    }
}

static Sequence *take_orders(Arena *arena, const Problem *q)
{
    Sequence *orders = arena_take(arena, (size_t)q->ranks * sizeof *orders);
    size_t count = (size_t)SEARCH_KINDS * (size_t)q->microbatches;
    for (int r = 0; r < q->ranks; r++)
        orders[r].at = arena_take(arena, count * sizeof *orders[r].at);
    return orders;
}

/* The best of the recipes that `budget` is enough for. */
static void open_pool(Pool *p, const Problem *q, Arena *arena, int seed,
                      long long budget)
{
    *p = (Pool){.q = q, .arena = arena, .seed = seed};
    p->bound = bound_metric(q);
    for (int i = 0; i <= KEPT; i++)
        p->orders[i] = take_orders(arena, q);
    if (p->bound < INFINITY)
        try_recipes(p, budget);
}

/* Improves the orders of a shorter step, and makes them longer. */
static void use_shorter(Pool *p, Pool *shorter, long long budget)
{
    long long before = shorter->timed;
    improve(shorter, budget * 3 / 4);
    p->timed += shorter->timed - before;
    try_longer(p, shorter, p->timed + budget / 4);
}

/* A step of fewer micro-batches has the same head and tail and far fewer orders,
 * but must hold the warm-up of rank 0 and its mirror image. Which length is
 * easy differs, so that all are tried a little and the best of them long. */
static void try_shorter(Pool *p, long long budget)
{
    enum { LENGTHS = 3 };
    static const double more[LENGTHS] = {1, 0.5, 0.375};
    Problem q[LENGTHS];
    Pool pools[LENGTHS], *best = NULL;
    for (int i = 0; i < LENGTHS && !done(p); i++) {
        double length = p->q->limit[0] / p->q->held[0] + more[i] * p->q->ranks;
        if (length > 0.8 * p->q->microbatches)
            continue;
        q[i] = *p->q;
        q[i].microbatches = (int)length;
        open_pool(&pools[i], &q[i], p->arena, p->seed, budget / 16);
        p->timed += pools[i].timed;
        if (pools[i].count == 0)
            continue;
        use_shorter(p, &pools[i], budget / 8);
        if (!best ||
            pools[i].value[0] - pools[i].bound < best->value[0] - best->bound)
            best = &pools[i];
    }
    if (best && !done(p))
        use_shorter(p, best, budget * 7 / 16);
}

bool search_orders(const Problem *q, Search *search, Sequence *best,
                   Result *result)
{
    Arena *arena = arena_open();
    long long budget = (long long)(EFFORT * search->effort);
    Pool p;
    open_pool(&p, q, arena, search->seed, budget / 4);
    bool found = p.count > 0;
    if (found) {
        try_shorter(&p, (budget - p.timed) * 4 / 5);
        improve(&p, budget - p.timed);
        copy_orders(q, best, p.orders[0]);
        order_result(q, best, result, NULL);
    }
    search->bound = p.bound;
    search->optimal = found && done(&p);
    search->timed = p.timed;
    arena_close(arena);
    return found;
}
