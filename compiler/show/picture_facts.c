/* picture_facts.c: what the pictures share, read off the nodes and blocks.
 *
 * Reads: lists, chunks, cost, nodes, blocks, arena_floats. Writes nothing. */
#include "picture.h"

#include <string.h>

bool phase_span(const Picture *k, int rank, int phase, double *from, double *to)
{
    const List *list = &k->p->lists[rank];
    const Node *nodes = k->p->nodes + k->p->first_node[rank];
    bool found = false;
    for (int i = 0; i < list->count; i++) {
        if (!is_compute(list->at[i].kind) || phase_of(list, i) != phase)
            continue;
        *from = found ? *from : nodes[i].start;
        *to = nodes[i].end;
        found = true;
    }
    return found;
}

/* ---- bytes over time ---- */

/* At one time the most and the last are kept, so that the curve stays exact
 * where several entries take no time. */
static void add_level(Arena *arena, Curve *c, double time, size_t floats)
{
    Level *end = c->count ? c->at + c->count : NULL;
    if (c->count && end[-1].floats == floats)
        return;
    if (c->count > 1 && end[-1].time == time && end[-2].time == time) {
        if (end[-1].floats > end[-2].floats)
            end[-2].floats = end[-1].floats;
        end[-1].floats = floats;
        c->count -= end[-2].floats == floats;
        return;
    }
    c->at = array_grow(arena, c->at, c->count, sizeof *c->at);
    c->at[c->count++] = (Level){time, floats};
}

/* A level lasts from the time at which its rank comes to an entry until it
 * comes to the next: a receive that blocks holds its buffer while it waits. */
static void fill_curve(Program *p, int rank, const ptrdiff_t *change, Curve *c)
{
    ptrdiff_t alive = 0;
    for (int i = 0; i < p->lists[rank].count; i++) {
        alive += change[i];
        add_level(p->arena, c, p->nodes[node_at(p, rank, i)].start,
                  (size_t)alive);
    }
}

static void fill_curves(Picture *k)
{
    Program *p = k->p;
    ptrdiff_t **change = arena_take(p->arena,
                                    sizeof *change * (size_t)p->ranks);
    k->curves = arena_take(p->arena, sizeof *k->curves * (size_t)p->ranks);
    for (int r = 0; r < p->ranks; r++)
        change[r] = arena_take(p->arena, sizeof **change *
                                             (size_t)(p->lists[r].count + 1));
    for (int i = 0; i < p->block_count; i++) {
        const Block *b = &p->blocks[i];
        change[b->rank][b->first] += (ptrdiff_t)b->floats;
        change[b->rank][b->last + 1] -= (ptrdiff_t)b->floats;
        if (b->kind < BLOCK_KEEP)
            k->curves[b->rank].lasting += b->floats;
    }
    for (int r = 0; r < p->ranks; r++) {
        fill_curve(p, r, change[r], &k->curves[r]);
        if (p->arena_floats[r] > k->highest)
            k->highest = p->arena_floats[r];
    }
}

/* ---- the whole ---- */

static void find_kinds(Picture *k)
{
    const Program *p = k->p;
    for (int kind = 0; kind < COMPUTE_KINDS; kind++)
        k->used[kind] = p->node_of[kind] != NULL;
}

static void number_chunks(Picture *k)
{
    Program *p = k->p;
    int *owned = arena_take(p->arena, sizeof *owned * (size_t)p->ranks);
    k->ordinal = arena_take(p->arena,
                            sizeof *k->ordinal * (size_t)p->chunk_count);
    for (int c = 0; c < p->chunk_count; c++) {
        k->ordinal[c] = owned[p->chunks[c].rank]++;
        if (k->ordinal[c] >= k->most_chunks)
            k->most_chunks = k->ordinal[c] + 1;
    }
}

static void choose_unit(Picture *k)
{
    static const struct {
        double least, scale;
        const char *name;
    } units[] = {
        {1, 1, "s"}, {1e-3, 1e3, "ms"}, {1e-6, 1e6, "us"}, {0, 1e9, "ns"}};
    int i = 0;
    while (k->p->makespan < units[i].least)
        i++;
    k->scale = k->p->cost.unit ? 1 : units[i].scale;
    k->unit = k->p->cost.unit ? "forwards of one chunk" : units[i].name;
}

Picture picture_of(Program *p)
{
    Picture k = {.p = p};
    find_kinds(&k);
    number_chunks(&k);
    fill_curves(&k);
    choose_unit(&k);
    return k;
}

/* ---- words ---- */

