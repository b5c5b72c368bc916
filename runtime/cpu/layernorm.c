/* layernorm.c: y = (x - mean) / sqrt(variance + 1e-5) * weight + bias, over
 * each position's width.
 *
 * A position fits in the first-level cache, so reading it three times costs one
 * trip to memory. The variance is the mean square of the differences, which
 * stays exact where the mean is large. */
#include "real.h"

static Real variance_of(const Real *x, Real mean, int width)
{
    Lanes lanes = {0};
    Real rest = 0;
    int j = 0;
    for (; j + LANES <= width; j += LANES) {
        Lanes difference = *(const Lanes *)(x + j) - mean;
        lanes += difference * difference;
    }
    for (; j < width; j++)
        rest += (x[j] - mean) * (x[j] - mean);
    return (sum_lanes(&lanes) + rest) / width;
}

void pp_layernorm_forward(Real *y, Real *stats, const Real *x,
                          const Real *weight, const Real *bias, int n,
                          int width)
{
    for (int i = 0; i < n; i++, x += width, y += width, stats += 2) {
        Real mean = real_sum(x, width) / width;
        Real scale = 1 / real_sqrt(variance_of(x, mean, width) + (Real)1e-5);
#pragma omp simd
        for (int j = 0; j < width; j++)
            y[j] = (x[j] - mean) * scale * weight[j] + bias[j];
        stats[0] = mean;
        stats[1] = scale;
    }
}

/* With h = (x - mean) scale and g = dy weight:  dx = scale (g - mean(g) - h
 * mean(g h)) */
void pp_layernorm_input(Real *dx, const Real *dy, const Real *x,
                        const Real *stats, const Real *weight, const Real *prev,
                        int n, int width)
{
    for (int i = 0; i < n;
         i++, x += width, dy += width, dx += width, stats += 2) {
        Real mean = stats[0], scale = stats[1], along = 0, across = 0;
#pragma omp simd reduction(+ : along, across)
        for (int j = 0; j < width; j++) {
            Real g = dy[j] * weight[j];
            along += g;
            across += g * ((x[j] - mean) * scale);
        }
        along /= width;
        across /= width;
        const Real *add = prev ? prev + (size_t)i * width : NULL;
#pragma omp simd
        for (int j = 0; j < width; j++) {
            Real h = (x[j] - mean) * scale;
            dx[j] = scale * (dy[j] * weight[j] - along - h * across) +
                    (add ? add[j] : 0);
        }
    }
}

void pp_layernorm_weight(Real *dweight, Real *dbias, const Real *dy,
                         const Real *x, const Real *stats, int n, int width)
{
    for (int i = 0; i < n; i++, x += width, dy += width, stats += 2) {
        Real mean = stats[0], scale = stats[1];
#pragma omp simd
        for (int j = 0; j < width; j++) {
            dweight[j] += dy[j] * ((x[j] - mean) * scale);
            dbias[j] += dy[j];
        }
    }
}
