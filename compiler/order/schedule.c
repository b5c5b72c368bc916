/* schedule.c: chunks -> compute order per rank.
 *
 * Reads: set, ranks. Writes: order, origin. Guarantees: nothing yet; `prove` does.
 * The orders themselves are in schedules/, one file each, or a person has
 * written them: in a file of their own, exchange.c, or in a schedule block,
 * schedule_block.c. */
#include "order.h"
#include "compile.h"
#include "written.h"

#include <string.h>

static void append(Program *p, int rank, ActionKind kind, int chunk, int micro)
{
    push_action(p, &p->order[rank], (Action){kind, chunk, micro, -1, 0, 0});
}

void forward(Program *p, int rank, int chunk, int micro)
{
    append(p, rank, ACT_F, chunk, micro);
}

void backward(Program *p, int rank, int chunk, int micro)
{
    append(p, rank, ACT_B, chunk, micro);
}

void backward_input(Program *p, int rank, int chunk, int micro)
{
    append(p, rank, ACT_I, chunk, micro);
}

void backward_weight(Program *p, int rank, int chunk, int micro)
{
    append(p, rank, ACT_W, chunk, micro);
}

void pair_with_next(Program *p, int rank)
{
    List *order = &p->order[rank];
    order->at[order->count - 1].pair = 1;
}

void begin_steady(Program *p, int rank)
{
    p->order[rank].steady = p->order[rank].cooldown = p->order[rank].count;
}

void begin_cooldown(Program *p, int rank)
{
    p->order[rank].cooldown = p->order[rank].count;
}

double option(const Program *p, const char *name)
{
    for (int i = 0; i < MOST_OPTIONS && p->set.schedule->option[i]; i++)
        if (strcmp(p->set.schedule->option[i], name) == 0)
            return p->set.option[i].value;
    return 0;
}

/* ---- orders that a person has written ---- */

/* Where a person sees the phases: warm-up ends before the last forward that
 * stands before the first backward, if others follow; the last forward and the
 * action behind it end the steady phase. */
void find_phases(List *order)
{
    int warmup = 0, last = -1;
    while (warmup < order->count && order->at[warmup].kind == ACT_F)
        warmup++;
    for (int i = 0; i < order->count; i++)
        if (order->at[i].kind == ACT_F)
            last = i;
    bool alternates = last >= warmup;
    order->steady = alternates && warmup ? warmup - 1 : warmup;
    order->cooldown = alternates ? last + 2 : warmup;
    if (order->cooldown > order->count)
        order->cooldown = order->count;
}

/* ---- the pass ---- */

static bool run_orders(Program *p)
{
    if (p->set.schedule->orders)
        return p->set.schedule->orders(p);
    for (int r = 0; r < p->ranks; r++)
        p->set.schedule->order(p, r);
    return true;
}

/* The places of a loop, vee or wave have other ranks: `placement [1 0 0 1]` is a
 * vee. The schedule's own numbers are of places, so it runs for these, and the
 * rank of a place, which is that of chunk `place`, gets its order. */
static bool order_places(Program *p)
{
    List *order = arena_take(p->arena, sizeof *order * (size_t)p->ranks);
    int *rank = placed_ranks(p);
    choose_cost(p);  // of the ranks as they are
    for (int c = 0; c < p->chunk_count; c++)
        p->chunks[c].rank = placed_rank(p->set.placement, p->ranks, c);
    bool good = run_orders(p);
    for (int c = 0; c < p->chunk_count; c++)
        p->chunks[c].rank = rank[c];
    for (int place = 0; place < p->ranks; place++)
        order[rank[place]] = p->order[place];
    p->order = order;
    return good;
}

bool schedule(Program *p)
{
    p->order = arena_take(p->arena, sizeof *p->order * (size_t)p->ranks);
    p->rows = NULL;
    p->origin = NULL;
    if (p->set.schedule_path)
        return import_order(p);
    if (p->set.schedule->block)
        return run_block(p);
    const Schedule *s = p->set.schedule;
    if (is_renamed(&p->set) && (s->searches || !s->any_placement))
        return order_places(p);
    return run_orders(p);
}
