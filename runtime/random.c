/* random.c: the initial values of parameters.
 *
 * A value is a function of the seed, the parameter's name and its own index,
 * and of nothing before it: any rank makes the same parameter. The counter goes
 * through the mixing step of SplitMix64 (Steele, Lea and Flood 2014); Box-
 * Muller turns two of its numbers into two normal ones. */
#include "random.h"

#include <math.h>

uint64_t pp_seed = 1;

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static uint64_t hash_name(const char *name)  // FNV-1a
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
    return hash;
}

static double uniform(uint64_t key, uint64_t counter)  // in (0, 1]
{
    uint64_t bits = mix(key + (counter + 1) * 0x9e3779b97f4a7c15);
    return (double)((bits >> 11) + 1) * 0x1p-53;
}

void pp_draw_normal(float *w, size_t count, const char *name, float deviation)
{
    uint64_t key = mix(hash_name(name) ^ mix(pp_seed));
    for (size_t i = 0; i < count; i += 2) {
        double radius = deviation * sqrt(-2 * log(uniform(key, i)));
        double angle = 6.283185307179586 * uniform(key, i + 1);
        w[i] = (float)(radius * cos(angle));
        if (i + 1 < count)
            w[i + 1] = (float)(radius * sin(angle));
    }
}
