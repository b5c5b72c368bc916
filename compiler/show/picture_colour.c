/* picture_colour.c: the colours of actions, on screens and on paper.
 *
 *     grey   dark |FFFF|   |BBBB|   |IIII|   |WWWW| light
 *     shade        0..n     0..n     0..n     0..n
 *
 * Each kind has a band of greys to itself, and a step lies between two bands:
 * a print without colours, or an eye that mixes up red and green, still tells
 * a later chunk's F from an earlier chunk's B. Inside its band a kind goes from
 * its first shade to its last, in hue as well, so that up to eight chunks of a
 * rank stay apart on a screen. White numbers are read on the two dark bands,
 * black ones on the two light bands. */
#include "picture.h"

enum { SHADES = 8 };  // the later chunks of a rank share the last

typedef struct Band {
    unsigned char first[3], last[3];  // red, green, blue
    const char *number;               // what is written on it
} Band;

/* Navy to azure, sea to olive green, steel blue to turquoise, orange to sand.
 * tests/picture measures the steps and the numbers in pictures. */
static const Band bands[ACT_W + 1] = {
    {{22, 51, 140}, {1, 86, 127}, "#ffffff"},
    {{3, 113, 82}, {94, 128, 28}, "#ffffff"},
    {{39, 147, 187}, {54, 183, 174}, "#101418"},
    {{253, 171, 101}, {246, 228, 140}, "#101418"},
};

int shades_of(const Picture *k)
{
    return k->most_chunks < SHADES ? k->most_chunks : SHADES;
}

int shade_of(const Picture *k, int chunk)
{
    int ordinal = k->ordinal[chunk], last = shades_of(k) - 1;
    return ordinal < last ? ordinal : last;
}

const char *shade_colour(const Picture *k, int kind, int shade)
{
    const Band *b = &bands[kind];
    int mix[3], last = shades_of(k) - 1;
    for (int i = 0; i < 3; i++)
        mix[i] = last ? (b->first[i] * (last - shade) + b->last[i] * shade) /
                            last
                      : b->first[i];
    return text_format(k->p->arena, "#%02x%02x%02x", mix[0], mix[1], mix[2]);
}

const char *number_colour(int kind)
{
    return bands[kind].number;
}
