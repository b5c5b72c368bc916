/* cudasim_device.h: what CUDA C++ has beyond C++, for the host compiler.
 *
 * A block's threads are fibers of one host thread (fiber.cpp), and blocks run
 * one after the other: so shared memory is a thread_local array, and the
 * built-in variables are thread_local variables that change with the fiber.
 * Barriers and shuffles carry their place in the source, so that threads that
 * wait at different ones are told apart.
 */
#ifndef CUDASIM_DEVICE_H
#define CUDASIM_DEVICE_H

#include "vector_types.h"
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) alignas(n)

extern constinit thread_local uint3 threadIdx, blockIdx;
extern constinit thread_local dim3 blockDim, gridDim;
constexpr int warpSize = 32;

/* ---- meeting points (fiber.cpp) ---- */

struct CudasimSite {  // in the source
    const char *file;
    int line;
};

enum CudasimMeeting { CUDASIM_SHUFFLE, CUDASIM_BALLOT, CUDASIM_SYNCWARP };

void cudasim_block_barrier(CudasimSite site);
uint64_t cudasim_warp_meeting(CudasimMeeting kind, unsigned mask, uint64_t value, int from,
                              CudasimSite site);
int cudasim_lane();

#define CUDASIM_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(CUDASIM_HERE)
{
    cudasim_block_barrier({file, line});
}

inline void __syncwarp(unsigned mask = 0xffffffff, CUDASIM_HERE)
{
    cudasim_warp_meeting(CUDASIM_SYNCWARP, mask, 0, 0, {file, line});
}

template <class T> T cudasim_shuffle(unsigned mask, T value, int from, CudasimSite site)
{
    static_assert(sizeof(T) <= 8, "shuffles move at most 8 bytes");
    uint64_t bits = 0;
    memcpy((void *)&bits, (const void *)&value, sizeof value);
    bits = cudasim_warp_meeting(CUDASIM_SHUFFLE, mask, bits, from, site);
    memcpy((void *)&value, (const void *)&bits, sizeof value);
    return value;
}

template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDASIM_HERE)
{
    int lane = cudasim_lane();
    int from = (lane & ~(width - 1)) | (source & (width - 1));
    return cudasim_shuffle(mask, value, from, {file, line});
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDASIM_HERE)
{
    int lane = cudasim_lane(), from = lane - (int)delta;
    if (from < (lane & ~(width - 1)))
        from = lane;
    return cudasim_shuffle(mask, value, from, {file, line});
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDASIM_HERE)
{
    int lane = cudasim_lane(), from = lane + (int)delta;
    if (from > (lane | (width - 1)))
        from = lane;
    return cudasim_shuffle(mask, value, from, {file, line});
}

template <class T> T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32, CUDASIM_HERE)
{
    int lane = cudasim_lane(), from = lane ^ flip;
    if (from > (lane | (width - 1)))
        from = lane;
    return cudasim_shuffle(mask, value, from, {file, line});
}

inline unsigned __ballot_sync(unsigned mask, int predicate, CUDASIM_HERE)
{
    uint64_t vote = predicate != 0;
    return (unsigned)cudasim_warp_meeting(CUDASIM_BALLOT, mask, vote, 0, {file, line});
}

inline int __any_sync(unsigned mask, int predicate, CUDASIM_HERE)
{
    return __ballot_sync(mask, predicate, file, line) != 0;
}

inline int __all_sync(unsigned mask, int predicate, CUDASIM_HERE)
{
    return __ballot_sync(mask, predicate, file, line) == mask;
}

/* ---- memory ---- */

inline void __threadfence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

inline void __threadfence_block()
{
}

inline void __threadfence_system()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#define CUDASIM_LOAD(name)                                                                         \
    template <class T> inline T name(const T *from)                                                \
    {                                                                                              \
        return *from;                                                                              \
    }
#define CUDASIM_STORE(name)                                                                        \
    template <class T> inline void name(T *to, std::type_identity_t<T> value)                      \
    {                                                                                              \
        *to = value;                                                                               \
    }
CUDASIM_LOAD(__ldg)
CUDASIM_LOAD(__ldcg)
CUDASIM_LOAD(__ldcs)
CUDASIM_LOAD(__ldca)
CUDASIM_STORE(__stcg)
CUDASIM_STORE(__stcs)
CUDASIM_STORE(__stwb)

