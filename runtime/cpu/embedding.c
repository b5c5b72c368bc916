/* embedding.c: the two tables of a model's first layer: one row per token, one
 * row per position.
 *
 * Gradients are added in the order of the positions: repeated tokens always add
 * up the same way. */
#include "real.h"

static void add_row(Real *to, const Real *from, int width)
{
#pragma omp simd
    for (int j = 0; j < width; j++)
        to[j] += from[j];
}

void pp_embedding_forward(Real *y, const int32_t *tokens, const Real *weight,
                          int n, int width)
{
    for (int i = 0; i < n; i++)
        memcpy(y + (size_t)i * width, weight + (size_t)tokens[i] * width,
               (size_t)width * sizeof *y);
}

void pp_embedding_weight(Real *dweight, const int32_t *tokens, const Real *dy,
                         int n, int width)
{
    for (int i = 0; i < n; i++)
        add_row(dweight + (size_t)tokens[i] * width, dy + (size_t)i * width,
                width);
}

void pp_position_forward(Real *y, const Real *x, const Real *weight, int n,
                         int seq, int width)
{
    for (int i = 0; i < n; i++, x += width, y += width) {
        const Real *row = weight + (size_t)(i % seq) * width;
#pragma omp simd
        for (int j = 0; j < width; j++)
            y[j] = x[j] + row[j];
    }
}

void pp_position_weight(Real *dweight, const Real *dy, int n, int seq,
                        int width)
{
    for (int i = 0; i < n; i++)
        add_row(dweight + (size_t)(i % seq) * width, dy + (size_t)i * width,
                width);
}
