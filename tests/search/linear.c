/* linear.c: the search for one chunk per rank on published inputs: closed forms
 * to the four printed digits, never above the printed numbers of tables 5 and 8
 * under the same limits, unequal ranks, and where the optimum is proved. */
#include "published.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed;

static void verdict(bool good, const char *what)
{
    printf("%s %s\n", good ? "ok" : "not ok", what);
    failed += !good;
}

static bool same_digits(double rate, double printed)
{
    return round(rate * 1e4) == round(printed * 1e4);
}

static Sequence *take_orders(int ranks, int microbatches)
{
    Sequence *orders = calloc((size_t)ranks, sizeof *orders);
    for (int r = 0; r < ranks; r++)
        orders[r].at = calloc((size_t)(SEARCH_KINDS * microbatches),
                              sizeof *orders[r].at);
    return orders;
}

static void free_orders(Sequence *orders, int ranks)
{
    for (int r = 0; r < ranks; r++)
        free(orders[r].at);
    free(orders);
}

static void append(Sequence *order, int rank, int kind)
{
    order->at[order->count++] = (short)(rank * SEARCH_KINDS + kind);
}

/* Warm-up, then F I W in turn with the W some I late; then what is left. */
static void closed_form(Sequence *order, int rank, int warm, int delay,
                        int microbatches)
{
    int done[SEARCH_KINDS] = {0};
    order->count = 0;
    while (done[SEARCH_I] < microbatches) {
        do {
            if (done[SEARCH_F] < microbatches && ++done[SEARCH_F])
                append(order, rank, SEARCH_F);
        } while (done[SEARCH_F] < warm && done[SEARCH_F] < microbatches);
        append(order, rank, SEARCH_I);
        if (++done[SEARCH_I] > delay && ++done[SEARCH_W])
            append(order, rank, SEARCH_W);
    }
    while (done[SEARCH_W]++ < microbatches)
        append(order, rank, SEARCH_W);
}

/* The bubble rate of 1F1B (`deep` 0: no delay), ZB-H1 (1) or ZB-H2 (2). */
static double form_rate(const Published *p, int deep)
{
    Uniform *u = calloc(1, sizeof *u);
    Sequence *orders = take_orders(p->ranks, p->microbatches);
    Result result;
    uniform_problem(u, p, INFINITY);
    for (int r = 0; r < p->ranks; r++) {
        int behind = p->ranks - 1 - r;
        closed_form(&orders[r], r, (deep == 2 ? 2 : 1) * behind + 1, deep * r,
                    p->microbatches);
        if (deep == 0) {  // input and weights in one
            u->time[SEARCH_I][r] += u->time[SEARCH_W][r];
            u->time[SEARCH_W][r] = 0;
        }
    }
    bool good = order_result(&u->problem, orders, &result, NULL);
    free_orders(orders, p->ranks);
    free(u);
    return good ? 1 - published_work(p) / result.span : 1;
}

/* The search's rate; `optimal` when it is proved. */
static double search_rate(const Published *p, double limit, double effort,
                          bool *optimal)
{
    Uniform *u = calloc(1, sizeof *u);
    Sequence *orders = take_orders(p->ranks, p->microbatches);
    Search search = {.seed = 1, .effort = effort};
    Result result;
    uniform_problem(u, p, limit);
    bool good = search_orders(&u->problem, &search, orders, &result) &&
                order_fits(&u->problem, orders);
    *optimal = good && search.optimal;
    free_orders(orders, p->ranks);
    free(u);
    return good ? 1 - published_work(p) / result.span : 1;
}

static void published_tables(void)
{
    bool forms = true, limit1 = true, limit2 = true, all = true, optimal;
    for (int row = 0; row < PUBLISHED_ROWS + PUBLISHED_MORE; row++) {
        const Published *p = published_row(row);
        const PublishedRates *rates = &published_rates[row];
        forms &= same_digits(form_rate(p, 0), rates->one) &&
                 same_digits(form_rate(p, 1), rates->h1) &&
                 same_digits(form_rate(p, 2), rates->h2);
        limit1 &= same_digits(search_rate(p, 1, 0.02, &optimal), rates->limit1);
        all &= optimal;
        limit2 &= search_rate(p, 2, 0.02, &optimal) < rates->limit2 + 5e-5;
        all &= optimal;
    }
    verdict(forms, "1F1B, ZB-H1 and ZB-H2 of tables 5 and 8, 63 numbers");
    verdict(limit1, "ZB-1p of tables 5 and 8, 21 numbers");
    verdict(limit2, "ZB-2p of tables 5 and 8, never above 21 numbers");
    verdict(all, "these 42 are proved to be the best");
}

