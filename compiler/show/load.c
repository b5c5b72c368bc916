/* load.c: which rank has the most to do, and whether another split would help.
 *
 * Reads: chunks, nodes, cost, set. The work of a rank is its time by the plan's
 * cost model: what it is busy for in the timeline. Where the plan counts in
 * forwards of one chunk, which weighs all chunks alike, it is operations, and
 * that is said. */
#include "show.h"

#include <string.h>

static bool by_operations(const Program *p)
{
    return p->cost.unit;
}

/* Of a whole step. */
static double load_of(const Program *p, int rank)
{
    if (!by_operations(p))
        return busy_time(p, rank);
    double work = 0;
    for (int c = 0; c < p->chunk_count; c++)
        for (int e = 0; e < 3 && p->chunks[c].rank == rank; e++)
            work += p->chunks[c].work[e] * p->chunks[c].micro_count;
    return work;
}

static double slowest_of_sizes(const Program *p, const double *cost,
                               const int *sizes)
{
    double slowest = 0;
    for (int r = 0; r < p->ranks; r++) {
        double load = 0;
        for (int c = 0, layer = 0; c < p->chunk_count; c++) {
            int size = sizes[c % p->copy_chunks];
            for (int i = 0; p->chunks[c].rank == r && i < size; i++)
                load += cost[layer + i];
            layer = (layer + size) % p->layer_count;
        }
        slowest = load > slowest ? load : slowest;
    }
    return slowest * p->microbatches / p->copies;
}

static const char *load_text(Program *p, double load)
{
    static const char *const units[] = {"flop",  "Kflop", "Mflop",
                                        "Gflop", "Tflop", "Pflop"};
    int unit = 0;
    if (!by_operations(p))
        return seconds_text(p->arena, load);
    for (; load >= 1e4 && unit < 5; unit++)
        load /= 1e3;
    return text_format(p->arena, "%.4g %s", load, units[unit]);
}

static bool has_empty_chunk(const Program *p)
{
    for (int c = 0; c < p->copy_chunks; c++)
        if (!p->chunks[c].layer_count)
            return true;
    return false;
}

/* Another split is only worth a line when its slowest rank is faster. */
static void better_split(Program *p, double most, double mean, FILE *out)
{
    if (p->layer_count < p->copy_chunks) {
        fputs("fewer layers than chunks: `split balanced` has none for each\n",
              out);
        return;
    }
    if (p->set.given[ACT_F].count) {
        fputs("the file gives times of chunks, so no split weighs them\n", out);
        return;
    }
    if (p->set.flops.count > 1) {
        fputs("`split balanced` counts operations, not the flops of ranks\n",
              out);
        return;
    }
    double *cost = arena_take(p->arena, sizeof *cost * (size_t)p->layer_count);
    int *sizes = arena_take(p->arena, sizeof *sizes * (size_t)p->chunk_count);
    layer_costs(p, cost);
    balanced_sizes(cost, p->layer_count, p->copy_chunks, p->ranks,
                   placed_ranks(p), sizes);
    double best = slowest_of_sizes(p, cost, sizes), scale = p->microbatches;
    if (!by_operations(p)) {
        best /= p->set.flops.value[0];
        scale /= p->set.flops.value[0];
    }
    double bound = p->copies > 1
                       ? mean
                       : scale * slowest_rank_bound(cost, p->layer_count,
                                                    p->copy_chunks, p->ranks,
                                                    placed_ranks(p));
    if (best < most * 0.995) {
        fprintf(out,
                "`split balanced` would bring it to %.2f times the mean: [",
                best / mean);
        for (int c = 0; c < p->copy_chunks; c++)
            fprintf(out, "%s%d", c ? " " : "", sizes[c]);
        fputs("]\n", out);
    } else if (has_empty_chunk(p)) {
        fputs("`split balanced`, which leaves no chunk empty, is no better\n",
              out);
    } else if (most <= bound * 1.005 || p->layer_count == p->copy_chunks) {
        fputs("no split of whole layers has a faster slowest rank\n", out);
    } else {
        fprintf(out,
                "no split is known that is better; none can bring it below "
                "%.2f times the mean\n",
                bound / mean);
    }
}

void balance_lines(Program *p, FILE *out)
{
    double most = 0, sum = 0;
    int heaviest = 0;
    for (int r = 0; r < p->ranks; r++) {
        double load = load_of(p, r);
        sum += load;
        if (load > most) {
            most = load;
            heaviest = r;
        }
    }
    double mean = sum / p->ranks;
    if (p->ranks == 1 || mean <= 0)
        return;
    if (most <= mean * (1 + 1e-9)) {
        fprintf(out, "every rank has the same work%s\n",
                by_operations(p) ? ", by operations" : "");
        return;
    }
    fprintf(out,
            "heaviest rank%s: %d, with %.2f times the mean work; in a step of "
            "%d micro-batches that costs %s\n",
            by_operations(p) ? " by operations" : "", heaviest, most / mean,
            p->microbatches, load_text(p, most - mean));
    better_split(p, most, mean, out);
}
