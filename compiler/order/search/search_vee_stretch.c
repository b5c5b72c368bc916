/* search_vee_stretch.c: orders for many micro-batches from orders for few.
 *
 * Between two times at which every rank stands alike, k micro-batches further
 * on, every rank runs k micro-batches of each of its actions. What it runs in
 * between can be repeated: the inputs of a repetition are those of the one
 * before, k micro-batches on, and memory returns to where it was.
 *
 *     rank 0   F F F F f I W | F f I W i W | f I W I W i W
 *     rank 1     F F f F I F | f I W i F W | I W i W f ...
 *                            t             t + T */
#include "search_vee_board.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Stretch {
    const Problem *q;  // of few micro-batches
    const Sequence *orders;
    double **start;  // [rank][index]
    int *first;      // [rank] index in the best window
    double best;     // its time per micro-batch
    int length;      // its micro-batches
} Stretch;

/* The first entry that begins at a time or later. */
static int index_at(const Stretch *x, int rank, double time)
{
    int low = 0, high = x->orders[rank].count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (x->start[rank][middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool window_is_even(const Stretch *x, int rank, int first, int length)
{
    int seen[2][SEARCH_KINDS] = {{0}};
    const Sequence *order = &x->orders[rank];
    if (first + 2 * SEARCH_KINDS * length > order->count)
        return false;
    for (int i = first; i < first + 2 * SEARCH_KINDS * length; i++)
        if (seen[order->at[i] / SEARCH_KINDS >= x->q->ranks]
                [order->at[i] % SEARCH_KINDS]++ == length)
            return false;
    return true;
}

/* Looks at the window that begins with entry `index` of rank 0. */
static void consider(Stretch *x, int index, int length)
{
    const Problem *q = x->q;
    int entries = 2 * SEARCH_KINDS * length;
    double nudge = 1e-9 * x->start[0][x->orders[0].count - 1];
    double from = x->start[0][index] - nudge,
           to = x->start[0][index + entries] - nudge;
    if ((to - from) / length >= x->best)
        return;
    for (int r = 0; r < q->ranks; r++) {
        int first = index_at(x, r, from);
        if (index_at(x, r, to) != first + entries ||
            !window_is_even(x, r, first, length))
            return;
    }
    for (int r = 0; r < q->ranks; r++)
        x->first[r] = index_at(x, r, from);
    x->best = (to - from) / length;
    x->length = length;
}

static void repeat(const Stretch *x, int more, Sequence *orders)
{
    for (int r = 0; r < x->q->ranks; r++) {
        const Sequence *from = &x->orders[r];
        size_t entries = 2 * SEARCH_KINDS * (size_t)x->length;
        short *at = orders[r].at;
        memcpy(at, from->at, (size_t)x->first[r] * sizeof *at);
        at += x->first[r];
        for (int i = 0; i < more; i += x->length, at += entries)
            memcpy(at, from->at + x->first[r], entries * sizeof *at);
        memcpy(at, from->at + x->first[r],
               (size_t)(from->count - x->first[r]) * sizeof *at);
        orders[r].count = from->count + more * 2 * SEARCH_KINDS;
    }
}

bool vee_stretch(const Problem *q, const Sequence *from, int microbatches,
                 Sequence *orders)
{
    enum { LONGEST = 4 };
    size_t row = 2 * SEARCH_KINDS * (size_t)q->microbatches,
           ranks = (size_t)q->ranks;
    int more = microbatches - q->microbatches;
    Stretch x = {.q = q, .orders = from, .best = INFINITY};
    Result result;
    double *times = room(ranks * row, sizeof *times);
    x.start = room(ranks, sizeof *x.start);
    x.first = room(ranks, sizeof *x.first);
    for (size_t r = 0; r < ranks; r++)
        x.start[r] = times + r * row;
    if (order_result(q, from, &result, x.start))
        for (int length = 1; length <= LONGEST; length++)
            for (int i = 0; more % length == 0 &&
                            i + 2 * SEARCH_KINDS * length < from[0].count;
                 i++)
                consider(&x, i, length);
    if (!isinf(x.best))
        repeat(&x, more, orders);
    free(times);
    free(x.start);
    free(x.first);
    return !isinf(x.best);
}
