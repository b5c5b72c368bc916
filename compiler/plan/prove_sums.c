/* prove_sums.c: the order in which gradients are added.
 *
 * Reads: lists, chunks. Writes: sums, sums_at. Sums of floats depend on their
 * order, so this decides which programs end with the same bits. W and B add, in
 * place, when they run: all is fixed when the program is written, and the only
 * question is what else has the same order. */
#include "compile.h"

#include <string.h>

/* Fills order[chunk's k-th sum] with micro-batches, one row for each chunk. */
static void collect(Program *p, int *order, int *count)
{
    size_t row = (size_t)p->microbatches;
    p->sums = SUMS_ASCEND;
    for (int r = 0; r < p->ranks; r++) {
        for (int i = 0; i < p->lists[r].count; i++) {
            Action a = p->lists[r].at[i];
            if (a.kind != ACT_B && a.kind != ACT_W)
                continue;
            int *own = order + (size_t)a.chunk * row, k = count[a.chunk]++;
            own[k] = a.micro;
            if (k == 0 || own[k - 1] < a.micro || p->sums != SUMS_ASCEND)
                continue;
            p->sums = SUMS_AGREE;
            p->sums_at = (Place){r, i};
        }
    }
}

void prove_sums(Program *p)
{
    size_t row = (size_t)p->microbatches, chunks = (size_t)p->chunk_count;
    int *order = arena_take(p->arena, sizeof *order * row * chunks),
        *count = arena_take(p->arena, sizeof *count * chunks);
    collect(p, order, count);
    for (int c = 0; c < p->chunk_count; c++) {
        const int *first = order +
                           (size_t)(p->chunks[c].copy * p->copy_chunks) * row;
        if (memcmp(first, order + (size_t)c * row, sizeof *order * row) != 0)
            p->sums = SUMS_DIFFER;
    }
}
