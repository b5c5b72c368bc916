/* zbh1: zero bubble at the activations of 1F1B (Qi et al., arXiv 2401.10241,
 * section 2; ZB-H1, called ZB1P elsewhere; over several chunks PyTorch's
 * InterleavedZeroBubble).
 *
 *     r0  F0 F1 F2 .  I0 W0 F3 I1 W1 ...
 *     r1  .  F0 F1 I0 F2 I1 W0 F3 I2 ...     makespan M v (F + I + W) + (P - 1)(F + I - W), in chunks
 *     r2  .  .  F0 I0 F1 I1 F2 I2 W0 ...     peak min(P, M) on every rank, for v = 1
 *
 * The order is that of 1f1b, or of interleaved with half its warm-up; the
 * backward is split, and rank r puts its W off by r backwards. */
#include "interleaved.h"

static double bubble(int stages, int microbatches, int virtuals)
{
    return (stages - 1.0) / (3.0 * microbatches * virtuals + stages - 1.0);
}

static void forward_k(Program *p, int rank, int k)
{
    int chunk, micro;
    interleaved_forward(p, rank, k, &chunk, &micro);
    forward(p, rank, chunk, micro);
}

/* Backward k is an I; the W that goes with it is that of `late` before. */
static void backward_k(Program *p, int rank, int k, int late)
{
    int chunk, micro;
    interleaved_backward(p, rank, k, &chunk, &micro);
    backward_input(p, rank, chunk, micro);
    if (k < late)
        return;
    interleaved_backward(p, rank, k - late, &chunk, &micro);
    backward_weight(p, rank, chunk, micro);
}

static void order(Program *p, int rank)
{
    int virtuals = (int)p->set.virtuals.value, chunk, micro,
        total = p->microbatches * virtuals;
    int warmup = p->ranks - 1 - rank + (virtuals - 1) * interleaved_group(p);
    if (warmup > total)
        warmup = total;
    for (int k = 0; k < warmup; k++)
        forward_k(p, rank, k);
    begin_steady(p, rank);
    for (int k = 0; k < total - warmup; k++) {
        forward_k(p, rank, k + warmup);
        backward_k(p, rank, k, rank);
    }
    begin_cooldown(p, rank);
    for (int k = total - warmup; k < total; k++)
        backward_k(p, rank, k, rank);
    for (int k = total > rank ? total - rank : 0; k < total; k++) {
        interleaved_backward(p, rank, k, &chunk, &micro);
        backward_weight(p, rank, chunk, micro);
    }
}

const Schedule schedule_zbh1 = {
    .name = "zbh1",
    .summary = "ZB-H1: backward split, W fills part of the bubble; activations "
               "as in 1f1b; option group = N",
    .most_chunks = 256,
    .option = {"group"},
    .most = {16384},
    .chapter_bubble = "(P-1)/(3Mv+P-1)",
    .bubble = bubble,
    .order = order,
};
