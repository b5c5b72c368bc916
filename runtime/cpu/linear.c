/* linear.c: y = x weight^T + bias and its two gradients.
 *
 * The products are oneDNN's sgemm, whose matrices are row-major: as fast as its
 * matmul primitive for our shapes (measured), without objects to keep. What is
 * there already (bias, prev, earlier gradients) lies in the result beforehand,
 * and the product is added to it. */
#include "real.h"

#ifdef PP_DOUBLE

/* c[m][n] = a b + beta c ; a [m][k], or [k][m] when transposed; b [k][n], or
 * [n][k] */
static void product(char ta, char tb, int m, int n, int k, const Real *a,
                    const Real *b, Real beta, Real *c)
{
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            Real sum = beta == 0 ? 0 : c[i * n + j];
            for (int l = 0; l < k; l++)
                sum += (ta == 'T' ? a[l * m + i] : a[i * k + l]) *
                       (tb == 'T' ? b[j * k + l] : b[l * n + j]);
            c[i * n + j] = sum;
        }
    }
}

#else

#include "../fail.h"
#include <dnnl.h>

/* c[m][n] = a b + beta c ; a [m][k], or [k][m] when transposed; b [k][n], or
 * [n][k] */
static void product(char ta, char tb, int m, int n, int k, const Real *a,
                    const Real *b, Real beta, Real *c)
{
    int a_row = ta == 'T' ? m : k, b_row = tb == 'T' ? k : n;
    dnnl_status_t status = dnnl_sgemm(ta, tb, m, n, k, 1, a, a_row, b, b_row,
                                      beta, c, n);
    if (status != dnnl_success)
        pp_fail("oneDNN cannot multiply [%d x %d] by [%d x %d] (status %d)", m,
                k, k, n, (int)status);
}

#endif

void pp_linear_forward(Real *y, const Real *x, const Real *weight,
                       const Real *bias, int n, int in, int out)
{
    for (int i = 0; bias && i < n; i++)
        memcpy(y + (size_t)i * out, bias, (size_t)out * sizeof *y);
    product('N', 'T', n, out, in, x, weight, bias ? 1 : 0, y);
}

void pp_linear_input(Real *dx, const Real *dy, const Real *weight,
                     const Real *prev, int n, int in, int out)
{
    if (prev)
        memcpy(dx, prev, (size_t)n * (size_t)in * sizeof *dx);
    product('N', 'N', n, in, out, dy, weight, prev ? 1 : 0, dx);
}

void pp_linear_weight(Real *dweight, Real *dbias, const Real *x, const Real *dy,
                      int n, int in, int out)
{
    product('T', 'N', out, in, n, dy, x, 1, dweight);
    for (int i = 0; dbias && i < n; i++) {
        const Real *row = dy + (size_t)i * out;
#pragma omp simd
        for (int j = 0; j < out; j++)
            dbias[j] += row[j];
    }
}
