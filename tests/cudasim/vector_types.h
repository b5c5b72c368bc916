/* vector_types.h: CUDA's small vectors, for the host compiler.
 *
 * Same names, members and alignment as the toolkit's: a float4 that is read
 * from an address that is not a multiple of 16 traps on a GPU, and mostly traps
 * here too (the compiler uses aligned moves).
 */
#ifndef CUDASIM_VECTOR_TYPES_H
#define CUDASIM_VECTOR_TYPES_H

#define CUDASIM_VECTOR1(T, N)                                                                      \
    struct N##1                                                                                    \
    {                                                                                              \
        T x;                                                                                       \
    };                                                                                             \
    inline N##1 make_##N##1(T x)                                                                   \
    {                                                                                              \
        return {x};                                                                                \
    }
#define CUDASIM_VECTOR2(T, N, ALIGN)                                                               \
    struct alignas(ALIGN) N##2                                                                     \
    {                                                                                              \
        T x, y;                                                                                    \
    };                                                                                             \
    inline N##2 make_##N##2(T x, T y)                                                              \
    {                                                                                              \
        return {x, y};                                                                             \
    }
#define CUDASIM_VECTOR3(T, N)                                                                      \
    struct N##3                                                                                    \
    {                                                                                              \
        T x, y, z;                                                                                 \
    };                                                                                             \
    inline N##3 make_##N##3(T x, T y, T z)                                                         \
    {                                                                                              \
        return {x, y, z};                                                                          \
    }
#define CUDASIM_VECTOR4(T, N, ALIGN)                                                               \
    struct alignas(ALIGN) N##4                                                                     \
    {                                                                                              \
        T x, y, z, w;                                                                              \
    };                                                                                             \
    inline N##4 make_##N##4(T x, T y, T z, T w)                                                    \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }
#define CUDASIM_VECTORS(T, N, ALIGN2, ALIGN4)                                                      \
    CUDASIM_VECTOR1(T, N)                                                                          \
    CUDASIM_VECTOR2(T, N, ALIGN2)                                                                  \
    CUDASIM_VECTOR3(T, N)                                                                          \
    CUDASIM_VECTOR4(T, N, ALIGN4)

CUDASIM_VECTORS(signed char, char, 2, 4)
CUDASIM_VECTORS(unsigned char, uchar, 2, 4)
CUDASIM_VECTORS(short, short, 4, 8)
CUDASIM_VECTORS(unsigned short, ushort, 4, 8)
CUDASIM_VECTORS(int, int, 8, 16)
CUDASIM_VECTORS(unsigned, uint, 8, 16)
CUDASIM_VECTORS(long long, longlong, 16, 16)
CUDASIM_VECTORS(unsigned long long, ulonglong, 16, 16)
CUDASIM_VECTORS(float, float, 8, 16)
CUDASIM_VECTORS(double, double, 16, 16)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz)
    {
    }
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z)
    {
    }
    constexpr operator uint3() const
    {
        return uint3{x, y, z};
    }
};

#endif
