/* interleaved: 1F1B over v chunks per rank (Narayanan et al., arXiv 2104.04473,
 * section 2.2).
 *
 * Forward k of a rank is the k-th entry of a table: groups of N micro-batches,
 * and in each group all of them through chunk 0, then all through chunk 1, ...;
 * backward k is the same entry with the chunks in reverse. Rank r warms up with
 * 2 (P - 1 - r) + (v - 1) N forwards, then alternates.
 *
 *     v = 2, N = 2:   0F0 0F1 2F0 2F1 | 0F2 0F3 2F2 2F3
 *
 * makespan M v (F + B) + (P - 1)(F + B), in chunks; peak min(M v, 2 (P - 1 - r)
 * + (v - 1) N + 1).
 *
 * M need not be a multiple of P. The makespan holds whenever N >= P and the
 * last group is full or has at least P micro-batches; the default N is the
 * least such number, below 2 P, or M when M < P. With v = 1 the warm-up is that
 * of 1f1b, and so is all the rest. */
#include "interleaved.h"

int interleaved_group(const Program *p)
{
    int microbatches = p->microbatches, group = (int)option(p, "group");
    if (group)
        return group;
    for (group = p->ranks; group < microbatches; group++)
        if (microbatches % group == 0 || microbatches % group >= p->ranks)
            return group;
    return microbatches;
}

static double bubble(int stages, int microbatches, int virtuals)
{
    return (stages - 1.0) / ((double)microbatches * virtuals + stages - 1.0);
}

/* Entry k of the table: which of the rank's chunks, and which micro-batch. */
static void entry(const Program *p, int k, int *chunk, int *micro)
{
    int microbatches = p->microbatches, virtuals = (int)p->set.virtuals.value;
    int group = interleaved_group(p), first = k / (group * virtuals) * group;
    int size = microbatches - first < group ? microbatches - first : group;
    int inside = k - first * virtuals;
    *chunk = inside / size;
    *micro = first + inside % size;
}

void interleaved_forward(const Program *p, int rank, int k, int *chunk,
                         int *micro)
{
    entry(p, k, chunk, micro);
    *chunk = *chunk * p->ranks + rank;
}

void interleaved_backward(const Program *p, int rank, int k, int *chunk,
                          int *micro)
{
    entry(p, k, chunk, micro);
    *chunk = ((int)p->set.virtuals.value - 1 - *chunk) * p->ranks + rank;
}

static void forward_k(Program *p, int rank, int k)
{
    int chunk, micro;
    interleaved_forward(p, rank, k, &chunk, &micro);
    forward(p, rank, chunk, micro);
}

static void backward_k(Program *p, int rank, int k)
{
    int chunk, micro;
    interleaved_backward(p, rank, k, &chunk, &micro);
    backward(p, rank, chunk, micro);
}

static void order(Program *p, int rank)
{
    int virtuals = (int)p->set.virtuals.value,
        total = p->microbatches * virtuals;
    int factor = option(p, "warmup") ? (int)option(p, "warmup")
                 : virtuals > 1      ? 2
                                     : 1;
    int warmup = factor * (p->ranks - 1 - rank) +
                 (virtuals - 1) * interleaved_group(p);
    if (warmup > total)
        warmup = total;
    for (int k = 0; k < warmup; k++)
        forward_k(p, rank, k);
    begin_steady(p, rank);
    for (int k = warmup; k < total; k++) {
        forward_k(p, rank, k);
        backward_k(p, rank, k - warmup);
    }
    begin_cooldown(p, rank);
    for (int k = total - warmup; k < total; k++)
        backward_k(p, rank, k);
}

const Schedule schedule_interleaved = {
    .name = "interleaved",
    .summary = "1F1B over `virtual` chunks per rank; options group = N, warmup "
               "= 1 or 2",
    .most_chunks = 256,
    .option = {"group", "warmup"},
    .most = {16384, 2},
    .chapter_bubble = "(P-1)/(Mv+P-1)",
    .bubble = bubble,
    .order = order,
};
