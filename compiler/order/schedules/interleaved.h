/* interleaved.h: the table of chunks and micro-batches that interleaved and zbh1
 * share. */
#ifndef INTERLEAVED_H
#define INTERLEAVED_H

#include "order/order.h"

/* N, the number of micro-batches of a group: the option `group`, or the least
 * number for which the last group leaves no bubble. */
int interleaved_group(const Program *p);
/* Entry k of the table: forward k of the rank, and backward k. */
void interleaved_forward(const Program *p, int rank, int k, int *chunk,
                         int *micro);
void interleaved_backward(const Program *p, int rank, int k, int *chunk,
                          int *micro);

#endif
