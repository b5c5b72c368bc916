/* device.cuh: what every kernel file of the CUDA device shares.
 *
 * A kernel is a template over N, how many elements one load takes: 16 bytes of
 * Values where all addresses and row lengths allow it, else one element. The
 * host side chooses with `pack`, so that no kernel asks again.
 *
 * Values are bf16 with -DPP_BF16, else float. Arithmetic is always in float:
 * `load` widens, `store` rounds. In pp.h every tensor is a float *, an address;
 * what lies there:
 *
 *     Value      activations, their gradients, the compute copy of parameters
 *     float      stats, lse, losses, gradients of parameters, moments, master
 *                weights, targets of mse
 *     int32_t    ids
 *
 * All launches go to pp_device.compute, which orders them; nothing here waits
 * for the device. No sum depends on the order in which blocks run.
 */
#ifndef DEVICE_CUH
#define DEVICE_CUH

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <type_traits>

#define _Noreturn [[noreturn]]  // fail.h is C
extern "C" {
#include "../fail.h"
#include "../pp.h"
}
#undef _Noreturn

#ifdef PP_BF16
typedef __nv_bfloat16 Value;
#else
typedef float Value;
#endif

struct Hyper {    // in device memory: a captured step reads what changes
    float rate;   // learning rate of this step
    int step;     // from 1
    float scale;  // of all gradients: min(1, limit / norm); NaN: nothing is updated
    float norm;   // of all gradients
    int lost;     // 1: a loss of the step is no number, on some rank
    int worst;    // parameter that makes the norm none, or the most of it
};

struct Device {  // filled once, before the first kernel
    cudaStream_t compute;
    cublasLtHandle_t blas;
    void *workspace;  // of cuBLASLt, and of sums: one stream, one user
    size_t workspace_bytes;
    Hyper *hyper;
    double *squares;  // [parameters] sums of squares, then NaN for a loss that is none
    int multiprocessors;
};

extern Device pp_device;

/* hyper->norm = sqrt(squares[0] + squares[1] + ...), hyper->scale = min(1,
 * limit / norm), or NaN where one of them or a loss is no number */
extern "C" void pp_scale_from_squares(int parameters, float limit);
/* squares[parameters], of this rank */
extern "C" void pp_note_losses(int parameters, const float *losses, int count);

/* ---- errors ---- */

#define CHECK(call)                                                            \
    do {                                                                       \
        cudaError_t status_ = (call);                                          \
        if (status_ != cudaSuccess)                                            \
            pp_fail("%s:%d: %s: %s", __FILE__, __LINE__, #call,                \
                    cudaGetErrorString(status_));                              \
    } while (0)

#define CHECK_BLAS(call)                                                       \
    do {                                                                       \
        cublasStatus_t status_ = (call);                                       \
        if (status_ != CUBLAS_STATUS_SUCCESS)                                  \
            pp_fail("%s:%d: %s: %s", __FILE__, __LINE__, #call,                \
                    cublasLtGetStatusString(status_));                         \
    } while (0)

/* ---- launching ---- */

/* The arguments are converted to the kernel's own parameters. */
template <class... P>
void launch(void (*kernel)(P...), dim3 grid, int threads, size_t shared,
            std::type_identity_t<P>... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = shared;
    config.stream = pp_device.compute;
    CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
}

inline unsigned blocks(size_t work, int each)
{
    return (unsigned)((work + (size_t)each - 1) / (size_t)each);
}

/* Do packs of `pack` elements tile rows of this length at these addresses? */
template <class... A> bool packed(int pack, size_t length, const A *...at)
{
    return length % (size_t)pack == 0 && (((uintptr_t)at | ...) & 15) == 0;
}

/* Scratch of one kernel call: the next call may overwrite it. */
inline void *scratch(size_t bytes)
{
    if (bytes > pp_device.workspace_bytes)
        pp_fail("a sum needs %zu bytes of workspace, there are %zu", bytes,
                pp_device.workspace_bytes);
    return pp_device.workspace;
}

/* ---- memory ---- */

constexpr int WARP = 32, PACK = 16 / sizeof(Value);

__host__ __device__ inline float widen(float x)
{
    return x;
}

__host__ __device__ inline float widen(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

template <class T> __host__ __device__ inline T rounded(float x)
{
    if constexpr (std::is_same_v<T, float>)
        return x;
    else
        return __float2bfloat16(x);
}

/* N a power of two; moved in steps of up to 16 bytes. */
template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
    T at[N];
};

template <int N, class T>
__device__ inline void load(float (&to)[N], const T *from)
{
    Pack<T, N> pack = *reinterpret_cast<const Pack<T, N> *>(from);
#pragma unroll
    for (int i = 0; i < N; i++)
        to[i] = widen(pack.at[i]);
}

template <int N, class T>
__device__ inline void store(T *to, const float (&from)[N])
{
    Pack<T, N> pack;
#pragma unroll
    for (int i = 0; i < N; i++)
        pack.at[i] = rounded<T>(from[i]);
    *reinterpret_cast<Pack<T, N> *>(to) = pack;
}

/* ---- reductions: every thread gets the result ---- */

template <class T> __device__ inline T warp_sum(T x)
{
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
}

/* Over whole warps, at most 32; the warps' sums are added in order. */
template <class T> __device__ inline T block_sum(T x)
{
    __shared__ T part[WARP];
    x = warp_sum(x);
    __syncthreads();  // an earlier sum has been read
    if (threadIdx.x % WARP == 0)
        part[threadIdx.x / WARP] = x;
    __syncthreads();
    T sum = part[0];
    for (int warp = 1; warp < (int)blockDim.x / WARP; warp++)
        sum += part[warp];
    return sum;
}

#endif
