/* chimera: two copies of the model in opposite directions, 1F1B in both (Li and
 * Hoefler, arXiv 2107.06925).
 *
 *     r0  d0 .  d1 u0 U0 u1 U1 D0 .  D1      d, D: F and B of the copy that goes down,
 *     r1  .  d0 u0 d1 u1 U0 D0 U1 D1 .       u, U: of the one that goes up; P = M = 4
 *
 * With F = B, micro-batch j of a block of P / 2 passes stage s at slot 2 j + s
 * and comes back at slot 2 P - 1 - s + 2 j; the other direction is the mirror
 * image, and the two never meet. A block follows 2 P slots after the one before.
 * makespan 2 M + P - 2 slots, peak P / 2 + 1 at the ends, P in the middle. */
#include "order/order.h"

static double bubble(int stages, int microbatches, int virtuals)
{
    (void)virtuals;
    return (stages - 2.0) / (2.0 * microbatches + stages - 2.0);
}

/* The micro-batch of a copy that passes at `slot`, when a stage's first does so
 * at `first`; -1: none. */
static int micro_at(const Program *p, const Chunk *chunk, int slot, int first)
{
    int since = slot - first, block = 2 * p->ranks;
    int inside = since % block;
    if (since < 0 || inside % 2 || inside >= p->ranks)
        return -1;
    int k = since / block * (p->ranks / 2) + inside / 2;
    return k < chunk->micro_count ? chunk->first_micro + k : -1;
}

static void slot(Program *p, int rank, int chunk, int at)
{
    const Chunk *c = &p->chunks[chunk];
    int stage = chunk % p->copy_chunks;
    int f = micro_at(p, c, at, stage),
        b = micro_at(p, c, at, 2 * p->ranks - 1 - stage);
    if (f >= 0)
        forward(p, rank, chunk, f);
    if (b >= 0)
        backward(p, rank, chunk, b);
}

static void order(Program *p, int rank)
{
    int blocks = (p->chunks[0].micro_count + p->ranks / 2 - 1) / (p->ranks / 2);
    begin_steady(p, rank);
    for (int at = 0; at < 2 * p->ranks * (blocks + 1); at++) {
        slot(p, rank, rank, at);
        slot(p, rank, 2 * p->ranks - 1 - rank, at);
    }
    begin_cooldown(p, rank);
}

const Schedule schedule_chimera = {
    .name = "chimera",
    .summary =
        "Chimera: two copies of the model in opposite directions, 1F1B in "
        "both",
    .placement = PLACE_TWIN,
    .even_stages = true,
    .chapter_bubble = "(P-2)/(2M+P-2) where F = B",
    .bubble = bubble,
    .order = order,
};
