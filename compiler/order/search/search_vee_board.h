/* search_vee_board.h: the parts of the search for two chunks per rank.
 *
 *     search_vee_board.c      orders while they are written, and the best ones
 *     search_vee_list.c       a list scheduler by a rule
 *     search_vee_fill.c       moves entries up into idle time
 *     search_vee_weigh.c      puts W's anew
 *     search_vee_stretch.c    more micro-batches
 *     search_vee_anneal.c     moves of a few entries, by chance */
#ifndef SEARCH_VEE_BOARD_H
#define SEARCH_VEE_BOARD_H

#include "search_vee.h"
#include "search_wires.h"

#include <math.h>
#include <stdlib.h>

/* Orders while they are written, and the earliest times of what they hold. */
typedef struct Board {
    const Problem *q;
    Sequence *orders;
    double *end[SEARCH_KINDS];    // [chunk * microbatches + micro]
    int *done[SEARCH_KINDS];      // [chunk]
    double *clock, *held, *idle;  // [rank]; idle since its first entry
    double *post;                 // [rank] end of the entry before its last
    Wires wires;
} Board;

/* The rank's chunk that goes forth, or the one that comes back. */
static inline int board_chunk(const Problem *q, int rank, bool back)
{
    return back ? q->chunks - 1 - rank : rank;
}

static inline double later(double a, double b)
{
    return a > b ? a : b;
}

/* When the input of the next micro-batch is there, if that comes next on its rank;
 * INFINITY: not yet known, or there is none left. */
static inline double board_arrival(const Board *x, int kind, int chunk)
{
    const Problem *q = x->q;
    int micro = x->done[kind][chunk];
    int from = kind == SEARCH_F ? chunk - 1 : chunk + 1;
    if (micro == q->microbatches ||
        (kind != SEARCH_F && x->done[kind - 1][chunk] <= micro))
        return INFINITY;
    if (kind == SEARCH_W || from < 0 || from == q->chunks)
        return 0;
    if (x->done[kind][from] <= micro)
        return INFINITY;
    return wires_arrival(&x->wires, kind, from, micro,
                         x->end[kind][from * q->microbatches + micro],
                         x->post[q->rank[chunk]]);
}

Board board_open(const Problem *q, Sequence *orders);
void board_clear(Board *x);
void board_close(Board *x);
/* Appends the next micro-batch, whose arrival is known. */
void board_put(Board *x, int kind, int chunk);
/* The chunk whose W waits longest; -1: none waits. */
int board_weight(const Board *x, int rank);

/* What a rank of the list scheduler prefers. Of the candidates whose inputs are
 * known the one with the least place is taken:
 *
 *     (1 - follow) * begin + follow * its begin in the plan + bias
 *
 * so that a rank waits for an action rather than begin another whose bias is
 * larger by more than the wait. `slots` is how many chunks fit into the limit,
 * `stay` the part of a micro-batch's time on a rank that it is on its way
 * back. */
typedef struct VeeRule {
    // [forth, back][kind], in times of an average action
    double bias[2][SEARCH_KINDS];   // on rank 0
    double slope[2][SEARCH_KINDS];  // what the last rank adds to that
    double spare,
        share;      // room kept for F's back: spare + share * slots * stay
    double follow;  // 0 to 1
    const double *const *plan;  // [kind][chunk * microbatches + micro], or NULL
} VeeRule;

/* Orders by that rule within q->limit. False: some rank cannot hold one
 * micro-batch of both its chunks. */
bool vee_list(const Problem *q, const VeeRule *rule, Sequence *orders);

/* Puts the W's of orders anew: where a rank waits and `patience` of it fits,
 * where the next action lacks the memory that it frees, and at the end. False:
 * the orders without W wait for one another. */
bool vee_weigh(const Problem *q, Sequence *orders, double patience);
/* Moves entries up into idle time without a delay of any other and without
 * passing a limit, until none fits. */
void vee_fill(const Problem *q, Sequence *orders);
/* Orders for `microbatches` from those for q->microbatches, fewer, by repeating
 * what takes the least time. False: no time was found between which every rank
 * runs the same number of micro-batches. */
bool vee_stretch(const Problem *q, const Sequence *from, int microbatches,
                 Sequence *orders);

/* Searches from orders that run, by moves of a few entries, timing about
 * `budget` entries; `hot` and `cold` in times of an average action. The best by
 * q->metric, or what came in, comes out. */
void vee_anneal(const Problem *q, int seed, double budget, double hot,
                double cold, Sequence *orders);

/* Copies of orders. */
Sequence *orders_copy(const Problem *q, const Sequence *orders);
void orders_free(Sequence *orders);

/* The best of several orders. */
typedef struct VeeBest {
    double value, second;  // by the metric, and by the other one
    short *entries;        // [rank * entries of a rank + index]
} VeeBest;

VeeBest vee_best_open(const Problem *q);
/* Keeps the orders if they run, fit and are better; whether they were. */
bool vee_best_offer(VeeBest *best, const Problem *q, const Sequence *orders);
/* The best into orders; false: there was none. */
bool vee_best_give(const VeeBest *best, const Problem *q, Sequence *orders);
void vee_best_drop(VeeBest *best);

#endif
