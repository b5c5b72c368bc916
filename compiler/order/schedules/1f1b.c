/* 1f1b: one forward, one backward (PipeDream-Flush; Megatron-LM's default).
 *
 *     r0  F0 F1 F2 .  .  B0 F3 .  B1 ...
 *     r1  .  F0 F1 .  B0 F2 B1 F3 ...       makespan (M + P - 1)(F + B), peak min(P - r, M)
 *     r2  .  .  F0 B0 F1 B1 F2 ...
 *
 * Rank r warms up with min(P - 1 - r, M) forwards, then alternates, then
 * drains. */
#include "1f1b.h"

static double bubble(int stages, int microbatches, int virtuals)
{
    (void)virtuals;
    return (stages - 1.0) / (microbatches + stages - 1.0);
}

void alternate_after(Program *p, int rank, int warmup)
{
    int microbatches = p->microbatches;
    if (warmup > microbatches)
        warmup = microbatches;
    for (int m = 0; m < warmup; m++)
        forward(p, rank, rank, m);
    begin_steady(p, rank);
    for (int m = warmup; m < microbatches; m++) {
        forward(p, rank, rank, m);
        backward(p, rank, rank, m - warmup);
    }
    begin_cooldown(p, rank);
    for (int m = microbatches - warmup; m < microbatches; m++)
        backward(p, rank, rank, m);
}

static void order(Program *p, int rank)
{
    alternate_after(p, rank, p->ranks - 1 - rank);
}

const Schedule schedule_1f1b = {
    .name = "1f1b",
    .summary =
        "one forward, one backward; activations of at most P micro-batches",
    .chapter_bubble = "(P-1)/(M+P-1)",
    .bubble = bubble,
    .order = order,
};
