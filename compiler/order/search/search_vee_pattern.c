/* search_vee_pattern.c: V-Half and V-Min, the building blocks for equal times
 * of arXiv 2405.15362 (tables 8 and 9), made into orders.
 *
 * A building block says when a rank runs the four actions of a micro-batch that
 * have a place in the chains; the next micro-batch follows 6 slots later. V-Min
 * on four ranks, the first micro-batch (F f: forth and back; i I: likewise):
 *
 *     rank 0   F . . . . . . f i . . . . . . I
 *          1   . F . . . . f . . i . . . . I .
 *          2   . . F . . f . . . . i . . I . .
 *          3   . . . F f . . . . . . i I . . .
 *
 * No two actions of a rank meet modulo 6, and two slots of six are left for W,
 * which takes them first come, first served. Before the steady state and after
 * it more are free: there actions move up, and W's are put anew, in turns, as
 * long as that shortens the whole; no rank comes to hold more than the most
 * that one held before. That is done for equal times, and then again for those
 * of the problem. */
#include "search_vee_board.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PERIOD = 6, BOTH = 12000 };  // slots; entries of a whole order

/* The slot of the first micro-batch's action: forth and back on a rank. */
static int slot_of(VeePattern which, int ranks, int rank, int kind, bool back)
{
    bool half = which == VEE_HALF;
    int gap = half ? (ranks % 2 ? 0 : 3) : (ranks % 3 ? 0 : 2);
    if (kind == SEARCH_F && half)
        return back ? 3 * ranks - rank - 2 : 2 * rank;
    if (kind == SEARCH_F)
        return back ? 2 * ranks - rank - 1 : rank;
    if (half)
        return back ? 3 * ranks + gap + 2 * rank - 1
                    : 6 * ranks + gap - rank - 2;
    return back ? 2 * ranks + gap + rank : 4 * ranks + gap - rank - 1;
}

typedef struct Slot {
    int time;
    short entry;
} Slot;

static int by_time(const void *a, const void *b)
{
    return ((const Slot *)a)->time - ((const Slot *)b)->time;
}

/* All actions of a rank with a place in the chains, in the order of time. */
static void unroll(const Problem *q, VeePattern which, int rank, Slot *slots)
{
    int count = 0;
    for (int back = 0; back < 2; back++)
        for (int kind = 0; kind < SEARCH_W; kind++)
            for (int m = 0; m < q->microbatches; m++)
                slots[count++] = (Slot){
                    PERIOD * m + slot_of(which, q->ranks, rank, kind, back),
                    (short)(board_chunk(q, rank, back) * SEARCH_KINDS + kind)};
    qsort(slots, (size_t)count, sizeof *slots, by_time);
}

/* The slots, and between them W, first come, first served. */
static void weave(const Problem *q, const Slot *slots, Sequence *order)
{
    int count = 4 * q->microbatches, time = slots[0].time, first = 0,
        waiting = 0;
    short *wait = room((size_t)count / 2, sizeof *wait);
    order->count = 0;
    for (int i = 0; i < count; time++) {
        if (slots[i].time > time) {
            if (first < waiting)
                order->at[order->count++] = wait[first++];
            continue;
        }
        order->at[order->count++] = slots[i].entry;
        if (slots[i].entry % SEARCH_KINDS == SEARCH_I)
            wait[waiting++] = slots[i].entry + 1;
        i++;
    }
    while (first < waiting)
        order->at[order->count++] = wait[first++];
    free(wait);
}

/* A problem with equal times, or with those of q, whose chunks all take one
 * unit of memory until W. */
typedef struct Counted {
    Problem q;
    double *numbers;
} Counted;

