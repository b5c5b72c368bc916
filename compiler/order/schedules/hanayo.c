/* hanayo: waves (Liu et al., arXiv 2308.15762): one copy of the model, its 2 W P
 * chunks laid over the ranks forth and back W times; `virtual` is 2 W.
 *
 *     r0  0F0 .   0F1 .   .   .   .   7F0 7B0 7F1 7B1 .   .   .   .   0B0 .   0B1      P = 4, W = 1, M = 2
 *     r1  .   1F0 .   1F1 .   .   6F0 .   6F1 6B0 .   6B1 ...
 *
 * The paper gives pictures, no order. This one is chimera's, with the way back in
 * place of the second copy: with F = B, micro-batch j of a block of P passes chunk
 * c at slot 2 j + c and comes back at slot 4 W P - 1 - c + 2 j; no two of a rank
 * meet, since its chunks are 2 P slots apart or at slots of the other parity. A
 * block follows 4 W P slots after the one before. makespan 4 W M + 2 (P - 1) slots
 * where P divides M. Nothing is sent at the turns. */
#include "order/order.h"

/* Published for B = 2 F and M = P, from a secondary source. */
static double bubble(int stages, int microbatches, int virtuals)
{
    (void)microbatches;
    return (2.0 * stages - 2) / (1.5 * stages * virtuals + stages - 1);
}

/* The micro-batch that passes at `slot` where the first does so at `first`; -1:
 * none. */
static int micro_at(const Program *p, int slot, int first)
{
    int since = slot - first, block = 2 * p->chunk_count,
        inside = since % block;
    if (since < 0 || inside % 2 || inside >= 2 * p->ranks)
        return -1;
    int micro = since / block * p->ranks + inside / 2;
    return micro < p->microbatches ? micro : -1;
}

static void order(Program *p, int rank)
{
    int round = 2 * p->chunk_count,
        blocks = (p->microbatches + p->ranks - 1) / p->ranks;
    begin_steady(p, rank);
    for (int slot = 0; slot < round * (blocks + 1); slot++) {
        for (int leg = 0; leg < (int)p->set.virtuals.value; leg++) {
            int c = leg * p->ranks + (leg % 2 ? p->ranks - 1 - rank : rank);
            int f = micro_at(p, slot, c), b = micro_at(p, slot, round - 1 - c);
            if (f >= 0)
                forward(p, rank, c, f);
            if (b >= 0)
                backward(p, rank, c, b);
        }
    }
    begin_cooldown(p, rank);
}

const Schedule schedule_hanayo = {
    .name = "hanayo",
    .summary = "Hanayo: forth and back over the ranks, `virtual` / 2 waves",
    .least_chunks = 2,
    .most_chunks = 256,
    .placement = PLACE_WAVE,
    .chapter_bubble = "(2P-2)/(3PW+P-1) for M = P",
    .bubble = bubble,
    .order = order,
};
