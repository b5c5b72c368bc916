/* prove.h: what the files of prove share.
 *
 *     prove.c         the pass; each list by itself, and whose message meets whose
 *     prove_run.c     all lists at once: a linear order with times, or a circle
 *     prove_sums.c    the order in which gradients are added
 *     prove_memory.c  offsets, once they are chosen */
#ifndef PROVE_H
#define PROVE_H

#include "nodes.h"

typedef struct Wire {       // from one rank to another
    int first, count;       // its messages in p->messages
    int receives;           // RECVs of the receiver's list
    int extra;              // the first of them that has no message, a node
    int sent, posted;       // of the run so far: SENDs; RECVs that are there
    int carried, taken;     // messages on their way or there; RECVs that have ended
    bool queued;            // the next one waits for its adapter
} Wire;

typedef struct Prover {
    Program *p;
    bool posts;             // receives do not block; TAKEs do
    Wire *wires;            // [from * ranks + to]
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

bool runs_to_the_end(Prover *prover);

#endif
