/* search_vee.c: the best order known to be reachable.
 *
 *     bases     what is built without a search: the greedy schedule, V-Half and
 *               V-Min, and the same without latencies, which may be far better
 *               than what can run, and whose times make good plans
 *     tuning    the rule of the list scheduler, with each base for a plan and
 *               without one, by random steps; the best go on
 *     moves     annealing from the best order, several times
 *
 * What is idle before the first micro-batches are back and after the last ones
 * have begun does not grow with their number: where there are many, a problem
 * with fewer is searched first; its rules serve the whole one too, and its
 * order is stretched. Rules also carry over from half the ranks, where they are
 * learnt in a fraction of the time. */
#include "search_vee_board.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BASES = 4,       // none, greedy, V-Half, V-Min
    NUMBERS = 15,    // of a rule
    LIST_COST = 16,  // of an entry of the list scheduler, in timed entries
};

static const double ENTRIES = 8e8;             // timed at effort 1
static const double HOT = 0.02, COLD = 0.001;  // average actions

typedef struct Start {
    VeeRule rule;
    double value;  // of its order; INFINITY: none
} Start;

typedef struct VeeSearch {
    const Problem *q;
    VeeBest *best;
    Sequence *orders;     // to work in
    double *plan[BASES];  // [kind][chunk * microbatches + micro]; NULL: none
    const double *rows[BASES][SEARCH_KINDS];
    Start starts[BASES];
    unsigned long long dice;
} VeeSearch;

static size_t entries_of(const Problem *q)
{
    return (size_t)(SEARCH_KINDS * q->chunks) * (size_t)q->microbatches;
}

static Sequence *orders_open(const Problem *q)
{
    size_t row = entries_of(q) / (size_t)q->ranks;
    Sequence *orders = room((size_t)q->ranks, sizeof *orders);
    short *entries = room(entries_of(q), sizeof *entries);
    for (int r = 0; r < q->ranks; r++)
        orders[r].at = entries + (size_t)r * row;
    return orders;
}

/* The value of x->orders by the metric, offered to the best on the way. */
static double offer(VeeSearch *x)
{
    Result result;
    vee_best_offer(x->best, x->q, x->orders);
    if (!order_result(x->q, x->orders, &result, NULL))
        return INFINITY;
    return metric_of(x->q, &result);
}

/* Has the best no idle time at all on its busiest rank. */
static bool perfect(const VeeSearch *x)
{
    return x->best->value <= most_work(x->q) * (1 + 1e-9);
}

/* ---- bases ---- */

/* The begins of orders, with the times of q. NULL: they do not run or fit. */
static double *plan_of(const Problem *q, const Sequence *orders)
{
    double *plan = room(entries_of(q), sizeof *plan),
           *begin = room(entries_of(q), sizeof *begin),
           **rows = room((size_t)q->ranks, sizeof *rows);
    size_t row = entries_of(q) / (size_t)q->ranks;
    Result result;
    for (int r = 0; r < q->ranks; r++)
        rows[r] = begin + (size_t)r * row;
    bool good = order_result(q, orders, &result, rows) && order_fits(q, orders);
    for (int r = 0; good && r < q->ranks; r++) {
        int seen[2][SEARCH_KINDS] = {{0}};
        for (int i = 0; i < orders[r].count; i++) {
            int chunk = orders[r].at[i] / SEARCH_KINDS,
                kind = orders[r].at[i] % SEARCH_KINDS;
            int micro = seen[chunk >= q->ranks][kind]++;
            plan[(kind * q->chunks + chunk) * q->microbatches + micro] =
                rows[r][i];
        }
    }
    free(begin);
    free(rows);
    if (!good)
        free(plan);
    return good ? plan : NULL;
}

static bool build_base(const Problem *q, int base, Sequence *orders)
{
    if (base == 0)
        return false;
    if (base == 1)
        return vee_greedy(q, orders);
    vee_pattern(q, base == 2 ? VEE_HALF : VEE_MIN, orders);
    return true;
}

