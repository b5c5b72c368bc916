/* zbh2: zero bubble at twice the activations, by hand (Qi et al., arXiv
 * 2401.10241, section 2; ZB-H2).
 *
 *     r0  F0 F1 F2 F3 F4 I0 W0 F5 I1 W1 ...
 *     r1  .  F0 F1 F2 I0 F3 I1 F4 I2 W0 ...     each rank is busy from its first begin to its last end
 *     r2  .  .  F0 I0 F1 I1 F2 I2 F3 I3 ...
 *
 * Rank r warms up with 2 (P - 1 - r) forwards and puts its W off by 2 r
 * micro-batches. Idle within a rank's own span: (P - 1)(F + I - 2 W + 2 c); the
 * ranks begin and end staggered, so the makespan is (P - 1) F longer, and a step
 * that ends with a barrier (`clip` without `deferred`) pays that. */
#include "order/order.h"

static double bubble(int stages, int microbatches, int virtuals)
{
    (void)stages, (void)microbatches, (void)virtuals;
    return 0;
}

/* I of a micro-batch, and the W that is due. */
static void backward_m(Program *p, int rank, int m, int late)
{
    backward_input(p, rank, rank, m);
    if (m >= late)
        backward_weight(p, rank, rank, m - late);
}

static void order(Program *p, int rank)
{
    int microbatches = p->microbatches, late = 2 * rank;
    int warmup = 2 * (p->ranks - 1 - rank);
    if (warmup > microbatches)
        warmup = microbatches;
    for (int m = 0; m < warmup; m++)
        forward(p, rank, rank, m);
    begin_steady(p, rank);
    for (int m = 0; m < microbatches - warmup; m++) {
        forward(p, rank, rank, m + warmup);
        backward_m(p, rank, m, late);
    }
    begin_cooldown(p, rank);
    for (int m = microbatches - warmup; m < microbatches; m++)
        backward_m(p, rank, m, late);
    for (int m = microbatches > late ? microbatches - late : 0;
         m < microbatches; m++)
        backward_weight(p, rank, rank, m);
}

const Schedule schedule_zbh2 = {
    .name = "zbh2",
    .summary =
        "ZB-H2: backward split, W fills the bubble; activations of up to "
        "2P - 1 micro-batches",
    .chapter_bubble = "0 of each rank's own span",
    .bubble = bubble,
    .order = order,
};