/* Other streams may add at the same time. */
template <class T, class F> inline T cudasim_atomic(T *at, F change)
{
    T old, next;
    __atomic_load(at, &old, __ATOMIC_RELAXED);
    do
        next = change(old);
    while (!__atomic_compare_exchange(at, &old, &next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return old;
}

template <class T> inline T atomicAdd(T *at, std::type_identity_t<T> value)
{
    return cudasim_atomic(at, [=](T old) { return (T)(old + value); });
}

template <class T> inline T atomicMax(T *at, std::type_identity_t<T> value)
{
    return cudasim_atomic(at, [=](T old) { return old < value ? value : old; });
}

template <class T> inline T atomicMin(T *at, std::type_identity_t<T> value)
{
    return cudasim_atomic(at, [=](T old) { return value < old ? value : old; });
}

template <class T> inline T atomicExch(T *at, std::type_identity_t<T> value)
{
    return cudasim_atomic(at, [=](T) { return value; });
}

template <class T>
inline T atomicCAS(T *at, std::type_identity_t<T> expected, std::type_identity_t<T> value)
{
    return cudasim_atomic(at, [=](T old) { return old == expected ? value : old; });
}

/* ---- arithmetic ---- */

template <class A, class B>
requires(std::is_arithmetic_v<A> &&std::is_arithmetic_v<B>) constexpr std::common_type_t<A, B> min(
    A a, B b)
{
    typedef std::common_type_t<A, B> T;
    return (T)b < (T)a ? (T)b : (T)a;
}

template <class A, class B>
requires(std::is_arithmetic_v<A> &&std::is_arithmetic_v<B>) constexpr std::common_type_t<A, B> max(
    A a, B b)
{
    typedef std::common_type_t<A, B> T;
    return (T)a < (T)b ? (T)b : (T)a;
}

#define CUDASIM_F1(name, expression)                                                               \
    inline float name(float x)                                                                     \
    {                                                                                              \
        return expression;                                                                         \
    }
#define CUDASIM_F2(name, expression)                                                               \
    inline float name(float x, float y)                                                            \
    {                                                                                              \
        return expression;                                                                         \
    }
CUDASIM_F1(rsqrtf, 1.0f / sqrtf(x))
CUDASIM_F1(__expf, expf(x))
CUDASIM_F1(__exp10f, exp10f(x))
CUDASIM_F1(__logf, logf(x))
CUDASIM_F1(__log2f, log2f(x))
CUDASIM_F1(__sinf, sinf(x))
CUDASIM_F1(__cosf, cosf(x))
CUDASIM_F1(__tanhf, tanhf(x))
CUDASIM_F1(__saturatef, x > 1.0f ? 1.0f : x > 0.0f ? x : 0.0f)
CUDASIM_F1(__frcp_rn, 1.0f / x)
CUDASIM_F1(__fsqrt_rn, sqrtf(x))
CUDASIM_F1(__frsqrt_rn, 1.0f / sqrtf(x))
CUDASIM_F2(__fadd_rn, x + y)
CUDASIM_F2(__fsub_rn, x - y)
CUDASIM_F2(__fmul_rn, x *y)
CUDASIM_F2(__fdiv_rn, x / y)
CUDASIM_F2(__fdividef, x / y)
CUDASIM_F2(__powf, powf(x, y))

inline double rsqrt(double x)
{
    return 1.0 / sqrt(x);
}

inline float __fmaf_rn(float x, float y, float z)
{
    return fmaf(x, y, z);
}

inline int __float_as_int(float x)
{
    return __builtin_bit_cast(int, x);
}

inline unsigned __float_as_uint(float x)
{
    return __builtin_bit_cast(unsigned, x);
}

inline float __int_as_float(int x)
{
    return __builtin_bit_cast(float, x);
}

inline float __uint_as_float(unsigned x)
{
    return __builtin_bit_cast(float, x);
}

inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}

inline unsigned __umulhi(unsigned x, unsigned y)
{
    return (unsigned)((uint64_t)x * y >> 32);
}

#endif