static void lay_bases(VeeSearch *x)
{
    const Problem *q = x->q;
    double *silence = room((size_t)q->chunks, sizeof *silence);
    Problem silent = *q;
    silent.message = silence;
    silent.wire = NULL;
    for (int base = 0; base < BASES; base++) {
        if (build_base(q, base, x->orders))
            offer(x);
        if (!build_base(&silent, base, x->orders))
            continue;
        offer(x);
        x->plan[base] = plan_of(&silent, x->orders);
        for (int k = 0; x->plan[base] && k < SEARCH_KINDS; k++)
            x->rows[base][k] = x->plan[base] + k * q->chunks * q->microbatches;
    }
    free(silence);
}

/* ---- tuning ---- */

/* Rules that tuning found good on the problems of arXiv 2401.10241, table 9:
 * at most limits, at V-Half's, at V-Min's, and at 1.25 and 1.5 times a whole
 * stage per rank. */
// clang-format off
static const VeeRule first_rules[] = {
    {{{0, 0.2, 3}, {-0.5, -0.7, 3}}, {{0}}, 0, 1, 0, NULL},
    {{{0, 0, 2}, {0, 0, 2}}, {{0}}, 0, 0, 0.5, NULL},
    {{{1.2, 1.5, 4.2}, {1.4, 1.5, 1.5}}, {{0, -0.5, -0.4}, {0, 0, 0.1}}, 1.06, 0.97, 0.14, NULL},
    {{{1, 0.7, 17}, {0.5, 1, 0.9}}, {{0.2, 0.7, 4}, {0.8, 0.3, 0.8}}, 1.42, 0.92, 0.04, NULL},
    {{{-2, -2, 0}, {-2, -1.4, 10}}, {{2, 3.7, 1}, {3.2, 2.8, -5}}, 0.74, 0.92, 0.58, NULL},
    {{{0.6, -0.4, 7}, {-0.4, -0.9, 10}}, {{-0.8, -0.7, -2}, {-0.3, -0.8, -5}}, 0.59, 0.98, 0, NULL},
    {{{0, 0.3, -1}, {0, 0, -1}}, {{-2, -2, -1}, {-1.7, -1, -1}}, 1.94, 0.35, 0.63, NULL},
    {{{-1.4, 0.6, 0.7}, {-0.4, 0, 1.4}}, {{0.9, -0.5, 0}, {0, 0.3, 3}}, 0.34, 0.38, 0.02, NULL},
    {{{0.2, 0.3, 0.3}, {0.1, 0.3, 0.4}}, {{0.3, -0.1, 0.2}, {0.2, -0.1, 0.2}}, 4, 0.06, 0, NULL},
};
// clang-format on

static double *number_of(VeeRule *rule, int number)
{
    if (number < 6)
        return &rule->bias[number / 3][number % 3];
    if (number < 12)
        return &rule->slope[number / 3 - 2][number % 3];
    return number == 12   ? &rule->spare
           : number == 13 ? &rule->share
                          : &rule->follow;
}

static VeeRule step_from(VeeSearch *x, VeeRule rule)
{
    int changes = 1 + roll_below(&x->dice, 4);
    double scale = roll(&x->dice) < 0.3 ? 2 : 0.4;
    for (; changes > 0; changes--) {
        int number = roll_below(&x->dice, NUMBERS);
        double step = (roll(&x->dice) - roll(&x->dice)) * scale;
        *number_of(&rule, number) += number < 13 ? step : 0.3 * step;
    }
    rule.share = fmax(0, rule.share);
    rule.follow = fmin(1, fmax(0, rule.follow));
    return rule;
}

