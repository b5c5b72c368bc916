/* real.h: the number type of the kernels, and its functions.
 *
 * The kernels are written once. The runtime uses them in float, with the
 * prototypes of pp.h; a test compiles them with PP_DOUBLE, where finite
 * differences are sharp enough to judge a gradient.
 *
 * real_exp is ours because a loop that calls libm's is not vectorised. It is
 * branch-free and spells its fused operations, so a value has the same bits in
 * a vector lane and in the rest of a loop. */
#ifndef REAL_H
#define REAL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef PP_DOUBLE

typedef double Real;
typedef int64_t Bits;               // as wide as Real

static inline Real real_log(Real x) { return log(x); }
static inline Real real_sqrt(Real x) { return sqrt(x); }

static inline double power_of_two(int64_t n)    // -1022 .. 1023
{
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* As for float below; the polynomial is Taylor's. */
static inline Real real_exp(Real x)
{
    const double magic = 0x1.8p52;
    const int64_t magic_bits = 0x4338000000000000;
    x = x < -746 ? -746 : x;
    double shifted = fma(x, 0x1.71547652b82fep0, magic);
    shifted = shifted > magic + 1025 ? magic + 1025 : shifted;
    double n = shifted - magic;
    double r = fma(n, -0x1.62e42fefa3800p-1, x);
    r = fma(n, -0x1.ef35793c76730p-45, r);

    double p = 1.0 / 6227020800;
    p = fma(p, r, 1.0 / 479001600);
    p = fma(p, r, 1.0 / 39916800);
    p = fma(p, r, 1.0 / 3628800);
    p = fma(p, r, 1.0 / 362880);
    p = fma(p, r, 1.0 / 40320);
    p = fma(p, r, 1.0 / 5040);
    p = fma(p, r, 1.0 / 720);
    p = fma(p, r, 1.0 / 120);
    p = fma(p, r, 1.0 / 24);
    p = fma(p, r, 1.0 / 6);
    p = fma(p, r, 1.0 / 2);
    p = fma(p * r, r, r) + 1;

    int64_t power;
    memcpy(&power, &shifted, sizeof power);
    power -= magic_bits;
    int64_t half = power >> 1;
    return p * power_of_two(half) * power_of_two(power - half);
}

#else

#include "../pp.h"

typedef float Real;
typedef int32_t Bits;               // as wide as Real

static inline Real real_log(Real x) { return logf(x); }
static inline Real real_sqrt(Real x) { return sqrtf(x); }

static inline float power_of_two(int32_t n)     // -126 .. 127
{
    uint32_t bits = (uint32_t)(n + 127) << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* exp(x) = 2^n exp(r), r = x - n log 2 in -0.35 .. 0.35; about 1 ulp. The
 * polynomial is that of Cephes (expf.c). Below -104 the result is 0; above
 * 88.73 it is infinite, as n stops at 129 and r grows instead; NaN stays
 * NaN. */
static inline Real real_exp(Real x)
{
    const float magic = 0x1.8p23f;              // adding it rounds to an integer, in the low bits
    const int32_t magic_bits = 0x4b400000;
    x = x < -104 ? -104 : x;
    float shifted = fmaf(x, 1.44269504f, magic);
    shifted = shifted > magic + 129 ? magic + 129 : shifted;
    float n = shifted - magic;
    float r = fmaf(n, -0.693359375f, x);        // log 2 in two parts: n times the first is exact
    r = fmaf(n, 2.12194440e-4f, r);

    float p = 1.9875691500e-4f;
    p = fmaf(p, r, 1.3981999507e-3f);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    p = fmaf(p * r, r, r) + 1.0f;

    int32_t power;
    memcpy(&power, &shifted, sizeof power);
    power -= magic_bits;
    int32_t half = power >> 1;                  // 2^n itself may lie outside the range of float
    return p * power_of_two(half) * power_of_two(power - half);
}

#endif

/* One vector register of AVX-512; compilers make two or four smaller ones of it
 * elsewhere. Sums over a row use it because the order of the additions is then
 * ours, and because the loops that compilers make of a plain sum end in a chain
 * of 16 additions. */
enum { LANES = 64 / sizeof(Real) };
typedef Real Lanes __attribute__((vector_size(64), aligned(sizeof(Real)), may_alias));
typedef Bits Mask __attribute__((vector_size(64)));

static inline Real sum_lanes(const Lanes *lanes)
{
    Real part[LANES];
    memcpy(part, lanes, sizeof part);
    for (int i = 0; i < LANES / 2; i++)
        part[i] += part[i + LANES / 2];
    for (int i = 0; i < LANES / 4; i++)
        part[i] += part[i + LANES / 4];
    for (int i = 1; i < LANES / 4; i++)
        part[0] += part[i];
    return part[0];
}

static inline Real real_sum(const Real *x, int count)
{
    Lanes lanes = {0};
    Real rest = 0;
    int j = 0;
    for (; j + LANES <= count; j += LANES)
        lanes += *(const Lanes *)(x + j);
    for (; j < count; j++)
        rest += x[j];
    return sum_lanes(&lanes) + rest;
}

static inline Real larger(Real a, Real b)
{
    return a > b ? a : b;
}

/* The largest of count >= 1 values, also in lanes: compilers vectorise a single
 * running maximum only when they may forget about NaN. The mask is all ones
 * where the new value is larger. */
static inline Real real_max(const Real *x, int count)
{
    Lanes lanes = x[0] - (Lanes){0};
    Real part[LANES], largest = x[0];
    int j = 0;
    for (; j + LANES <= count; j += LANES) {
        Lanes next = *(const Lanes *)(x + j);
        Mask mask = (Mask)(next > lanes);
        lanes = (Lanes)(((Mask)next & mask) | ((Mask)lanes & ~mask));
    }
    for (; j < count; j++)
        largest = larger(x[j], largest);
    memcpy(part, &lanes, sizeof part);
    for (int i = 0; i < LANES / 2; i++)
        part[i] = larger(part[i], part[i + LANES / 2]);
    for (int i = 0; i < LANES / 4; i++)
        part[i] = larger(part[i], part[i + LANES / 4]);
    for (int i = 0; i < LANES / 4; i++)
        largest = larger(part[i], largest);
    return largest;
}

#endif
