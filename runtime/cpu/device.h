/* device.h: what the CPU device needs from the start of a rank, beyond pp.h. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdint.h>

extern uint64_t pp_seed;        // of pp_normal; set it before the first call

void pp_device_start(void);     // once, before any kernel, in the thread that will call the kernels

#endif
