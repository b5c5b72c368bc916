/* loss.c: cross entropy and mean squared error.
 *
 * The sum of a row of exponentials is kept in lanes, which compilers turn into
 * vectors; the sum over positions is kept in double, as it has thousands of
 * terms of one sign. */
#include "real.h"

static Real log_sum_exp(const Real *x, int width)
{
    Real top = real_max(x, width), part[LANES], rest = 0;
    Lanes lanes = {0};
    int j = 0;
    for (; j + LANES <= width; j += LANES) {
        for (int i = 0; i < LANES; i++)
            part[i] = real_exp(x[j + i] - top);
        lanes += *(const Lanes *)part;
    }
    for (; j < width; j++)
        rest += real_exp(x[j] - top);
    return top + real_log(sum_lanes(&lanes) + rest);
}

void pp_cross_entropy_forward(Real *loss, Real *lse, const Real *x,
                              const int32_t *targets, int n, int width)
{
    double sum = 0;
    for (int i = 0; i < n; i++, x += width) {
        lse[i] = log_sum_exp(x, width);
        sum += lse[i] - x[targets[i]];
    }
    *loss = (Real)(sum / n);
}

void pp_cross_entropy_input(Real *dx, const Real *x, const Real *lse,
                            const int32_t *targets, int n, int width,
                            Real scale)
{
    for (int i = 0; i < n; i++, x += width, dx += width) {
        Real shift = lse[i];
#pragma omp simd
        for (int j = 0; j < width; j++)
            dx[j] = real_exp(x[j] - shift) * scale;
        dx[targets[i]] -= scale;
    }
}

void pp_mse_forward(Real *loss, const Real *x, const Real *targets, int n,
                    int width)
{
    size_t count = (size_t)n * (size_t)width;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < count; i++) {
        double difference = (double)x[i] - (double)targets[i];
        sum += difference * difference;
    }
    *loss = (Real)(sum / (double)count);
}

void pp_mse_input(Real *dx, const Real *x, const Real *targets, int n,
                  int width, Real scale)
{
    size_t count = (size_t)n * (size_t)width;
    Real factor = 2 * scale / width;
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        dx[i] = (x[i] - targets[i]) * factor;
}
