/* vee.c: the schedules with two chunks per rank, against published numbers:
 * the column ZB-V of table 8 of arXiv 2401.10241, what its authors' scheduler
 * gives on the inputs of table 9 at three memory limits, and what V-Half and
 * V-Min (arXiv 2405.15362) give with equal times; and every small size runs
 * whole, within its limit. */
#include "vee.h"

#include <string.h>

static int failed;

static void verdict(bool good, const char *what, int a, int b)
{
    failed += !good;
    if (!good)
        printf("not ok %s, %d %d\n", what, a, b);
}

static void report(const char *what)
{
    if (failed == 0)
        printf("ok %s\n", what);
    failed = 0;
}

/* Every entry is there as often as it should be. */
static bool whole(const Vee *v)
{
    for (int r = 0; r < v->q.ranks; r++) {
        int seen[2][SEARCH_KINDS] = {{0}};
        if (v->orders[r].count != 6 * v->q.microbatches)
            return false;
        for (int i = 0; i < v->orders[r].count; i++) {
            int chunk = v->orders[r].at[i] / SEARCH_KINDS;
            if (chunk < 0 || chunk >= v->q.chunks || v->q.rank[chunk] != r ||
                seen[chunk >= v->q.ranks]
                    [v->orders[r].at[i] % SEARCH_KINDS]++ == v->q.microbatches)
                return false;
        }
    }
    return true;
}

/* The orders run, whole and within the limit. */
static bool sound(const Vee *v, Result *result)
{
    return whole(v) && order_result(&v->q, v->orders, result, NULL) &&
           order_fits(&v->q, v->orders);
}

static double rounded(double rate)
{
    return floor(rate * 1e4 + 0.5) / 1e4;
}

static void greedy_is_no_worse(const VeeInput *in, double cap, double published)
{
    Vee v = vee_open(in, in->ranks, in->microbatches, 2 * in->ranks * cap);
    Result result;
    bool good = vee_greedy(&v.q, v.orders) && sound(&v, &result) &&
                rounded(vee_rate(&v, result.span)) <= published + 1e-9;
    verdict(good, in->model, in->ranks, in->microbatches);
    vee_close(&v);
}

static void published_greedy(void)
{
    for (int i = 0; i < 9; i++)
        greedy_is_no_worse(&vee_table8[i], 1, vee_printed[i]);
    report("table 8: no cell of ZB-V worse than published");
    for (int i = 0; i < 12; i++)
        for (int cap = 0; cap < 3; cap++)
            greedy_is_no_worse(&vee_table9[i], 1 + cap * .5,
                               vee_published_caps[i][cap]);
    report("table 9: no cell of three limits worse than published");
}

static void unit_greedy(int ranks, int microbatches)
{
    static const int few[] = {17, 19, 23, 27, 33, 39};
    Vee v = vee_open(&vee_unit, ranks, microbatches, 2 * ranks);
    Result result;
    bool good = vee_greedy(&v.q, v.orders) && sound(&v, &result);
    if (good && microbatches >= 2 * ranks - 1)
        good = result.span <= 6 * microbatches &&
               result.makespan <= 6 * microbatches + ranks - 1;
    else if (good && ranks == 4)
        good = result.makespan <= few[microbatches - 1];
    verdict(good, "greedy with equal times", ranks, microbatches);
    vee_close(&v);
}

static void unit_pattern(VeePattern which, int ranks, int microbatches)
{
    bool half = which == VEE_HALF;
    int peak = 2 * (half ? (ranks + 2) / 2 : (ranks + 4) / 3);
    int idle = half ? 3 * ranks - 7 : 4 * ranks - (ranks % 3 ? 5 : 7);
    Vee v = vee_open(&vee_unit, ranks, microbatches, peak);
    Result result;
    vee_pattern(&v.q, which, v.orders);
    bool good = sound(&v, &result);
    if (microbatches >= 3 * ranks && ranks > 2 && !(half && ranks % 2))
        good = good && result.makespan <= 6 * microbatches + idle;
    if (microbatches == 8 && ranks == 4)
        good = good && result.makespan <= (half ? 53 : 59);
    verdict(good, half ? "V-Half" : "V-Min", ranks, microbatches);
    vee_close(&v);
}

static void every_size(void)
{
    static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 96};
    for (int ranks = 1; ranks <= 16; ranks++)
        for (int i = 0; i < 11; i++) {
            unit_greedy(ranks, sizes[i]);
            unit_pattern(VEE_HALF, ranks, sizes[i]);
            unit_pattern(VEE_MIN, ranks, sizes[i]);
        }
    report("equal times: every size runs, within its limit and as published");
}

/* Down to the memory of one micro-batch, and not below. */
static void tight_memory(void)
{
    for (int ranks = 2; ranks <= 8; ranks++)
        for (int limit = 2; limit <= 2 * ranks; limit++) {
            Vee v = vee_open(&vee_table9[0], ranks, 8, limit);
            Result result;
            verdict(vee_greedy(&v.q, v.orders) && sound(&v, &result),
                    "limit of so many chunks", ranks, limit);
            vee_close(&v);
        }
    Vee v = vee_open(&vee_table9[0], 4, 8, 1.9);
    verdict(!vee_greedy(&v.q, v.orders), "no room for a micro-batch", 4, 8);
    vee_close(&v);
    report("tight memory: an order down to one micro-batch");
}

int main(void)
{
    published_greedy();
    every_size();
    tight_memory();
    return 0;
}
