/* search_linear.h: what the parts of the search for one chunk per rank share.
 *
 *     search_rounds.c     whole orders at once, round by round
 *     search_list.c       whole orders at once, by the clock
 *     search_improve.c    an order made better move by move
 *     search_linear.c     which of these, how long, when to stop */
#ifndef SEARCH_LINEAR_H
#define SEARCH_LINEAR_H

#include "search.h"

typedef struct RoundsRecipe {
    bool backward_first;            // an F that delays the next I may be left out
    bool fill;                      // a W rather than any idle time
    int delay;                      // a W comes so many I later, times its rank; -1: in idle time
} RoundsRecipe;

typedef struct ListRecipe {
    int extra;                      // F in flight above the warm-up's count
    bool forward_first;             // of an F and an I that are both there
    double over;                    // the share of its time by which a W may delay
} ListRecipe;

/* When a message leaves the wire over a boundary: it was sent, the message `before`
 * has left, and its receive is posted, at the end of the receiver's last action
 * but one. With one chunk per rank a wire carries one kind, in the order of the
 * micro-batches, so that this is all there is to know (search_wires.h). */
static inline double off_wire(const Problem *q, int boundary, double sent, double before, double post)
{
    double begin = sent > before ? sent : before;
    if (q->posted && post > begin)
        begin = post;
    return begin + (q->wire ? q->wire[boundary] : 0);
}

/* The boundary that what an F or an I needs comes over. */
static inline int boundary_before(int kind, int rank)
{
    return kind == SEARCH_F ? rank : rank + 1;
}

/* Of all actions of a rank, every backward in its two parts. */
static inline double work_in_parts(const Problem *q, int rank)
{
    return q->microbatches *
           (q->time[SEARCH_F][rank] + q->time[SEARCH_I][rank] + q->time[SEARCH_W][rank]);
}

/* Whole orders from a recipe; warm[rank] F come before the rank's first I. `timed`
 * grows by the actions placed. False: the recipe has no order within the limits,
 * or none whose metric is at most `most`. */
bool rounds_orders(const Problem *q, const RoundsRecipe *recipe, const int *warm, double most,
                   Sequence *orders, long long *timed);
bool list_orders(const Problem *q, const ListRecipe *recipe, const int *warm, double most,
                 Sequence *orders, long long *timed);

/* Moves until no rank is above `target`, or until `budget` actions have been
 * timed; `heat`, in times of an F, is by how much a move may at first make the
 * orders worse. Orders get the best that was met. Returns the actions timed. */
long long improve_orders(const Problem *q, Sequence *orders, double target, double heat, int seed,
                         long long budget);

#endif
