/* vee_search.c: what the search finds with two chunks per rank: better than the
 * best published schedulers at limits where there is room for it, within a
 * second; the same for the same seed; and sound for any size, either metric,
 * and costs that differ from chunk to chunk. */
#include "vee.h"

#include <string.h>

static void verdict(bool good, const char *what)
{
    printf("%s %s\n", good ? "ok" : "not ok", what);
}

static bool sound(const Vee *v, const Result *said)
{
    Result result;
    for (int r = 0; r < v->q.ranks; r++)
        if (v->orders[r].count != 6 * v->q.microbatches)
            return false;
    return order_result(&v->q, v->orders, &result, NULL) &&
           order_fits(&v->q, v->orders) && result.span == said->span &&
           result.makespan == said->makespan;
}

/* The rate that the search finds on a row of table 9; 1: none. */
static double rate(int row, double limit)
{
    const VeeInput *in = &vee_table9[row];
    Vee v = vee_open(in, in->ranks, in->microbatches, limit);
    Result result;
    double found = 1;
    if (search_vee(&v.q, 1, 0.1, v.orders, &result) && sound(&v, &result))
        found = vee_rate(&v, result.span);
    vee_close(&v);
    return found;
}

static void beats(void)
{
    static const struct {
        int row;
        double limit, below;
        const char *what;
    } cells[] = {
        {0, 8, .3353, "1.5B, memory of V-Min: below its .3353"},
        {0, 10, .1702, "1.5B, memory of V-Half: below its .1702"},
        {0, 20, .0303, "1.5B, 1.25 stages: below .0303"},
        {0, 24, .0110, "1.5B, 1.5 stages: below .0110"},
        {3, 20, .0112, "6.2B, 1.25 stages: below .0112"},
        {3, 24, .0042, "6.2B, 1.5 stages: below .0042"},
        {6, 18, .1682, "14.6B, memory of V-Half: below its .1682"},
    };
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        double found = rate(cells[i].row, cells[i].limit);
        verdict(found < cells[i].below, cells[i].what);
        if (found >= cells[i].below)
            printf("    found %.4f\n", found);
    }
}

static void same_seed_same_order(void)
{
    Vee a = vee_open(&vee_table9[3], 6, 20, 9),
        b = vee_open(&vee_table9[3], 6, 20, 9);
    Result result;
    bool good = search_vee(&a.q, 7, 0.02, a.orders, &result) &&
                search_vee(&b.q, 7, 0.02, b.orders, &result);
    verdict(good &&
                memcmp(a.entries, b.entries, 36 * 20 * sizeof *a.entries) == 0,
            "the same seed gives the same order");
    vee_close(&a);
    vee_close(&b);
}

/* Costs of every chunk by chance, within a factor of two. */
static void vary(Vee *v)
{
    unsigned long long dice = 1;
    for (int i = 0; i < 3 * v->q.chunks; i++) {
        dice = dice * 6364136223846793005u + 1442695040888963407u;
        v->numbers[i] *= 1 + (double)(dice >> 11) / 9007199254740992.0;
    }
}

static void every_size(Metric metric, const char *what)
{
    static const int sizes[] = {1, 2, 3, 5, 8, 16, 32};
    bool good = true;
    for (int ranks = 1; ranks <= 16; ranks++)
        for (int i = 0; i < 7 && good; i++) {
            double limit = 2 + (ranks * 7 + i) % (2 * ranks);
            Vee v = vee_open(&vee_table9[0], ranks, sizes[i], limit);
            Result result, greedy;
            v.q.metric = metric;
            vary(&v);
            good = vee_greedy(&v.q, v.orders) &&
                   order_result(&v.q, v.orders, &greedy, NULL) &&
                   search_vee(&v.q, 1, 0.001, v.orders, &result) &&
                   sound(&v, &result) &&
                   (metric == METRIC_SPAN ? result.span <= greedy.span
                                          : result.makespan <= greedy.makespan);
            if (!good)
                printf("    %d ranks, %d micro-batches, limit %.0f\n", ranks,
                       sizes[i], limit);
            vee_close(&v);
        }
    verdict(good, what);
}

static void no_room(void)
{
    Vee v = vee_open(&vee_table9[0], 4, 8, 1.9);
    Result result;
    verdict(!search_vee(&v.q, 1, 0.01, v.orders, &result),
            "no room for a micro-batch: no order");
    vee_close(&v);
}

int main(void)
{
    beats();
    same_seed_same_order();
    every_size(METRIC_SPAN, "any size and costs: sound, no worse than greedy");
    every_size(METRIC_MAKESPAN, "and by the makespan");
    no_room();
    return 0;
}
