/* prove.h: what the files of prove share.
 *
 *     prove.c         the pass; each list by itself, and whose message meets whose
 *     prove_run.c     all lists at once: a linear order with times, or a circle
 *     prove_sums.c    the order in which gradients are added
 *     prove_memory.c  offsets, once they are chosen */
#ifndef PROVE_H
#define PROVE_H

#include "nodes.h"

/* One queue: of a direction of a pair, whose first end are the SENDs of one list
 * and whose second end the RECVs of the other; or, if pairs have one for both
 * directions, all SENDs and RECVs of the lower rank, and of the higher one. */
typedef struct Wire {
    int first, count[2];    // entries of each end; messages in p->messages from the first
    int extra;              // the first entry of an end that is longer, a node
    int issued[2];          // of the run so far: entries of each end that are there
    int carried, taken;     // messages on their way or there; RECVs that have ended
    bool queued;            // the next one waits for its adapter
} Wire;

typedef struct Prover {
    Program *p;
    bool posts;             // receives do not block; TAKEs do
    bool both;              // one wire carries both directions of a pair
    Wire *wires;            // [from * ranks + to]; of both directions: from < to
    int (*ends)[2];         // [message] the entry of each end, nodes; -1
    int *next;              // [rank] the entry that runs next
    double *clock;          // [rank]
    bool *parked;           // [rank] waits for another rank
    int *arrived;           // [tie, then step] minus the ranks that have not come to it
    int *heap;              // ranks, and behind them wires that wait for an adapter
    double *key;            // [rank, or ranks + wire] when it can go on
    int heap_count;
    int carried;            // messages so far
    int *adapter;           // [machine] SEND of what it carried last; -1
} Prover;

static inline Action entry_at(const Prover *prover, int rank, int index)
{
    return prover->p->lists[rank].at[index];
}

/* The number of the wire of a SEND or RECV, or of what a WAIT or TAKE is about;
 * `end` is which end of it the rank is. */
static inline int wire_of_entry(const Prover *prover, int rank, Action a, int *end)
{
    int ranks = prover->p->ranks;
    bool in = is_receive(a.kind) || is_take(a.kind);
    *end = prover->both ? rank > a.peer : in;
    return *end ? a.peer * ranks + rank : rank * ranks + a.peer;
}

bool runs_to_the_end(Prover *prover);

#endif
