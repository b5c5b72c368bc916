/* order.h: what a schedule's `order` calls, one file of schedules/ for each
 * schedule. */
#ifndef ORDER_H
#define ORDER_H

#include "compile.h"

void forward(Program *p, int rank, int chunk, int micro);           // append F
void backward(Program *p, int rank, int chunk, int micro);          // append B
void backward_input(Program *p, int rank, int chunk, int micro);    // append I
void backward_weight(Program *p, int rank, int chunk, int micro);   // append W
void pair_with_next(Program *p, int rank);                          // what was appended last
void begin_steady(Program *p, int rank);
void begin_cooldown(Program *p, int rank);
double option(const Program *p, const char *name);                  // of the schedule in use

#endif