/* Tries a rule with the plan of a base, and keeps it if it is no worse. */
static void try_rule(VeeSearch *x, int base, VeeRule rule)
{
    Start *start = &x->starts[base];
    rule.plan = x->plan[base] ? x->rows[base] : NULL;
    if (!vee_list(x->q, &rule, x->orders))
        return;
    double value = offer(x);
    if (value > start->value)
        return;
    if (value < start->value) {
        vee_fill(x->q, x->orders);
        offer(x);
    }
    *start = (Start){rule, value};
}

static void tune(VeeSearch *x, int base, double budget)
{
    enum { FIRST = sizeof first_rules / sizeof *first_rules };
    double cost = LIST_COST * (double)entries_of(x->q);
    if (isinf(x->starts[base].value)) {
        try_rule(x, base, x->starts[base].rule);
        for (int i = 0; i < FIRST; i++)
            try_rule(x, base, first_rules[i]);
        budget -= cost * (FIRST + 1);
    }
    for (; budget > 0 && !perfect(x); budget -= cost)
        try_rule(x, base, step_from(x, x->starts[base].rule));
}

static int better_than(const VeeSearch *x, int base)
{
    int better = 0;
    for (int b = 0; b < BASES; b++)
        better += x->starts[b].value < x->starts[base].value;
    return better;
}

/* Tunes all, then the better half, then the best. */
static void tune_all(VeeSearch *x, double budget)
{
    int left = 0;
    for (int b = 0; b < BASES; b++)
        left += b == 0 || x->plan[b];
    for (double share = budget / 3; left > 0; left /= 2) {
        bool chosen[BASES];
        for (int b = 0; b < BASES; b++)
            chosen[b] = (b == 0 || x->plan[b]) && better_than(x, b) < left;
        for (int b = 0; b < BASES; b++)
            if (chosen[b])
                tune(x, b, share / left);
    }
}

/* ---- smaller problems ---- */

static VeeSearch open_search(const Problem *q, VeeBest *best, int seed)
{
    VeeSearch x = {.q = q, .best = best, .orders = orders_open(q)};
    x.dice = (unsigned long long)seed * 2862933555777941757u + 3037000493u;
    for (int b = 0; b < BASES; b++)
        x.starts[b] = (Start){first_rules[b > 0], INFINITY};
    return x;
}

static void close_search(VeeSearch *x)
{
    for (int b = 0; b < BASES; b++)
        free(x->plan[b]);
    orders_free(x->orders);
}

/* Every other rank of a problem, with room for as large a part of the chunks
 * that are on their way at a time. */
typedef struct Half {
    Problem q;
    int *rank;
    double *numbers;
} Half;

static Half halve(const Problem *q)
{
    enum { ROWS = SEARCH_KINDS + 5 };
    int ranks = q->ranks / 2, chunks = 2 * ranks;
    Half h = {*q, room((size_t)chunks, sizeof *h.rank),
              room((size_t)(ROWS * chunks + ranks), sizeof *h.numbers)};
    const double *from[ROWS] = {q->time[0], q->time[1], q->time[2], q->message,
                                q->held,    q->kept,    q->wire,    q->whole};
    for (int c = 0; c < chunks; c++) {
        bool back = c >= ranks;
        h.rank[c] = back ? chunks - 1 - c : c;
        for (int k = 0; k < ROWS; k++)
            if (from[k])
                h.numbers[k * chunks + c] =
                    from[k][board_chunk(q, 2 * h.rank[c], back)];
    }
    h.numbers[SEARCH_KINDS * chunks + ranks] = q->message[q->ranks];
    if (q->wire)
        h.numbers[(SEARCH_KINDS + 3) * chunks + ranks] = q->wire[q->ranks];
    for (int k = 0; k < SEARCH_KINDS; k++)
        h.q.time[k] = h.numbers + k * chunks;
    h.q.message = h.numbers + SEARCH_KINDS * chunks;
    h.q.held = h.q.message + chunks;
    h.q.kept = h.q.held + chunks;
    h.q.wire = q->wire ? h.q.kept + chunks : NULL;
    h.q.whole = q->whole ? h.q.kept + 2 * chunks : NULL;
    double *limit = h.numbers + ROWS * chunks;
    for (int r = 0; r < ranks; r++) {
        double slot = h.q.held[r], whole = q->limit[2 * r];
        double slots = whole / slot * (chunks + 1) / (q->chunks + 1);
        limit[r] = slot > 0 ? slot * ceil(slots) : whole;
    }
    h.q.limit = limit;
    h.q.rank = h.rank;
    h.q.ranks = ranks;
    h.q.chunks = chunks;
    h.q.microbatches = q->microbatches < 3 * ranks ? q->microbatches
                                                   : 3 * ranks;
    return h;
}