double power_of_ten(double most)
{
    double power = 1;
    while (power > most)
        power /= 10;
    while (power * 10 <= most)
        power *= 10;
    return power;
}

void put_number(FILE *out, double value)
{
    char text[32], *at = text + sizeof text;
    long hundredths = (long)(value < 0 ? value * 100 - 0.5 : value * 100 + 0.5);
    bool negative = hundredths < 0;
    unsigned long whole = (unsigned long)(negative ? -hundredths : hundredths),
                  part = whole % 100;
    whole /= 100;
    if (part % 10)
        *--at = (char)('0' + part % 10);
    if (part) {
        *--at = (char)('0' + part / 10);
        *--at = '.';
    }
    if (whole || !part)
        do
            *--at = (char)('0' + whole % 10);
        while (whole /= 10);
    if (negative)
        *--at = '-';
    fwrite(at, 1, (size_t)(text + sizeof text - at), out);
}

const char *title_line(const Picture *k)
{
    const Program *p = k->p;
    const char *chunks = chunks_text(p);
    return text_format(
        p->arena, "%s, schedule %s: P = %d ranks, %s, M = %d micro-batches",
        p->name, p->set.schedule->name, p->ranks,
        p->copies > 1 ? "two copies of the model"
                      : text_format(p->arena, "v = %s chunk%s per rank", chunks,
                                    strcmp(chunks, "1") ? "s" : ""),
        p->microbatches);
}

/* What the lighter colours are. */
const char *lighter_line(const Picture *k)
{
    return k->p->copies > 1 ? "lighter: the second copy of the model"
                            : "lighter: the later chunks of the rank";
}

/* "2", or "1.8 to 2.1 ms" when they differ. */
static const char *range_text(const Picture *k, const double *times, int from)
{
    Program *p = k->p;
    double least = times[from], most = times[from];
    for (int c = from; c < p->chunk_count; c++) {
        least = times[c] < least ? times[c] : least;
        most = times[c] > most ? times[c] : most;
    }
    const char *low = time_text(p, least), *high = time_text(p, most);
    return strcmp(low, high) == 0
               ? low
               : text_format(p->arena, "%s to %s", low, high);
}

/* What a message takes, in all. */
static const char *messages_text(const Picture *k)
{
    Program *p = k->p;
    double *both = arena_take(p->arena, sizeof *both * (size_t)p->chunk_count);
    for (int c = 0; c < p->chunk_count; c++)
        both[c] = p->cost.wire[c] + p->cost.delay[c];
    return p->chunk_count > 1 ? range_text(k, both, 1) : time_text(p, 0);
}

/* The network between machines, and inside them. */
static const char *link_text(Program *p, const char *text)
{
    const Settings *s = &p->set;
    if (s->node.value > 0 && s->node_link.value > 0)
        text = text_format(p->arena, "%s, %g ranks a machine with links of %s",
                           text, s->node.value,
                           rate_text(p->arena, s->node_link.value));
    if (s->link.value > 0)
        text = text_format(p->arena, "%s, a link of %s%s", text,
                           rate_text(p->arena, s->link.value),
                           s->adapter_shared ? " for each machine" : "");
    return text_format(p->arena, "%s, latency %s", text,
                       seconds_text(p->arena, s->latency.value));
}

const char *cost_line(const Picture *k)
{
    Program *p = k->p;
    const Settings *s = &p->set;
    const char *text = p->cost.unit ? "cost model: in forwards of one chunk"
                                    : "cost model: per chunk";
    for (int kind = 0; kind < COMPUTE_KINDS; kind++)
        if (k->used[kind])
            text = text_format(p->arena, "%s, %s %s", text, action_names[kind],
                               range_text(k, p->cost.compute[kind], 0));
    text = text_format(p->arena, "%s, a message %s", text, messages_text(k));
    if (p->cost.unit || !s->has_cluster)
        return text;
    text = s->given[ACT_F].count
               ? text_format(p->arena, "%s; by the times of the file", text)
               : text_format(p->arena, "%s; by %.4g Tflop/s%s", text,
                             s->flops.value[0] / 1e12,
                             s->flops.count > 1 ? " (rank 0)" : "");
    return link_text(p, text);
}

const char *result_line(const Picture *k)
{
    Program *p = k->p;
    return text_format(
        p->arena,
        "makespan %s%s; bubble %s of the makespan, %s of each rank's own span",
        time_text(p, p->makespan), p->cost.unit ? " forwards of one chunk" : "",
        share_text(p->arena, bubble_of(p)),
        share_text(p->arena, own_bubble(p)));
}
