/* search_problem.c: a plan as a Problem, and its Orders as compute orders.
 *
 * Reads: set, chunks, ranks, cost. Writes: order. */
#include "search_problem.h"
#include "order/written.h"

#include <math.h>

static int *ranks_of_chunks(Program *p)
{
    int *rank = arena_take(p->arena, sizeof *rank * (size_t)p->chunk_count);
    for (int c = 0; c < p->chunk_count; c++)
        rank[c] = p->chunks[c].rank;
    return rank;
}

/* Of every boundary that messages cross; a hand-over inside a rank has none. */
static double *at_boundaries(Program *p, const double *time)
{
    double *made = arena_take(p->arena, sizeof *made * (size_t)p->chunk_count);
    for (int c = 0; c < p->chunk_count; c++) {
        int from = p->chunks[c].previous;
        if (from >= 0 && p->chunks[from].rank != p->chunks[c].rank)
            made[c] = time[c];
    }
    return made;
}

static double *all_equal(Program *p, int count, double value)
{
    double *made = arena_take(p->arena, sizeof *made * (size_t)count);
    for (int i = 0; i < count; i++)
        made[i] = value;
    return made;
}

/* A pair's one queue is not searched: without it no order takes longer, so the
 * bounds hold, and what is found is timed by `prove`. */
Problem problem_in_chunks(Program *p, double most)
{
    choose_cost(p);
    const double *one = all_equal(p, p->chunk_count, 1);
    return (Problem){.ranks = p->ranks,
                     .chunks = p->chunk_count,
                     .microbatches = p->microbatches,
                     .rank = ranks_of_chunks(p),
                     .time = {p->cost.compute[ACT_F], p->cost.compute[ACT_I],
                              p->cost.compute[ACT_W]},
                     .message = at_boundaries(p, p->cost.delay),
                     .wire = at_boundaries(p, p->cost.wire),
                     .held = one,
                     .kept = one,
                     .limit = all_equal(p, p->ranks, most),
                     .metric = METRIC_MAKESPAN,
                     .posted = meeting_of(p) == MEET_POSTED};
}

Sequence *take_orders(Program *p, const Problem *q)
{
    Sequence *orders = arena_take(p->arena, sizeof *orders * (size_t)q->ranks);
    for (int c = 0; c < q->chunks; c++)
        orders[q->rank[c]].count += SEARCH_KINDS * q->microbatches;
    for (int r = 0; r < q->ranks; r++)
        orders[r].at = arena_take(p->arena, sizeof *orders[r].at *
                                                (size_t)orders[r].count);
    return orders;
}

/* The other way round; a B is an I and a W behind it. */
static void read_orders(const Program *p, Sequence *orders)
{
    for (int r = 0; r < p->ranks; r++) {
        orders[r].count = 0;
        for (int i = 0; i < p->order[r].count; i++) {
            Action a = p->order[r].at[i];
            short entry = (short)(a.chunk * SEARCH_KINDS);
            short *at = orders[r].at + orders[r].count;
            if (a.kind == ACT_B)
                at[1] = (short)(entry + SEARCH_W);
            at[0] = (short)(entry + (a.kind == ACT_F   ? SEARCH_F
                                     : a.kind == ACT_W ? SEARCH_W
                                                       : SEARCH_I));
            orders[r].count += a.kind == ACT_B ? 2 : 1;
        }
    }
}

void use_orders(Program *p, const Problem *q, const Sequence *orders)
{
    static const ActionKind kinds[SEARCH_KINDS] = {ACT_F, ACT_I, ACT_W};
    int *done = arena_take(p->arena, sizeof *done * SEARCH_KINDS *
                                         (size_t)p->chunk_count);
    for (int r = 0; r < p->ranks; r++) {
        p->order[r] = (List){NULL, 0, 0, 0};
        for (int i = 0; i < orders[r].count; i++) {
            int entry = orders[r].at[i], chunk = entry / SEARCH_KINDS,
                kind = entry % SEARCH_KINDS, micro = done[entry]++;
            bool whole = is_whole(q, &orders[r], i,
                                  kind == SEARCH_I ? micro - done[entry + 1]
                                                   : 0);
            push_action(
                p, &p->order[r],
                (Action){whole ? ACT_B : kinds[kind], chunk, micro, -1, 0, 0});
            if (whole)
                done[entry + 1]++;
            i += whole;
        }
        find_phases(&p->order[r]);
    }
}

static bool is_shorter(const Problem *q, const Result *a, const Result *b)
{
    double ours = metric_of(q, a), theirs = metric_of(q, b);
    if (fabs(ours - theirs) > 1e-9 * theirs)
        return ours < theirs;
    return second_of(q, a) < second_of(q, b) * (1 - 1e-9);
}

void use_if_shorter(Program *p, const Problem *q, const Sequence *orders)
{
    Sequence *before = take_orders(p, q);
    Result old, new;
    read_orders(p, before);
    if (!order_result(q, orders, &new, NULL))
        return;
    if (!order_result(q, before, &old, NULL) || is_shorter(q, &new, &old))
        use_orders(p, q, orders);
}

bool pattern_orders(Program *p, VeePattern which)
{
    Problem q = problem_in_chunks(p, INFINITY);
    Sequence *orders = take_orders(p, &q);
    vee_pattern(&q, which, orders);
    use_orders(p, &q, orders);
    return true;
}
