/* schedule.c: chunks -> compute order per rank.
 *
 * Reads: set, ranks. Writes: order, cells. Guarantees: nothing yet; `prove` does.
 * The orders themselves are in schedules/, one file each, or a person has
 * written them: in a file of their own, exchange.c, or in a schedule block,
 * schedule_block.c. */
#include "order.h"
#include "compile.h"
#include "written.h"

#include <string.h>

static const double MAX_ACTIONS = 8e6;

const char *const action_names[ACTION_KIND_COUNT] = {
#define AS_TEXT(name, text) text,
    ACTION_KINDS(AS_TEXT)
#undef AS_TEXT
};

const char *action_text(Program *p, Action action)
{
    if (action.kind == ACT_STEP)
        return "STEP";
    if (action.kind == ACT_REDUCE)
        return text_format(p->arena, "REDUCE %s",
                           p->parameters[p->ties[action.micro].root].name);
    return text_format(p->arena, "%d%s%d", action.chunk,
                       action_names[action.kind], action.micro);
}

void push_action(Program *p, List *list, Action action)
{
    list->at = array_grow(p->arena, list->at, list->count, sizeof *list->at);
    list->at[list->count++] = action;
}

void forward(Program *p, int rank, int chunk, int micro)
{
    push_action(p, &p->order[rank], (Action){ACT_F, chunk, micro, -1, 0});
}

void backward(Program *p, int rank, int chunk, int micro)
{
    push_action(p, &p->order[rank], (Action){ACT_B, chunk, micro, -1, 0});
}

void backward_input(Program *p, int rank, int chunk, int micro)
{
    push_action(p, &p->order[rank], (Action){ACT_I, chunk, micro, -1, 0});
}

void backward_weight(Program *p, int rank, int chunk, int micro)
{
    push_action(p, &p->order[rank], (Action){ACT_W, chunk, micro, -1, 0});
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
    for (int i = 0; i < 4 && p->set.schedule->option[i]; i++)
        if (strcmp(p->set.schedule->option[i], name) == 0)
            return p->set.option[i].value;
    return 0;
}

/* The values of `virtual` that a placement allows. */
static bool placement_takes(Placement placement, int virtuals)
{
    return placement == PLACE_VEE    ? virtuals == 2
           : placement == PLACE_WAVE ? virtuals % 2 == 0
           : placement == PLACE_TWIN ? virtuals == 1
                                     : true;
}

bool schedule_takes(const Schedule *s, Placement placement, int stages,
                    int virtuals)
{
    int least = s->least_chunks ? s->least_chunks : 1,
        most = s->most_chunks ? s->most_chunks : least;
    bool foreign = placement != s->placement,  // then the placement decides
        range = virtuals >= least && virtuals <= most;
    return (!foreign || s->any_placement) && (foreign || range) &&
           placement_takes(placement, virtuals) &&
           !(s->even_stages && stages % 2);
}

/* ---- orders that a person has written ---- */

/* They have no formula; this is what they compete with. */
static double bubble(int stages, int microbatches, int virtuals)
{
    return (stages - 1.0) / ((double)microbatches * virtuals + stages - 1.0);
}

Schedule *written_schedule(Program *p, const char *name, const char *summary)
{
    Schedule *made = arena_take(p->arena, sizeof *made);
    made->name = name;
    made->summary = summary;
    made->chapter_bubble = "(P-1)/(Mv+P-1) for interleaved";
    made->bubble = bubble;
    return made;
}

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

Origin origin_of(Program *p, int rank, int entry)
{
    if (p->cells)
        return imported_origin(p, rank, entry);
    if (p->set.schedule->block)
        return block_origin(p, rank, entry);
    return (Origin){{-1, 0, 0}, ""};
}

Origin origin_in_lists(Program *p, int rank, int index)
{
    const List *list = &p->lists[rank];
    ActionKind kind = list->at[index].kind;
    bool sends = kind == ACT_SEND_F || kind == ACT_SEND_B;
    int entry = -1;
    for (int i = 0; i <= index; i++)
        entry += list->at[i].kind <= ACT_W;
    if ((kind > ACT_W && !sends) || entry < 0)
        return (Origin){{-1, 0, 0}, ""};
    return origin_of(p, rank, entry);
}

/* ---- the pass ---- */

bool schedule(Program *p)
{
    double actions = 2.0 * p->copy_chunks * p->set.microbatches.value;
    if (actions > MAX_ACTIONS) {
        error_at(p, p->set.microbatches.at,
                 "%g microbatches over %d chunks are %.3g actions",
                 p->set.microbatches.value, p->chunk_count, actions);
        help(p,
             "at most %g actions are unrolled; use fewer microbatches of more "
             "rows",
             MAX_ACTIONS);
        return false;
    }
    p->order = arena_take(p->arena, sizeof *p->order * (size_t)p->ranks);
    p->cells = NULL;
    if (p->set.schedule->orders)
        return p->set.schedule->orders(p);
    for (int r = 0; r < p->ranks; r++)
        p->set.schedule->order(p, r);
    return true;
}
