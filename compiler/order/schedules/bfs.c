/* bfs: looped breadth-first (Lamy-Poirier, arXiv 2211.05953; PyTorch's
 * LoopedBFS): every chunk in turn takes all micro-batches.
 *
 *     v = 2:  0F0 0F1 0F2 | 2F0 2F1 2F2 | 2B2 2B1 2B0 | 0B2 0B1 0B0
 *
 * makespan (M v + P - 1)(F + B) in chunks for M >= P; peak M v chunks. A chunk's
 * parameters are used in one stretch each way, which is what sharded parameters
 * want.
 *
 * Backwards run newest first, so gradients are added in that order: the bits are
 * those of this schedule on one rank, not those of 1f1b. */
#include "order/order.h"

static double bubble(int stages, int microbatches, int virtuals)
{
    return (stages - 1.0) / ((double)microbatches * virtuals + stages - 1.0);
}

/* The rank's chunks along the model and back: no rank waits in a circle,
 * wherever they are placed. */
static void order(Program *p, int rank)
{
    for (int c = 0; c < p->chunk_count; c++)
        for (int m = 0; m < p->microbatches && p->chunks[c].rank == rank; m++)
            if (goes_through(p, c, m))
                forward(p, rank, c, m);
    begin_steady(p, rank);
    for (int c = p->chunk_count; c-- > 0;)
        for (int m = p->microbatches; m-- > 0 && p->chunks[c].rank == rank;)
            if (goes_through(p, c, m))
                backward(p, rank, c, m);
}

const Schedule schedule_bfs = {
    .name = "bfs",
    .summary =
        "looped breadth-first: all micro-batches through one chunk after "
        "another",
    .most_chunks = 256,
    .any_placement = true,
    .chapter_bubble = "(P-1)/(Mv+P-1)",
    .bubble = bubble,
    .order = order,
};
