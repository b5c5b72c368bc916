/* loss.cu: cross entropy, fused with its softmax, and mean squared error.
 *
 * A block owns a row of logits and reads it once: each thread keeps the largest
 * value that it has seen and the sum of exponentials relative to it, and scales
 * the sum when a larger one comes (Milakov and Gimelshein 2018). Losses of a
 * micro-batch are added in a fixed order, in double. */
#include "sums.cuh"

struct Softmax {  // of the values seen so far
    float top;    // the largest
    float sum;    // of exp(x - top)
};

static __device__ Softmax merged(Softmax a, Softmax b)
{
    float top = fmaxf(a.top, b.top);
    if (top == -INFINITY)
        return a;
    return {top, a.sum * __expf(a.top - top) + b.sum * __expf(b.top - top)};
}

static __device__ Softmax block_merged(Softmax s)
{
    __shared__ Softmax part[WARP];
    for (int step = WARP / 2; step > 0; step /= 2) {
        Softmax other = {__shfl_xor_sync(0xffffffff, s.top, step),
                         __shfl_xor_sync(0xffffffff, s.sum, step)};
        // both sides merge in the same order, to get the same bits
        s = threadIdx.x & step ? merged(other, s) : merged(s, other);
    }
    if (threadIdx.x % WARP == 0)
        part[threadIdx.x / WARP] = s;
    __syncthreads();
    s = part[0];
    for (int warp = 1; warp < (int)blockDim.x / WARP; warp++)
        s = merged(s, part[warp]);
    return s;
}

template <int N>
static __global__ void log_sum_exp(float *__restrict__ lse,
                                   const Value *__restrict__ x, int width)
{
    Softmax s = {-INFINITY, 0};
    x += (size_t)blockIdx.x * width;
    for (int j = threadIdx.x * N; j < width; j += blockDim.x * N) {
        float a[N], top = s.top;
        load<N>(a, x + j);
#pragma unroll
        for (int i = 0; i < N; i++)
            top = fmaxf(top, a[i]);
        if (top > s.top)
            s.sum *= __expf(s.top - top);
        s.top = top;
#pragma unroll
        for (int i = 0; i < N; i++)
            s.sum += top > -INFINITY ? __expf(a[i] - top) : 0;
    }
    s = block_merged(s);
    if (threadIdx.x == 0)
        lse[blockIdx.x] = s.top + __logf(s.sum);
}

struct CrossEntropyTerm {
    const float *lse;
    const Value *x;
    const int32_t *targets;
    int width;

    __device__ float operator()(size_t i) const
    {
        return lse[i] - widen(x[i * width + targets[i]]);
    }
};

/* dx = (softmax(x) - onehot) scale */
template <int N>
static __global__ void
cross_entropy_input(Value *__restrict__ dx, const Value *__restrict__ x,
                    const float *__restrict__ lse,
                    const int32_t *__restrict__ targets, int width, float scale)
{
    float shift = lse[blockIdx.x];
    int target = targets[blockIdx.x];
    x += (size_t)blockIdx.x * width, dx += (size_t)blockIdx.x * width;
    for (int j = threadIdx.x * N; j < width; j += blockDim.x * N) {
        float a[N];
        load<N>(a, x + j);
#pragma unroll
        for (int i = 0; i < N; i++)
            a[i] = (__expf(a[i] - shift) - (j + i == target ? 1 : 0)) * scale;
        store<N>(dx + j, a);
    }
}

/* Threads for a row: about four packs each, whole warps. */
static int row_threads(int width, bool wide)
{
    unsigned threads = blocks((size_t)width, wide ? PACK * 4 : 4);
    threads = (threads + WARP - 1) / WARP * WARP;
    return threads > 512 ? 512 : (int)threads;
}

/* ---- mean squared error; targets are floats ---- */

struct SquareTerm {
    const Value *x;
    const float *targets;

    __device__ double operator()(size_t i) const
    {
        double difference = (double)widen(x[i]) - (double)targets[i];
        return difference * difference;
    }
};

template <int N>
static __global__ void
mse_input(Value *__restrict__ dx, const Value *__restrict__ x,
          const float *__restrict__ targets, size_t count, float factor)
{
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    if (i >= count)
        return;
    float a[N], t[N];
    load<N>(a, x + i);
    load<N>(t, targets + i);
#pragma unroll
    for (int k = 0; k < N; k++)
        a[k] = (a[k] - t[k]) * factor;
    store<N>(dx + i, a);
}

/* ---- pp.h ---- */

extern "C" {

void pp_cross_entropy_forward(float *loss, float *lse, const float *x,
                              const int32_t *targets, int n, int width)
{
    bool wide = packed(PACK, (size_t)width, x);
    launch(wide ? log_sum_exp<PACK> : log_sum_exp<1>, dim3((unsigned)n),
           row_threads(width, wide), 0, lse, (const Value *)x, width);
    CrossEntropyTerm term = {lse, (const Value *)x, targets, width};
    total(loss, term, (size_t)n, 1.0 / n);
}

void pp_cross_entropy_input(float *dx, const float *x, const float *lse,
                            const int32_t *targets, int n, int width,
                            float scale)
{
    bool wide = packed(PACK, (size_t)width, x, dx);
    launch(wide ? cross_entropy_input<PACK> : cross_entropy_input<1>,
           dim3((unsigned)n), row_threads(width, wide), 0, (Value *)dx,
           (const Value *)x, lse, targets, width, scale);
}

void pp_mse_forward(float *loss, const float *x, const float *targets, int n,
                    int width)
{
    size_t count = (size_t)n * (size_t)width;
    SquareTerm term = {(const Value *)x, targets};
    total(loss, term, count, 1.0 / (double)count);
}

void pp_mse_input(float *dx, const float *x, const float *targets, int n,
                  int width, float scale)
{
    size_t count = (size_t)n * (size_t)width;
    bool wide = packed(PACK, count, dx, x, targets);
    launch(wide ? mse_input<PACK> : mse_input<1>,
           dim3(blocks(count, wide ? 256 * PACK : 256)), 256, 0, (Value *)dx,
           (const Value *)x, targets, count, 2 * scale / (float)width);
}

}  // extern "C"
