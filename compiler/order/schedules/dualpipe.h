/* dualpipe.h: the eight steps that dualpipe and dualpipev share. */
#ifndef DUALPIPE_H
#define DUALPIPE_H

#include "order/order.h"

typedef struct DualPipe {
    int depth;     // ranks from an end of the pipeline to its middle
    int place;     // of this rank, from an end: 0 .. depth - 1
    int chunk[2];  // phase 0, which micro-batches reach first here, and 1
    int first[2];  // micro-batch of each phase
    int count;  // micro-batches of a phase; those that do not exist are left out
} DualPipe;

/* The list of one rank. Complete when count >= 2 * depth - 1. */
void dualpipe_order(Program *p, int rank, const DualPipe *d);

#endif
