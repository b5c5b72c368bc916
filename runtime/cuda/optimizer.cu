/* optimizer.cu: one step of SGD with momentum, or of AdamW, for one parameter:
 * the formulas of cpu/optimizer.c on float master weights.
 *
 * What changes from step to step (rate, step and scale) is read from
 * pp_device.hyper, since the launches may be a captured graph; these fields of
 * the host's struct are ignored. */
#include "device.cuh"

constexpr int THREADS = 256;

template <int N>
static __global__ void __launch_bounds__(THREADS)
    sgd(float *__restrict__ w, const float *__restrict__ grad,
        float *__restrict__ velocity, size_t count,
        const Hyper *__restrict__ hyper, float momentum, float decay)
{
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    float rate = hyper->rate, scale = hyper->scale;
    if (i >= count || isnan(scale))
        return;
    float x[N], g[N], v[N] = {};
    load<N>(x, w + i);
    load<N>(g, grad + i);
    if (velocity)
        load<N>(v, velocity + i);
#pragma unroll
    for (int k = 0; k < N; k++) {
        v[k] = momentum * v[k] + (scale * g[k] + decay * x[k]);
        x[k] -= rate * v[k];
    }
    if (velocity)
        store<N>(velocity + i, v);
    store<N>(w + i, x);
}

/* ---- AdamW ---- */

struct Adamw {
    float beta1, beta2, epsilon, decay;
};

/* Both averages start at zero; dividing by 1 - beta^step removes that bias.
 * The division of the mean goes into the rate, that of the variance into its
 * root. */
struct Corrected {
    float rate, root, keep, scale;
};

static __device__ Corrected corrected(const Adamw &a, const Hyper *hyper)
{
    double rate = hyper->rate, step = hyper->step;
    return {(float)(rate / (1 - pow((double)a.beta1, step))),
            (float)sqrt(1 / (1 - pow((double)a.beta2, step))),
            1 - hyper->rate * a.decay, hyper->scale};
}

template <int N>
static __device__ void update(const Adamw &a, const Corrected &c, float (&x)[N],
                              const float (&grad)[N], float (&m)[N],
                              float (&v)[N])
{
#pragma unroll
    for (int k = 0; k < N; k++) {
        float g = c.scale * grad[k];
        m[k] = a.beta1 * m[k] + (1 - a.beta1) * g;
        v[k] = a.beta2 * v[k] + (1 - a.beta2) * g * g;
        x[k] = c.keep * x[k] -
               c.rate * m[k] / (sqrtf(v[k]) * c.root + a.epsilon);
    }
}

template <int N>
static __global__ void __launch_bounds__(THREADS)
    adamw(float *__restrict__ w, const float *__restrict__ grad,
          float *__restrict__ mean, float *__restrict__ variance, size_t count,
          const Hyper *__restrict__ hyper, Adamw a)
{
    __shared__ Corrected c;  // the powers are made once in a block
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    if (threadIdx.x == 0)
        c = corrected(a, hyper);
    __syncthreads();
    if (i >= count || isnan(c.scale))
        return;
    float x[N], g[N], m[N], v[N];
    load<N>(x, w + i);
    load<N>(g, grad + i);
    load<N>(m, mean + i);
    load<N>(v, variance + i);
    update<N>(a, c, x, g, m, v);
    store<N>(mean + i, m);
    store<N>(variance + i, v);
    store<N>(w + i, x);
}

/* ---- pp.h ---- */

extern "C" {

void pp_sgd(float *w, const float *grad, float *velocity, size_t count,
            const PpSgd *h, float decay)
{
    bool wide = packed(4, count, w, grad, velocity);
    launch(wide ? sgd<4> : sgd<1>,
           dim3(blocks(count, wide ? THREADS * 4 : THREADS)), THREADS, 0, w,
           grad, velocity, count, pp_device.hyper, h->momentum, decay);
}

void pp_adamw(float *w, const float *grad, float *mean, float *variance,
              size_t count, const PpAdamw *h, float decay)
{
    bool wide = packed(4, count, w, grad, mean, variance);
    Adamw a = {h->beta1, h->beta2, h->epsilon, decay};
    launch(wide ? adamw<4> : adamw<1>,
           dim3(blocks(count, wide ? THREADS * 4 : THREADS)), THREADS, 0, w,
           grad, mean, variance, count, pp_device.hyper, a);
}

}  // extern "C"
