/* activation.cu: the elementwise kernels. Each reads and writes memory once:
 * one thread computes one pack of 16 bytes.
 *
 * A kernel is `map` with a function of up to two values; a third tensor, prev,
 * is added to its result. */
#include "device.cuh"

constexpr int THREADS = 256;

/* y[i] = f(a[i], b[i]) + prev[i], where b and prev may be NULL and count as
 * 0 */
template <int N, class F>
static __global__ void map(Value *y, F f, const Value *a, const Value *b,
                           const Value *prev, size_t count)
{
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    if (i >= count)
        return;
    float left[N], right[N] = {}, add[N] = {};
    load<N>(left, a + i);
    if (b)
        load<N>(right, b + i);
    if (prev)
        load<N>(add, prev + i);
#pragma unroll
    for (int k = 0; k < N; k++)
        left[k] = f(left[k], right[k]) + add[k];
    store<N>(y + i, left);
}

template <class F>
static void map_all(F f, float *y, const float *a, const float *b,
                    const float *prev, size_t count)
{
    if (count == 0)
        return;
    bool wide = packed(PACK, count, y, a, b, prev);
    launch(wide ? map<PACK, F> : map<1, F>,
           dim3(blocks(count, wide ? THREADS * PACK : THREADS)), THREADS, 0,
           (Value *)y, f, (const Value *)a, (const Value *)b,
           (const Value *)prev, count);
}

/* ---- the functions ---- */

struct Plus {
    __device__ float operator()(float a, float b) const
    {
        return a + b;
    }
};

struct Relu {
    __device__ float operator()(float x, float) const
    {
        return x > 0 ? x : 0;
    }
};

struct ReluInput {
    __device__ float operator()(float dy, float x) const
    {
        return x > 0 ? dy : 0;
    }
};

constexpr float TWICE = 1.5957691216057308f;  // 2 sqrt(2/pi)
constexpr float CUBIC = 0.044715f;

/* 0.5 (1 + tanh(u)) is the logistic function of 2u, with u = sqrt(2/pi) x (1 +
 * 0.044715 x^2). */
static __device__ float gate(float x)
{
    return 1 / (1 + __expf(-TWICE * x * (1 + CUBIC * x * x)));
}

struct Gelu {
    __device__ float operator()(float x, float) const
    {
        return x * gate(x);
    }
};

/* For a large |x| the slope of the gate is 0; only x^2 must stay finite, as it
 * is multiplied by that 0. */
struct GeluInput {
    __device__ float operator()(float dy, float x) const
    {
        float on = gate(x), square = fminf(x * x, 1000);
        float slope = TWICE * (1 + 3 * CUBIC * square);
        return dy * (on + x * on * (1 - on) * slope);
    }
};

/* ---- pp.h ---- */

extern "C" {

void pp_sum(float *dx, const float *dy, const float *prev, size_t count)
{
    map_all(Plus(), dx, dy, prev, NULL, count);
}

void pp_add_forward(float *y, const float *a, const float *b, size_t count)
{
    map_all(Plus(), y, a, b, NULL, count);
}

void pp_relu_forward(float *y, const float *x, size_t count)
{
    map_all(Relu(), y, x, NULL, NULL, count);
}

void pp_relu_input(float *dx, const float *dy, const float *x,
                   const float *prev, size_t count)
{
    map_all(ReluInput(), dx, dy, x, prev, count);
}

void pp_gelu_forward(float *y, const float *x, size_t count)
{
    map_all(Gelu(), y, x, NULL, NULL, count);
}

void pp_gelu_input(float *dx, const float *dy, const float *x,
                   const float *prev, size_t count)
{
    map_all(GeluInput(), dx, dy, x, prev, count);
}

/* Gradients of parameters: count floats. */
void pp_zero(float *x, size_t count)
{
    CHECK(cudaMemsetAsync(x, 0, count * sizeof *x, pp_device.compute));
}

}  // extern "C"

/* ---- between float and Value ---- */

template <int N>
static __global__ void fill(float *w, size_t count, float value)
{
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    float values[N];
    for (int k = 0; k < N; k++)
        values[k] = value;
    if (i < count)
        store<N>(w + i, values);
}

template <int N>
static __global__ void narrow(Value *to, const float *from, size_t count)
{
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    float values[N];
    if (i >= count)
        return;
    load<N>(values, from + i);
    store<N>(to + i, values);
}

extern "C" {

/* A master copy: count floats. */
void pp_fill(float *w, size_t count, float value)
{
    if (count == 0)
        return;
    bool wide = packed(4, count, w);
    launch(wide ? fill<4> : fill<1>,
           dim3(blocks(count, wide ? THREADS * 4 : THREADS)), THREADS, 0, w,
           count, value);
}

void pp_narrow(float *to, const float *from, size_t count)
{
    if (count == 0)
        return;
    bool wide = packed(PACK, count, to, from);
    launch(wide ? narrow<PACK> : narrow<1>,
           dim3(blocks(count, wide ? THREADS * PACK : THREADS)), THREADS, 0,
           (Value *)to, from, count);
}

}  // extern "C"
