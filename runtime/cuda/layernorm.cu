/* layernorm.cu: y = (x - mean) / sqrt(variance + 1e-5) * weight + bias, over
 * each position's width.
 *
 * One warp owns one position: its sums need shuffles only. The row is read
 * again for each pass, from the cache of the multiprocessor. The variance is
 * the mean square of the differences, which stays exact where the mean is
 * large. */
#include "sums.cuh"

constexpr int WARPS = 8;

static __device__ int row_of_warp()
{
    return blockIdx.x * WARPS + threadIdx.x / WARP;
}

template <int N> static __device__ int first_column()
{
    return threadIdx.x % WARP * N;
}

template <int N> static __device__ float mean_of(const Value *x, int width)
{
    float sum = 0;
    for (int j = first_column<N>(); j < width; j += WARP * N) {
        float a[N];
        load<N>(a, x + j);
#pragma unroll
        for (int i = 0; i < N; i++)
            sum += a[i];
    }
    return warp_sum(sum) / (float)width;
}

template <int N>
static __device__ float variance_of(const Value *x, float mean, int width)
{
    float sum = 0;
    for (int j = first_column<N>(); j < width; j += WARP * N) {
        float a[N];
        load<N>(a, x + j);
#pragma unroll
        for (int i = 0; i < N; i++)
            sum += (a[i] - mean) * (a[i] - mean);
    }
    return warp_sum(sum) / (float)width;
}

template <int N>
static __global__ void __launch_bounds__(WARP *WARPS)
    layernorm_forward(Value *__restrict__ y, float *__restrict__ stats,
                      const Value *__restrict__ x,
                      const Value *__restrict__ weight,
                      const Value *__restrict__ bias, int n, int width)
{
    int row = row_of_warp();
    if (row >= n)
        return;
    x += (size_t)row * width, y += (size_t)row * width;
    float mean = mean_of<N>(x, width);
    float scale = rsqrtf(variance_of<N>(x, mean, width) + 1e-5f);
    for (int j = first_column<N>(); j < width; j += WARP * N) {
        float a[N], w[N], b[N];
        load<N>(a, x + j);
        load<N>(w, weight + j);
        load<N>(b, bias + j);
#pragma unroll
        for (int i = 0; i < N; i++)
            a[i] = (a[i] - mean) * scale * w[i] + b[i];
        store<N>(y + j, a);
    }
    if (threadIdx.x % WARP == 0) {
        stats[2 * (size_t)row] = mean;
        stats[2 * (size_t)row + 1] = scale;
    }
}

/* ---- gradients ---- */

struct Position {  // one row, and how it was normalised
    const Value *dy, *x, *weight;
    float mean, scale;
};

/* g = dy weight and h = (x - mean) scale, from column j */
template <int N>
static __device__ void gradient_at(const Position &p, int j, float (&g)[N],
                                   float (&h)[N])
{
    float w[N];
    load<N>(g, p.dy + j);
    load<N>(h, p.x + j);
    load<N>(w, p.weight + j);
#pragma unroll
    for (int i = 0; i < N; i++) {
        g[i] *= w[i];
        h[i] = (h[i] - p.mean) * p.scale;
    }
}

/* dx = scale (g - mean(g) - h mean(g h)) + prev */
template <int N>
static __device__ void row_input(Value *dx, const Position &p,
                                 const Value *prev, int width)
{
    float along = 0, across = 0, g[N], h[N];
    for (int j = first_column<N>(); j < width; j += WARP * N) {
        gradient_at<N>(p, j, g, h);
#pragma unroll
        for (int i = 0; i < N; i++) {
            along += g[i];
            across += g[i] * h[i];
        }
    }
    along = warp_sum(along) / (float)width;
    across = warp_sum(across) / (float)width;
    for (int j = first_column<N>(); j < width; j += WARP * N) {
        float add[N] = {};
        gradient_at<N>(p, j, g, h);
        if (prev)
            load<N>(add, prev + j);
#pragma unroll
        for (int i = 0; i < N; i++)
            g[i] = p.scale * (g[i] - along - h[i] * across) + add[i];
        store<N>(dx + j, g);
    }
}

template <int N>
static __global__ void __launch_bounds__(WARP *WARPS)
    layernorm_input(Value *__restrict__ dx, const Value *__restrict__ dy,
                    const Value *__restrict__ x,
                    const float *__restrict__ stats,
                    const Value *__restrict__ weight,
                    const Value *__restrict__ prev, int n, int width)
{
    int row = row_of_warp();
    if (row >= n)
        return;
    size_t at = (size_t)row * width;
    Position p = {dy + at, x + at, weight, stats[2 * (size_t)row],
                  stats[2 * (size_t)row + 1]};
    row_input<N>(dx + at, p, prev ? prev + at : NULL, width);
}

struct LayernormTerm {  // sums[0]: of dweight, sums[1]: of dbias
    static constexpr int SUMS = 2;
    const Value *dy, *x;
    const float *stats;
    int width;

    template <int N>
    __device__ void add(float (&sum)[SUMS][N], int row, int column) const
    {
        float g[N], a[N];
        float mean = stats[2 * (size_t)row];
        float scale = stats[2 * (size_t)row + 1];
        load<N>(g, dy + (size_t)row * width + column);
        load<N>(a, x + (size_t)row * width + column);
#pragma unroll
        for (int i = 0; i < N; i++) {
            sum[0][i] += g[i] * ((a[i] - mean) * scale);
            sum[1][i] += g[i];
        }
    }
};

/* ---- pp.h ---- */

extern "C" {

void pp_layernorm_forward(float *y, float *stats, const float *x,
                          const float *weight, const float *bias, int n,
                          int width)
{
    bool wide = packed(PACK, (size_t)width, y, x, weight, bias);
    launch(wide ? layernorm_forward<PACK> : layernorm_forward<1>,
           dim3(blocks((size_t)n, WARPS)), WARP * WARPS, 0, (Value *)y, stats,
           (const Value *)x, (const Value *)weight, (const Value *)bias, n,
           width);
}

void pp_layernorm_input(float *dx, const float *dy, const float *x,
                        const float *stats, const float *weight,
                        const float *prev, int n, int width)
{
    bool wide = packed(PACK, (size_t)width, dx, dy, x, weight, prev);
    launch(wide ? layernorm_input<PACK> : layernorm_input<1>,
           dim3(blocks((size_t)n, WARPS)), WARP * WARPS, 0, (Value *)dx,
           (const Value *)dy, (const Value *)x, stats, (const Value *)weight,
           (const Value *)prev, n, width);
}

void pp_layernorm_weight(float *dweight, float *dbias, const float *dy,
                         const float *x, const float *stats, int n, int width)
{
    LayernormTerm term = {(const Value *)dy, (const Value *)x, stats, width};
    add_columns(term, dweight, dbias, n, width,
                packed(PACK, (size_t)width, dy, x));
}

}  // extern "C"
