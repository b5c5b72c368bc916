/* search_vee_board.c: orders while they are written. See the header. */
#include "search_vee_board.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

Board board_open(const Problem *q, Sequence *orders)
{
    size_t chunks = (size_t)q->chunks, ranks = (size_t)q->ranks,
           cells = chunks * (size_t)q->microbatches;
    Board x = {.q = q, .orders = orders, .wires = wires_open(q)};
    double *numbers = room(SEARCH_KINDS * cells + 4 * ranks, sizeof *numbers);
    int *counts = room(SEARCH_KINDS * chunks, sizeof *counts);
    for (int k = 0; k < SEARCH_KINDS; k++) {
        x.end[k] = numbers + (size_t)k * cells;
        x.done[k] = counts + (size_t)k * chunks;
    }
    x.clock = numbers + SEARCH_KINDS * cells;
    x.held = x.clock + ranks;
    x.idle = x.held + ranks;
    x.post = x.idle + ranks;
    board_clear(&x);
    return x;
}

void board_clear(Board *x)
{
    memset(x->done[0], 0,
           SEARCH_KINDS * (size_t)x->q->chunks * sizeof *x->done[0]);
    wires_clear(&x->wires);
    for (int r = 0; r < x->q->ranks; r++) {
        x->clock[r] = x->held[r] = x->idle[r] = x->post[r] = 0;
        x->orders[r].count = 0;
    }
}

void board_close(Board *x)
{
    wires_close(&x->wires);
    free(x->end[0]);
    free(x->done[0]);
}

/* The same as board_arrival, and the message is taken. */
static double receive(Board *x, int kind, int chunk)
{
    const Problem *q = x->q;
    int micro = x->done[kind][chunk];
    int from = kind == SEARCH_F ? chunk - 1 : chunk + 1;
    if (kind == SEARCH_W || from < 0 || from == q->chunks)
        return 0;
    return wires_take(&x->wires, kind, from, micro,
                      x->end[kind][from * q->microbatches + micro],
                      x->post[q->rank[chunk]]);
}

void board_put(Board *x, int kind, int chunk)
{
    const Problem *q = x->q;
    int rank = q->rank[chunk], micro = x->done[kind][chunk];
    Sequence *order = &x->orders[rank];
    double begin = later(receive(x, kind, chunk), x->clock[rank]);
    if (order->count > 0)
        x->idle[rank] += begin - x->clock[rank];
    x->post[rank] = x->clock[rank];
    x->clock[rank] = begin + q->time[kind][chunk];
    x->end[kind][chunk * q->microbatches + micro] = x->clock[rank];
    x->done[kind][chunk]++;
    wires_send(&x->wires, kind, chunk, micro, x->clock[rank]);
    x->held[rank] += action_growth(q, kind, chunk);
    order->at[order->count++] = (short)(chunk * SEARCH_KINDS + kind);
}

/* The chunk whose W waits longest; -1: none waits. */
int board_weight(const Board *b, int rank)
{
    int best = -1;
    double since = INFINITY;
    for (int back = 0; back < 2; back++) {
        int chunk = board_chunk(b->q, rank, back);
        int micro = b->done[SEARCH_W][chunk];
        if (micro == b->done[SEARCH_I][chunk])
            continue;
        double end = b->end[SEARCH_I][chunk * b->q->microbatches + micro];
        if (end < since) {
            since = end;
            best = chunk;
        }
    }
    return best;
}

Sequence *orders_copy(const Problem *q, const Sequence *orders)
{
    Sequence *copy = room((size_t)q->ranks, sizeof *copy);
    size_t all = 0, at = 0;
    for (int r = 0; r < q->ranks; r++)
        all += (size_t)orders[r].count;
    short *entries = room(all, sizeof *entries);
    for (int r = 0; r < q->ranks; r++) {
        copy[r] = (Sequence){entries + at, orders[r].count};
        memcpy(copy[r].at, orders[r].at,
               (size_t)copy[r].count * sizeof *entries);
        at += (size_t)copy[r].count;
    }
    return copy;
}

void orders_free(Sequence *orders)
{
    free(orders[0].at);
    free(orders);
}

static size_t row_of(const Problem *q)
{
    return 2 * SEARCH_KINDS * (size_t)q->microbatches;
}

VeeBest vee_best_open(const Problem *q)
{
    VeeBest best = {INFINITY, INFINITY, NULL};
    best.entries = room((size_t)q->ranks * row_of(q), sizeof(short));
    return best;
}

bool vee_best_offer(VeeBest *best, const Problem *q, const Sequence *orders)
{
    Result result;
    if (!order_result(q, orders, &result, NULL) || !order_fits(q, orders))
        return false;
    double value = metric_of(q, &result), second = second_of(q, &result),
           least = best->value * (1 - 1e-12);
    if (value > best->value || (value >= least && second >= best->second))
        return false;
    best->value = value;
    best->second = second;
    for (int r = 0; r < q->ranks; r++)
        memcpy(best->entries + (size_t)r * row_of(q), orders[r].at,
               row_of(q) * sizeof(short));
    return true;
}

bool vee_best_give(const VeeBest *best, const Problem *q, Sequence *orders)
{
    if (isinf(best->value))
        return false;
    for (int r = 0; r < q->ranks; r++) {
        memcpy(orders[r].at, best->entries + (size_t)r * row_of(q),
               row_of(q) * sizeof(short));
        orders[r].count = (int)row_of(q);
    }
    return true;
}

void vee_best_drop(VeeBest *best)
{
    free(best->entries);
}