static void take_rules(VeeSearch *x, const VeeSearch *from)
{
    for (int b = 0; b < BASES; b++)
        x->starts[b] = (Start){from->starts[b].rule, INFINITY};
}

/* Takes the rules that serve half the ranks, learnt from a quarter in turn. */
static void learn(VeeSearch *x, int seed, double budget)
{
    enum { FEW = 6 };
    if (x->q->ranks < 2 * FEW)
        return;
    Half h = halve(x->q);
    VeeBest best = vee_best_open(&h.q);
    VeeSearch y = open_search(&h.q, &best, seed);
    learn(&y, seed, budget / 3);
    lay_bases(&y);
    tune_all(&y, budget * 2 / 3);
    take_rules(x, &y);
    vee_best_drop(&best);
    close_search(&y);
    free(h.rank);
    free(h.numbers);
}

/* ---- the search ---- */

static void move_on(VeeSearch *x, int seed, double budget)
{
    enum { RUNS = 3 };
    for (int i = 0; i < RUNS; i++) {
        if (perfect(x) || !vee_best_give(x->best, x->q, x->orders))
            return;
        vee_anneal(x->q, seed * RUNS + i, budget / RUNS, HOT, COLD, x->orders);
        offer(x);
        vee_fill(x->q, x->orders);
        offer(x);
    }
}

/* Rules learnt on fewer ranks, tuned here, then moves. */
static void search_here(VeeSearch *x, int seed, double budget)
{
    learn(x, seed, budget * 0.25);
    lay_bases(x);
    tune_all(x, budget * 0.375);
    move_on(x, seed, budget * 0.375);
}

/* Searches with fewer micro-batches, as if there were no more; its rules, and its
 * order stretched. */
static void search_few(VeeSearch *x, int microbatches, int seed, double budget)
{
    Problem few = *x->q;
    few.microbatches = microbatches;
    VeeBest best = vee_best_open(&few);
    VeeSearch y = open_search(&few, &best, seed);
    search_here(&y, seed, budget);
    take_rules(x, &y);
    if (vee_best_give(&best, &few, y.orders) &&
        vee_stretch(&few, y.orders, x->q->microbatches, x->orders))
        offer(x);
    vee_best_drop(&best);
    close_search(&y);
}

static void search_once(const Problem *q, VeeBest *best, int seed,
                        double budget)
{
    int few = 3 * q->ranks;
    VeeSearch x = open_search(q, best, seed);
    if (q->microbatches > few) {
        search_few(&x, few, seed, budget);
        lay_bases(&x);
        tune_all(&x, budget * 0.1);
        move_on(&x, seed, budget * 0.1);
    } else {
        search_here(&x, seed, budget);
    }
    close_search(&x);
}

/* Where a search ends depends much on its dice: an effort of 2 is better spent on
 * two searches than on a long one. */
bool search_vee(const Problem *q, int seed, double effort, Sequence *orders,
                Result *result)
{
    int runs = effort < 2 ? 1 : (int)effort;
    VeeBest best = vee_best_open(q);
    for (int i = 0; i < runs; i++)
        search_once(q, &best, seed + i, effort / runs * ENTRIES);
    bool good = vee_best_give(&best, q, orders);
    if (good)
        order_result(q, orders, result, NULL);
    vee_best_drop(&best);
    return good;
}
