/* naive: one micro-batch at a time goes through the whole pipeline and back.
 *
 *     r0  F0 .  .  .  .  B0 F1 .
 *     r1  .  F0 .  .  B0 .  .  F1       makespan M P (F + B), peak 1
 *     r2  .  .  F0 B0 .  .  .  .
 */
#include "compile.h"

static double bubble(int stages, int microbatches, int virtuals)
{
    (void)microbatches, (void)virtuals;
    return (stages - 1.0) / stages;
}

static void order(Program *p, int rank)
{
    begin_steady(p, rank);
    for (int m = 0; m < (int)p->set.microbatches.value; m++) {
        forward(p, rank, rank, m);
        backward(p, rank, rank, m);
    }
    begin_cooldown(p, rank);
}

const Schedule schedule_naive = {
    .name = "naive",
    .summary = "one micro-batch at a time through the whole pipeline",
    .chapter_bubble = "(P-1)/P",
    .bubble = bubble,
    .order = order,
};
