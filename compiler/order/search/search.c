/* search.c: the times and the memory of orders, for the search.
 *
 * Each rank runs its entries as early as it can, one after another. A rank that
 * lacks an input is left until the rank that brings it has moved on; if no rank
 * can move, the orders wait for one another. Micro-batches pass in order, so a
 * count per chunk and kind is all that is known about what is done.
 *
 * This is the clock that all others of the search are held equal to, and it is
 * equal to that of `prove`. */
#include "search_wires.h"

#include <math.h>
#include <stdlib.h>

void *room(size_t count, size_t size)
{
    void *made = calloc(count + 1, size);
    if (!made) {
        fprintf(stderr, "pipec: out of memory: %zu items of %zu bytes\n", count,
                size);
        exit(1);
    }
    return made;
}

typedef struct Run {
    const Problem *q;
    const Sequence *orders;
    double *const *start;
    double *end[SEARCH_KINDS];  // [chunk * microbatches + micro]
    int *done[SEARCH_KINDS];    // [chunk]
    int *next;                  // [rank] entry
    double *clock, *first;      // [rank]
    double *post;               // [rank] end of the entry before its last
    Wires wires;
} Run;

/* When the input of an entry is there, which its rank then receives; -1: it is
 * not yet known. */
static double ready_at(Run *x, int kind, int chunk, int micro)
{
    const Problem *q = x->q;
    size_t row = (size_t)q->microbatches;
    bool forth = kind == SEARCH_F;
    int from = forth ? chunk - 1 : chunk + 1;
    if (kind == SEARCH_W)
        return x->done[SEARCH_I][chunk] > micro ? 0 : -1;
    if (!forth && x->done[SEARCH_F][chunk] <= micro)
        return -1;
    if (from < 0 || from == q->chunks)
        return 0;
    if (x->done[kind][from] <= micro)
        return -1;
    return wires_take(&x->wires, kind, from, micro,
                      x->end[kind][(size_t)from * row + (size_t)micro],
                      x->post[q->rank[chunk]]);
}

/* The next entry of a rank begins. */
static void run_entry(Run *x, int rank, int kind, int chunk, double begin)
{
    const Problem *q = x->q;
    int micro = x->done[kind][chunk]++;
    double end = begin + q->time[kind][chunk];
    bool whole = is_whole(q, &x->orders[rank], x->next[rank],
                          micro - x->done[SEARCH_W][chunk]);
    if (whole)
        end = begin + q->whole[chunk];
    if (x->next[rank] == 0)
        x->first[rank] = begin;
    if (x->start)
        x->start[rank][x->next[rank]] = begin;
    if (x->start && whole)
        x->start[rank][x->next[rank] + 1] = end;
    x->end[kind][(size_t)chunk * (size_t)q->microbatches + (size_t)micro] = end;
    wires_send(&x->wires, kind, chunk, micro, end);
    x->post[rank] = x->clock[rank];
    x->clock[rank] = end;
    x->next[rank] += 1 + whole;
    x->done[SEARCH_W][chunk] += whole;
}

/* Runs a rank until it lacks something; how many entries that were. */
static int run_rank(Run *x, int rank)
{
    const Sequence *order = &x->orders[rank];
    int before = x->next[rank];
    while (x->next[rank] < order->count) {
        int entry = order->at[x->next[rank]], kind = entry % SEARCH_KINDS,
            chunk = entry / SEARCH_KINDS;
        double ready = ready_at(x, kind, chunk, x->done[kind][chunk]);
        if (ready < 0)
            break;
        run_entry(x, rank, kind, chunk, fmax(ready, x->clock[rank]));
    }
    return x->next[rank] - before;
}

/* The largest share of the limit that the rank holds after an entry. */
static double peak_share(const Problem *q, const Sequence *order, int rank)
{
    double held = 0, most = 0;
    for (int i = 0; i < order->count; i++) {
        int kind = order->at[i] % SEARCH_KINDS,
            chunk = order->at[i] / SEARCH_KINDS;
        held += action_growth(q, kind, chunk);
        most = held > most ? held : most;
    }
    return isinf(q->limit[rank]) ? 0 : most / q->limit[rank];
}

bool order_fits(const Problem *q, const Sequence *orders)
{
    for (int r = 0; r < q->ranks; r++)
        if (peak_share(q, &orders[r], r) > 1 + 1e-9)
            return false;
    return true;
}

/* All whole backwards where that is shorter. */
double rank_work(const Problem *q, int rank)
{
    double work = 0;
    for (int c = 0; c < q->chunks; c++) {
        double back = q->time[SEARCH_I][c] + q->time[SEARCH_W][c];
        if (q->whole)
            back = fmin(back, q->whole[c]);
        if (q->rank[c] == rank)
            work += q->microbatches * (q->time[SEARCH_F][c] + back);
    }
    return work;
}

double most_work(const Problem *q)
{
    double most = 0;
    for (int r = 0; r < q->ranks; r++)
        most = fmax(most, rank_work(q, r));
    return most;
}

bool order_result(const Problem *q, const Sequence *orders, Result *result,
                  double *const *start)
{
    size_t chunks = (size_t)q->chunks, ranks = (size_t)q->ranks,
           cells = chunks * (size_t)q->microbatches;
    double *numbers = room(SEARCH_KINDS * cells + 3 * ranks, sizeof *numbers);
    int *counts = room(SEARCH_KINDS * chunks + ranks, sizeof *counts);
    Run x = {.q = q, .orders = orders, .start = start, .wires = wires_open(q)};
    int moved = 1, left = 0;
    for (int k = 0; k < SEARCH_KINDS; k++) {
        x.end[k] = numbers + (size_t)k * cells;
        x.done[k] = counts + (size_t)k * chunks;
    }
    x.clock = numbers + SEARCH_KINDS * cells;
    x.first = x.clock + ranks;
    x.post = x.first + ranks;
    x.next = counts + SEARCH_KINDS * chunks;
    for (size_t r = 0; r < ranks; r++)
        x.clock[r] = x.first[r] = x.post[r] = 0;
    while (moved) {
        moved = 0;
        for (int r = 0; r < q->ranks; r++)
            moved += run_rank(&x, r);
    }
    *result = (Result){0};
    for (int r = 0; r < q->ranks; r++) {
        double peak = peak_share(q, &orders[r], r);
        left += orders[r].count - x.next[r];
        result->span = fmax(result->span, x.clock[r] - x.first[r]);
        result->makespan = fmax(result->makespan, x.clock[r]);
        result->peak = fmax(result->peak, peak);
    }
    wires_close(&x.wires);
    free(numbers);
    free(counts);
    return left == 0;
}
