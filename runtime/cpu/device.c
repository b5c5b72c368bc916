/* device.c: sets up the processor for one rank.
 *
 * Ranks are the parallelism, so a rank computes in one thread: oneDNN, which
 * uses OpenMP, is told so here once. Numbers below 1e-38 become zero: the
 * moving averages of a parameter that is rarely used decay into that range and
 * stay there, and arithmetic on them is a hundred times slower. */
#include "device.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

void omp_set_num_threads(
    int threads);  // libgomp's; clang has no omp.h of its own

void pp_device_start(void)
{
    omp_set_num_threads(1);
#ifdef __SSE__
    const unsigned flush_results = 0x8000, flush_operands = 0x0040;
    _mm_setcsr(_mm_getcsr() | flush_results | flush_operands);
#endif
}
