/* embedding.cu: the two tables of a model's first layer: one row per token,
 * one row per position.
 *
 * Repeated tokens must add up the same way every time. So the rows of one token
 * are added by one block, that of the token's first position; the blocks of the
 * other positions find an earlier one and leave.
 *
 *     tokens   7  3  7  7  5        block 0 adds dy[0], dy[2], dy[3] to row 7
 *     first    *  *        *        block 1 adds dy[1] to row 3, block 4 ...
 */
#include "device.cuh"

constexpr int THREADS = 256, WARPS = THREADS / WARP;

/* ---- one row per token ---- */

template <int N>
static __global__ void
embedding_forward(Value *__restrict__ y, const int32_t *__restrict__ tokens,
                  const Value *__restrict__ weight, size_t count, int width)
{
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    if (i >= count)
        return;
    float row[N];
    load<N>(row, weight + (size_t)tokens[i / width] * width + i % width);
    store<N>(y + i, row);
}

/* Is there no earlier position with this token? For the whole block. */
static __device__ bool is_first(const int32_t *tokens, int position)
{
    __shared__ int seen;
    if (threadIdx.x == 0)
        seen = 0;
    __syncthreads();
    for (int first = 0; first < position && !seen; first += 4 * THREADS) {
        __syncthreads();  // all threads have read seen
        for (int i = first + threadIdx.x; i < first + 4 * THREADS; i += THREADS)
            if (i < position && tokens[i] == tokens[position])
                seen = 1;
        __syncthreads();
    }
    return !seen;
}

/* Which of the 32 positions from `first` on have this token: one bit each. */
static __device__ unsigned matches(const int32_t *tokens, int token, int first,
                                   int n)
{
    int lane = threadIdx.x % WARP, i = first + lane;
    unsigned mask = i < n && tokens[i] == token ? 1u << lane : 0;
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        mask |= __shfl_xor_sync(0xffffffff, mask, step);
    return mask;
}

/* A warp's share: every 8th run of 32 positions, all lanes beside each other in
 * a row. */
template <int N>
static __device__ void add_rows(float (&sum)[N], const int32_t *tokens,
                                const Value *dy, int position, int n, int width,
                                int column)
{
    int token = tokens[position];
    int first = position + (int)(threadIdx.x / WARP) * WARP;
    for (; first < n; first += THREADS) {
        unsigned mask = matches(tokens, token, first, n);
        for (int i = first; mask && column < width; i++, mask >>= 1) {
            float row[N];
            if (!(mask & 1))
                continue;
            load<N>(row, dy + (size_t)i * width + column);
#pragma unroll
            for (int k = 0; k < N; k++)
                sum[k] += row[k];
        }
    }
}

/* Block (position, part of the width). */
template <int N>
static __global__ void __launch_bounds__(THREADS)
    embedding_weight(float *__restrict__ dweight,
                     const int32_t *__restrict__ tokens,
                     const Value *__restrict__ dy, int n, int width)
{
    __shared__ float part[WARPS][WARP * N];
    int position = blockIdx.x, start = blockIdx.y * WARP * N;
    int at = threadIdx.x % WARP * N;
    float sum[N] = {};
    if (!is_first(tokens, position))
        return;
    add_rows<N>(sum, tokens, dy, position, n, width, start + at);
    for (int k = 0; k < N; k++)
        part[threadIdx.x / WARP][at + k] = sum[k];
    __syncthreads();
    for (int j = threadIdx.x; j < WARP * N && start + j < width; j += THREADS) {
        float sum = part[0][j];
        for (int warp = 1; warp < WARPS; warp++)
            sum += part[warp][j];
        dweight[(size_t)tokens[position] * width + start + j] += sum;
    }
}

/* ---- one row per position ---- */

template <int N>
static __global__ void
position_forward(Value *__restrict__ y, const Value *__restrict__ x,
                 const Value *__restrict__ weight, size_t count, size_t table)
{
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    if (i >= count)
        return;
    float a[N], row[N];
    load<N>(a, x + i);
    load<N>(row, weight + i % table);
#pragma unroll
    for (int k = 0; k < N; k++)
        a[k] += row[k];
    store<N>(y + i, a);
}

/* A thread owns its elements of the table and adds the rows of the batch. */
template <int N>
static __global__ void position_weight(float *__restrict__ dweight,
                                       const Value *__restrict__ dy,
                                       size_t count, size_t table)
{
    size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    if (i >= table)
        return;
    float sum[N], row[N];
    load<N>(sum, dweight + i);
    for (; i < count; i += table) {
        load<N>(row, dy + i);
#pragma unroll
        for (int k = 0; k < N; k++)
            sum[k] += row[k];
    }
    store<N>(dweight + i % table, sum);
}

/* ---- pp.h ---- */

extern "C" {

void pp_embedding_forward(float *y, const int32_t *tokens, const float *weight,
                          int n, int width)
{
    size_t count = (size_t)n * (size_t)width;
    bool wide = packed(PACK, (size_t)width, y, weight);
    launch(wide ? embedding_forward<PACK> : embedding_forward<1>,
           dim3(blocks(count, wide ? THREADS * PACK : THREADS)), THREADS, 0,
           (Value *)y, tokens, (const Value *)weight, count, width);
}

void pp_embedding_weight(float *dweight, const int32_t *tokens, const float *dy,
                         int n, int width)
{
    bool wide = packed(PACK, (size_t)width, dy);
    dim3 grid((unsigned)n, blocks((size_t)width, wide ? WARP * PACK : WARP));
    launch(wide ? embedding_weight<PACK> : embedding_weight<1>, grid, THREADS,
           0, dweight, tokens, (const Value *)dy, n, width);
}

void pp_position_forward(float *y, const float *x, const float *weight, int n,
                         int seq, int width)
{
    size_t count = (size_t)n * (size_t)width;
    size_t table = (size_t)seq * (size_t)width;
    bool wide = packed(PACK, (size_t)width, y, x, weight);
    launch(wide ? position_forward<PACK> : position_forward<1>,
           dim3(blocks(count, wide ? THREADS * PACK : THREADS)), THREADS, 0,
           (Value *)y, (const Value *)x, (const Value *)weight, count, table);
}

void pp_position_weight(float *dweight, const float *dy, int n, int seq,
                        int width)
{
    size_t count = (size_t)n * (size_t)width;
    size_t table = (size_t)seq * (size_t)width;
    bool wide = packed(PACK, (size_t)width, dy, dweight);
    launch(wide ? position_weight<PACK> : position_weight<1>,
           dim3(blocks(table, wide ? THREADS * PACK : THREADS)), THREADS, 0,
           dweight, (const Value *)dy, count, table);
}

}  // extern "C"
