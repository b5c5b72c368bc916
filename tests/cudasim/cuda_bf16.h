/* cuda_bf16.h: bfloat16 for the host compiler: the upper half of a float,
 * rounded to nearest even. Only what our kernels use. */
#ifndef CUDASIM_CUDA_BF16_H
#define CUDASIM_CUDA_BF16_H

#include "cuda_runtime.h"

inline unsigned short cudasim_bf16_bits(float x)
{
    unsigned bits = __float_as_uint(x);
    if (x != x)
        return 0x7fff;
    return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

struct alignas(2) __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    __nv_bfloat16(float x) : bits(cudasim_bf16_bits(x))
    {
    }
    operator float() const
    {
        return __uint_as_float((unsigned)bits << 16);
    }
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

inline __nv_bfloat16 __float2bfloat16(float x)
{
    return __nv_bfloat16(x);
}

inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    return __nv_bfloat16(x);
}

inline float __bfloat162float(__nv_bfloat16 x)
{
    return (float)x;
}

inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x)
{
    return x.bits;
}

inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    __nv_bfloat16 x;
    x.bits = bits;
    return x;
}

inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return {x, y};
}

inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__nv_bfloat16(x), __nv_bfloat16(y)};
}

inline __nv_bfloat162 __float22bfloat162_rn(float2 v)
{
    return {__nv_bfloat16(v.x), __nv_bfloat16(v.y)};
}

inline float2 __bfloat1622float2(__nv_bfloat162 v)
{
    return {(float)v.x, (float)v.y};
}

inline float __low2float(__nv_bfloat162 v)
{
    return (float)v.x;
}

inline float __high2float(__nv_bfloat162 v)
{
    return (float)v.y;
}

#endif
