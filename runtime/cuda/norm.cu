/* norm.cu: the norm of all gradients, and the factor that clips them. Neither
 * leaves the device: the optimizer reads the factor from pp_device.hyper. */
#include "bridge.h"
#include "sums.cuh"

template <int N> struct GradientTerm {
    const float *grad;

    __device__ double operator()(size_t i) const
    {
        float g[N];
        double sum = 0;
        load<N>(g, grad + i * N);
#pragma unroll
        for (int k = 0; k < N; k++)
            sum += (double)g[k] * (double)g[k];
        return sum;
    }
};

static __global__ void note_losses(double *lost, const float *losses, int count)
{
    for (int i = 0; i < count; i++)
        if (!isfinite(losses[i]))
            *lost = NAN;
}

/* The first that is no number, or the largest of all. */
static __device__ int worst_of(const double *squares, int parameters)
{
    int worst = 0;
    for (int i = 0; i < parameters && isfinite(squares[worst]); i++)
        if (!isfinite(squares[i]) || squares[i] > squares[worst])
            worst = i;
    return worst;
}

static __global__ void scale_from_squares(Hyper *hyper, const double *squares,
                                          int parameters, float limit)
{
    double total = 0;
    for (int i = 0; i < parameters; i++)
        total += squares[i];
    float norm = (float)sqrt(total);
    hyper->norm = norm;
    hyper->lost = isnan(squares[parameters]);
    bool none = hyper->lost || !isfinite(norm);
    hyper->worst = none ? worst_of(squares, parameters) : 0;
    hyper->scale = none ? NAN : norm > limit ? limit / norm : 1;
}

extern "C" {

void pp_square(const char *name, int parameter, const float *grad, size_t count)
{
    bridge_name_parameter(parameter, name);
    double *to = pp_device.squares + parameter;
    if (packed(4, count, grad))
        total(to, GradientTerm<4>{grad}, count / 4, 1);
    else
        total(to, GradientTerm<1>{grad}, count, 1);
}

void pp_note_losses(int parameters, const float *losses, int count)
{
    launch(note_losses, dim3(1), 1, 0, pp_device.squares + parameters, losses,
           count);
}

void pp_scale_from_squares(int parameters, float limit)
{
    launch(scale_from_squares, dim3(1), 1, 0, pp_device.hyper,
           (const double *)pp_device.squares, parameters, limit);
}

}  // extern "C"
