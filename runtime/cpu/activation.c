/* activation.c: the elementwise kernels. Each reads and writes memory once. */
#include "real.h"

void pp_fill(Real *w, size_t count, Real value)
{
    for (size_t i = 0; i < count; i++)
        w[i] = value;
}

void pp_zero(Real *x, size_t count)
{
    memset(x, 0, count * sizeof *x);
}

void pp_sum(Real *dx, const Real *dy, const Real *prev, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        dx[i] = dy[i] + prev[i];
}

void pp_add_forward(Real *y, const Real *a, const Real *b, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        y[i] = a[i] + b[i];
}

void pp_relu_forward(Real *y, const Real *x, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] > 0 ? x[i] : 0;
}

void pp_relu_input(Real *dx, const Real *dy, const Real *x, const Real *prev,
                   size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        dx[i] = (x[i] > 0 ? dy[i] : 0) + (prev ? prev[i] : 0);
}

/* 0.5 (1 + tanh(u)) is the logistic function of 2u, with u = sqrt(2/pi) x (1 +
 * 0.044715 x^2). For a large |x| it is 0 or 1 and its slope 0, also where exp
 * overflows; only x^2 must stay finite, as the derivative multiplies that 0 by
 * it. */
static const Real twice = (Real)1.5957691216057308;  // 2 sqrt(2/pi)
static const Real cubic = (Real)0.044715;

static inline Real gate(Real x)
{
    return 1 / (1 + real_exp(-twice * x * (1 + cubic * x * x)));
}

void pp_gelu_forward(Real *y, const Real *x, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] * gate(x[i]);
}

/* In two passes over a block: as one loop, the chain of dependent operations is
 * so long that the processor cannot overlap two turns of it, and it takes
 * almost twice as long. */
void pp_gelu_input(Real *dx, const Real *dy, const Real *x, const Real *prev,
                   size_t count)
{
    enum { BLOCK = 256 };
    Real g[BLOCK];
    for (size_t first = 0; first < count; first += BLOCK) {
        size_t end = count - first < BLOCK ? count : first + BLOCK;
#pragma omp simd
        for (size_t i = first; i < end; i++)
            g[i - first] = gate(x[i]);
#pragma omp simd
        for (size_t i = first; i < end; i++) {
            Real square = x[i] * x[i], on = g[i - first];
            square = square > 1000 ? 1000 : square;
            Real slope = twice * (1 + 3 * cubic * square);
            dx[i] = dy[i] * (on + x[i] * on * (1 - on) * slope) +
                    (prev ? prev[i] : 0);
        }
    }
}
