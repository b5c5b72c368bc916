/* naive: one micro-batch at a time goes through the whole pipeline and back.
 *
 *     r0  F0 .  .  .  .  B0 F1 .
 *     r1  .  F0 .  .  B0 .  .  F1       makespan M P (F + B), peak 1
 *     r2  .  .  F0 B0 .  .  .  .
 */
#include "order/order.h"

static double bubble(int stages, int microbatches, int virtuals)
{
    (void)microbatches, (void)virtuals;
    return (stages - 1.0) / stages;
}

/* All of the rank's chunks that the micro-batch passes, forth and back: so it
 * runs with any placement, and on one rank with any number of chunks. */
static void order(Program *p, int rank)
{
    begin_steady(p, rank);
    for (int m = 0; m < p->microbatches; m++) {
        for (int c = 0; c < p->chunk_count; c++)
            if (p->chunks[c].rank == rank && goes_through(p, c, m))
                forward(p, rank, c, m);
        for (int c = p->chunk_count; c-- > 0;)
            if (p->chunks[c].rank == rank && goes_through(p, c, m))
                backward(p, rank, c, m);
    }
    begin_cooldown(p, rank);
}

const Schedule schedule_naive = {
    .name = "naive",
    .summary = "one micro-batch at a time through the whole pipeline",
    .any_placement = true,
    .chapter_bubble = "(P-1)/P",
    .bubble = bubble,
    .order = order,
};