static Counted counted(const Problem *q, bool equal, bool silent)
{
    size_t chunks = (size_t)q->chunks, ranks = (size_t)q->ranks;
    Counted e = {*q, room(2 * chunks + ranks, sizeof(double))};
    for (size_t c = 0; c < chunks; c++) {
        e.numbers[c] = 1;
        e.numbers[chunks + c] = 0;
    }
    for (size_t r = 0; r < ranks; r++)
        e.numbers[2 * chunks + r] = INFINITY;
    for (int k = 0; equal && k < SEARCH_KINDS; k++)
        e.q.time[k] = e.numbers;
    if (silent) {
        e.q.message = e.numbers + chunks;
        e.q.wire = NULL;
    }
    e.q.held = e.q.kept = e.numbers;
    e.q.limit = e.numbers + 2 * chunks;
    return e;
}

/* What no rank of the orders exceeds becomes the limit of all. */
static void limit_to(Counted *e, const Sequence *orders)
{
    double *limit = e->numbers + 2 * e->q.chunks;
    Result result;
    for (int r = 0; r < e->q.ranks; r++)
        limit[r] = 1;
    order_result(&e->q, orders, &result, NULL);
    for (int r = 0; r < e->q.ranks; r++)
        limit[r] = result.peak;
}

/* Closes up by the times of `q`, until some turns in a row, ten where there is
 * time, have shortened nothing by those of `real`. */
static void close_up(const Problem *q, const Problem *real, VeeBest *best,
                     Sequence *orders)
{
    double entries = 6.0 * q->ranks * q->microbatches;
    int patience = entries > 4e5   ? 1
                   : entries > 4e4 ? (int)(4e5 / entries)
                                   : 10;
    for (int idle = 0, turns = 0; idle < patience && turns < 10 * patience;
         idle++, turns++) {
        if (!vee_weigh(q, orders, 1))
            return;
        if (vee_best_offer(best, real, orders))
            idle = 0;
        vee_fill(q, orders);
        if (vee_best_offer(best, real, orders))
            idle = 0;
    }
}

static void build_pattern(const Problem *q, VeePattern which, Sequence *orders)
{
    Counted equal = counted(q, true, true), real = counted(q, false, false),
            silent = counted(q, false, true);
    VeeBest best = vee_best_open(q);
    Slot *slots = room(4 * (size_t)q->microbatches, sizeof *slots);
    for (int r = 0; r < q->ranks; r++) {
        unroll(q, which, r, slots);
        weave(q, slots, &orders[r]);
    }
    limit_to(&equal, orders);
    limit_to(&real, orders);
    limit_to(&silent, orders);
    vee_best_offer(&best, &real.q, orders);
    close_up(&equal.q, &real.q, &best, orders);
    Sequence *start = orders_copy(q, orders);
    close_up(&silent.q, &real.q, &best, start);
    orders_free(start);
    close_up(&real.q, &real.q, &best, orders);
    vee_best_give(&best, q, orders);
    vee_best_drop(&best);
    free(slots);
    free(equal.numbers);
    free(real.numbers);
    free(silent.numbers);
}

/* Built for few micro-batches, then stretched. */
static bool stretch_pattern(const Problem *q, VeePattern which, int few,
                            Sequence *orders)
{
    Problem shorter = *q;
    shorter.microbatches = few;
    build_pattern(&shorter, which, orders);
    Sequence *from = orders_copy(&shorter, orders);
    bool good = vee_stretch(&shorter, from, q->microbatches, orders);
    orders_free(from);
    return good;
}

/* Many micro-batches are stretched from few, which is much faster; where there
 * is time for both, the better one is taken. */
void vee_pattern(const Problem *q, VeePattern which, Sequence *orders)
{
    int few = 4 * q->ranks;
    double entries = 6.0 * q->ranks * q->microbatches;
    if (q->microbatches <= few || !stretch_pattern(q, which, few, orders)) {
        build_pattern(q, which, orders);
        return;
    }
    if (entries > BOTH)
        return;
    Sequence *stretched = orders_copy(q, orders);
    Result a, b;
    build_pattern(q, which, orders);
    order_result(q, orders, &a, NULL);
    order_result(q, stretched, &b, NULL);
    if (metric_of(q, &b) < metric_of(q, &a))
        for (int r = 0; r < q->ranks; r++)
            memcpy(orders[r].at, stretched[r].at,
                   (size_t)orders[r].count * sizeof *orders[r].at);
    orders_free(stretched);
}
