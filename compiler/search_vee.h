/* search_vee.h: orders for two chunks per rank, forth and back.
 *
 * Chunk c < ranks is on rank c, chunk c >= ranks on rank 2 * ranks - 1 - c: a
 * micro-batch passes every rank twice, and turns on the last one.
 *
 *     chunk     0   1   2   3
 *               7   6   5   4
 *     rank      0   1   2   3
 *
 * Of every Order here the caller gives `at`, with room for all entries of its
 * rank; `count` is set. */
#ifndef SEARCH_VEE_H
#define SEARCH_VEE_H

#include "search.h"

typedef enum { VEE_HALF, VEE_MIN } VeePattern;

/* What a rank of the list scheduler prefers. A candidate's rank is the time at
 * which it could begin plus its bias; the least one is taken, so that a rank
 * waits for an action rather than begin another whose bias is larger by more
 * than the wait. `slots` is how many chunks fit into the limit, `stay` the part
 * of a micro-batch's time on a rank that it is on its way back. */
typedef struct VeeRule {
    double bias
        [2]
        [SEARCH_KINDS];  // [forth, back][kind] on rank 0, in times of an average action
    double slope[2][SEARCH_KINDS];  // what the last rank adds to that
    double spare,
        share;  // F's back for which room is kept: spare + share * slots * stay
} VeeRule;

/* Orders by that rule within q->limit. False: some rank cannot hold one
 * micro-batch of both its chunks. */
bool vee_list(const Problem *q, const VeeRule *rule, Order *orders);

/* The greedy schedule of ZB-V (arXiv 2401.10241, section 6) with the costs of
 * the problem, within q->limit. False as vee_list. */
bool vee_greedy(const Problem *q, Order *orders);

/* V-Half and V-Min (arXiv 2405.15362, tables 8 and 9), made for equal times.
 * Limits are not read: no rank holds more chunks, until W, than
 * 2 * ((ranks + 2) / 2), or 2 * ((ranks + 4) / 3). */
void vee_pattern(const Problem *q, VeePattern which, Order *orders);

/* The best order known to be reachable within q->limit, by q->metric. The same
 * seed and effort give the same order; effort 1 takes seconds. False as
 * vee_list. */
bool search_vee(const Problem *q, int seed, double effort, Order *orders,
                Result *result);

#endif
