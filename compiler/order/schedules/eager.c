/* eager: 1F1B that runs forwards ahead, so that messages have time (Alpa's
 * overlap-friendly 1F1B; Zhuang et al., arXiv 2211.05322).
 *
 *     r0  F0 F1 F2 .  .  B0 F3 .  B1 ...
 *     r1  .  F0 F1 F2 .  B0 F3 ...          makespan (M + P - 1)(F + B), peak min(2 (P - r) - 1, M)
 *     r2  .  .  F0 B0 F1 B1 F2 ...
 *
 * Rank r warms up with 2 (P - 1 - r) forwards, twice those of 1f1b: a message
 * of up to half an action costs nothing, for that many more activations. */
#include "1f1b.h"

static double bubble(int stages, int microbatches, int virtuals)
{
    (void)virtuals;
    return (stages - 1.0) / (microbatches + stages - 1.0);
}

static void order(Program *p, int rank)
{
    alternate_after(p, rank, 2 * (p->ranks - 1 - rank));
}

const Schedule schedule_eager = {
    .name = "eager",
    .summary =
        "1F1B with twice the warm-up: slow messages are hidden, for more "
        "activations",
    .chapter_bubble = "(P-1)/(M+P-1)",
    .bubble = bubble,
    .order = order,
};
