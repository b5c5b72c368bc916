/* random.h: the initial values of parameters, in host memory. */
#ifndef RANDOM_H
#define RANDOM_H

#include <stddef.h>
#include <stdint.h>

extern uint64_t pp_seed;  // set it before the first call

/* As pp_normal, which a device builds on it. */
void pp_draw_normal(float *w, size_t count, const char *name, float deviation);

#endif
