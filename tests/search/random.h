/* random.h: random problems with one chunk per rank, two forth and back, or two
 * round about; with wires, latencies, receives that block and receives that are
 * posted, whole and split backwards; and random orders of them that run. */
#ifndef RANDOM_H
#define RANDOM_H

#include "order/search/search.h"

#include <math.h>

enum {
    RANKS = 6,
    CHUNKS = 2 * RANKS,
    MICROS = 10
};

static unsigned long state = 4711;

static inline int chance(int limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (unsigned long)limit);
}

static double share_by_chance(void)
{
    return chance(1 << 20) / (double)(1 << 20);
}

typedef struct Case {
    Problem q;
    int rank[CHUNKS];
    double time[SEARCH_KINDS][CHUNKS], message[CHUNKS], wire[CHUNKS],
        whole[CHUNKS], held[CHUNKS], limit[RANKS];
    Sequence orders[RANKS];
    short entries[RANKS][SEARCH_KINDS * 2 * MICROS];
} Case;

typedef enum { LINEAR, VEE, LOOP, SHAPES } Shape;

/* Times of a kind are equal in one problem of four, so that ties are met. */
static void random_times(Case *c, int chunks)
{
    bool equal = chance(4) == 0;
    for (int i = 0; i < chunks; i++)
        for (int k = 0; k < SEARCH_KINDS; k++)
            c->time[k][i] = equal ? 1 + k : 0.2 + 2 * share_by_chance();
    for (int i = 0; i < chunks; i++)
        c->whole[i] = (c->time[SEARCH_I][i] + c->time[SEARCH_W][i]) *
                      (equal ? 0.75 : 0.5 + 0.7 * share_by_chance());
}

/* All boundaries between two ranks have one latency. */
static void random_messages(Case *c, int chunks)
{
    double delay[RANKS][RANKS];
    bool slow = chance(2), wide = chance(3) == 0;
    for (int a = 0; a < RANKS; a++)
        for (int b = 0; b <= a; b++)
            delay[a][b] = delay[b][a] = (slow ? 3 : 0.3) * share_by_chance();
    for (int i = 0; i < chunks; i++) {
        bool crosses = i > 0 && c->rank[i - 1] != c->rank[i];
        c->message[i] = crosses && chance(8) ? delay[c->rank[i - 1]][c->rank[i]]
                                           : 0;
        c->wire[i] = crosses && chance(6) ? (wide ? 0.1 : 2) * share_by_chance() : 0;
    }
    for (int i = 1; i < chunks; i++)
        for (int k = 1; k < i; k++)
            if ((c->rank[k - 1] == c->rank[i - 1] &&
                 c->rank[k] == c->rank[i]) ||
                (c->rank[k - 1] == c->rank[i] && c->rank[k] == c->rank[i - 1]))
                c->message[i] = c->message[k];
}

static void random_problem(Case *c, Shape shape, int ranks, int microbatches)
{
    int chunks = shape == LINEAR ? ranks : 2 * ranks;
    for (int i = 0; i < chunks; i++) {
        c->rank[i] = shape == VEE && i >= ranks ? chunks - 1 - i : i % ranks;
        c->held[i] = 1;
    }
    for (int r = 0; r < ranks; r++)
        c->limit[r] = INFINITY;
    random_times(c, chunks);
    random_messages(c, chunks);
    c->q = (Problem){.ranks = ranks,
                     .chunks = chunks,
                     .microbatches = microbatches,
                     .rank = c->rank,
                     .time = {c->time[0], c->time[1], c->time[2]},
                     .message = c->message,
                     .wire = chance(3) ? c->wire : NULL,
                     .whole = chance(2) ? c->whole : NULL,
                     .held = c->held,
                     .kept = c->held,
                     .limit = c->limit,
                     .metric = METRIC_MAKESPAN,
                     .posted = chance(2)};
}

/* Any of the actions that could come next, one after another; forwards, or what
 * follows a backward, are preferred in some, so that all depths are met. */
static void random_orders(Case *c)
{
    const Problem *q = &c->q;
    int done[CHUNKS][SEARCH_KINDS] = {{0}}, taste = chance(4),
        left = SEARCH_KINDS * q->chunks * q->microbatches;
    for (int r = 0; r < q->ranks; r++)
        c->orders[r] = (Sequence){c->entries[r], 0};
    while (left > 0) {
        int i = chance(q->chunks), k = chance(SEARCH_KINDS), m = done[i][k];
        int from = k == SEARCH_F ? i - 1 : i + 1;
        if (m == q->microbatches || (k != SEARCH_F && done[i][k - 1] <= m) ||
            (k != SEARCH_W && from >= 0 && from < q->chunks &&
             done[from][k] <= m) ||
            (taste && taste != k && chance(6)))
            continue;
        Sequence *order = &c->orders[q->rank[i]];
        order->at[order->count++] = (short)(i * SEARCH_KINDS + k);
        done[i][k]++;
        left--;
        if (taste == SEARCH_W && k == SEARCH_I && chance(3) &&
            done[i][SEARCH_W] + 1 == done[i][SEARCH_I]) {
            order->at[order->count++] = (short)(i * SEARCH_KINDS + SEARCH_W);
            done[i][SEARCH_W]++;
            left--;
        }
    }
}

#endif
