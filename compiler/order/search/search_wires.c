/* search_wires.c: the wires of a problem. See the header. */
#include "search_wires.h"

#include <stdlib.h>

/* Is a message sent over the boundary before chunk c. */
static bool crosses(const Problem *q, int c)
{
    return c > 0 && c < q->chunks && q->rank[c - 1] != q->rank[c];
}

bool wires_matter(const Problem *q)
{
    double delay = -1;
    for (int c = 1; c < q->chunks; c++) {
        if (!crosses(q, c))
            continue;
        if ((q->wire && q->wire[c] > 0) || (q->posted && q->message[c] > 0))
            return true;
        // Of unequal delays the longer one holds up a receiver that blocks.
        if (delay >= 0 && q->message[c] != delay && q->chunks > q->ranks)
            return true;
        delay = q->message[c];
    }
    return false;
}

/* The wire between two ranks, made if it is new: `head` is the last one that was
 * made for the sender, `next` the one before that. */
static int wire_between(Wires *w, int *head, int *next, int *receiver, int from,
                        int to)
{
    for (int i = head[from]; i >= 0; i = next[i])
        if (receiver[i] == to)
            return i;
    next[w->count] = head[from];
    receiver[w->count] = to;
    head[from] = w->count;
    return w->count++;
}

static void lay_wires(Wires *w)
{
    const Problem *q = w->q;
    size_t chunks = (size_t)q->chunks;
    int *head = room((size_t)q->ranks + 4 * chunks, sizeof *head),
        *next = head + q->ranks, *receiver = next + 2 * chunks, first = 0;
    for (int r = 0; r < q->ranks; r++)
        head[r] = -1;
    for (int c = 0; c < q->chunks; c++)
        for (int kind = SEARCH_F; kind <= SEARCH_I; kind++) {
            int to = kind == SEARCH_F ? c + 1 : c - 1;
            bool sends = crosses(q, boundary_of(kind, c));
            w->out[kind][c] = sends ? wire_between(w, head, next, receiver,
                                                   q->rank[c], q->rank[to])
                                    : -1;
            if (sends)  // until the places are given out, how many it carries
                w->wires[w->out[kind][c]].first += q->microbatches;
        }
    for (int i = 0; i < w->count; i++) {
        int carries = w->wires[i].first;
        w->wires[i].first = first;
        first += carries;
    }
    free(head);
}

Wires wires_open(const Problem *q)
{
    size_t chunks = (size_t)q->chunks, cells = chunks * (size_t)q->microbatches;
    Wires w = {.q = q, .matter = wires_matter(q)};
    if (!w.matter)
        return w;
    int *counts = room(2 * (chunks + cells), sizeof *counts);
    w.wires = room(2 * chunks, sizeof *w.wires);
    w.parcels = room(2 * cells, sizeof *w.parcels);
    for (int k = 0; k < 2; k++) {
        w.out[k] = counts + (size_t)k * chunks;
        w.place[k] = counts + 2 * chunks + (size_t)k * cells;
    }
    lay_wires(&w);
    return w;
}

void wires_clear(Wires *w)
{
    for (int i = 0; i < w->count; i++)
        w->wires[i] = (Wire){.first = w->wires[i].first};
}

void wires_close(Wires *w)
{
    free(w->out[0]);
    free(w->wires);
    free(w->parcels);
}
