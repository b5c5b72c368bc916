/* 1f1b.h: what 1f1b and eager share. */
#ifndef ONE_FORWARD_ONE_BACKWARD_H
#define ONE_FORWARD_ONE_BACKWARD_H

#include "order/order.h"

/* `warmup` forwards, or all that there are; then forward and backward in turn. */
void alternate_after(Program *p, int rank, int warmup);

#endif
