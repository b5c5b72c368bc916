/* gpipe: all forwards, then all backwards (Huang et al., arXiv 1811.06965).
 *
 *     r0  F0 F1 F2 .  .  .  .  B0 B1 B2
 *     r1  .  F0 F1 F2 .  .  B0 B1 B2 .      makespan (M + P - 1)(F + B), peak M
 *     r2  .  .  F0 F1 F2 B0 B1 B2 .  .
 *
 * Backwards run 0 .. M-1, so that gradients are added in the same order as by
 * every other schedule. */
#include "order/order.h"

static double bubble(int stages, int microbatches, int virtuals)
{
    (void)virtuals;
    return (stages - 1.0) / (microbatches + stages - 1.0);
}

static void order(Program *p, int rank)
{
    int microbatches = p->microbatches;
    for (int m = 0; m < microbatches; m++)
        forward(p, rank, rank, m);
    begin_steady(p, rank);
    for (int m = 0; m < microbatches; m++)
        backward(p, rank, rank, m);
}

const Schedule schedule_gpipe = {
    .name = "gpipe",
    .summary = "all forwards, then all backwards",
    .chapter_bubble = "(P-1)/(M+P-1)",
    .bubble = bubble,
    .order = order,
};