/* Every limit for eight ranks and 24 or 32 micro-batches. */
static void published_limits(void)
{
    static const int rows[] = {0, 1, 3, 4};
    bool none_above = true, optimal;
    int proved = 0;
    for (int i = 0; i < 4; i++)
        for (int cap = 0; cap < PUBLISHED_CAPS; cap++) {
            double rate = search_rate(&published[rows[i]], 1 + cap * 0.125, 0.3,
                                      &optimal);
            none_above &= rate < published_rate[rows[i]][cap] + 5e-5;
            proved += optimal;
        }
    verdict(none_above, "nine limits of four rows, none above the heuristic");
    printf("# %d of 36 proved\n", proved);
    verdict(proved >= 34, "at least 34 of these 36 are proved to be the best");
}

/* Eight unequal ranks: the slowest one is never idle. */
static void unequal_ranks(double limit)
{
    static const double forward[] = {30715, 29233, 29106, 29078,
                                     28850, 28919, 28924, 41678},
                        input[] = {31308, 29344, 29357, 29455,
                                   29217, 29384, 29354, 38731},
                        weight[] = {18746, 18789, 19062, 19367,
                                    19455, 19967, 20096, 32833};
    Published p = {"", 8, 32, 0, 0, 0, 473, 1, 1, 1};
    Uniform *u = calloc(1, sizeof *u);
    Sequence *orders = take_orders(8, 32);
    Search search = {.seed = 1, .effort = 0.1};
    Result result;
    uniform_problem(u, &p, limit);
    for (int r = 0; r < 8; r++) {
        u->time[SEARCH_F][r] = forward[r];
        u->time[SEARCH_I][r] = input[r];
        u->time[SEARCH_W][r] = weight[r];
        u->held[r] = r == 0 ? 943 : r == 7 ? 1071 : 1240;
        u->kept[r] = r == 0 ? 410 : r == 7 ? 483 : 552;
        u->limit[r] = limit * 1240;
    }
    bool good = search_orders(&u->problem, &search, orders, &result) &&
                order_fits(&u->problem, orders);
    verdict(good && result.span == 3623744, "unequal ranks");
    free_orders(orders, 8);
    free(u);
}

/* A uniform problem of section 1.1.6: the span is `known` at most. */
static void known_span(Published p, double held, double kept, double limit,
                       double known)
{
    Uniform *u = calloc(1, sizeof *u);
    Sequence *orders = take_orders(p.ranks, p.microbatches);
    Search search = {.seed = 1, .effort = 0.1};
    Result result;
    char what[80];
    uniform_problem(u, &p, 1);
    for (int r = 0; r < p.ranks; r++) {
        u->held[r] = held;
        u->kept[r] = kept;
        u->limit[r] = limit;
    }
    bool good = search_orders(&u->problem, &search, orders, &result) &&
                order_fits(&u->problem, orders);
    snprintf(what, sizeof what, "p=%d m=%d: %.0f, known %.0f%s", p.ranks,
             p.microbatches, result.span, known,
             search.optimal ? ", proved" : "");
    verdict(good && result.span < known + 0.5, what);
    free_orders(orders, p.ranks);
    free(u);
}

/* The same for a barrier after the step: the makespan is what is made small. */
static void makespans(void)
{
    bool good = true;
    for (int cap = 1; cap <= 3; cap++) {
        Uniform *u = calloc(1, sizeof *u);
        const Published *p = &published[3];
        Sequence *orders = take_orders(p->ranks, p->microbatches);
        Search search = {.seed = 1, .effort = 0.05};
        Result result;
        uniform_problem(u, p, cap);
        u->problem.metric = METRIC_MAKESPAN;
        static const double known[] = {.1323, .1003, .1003};
        good &= search_orders(&u->problem, &search, orders, &result) &&
                same_digits(1 - published_work(p) / result.makespan,
                            known[cap - 1]);
        free_orders(orders, p->ranks);
        free(u);
    }
    verdict(good, "makespan at three limits is the bound");
}

int main(void)
{
    published_tables();
    published_limits();
    unequal_ranks(16);
    unequal_ranks(8);
    known_span((Published){"", 8, 32, 29850, 29767, 18868, 466, 1, 1, 1}, 3720,
               1672, 16 * 3720, 2517463);
    known_span((Published){"", 8, 32, 29850, 29767, 18868, 466, 1, 1, 1}, 3720,
               1672, 8 * 3720, 2809811);
    known_span((Published){"", 4, 12, 5, 6, 4, 0, 1, 1, 1}, 2, 1, 10, 193);
    known_span((Published){"", 4, 12, 5, 6, 4, 0, 1, 1, 1}, 2, 1, 14, 183);
    known_span((Published){"", 4, 12, 5478, 5806, 3534, 200, 1, 1, 1}, 2, 1, 32,
               178898);
    known_span((Published){"", 32, 16, 1, 1, 1, 0, 1, 1, 1}, 2, 1, 64, 95);
    makespans();
    return failed != 0;
}
