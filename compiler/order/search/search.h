/* search.h: the problem that schedules with a knowledge of costs solve: how long
 * each action of each chunk takes and how much memory it holds; and orders that
 * solve it.
 *
 * It knows nothing of a Program, so that tests and benchmarks can state the
 * problems of papers. Times are in any one unit, memory in any one unit.
 *
 *     search.c            an order's times and memory
 *     search_wires.c      when messages are there
 *     search_bound.c      what no order can be below
 *     search_linear.c     one chunk per rank: rounds, list and improve are its parts
 *     search_vee.c        two chunks per rank, forth and back: search_vee_*.c
 *     search_exact.c      all orders of a small problem
 *     search_whole.c      whole backwards beside split ones
 *     search_problem.c    a Program as a Problem; search_plan.c `schedule auto`
 */
#ifndef SEARCH_H
#define SEARCH_H

#include "compile.h"

typedef enum { SEARCH_F, SEARCH_I, SEARCH_W, SEARCH_KINDS } SearchKind;

/* Of the two metrics both are always known; this one is made small first.
 * SPAN: the longest time of a rank from its first begin to its last end, for a
 * step without a barrier. MAKESPAN: from the first begin to the last end of
 * all. */
typedef enum { METRIC_SPAN, METRIC_MAKESPAN } Metric;

typedef struct Problem {
    int ranks, chunks, microbatches;
    const int *rank;                        // [chunk]
    const double *time[SEARCH_KINDS];       // [chunk] of one micro-batch
    const double *message;                  // [chunk] latency of the boundary before it, both ways; 0 inside a rank
    const double *wire;                     // [chunk] time that a message holds the wire there; 0 inside; NULL: none
    const double *whole;                    // [chunk] time of an I with its W right behind it; NULL: that of the two
    const double *held;                     // [chunk] memory from the begin of F to the end of I, one micro-batch
    const double *kept;                     // [chunk] of that, what stays until the end of W
    const double *limit;                    // [rank] of what is held after any action; INFINITY: none
    Metric metric;
    bool posted;                            // receives are posted one entry ahead (search_wires.h)
} Problem;

/* One rank's order. The micro-batches of one kind and chunk run 0, 1, 2, ...,
 * so that an entry is chunk * SEARCH_KINDS + kind and nothing more. */
typedef struct Sequence {
    short *at;
    int count;                              // SEARCH_KINDS * microbatches * chunks of the rank
} Sequence;

typedef struct Result {
    double span, makespan;
    double peak;                            // the largest share of its limit that any rank holds; 0 without limits
} Result;

/* What the problem's metric makes of a result. */
static inline double metric_of(const Problem *q, const Result *result)
{
    return q->metric == METRIC_SPAN ? result->span : result->makespan;
}

/* What decides between two that are equal by that. */
static inline double second_of(const Problem *q, const Result *result)
{
    return q->metric == METRIC_SPAN ? result->makespan : result->span;
}

/* What an action adds to what its rank holds. */
static inline double action_growth(const Problem *q, int kind, int chunk)
{
    return kind == SEARCH_F   ? q->held[chunk]
           : kind == SEARCH_I ? q->kept[chunk] - q->held[chunk]
                              : -q->kept[chunk];
}

/* The least time from a chunk to its neighbour over the boundary before `chunk`. */
static inline double crossing(const Problem *q, int chunk)
{
    return q->message[chunk] + (q->wire ? q->wire[chunk] : 0);
}

/* Is the I at `index` one action with the W behind it: is that of the same
 * micro-batch, of whose I none still `waits` for its W, and are both shorter so. */
static inline bool is_whole(const Problem *q, const Sequence *order, int index, int waits)
{
    int entry = order->at[index], chunk = entry / SEARCH_KINDS;
    return q->whole && waits == 0 && entry % SEARCH_KINDS == SEARCH_I &&
           index + 1 < order->count && order->at[index + 1] == entry + 1 &&
           q->whole[chunk] < q->time[SEARCH_I][chunk] + q->time[SEARCH_W][chunk];
}

/* Dice of a search: the same seed, the same rolls; from 0 to below 1. */
static inline double roll(unsigned long long *dice)
{
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    return (double)(*dice >> 11) / 9007199254740992.0;
}

/* From 0 to below - 1. */
static inline int roll_below(unsigned long long *dice, int below)
{
    return (int)(roll(dice) * below);
}

/* Zeroed, to be freed; ends pipec when memory is out. */
void *room(size_t count, size_t size);

/* The earliest times of orders[rank]. False: the orders wait for one another.
 * `start`, when not NULL, gets the begin of every entry: [rank][index]. */
bool order_result(const Problem *q, const Sequence *orders, Result *result, double *const *start);
/* Time of all the actions of a rank; of the busiest rank. */
double rank_work(const Problem *q, int rank);
double most_work(const Problem *q);
/* Does no rank ever hold more than its limit. */
bool order_fits(const Problem *q, const Sequence *orders);

/* ---- search_bound.c: one chunk per rank, chunk i on rank i ---- */

/* No order within the limits has a smaller one. INFINITY: no order fits. */
double bound_span(const Problem *q);
double bound_makespan(const Problem *q);
/* The one of the problem's metric. */
double bound_metric(const Problem *q);

/* Any placement: a problem without `whole` of which no order is below those of q;
 * input[chunk] and weight[chunk] are room for its times. */
Problem in_parts(const Problem *q, double *input, double *weight);

/* ---- search_linear.c: the same ---- */

/* What a search may cost at effort 1, counted in actions timed, or in what takes as
 * long, some 25 ns, so that it ends alike on every machine. */
static const double EFFORT = 2e8;

typedef struct Search {
    int seed;                               // the same seed and effort, the same orders
    double effort;                          // in times of EFFORT
    double bound;                           // out: of the problem's metric
    bool optimal;                           // out: the orders reach it
    long long timed;                        // out: actions timed
} Search;

/* Orders within the limits that make the problem's metric small. best[rank].at
 * has room for SEARCH_KINDS * microbatches. False: nothing fits the limits. */
bool search_orders(const Problem *q, Search *search, Sequence *best, Result *result);

/* ---- search_exact.c: small problems, any number of chunks per rank ---- */

typedef struct Exact {
    long long budget;                       // partial orders looked at
    long long looked;                       // out
    bool proved;                            // out: no order is better
} Exact;

/* The best orders within the limits, or the best met within the budget. Needs
 * kept <= held, and proves nothing where whole backwards may be shorter. best[rank].at has room for all the rank's actions; when
 * best[0].count > 0 it holds orders to be better than. False: nothing found. */
bool exact_orders(const Problem *q, Exact *exact, Sequence *best, Result *result);

/* ---- search_whole.c: any number of chunks per rank ---- */

/* The problem with whole backwards alone, as an I with that time and a W with none,
 * where that is shorter; numbers: room for 3 * chunks. */
Problem whole_problem(const Problem *q, double *numbers);
/* Puts every W that is shorter so right behind its I. */
void join_weights(const Problem *q, Sequence *orders);
/* Makes orders that run better by the metric, within the limits, by moves of which
 * each is timed in full; about `budget` entries. */
void mend_orders(const Problem *q, Sequence *best, int seed, double budget);

#endif
