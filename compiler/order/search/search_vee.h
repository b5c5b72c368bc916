/* search_vee.h: orders for two chunks per rank, forth and back.
 *
 * Chunk c < ranks is on rank c, chunk c >= ranks on rank 2 * ranks - 1 - c: a
 * micro-batch passes every rank twice, and turns on the last one.
 *
 *     chunk     0   1   2   3
 *               7   6   5   4
 *     rank      0   1   2   3
 *
 * Of every Sequence here the caller gives `at`, with room for all entries of its
 * rank; `count` is set. */
#ifndef SEARCH_VEE_H
#define SEARCH_VEE_H

#include "search.h"

typedef enum { VEE_HALF, VEE_MIN } VeePattern;

/* The greedy schedule of ZB-V (arXiv 2401.10241, section 6) with the costs of
 * the problem, within q->limit. False: some rank cannot hold one micro-batch
 * of both its chunks. */
bool vee_greedy(const Problem *q, Sequence *orders);

/* V-Half and V-Min (arXiv 2405.15362, tables 8 and 9), made for equal times.
 * Limits are not read: no rank holds more chunks, until W, than
 * 2 * ((ranks + 2) / 2), or 2 * ((ranks + 4) / 3). */
void vee_pattern(const Problem *q, VeePattern which, Sequence *orders);

/* The best order that a search finds within q->limit, by q->metric. The same
 * seed and effort give the same order; effort 1 takes seconds, 5 or so. False
 * as vee_greedy. */
bool search_vee(const Problem *q, int seed, double effort, Sequence *orders,
                Result *result);

#endif
