/* norm.cu: the norm of all gradients, and the factor that clips them. Neither
 * leaves the device: the optimizer reads the factor from pp_device.hyper. */
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

static __global__ void scale_from_squares(Hyper *hyper, const double *squares,
                                          int parameters, float limit)
{
    double total = 0;
    for (int i = 0; i < parameters; i++)
        total += squares[i];
    float norm = (float)sqrt(total);
    hyper->norm = norm;
    hyper->scale = norm > limit ? limit / norm : 1;
}

extern "C" {

void pp_square(const char *name, int parameter, const float *grad, size_t count)
{
    (void)name;
    double *to = pp_device.squares + parameter;
    if (packed(4, count, grad))
        total(to, GradientTerm<4>{grad}, count / 4, 1);
    else
        total(to, GradientTerm<1>{grad}, count, 1);
}

void pp_scale_from_squares(int parameters, float limit)
{
    launch(scale_from_squares, dim3(1), 1, 0, pp_device.hyper,
           (const double *)pp_device.squares, parameters, limit);
}

}  // extern "C"
