/* cudasim.h: what the simulator offers beyond CUDA, to tests. */
#ifndef CUDASIM_H
#define CUDASIM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ends the process with a report unless all `bytes` lie in one allocation that
 * a device may touch (device memory, pinned memory). From kernels and host. */
void cudasim_check(const void *pointer, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
