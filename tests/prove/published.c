/* published.c: bubble rates of Zero Bubble Pipeline Parallelism (Qi et al., arXiv
 * 2401.10241), tables 5 and 8, to their four digits: 1F1B, interleaved 1F1B, ZB-H1
 * and ZB-H2, from the published inputs, by our lists and our longest path. The
 * columns ZB-1p, ZB-2p and ZB-V are in tests/search.
 *
 * rate = (cost - m T) / cost, where cost is the longest of the ranks' own spans
 * and a message is pure latency. For interleaved the authors' program lets a
 * chunk wait for the message from the last rank to the first only with the first
 * micro-batch of each group of p; that rule, and the honest one, are both here. */
#include "plan.h"
#include "search/published.h"

#include <stdlib.h>

enum { ROWS = PUBLISHED_ROWS + PUBLISHED_MORE };

static int passed, failed;

/* Interleaved 1F1B of the same rows: chunks per rank, the printed rate, and the
 * rate by the honest rule (0: not known). */
static const struct Interleaved {
    int v;
    double printed, honest;
} interleaved[ROWS] = {
    {3, .1055, .1090}, {3, .0818, .0847}, {3, .0443, .0461}, {4, .0808, .0827},
    {4, .0628, .0644}, {4, .0320, .0328}, {3, .1104, .1136}, {3, .0852, .0878},
    {3, .0445, .0459}, {2, .1493, .1528}, {2, .1164, .1192}, {2, .0624, .0641},
    {2, .1499, 0},     {2, .1169, 0},     {2, .0621, 0},     {2, .1519, 0},
    {2, .1184, 0},     {2, .0630, 0},     {2, .1509, 0},     {2, .1177, 0},
    {2, .0626, 0},
};

static void verdict(const Published *row, const char *what, double rate,
                    double printed)
{
    bool good = floor(rate * 1e4 + 0.5) / 1e4 == printed;
    passed += good;
    failed += !good;
    if (!good)
        printf("not ok %s p=%d m=%d: %.6f, published %.4f\n%s", what,
               row->ranks, row->microbatches, rate, printed, plan_said);
}

static void set_costs(Program *p, const Published *row, int v)
{
    p->cost = unit_cost(p);
    p->cost.unit = false;
    for (int c = 0; c < p->chunk_count; c++) {
        p->cost.compute[ACT_F][c] = row->forward / v;
        p->cost.compute[ACT_I][c] = row->input / v;
        p->cost.compute[ACT_W][c] = row->weight / v;
        p->cost.compute[ACT_B][c] = (row->input + row->weight) / v;
        p->cost.delay[c] = c ? row->message : 0;
    }
}

static double rate_of(const Published *row, double cost)
{
    return 1 -
           row->microbatches * (row->forward + row->input + row->weight) / cost;
}

/* By the proof's own times: every message counts. */
static double proved_rate(const Published *row, const char *name, int v)
{
    Program *p;
    double cost = 0;
    bool good = plan_chain(&p, row->ranks, v, row->microbatches, name);
    if (good)
        set_costs(p, row, v);
    if (good && prove(p))
        for (int r = 0; r < row->ranks; r++)
            cost = fmax(cost, span_time(p, r));
    close_plan(p);
    return cost > 0 ? rate_of(row, cost) : -1;
}

/* ---- the authors' rule ---- */

typedef struct Run {
    const Program *p;
    const Published *row;
    double *end[2];  // [cell] of F, of B; 0: not yet
    int next[32];
    double clock[32], first[32];
} Run;

/* When an action's input is there; -1: not yet. */
static double ready(const Run *x, Action a)
{
    const Program *p = x->p;
    bool back = a.kind == ACT_B;
    int from = back ? p->chunks[a.chunk].next : p->chunks[a.chunk].previous;
    bool wraps = from >= 0 &&
                 abs(p->chunks[from].rank - p->chunks[a.chunk].rank) > 1;
    if (from < 0 || (wraps && a.micro % x->row->ranks != 0))
        return 0;
    double end = x->end[back][cell_of(p, from, a.micro)];
    return end > 0 ? end + x->row->message : -1;
}

static bool run_rank(Run *x, int r)
{
    const List *order = &x->p->order[r];
    bool moved = false;
    for (; x->next[r] < order->count; x->next[r]++, moved = true) {
        Action a = order->at[x->next[r]];
        double there = ready(x, a);
        if (there < 0)
            break;
        double begin = fmax(there, x->clock[r]);
        if (x->next[r] == 0)
            x->first[r] = begin;
        x->clock[r] = begin + x->p->cost.compute[a.kind][a.chunk];
        x->end[a.kind == ACT_B][cell_of(x->p, a.chunk, a.micro)] = x->clock[r];
    }
    return moved;
}

static double lenient_rate(const Published *row, int v)
{
    Program *p;
    Run x = {.row = row};
    double cost = 0;
    if (!plan_chain(&p, row->ranks, v, row->microbatches, "interleaved"))
        return -1;
    set_costs(p, row, v);
    x.p = p;
    for (int back = 0; back < 2; back++)
        x.end[back] = arena_take(
            p->arena, sizeof(double) * cell_of(p, 0, row->microbatches));
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < row->ranks; r++)
            moved |= run_rank(&x, r);
    }
    for (int r = 0; r < row->ranks; r++)
        cost = fmax(cost, x.next[r] == p->order[r].count
                              ? x.clock[r] - x.first[r]
                              : INFINITY);
    close_plan(p);
    return rate_of(row, cost);
}

int main(void)
{
    for (int i = 0; i < ROWS; i++) {
        const Published *row = published_row(i);
        const PublishedRates *rates = &published_rates[i];
        const struct Interleaved *many = &interleaved[i];
        verdict(row, "1F1B", proved_rate(row, "1f1b", 1), rates->one);
        verdict(row, "1F1B-I", lenient_rate(row, many->v), many->printed);
        verdict(row, "ZB-H1", proved_rate(row, "zbh1", 1), rates->h1);
        verdict(row, "ZB-H2", proved_rate(row, "zbh2", 1), rates->h2);
        if (many->honest > 0)
            verdict(row, "1F1B-I, every message",
                    proved_rate(row, "interleaved", many->v), many->honest);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
