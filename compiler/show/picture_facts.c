/* picture_facts.c: what the pictures share, read off the lists, times and
 * blocks.
 *
 * Reads: lists, chunks, cost, times, blocks, arena_floats. Writes nothing.
 *
 * A compute starts as soon as its rank is free and what it reads is there;
 * `prove` took the larger of those times, so the one that equals the start is
 * the cause. */
#include "picture.h"

#include <string.h>

static Action action_at(const Picture *k, Place at)
{
    return k->p->lists[at.rank].at[at.index];
}

Place no_place(void)
{
    return (Place){-1, -1};
}

Place place_of(const Picture *k, ActionKind kind, int chunk, int micro)
{
    if (chunk < 0 || chunk >= k->p->chunk_count)
        return no_place();
    int index = k->entry[kind][cell_of(k->p, chunk, micro)];
    return index < 0 ? no_place() : (Place){k->p->chunks[chunk].rank, index};
}

static Place backward_of(const Picture *k, int chunk, int micro)
{
    Place place = place_of(k, ACT_B, chunk, micro);
    return place.rank >= 0 ? place : place_of(k, ACT_I, chunk, micro);
}

Place place_before(const Picture *k, Place at)
{
    while (--at.index >= 0)
        if (action_at(k, at).kind <= ACT_W)
            return at;
    return no_place();
}

Place made_by(const Picture *k, Place at)
{
    Action a = action_at(k, at);
    if (a.kind == ACT_F)
        return place_of(k, ACT_F, k->p->chunks[a.chunk].previous, a.micro);
    if (a.kind == ACT_W)
        return place_of(k, ACT_I, a.chunk, a.micro);
    int next = k->p->chunks[a.chunk].next;
    return next < 0 ? place_of(k, ACT_F, a.chunk, a.micro)
                    : backward_of(k, next, a.micro);
}

Place brought_by(const Picture *k, Place at)
{
    Action a = action_at(k, at);
    if (a.kind == ACT_W)
        return no_place();
    return place_of(k, a.kind == ACT_F ? ACT_RECV_F : ACT_RECV_B, a.chunk,
                    a.micro);
}

Place other_end(const Picture *k, Place at)
{
    Action a = action_at(k, at);
    const Chunk *chunk = a.chunk < 0 ? NULL : &k->p->chunks[a.chunk];
    switch (a.kind) {
    case ACT_SEND_F: return place_of(k, ACT_RECV_F, chunk->next, a.micro);
    case ACT_RECV_F: return place_of(k, ACT_SEND_F, chunk->previous, a.micro);
    case ACT_SEND_B: return place_of(k, ACT_RECV_B, chunk->previous, a.micro);
    case ACT_RECV_B: return place_of(k, ACT_SEND_B, chunk->next, a.micro);
    default: return no_place();
    }
}

Place freed_by(const Picture *k, Place wait)
{
    Action a = action_at(k, wait);
    bool forth = a.kind == ACT_WAIT_F;
    if (!forth && a.kind != ACT_WAIT_B)
        return no_place();
    Place taken = place_of(k, forth ? ACT_RECV_F : ACT_RECV_B,
                           a.chunk + (forth ? 1 : -1), a.micro);
    return taken.rank < 0 ? taken : place_before(k, taken);
}

/* The compute whose message a WAIT is about. */
static Place sent_by(const Picture *k, Place wait)
{
    Action a = action_at(k, wait);
    return a.kind == ACT_WAIT_F ? place_of(k, ACT_F, a.chunk, a.micro)
                                : backward_of(k, a.chunk, a.micro);
}

/* Where a WAIT ends just when this compute starts: what its receiver was busy
 * with, or, if that ended before, what was still on its way. */
static Place waited_for(const Picture *k, Place at, double start)
{
    for (int i = at.index - 1; i >= 0; i--) {
        Place wait = {at.rank, i};
        ActionKind kind = action_at(k, wait).kind;
        if (kind <= ACT_W)
            break;
        if ((kind != ACT_WAIT_F && kind != ACT_WAIT_B) ||
            k->p->times[at.rank].end[i] != start)
            continue;
        Place freed = freed_by(k, wait);
        bool busy = freed.rank >= 0 &&
                    k->p->times[freed.rank].end[freed.index] == start;
        return busy ? freed : sent_by(k, wait);
    }
    return no_place();
}

Cause cause_of(const Picture *k, Place at, Place *from)
{
    const Times *times = k->p->times;
    double start = times[at.rank].start[at.index];
    Place before = place_before(k, at), made = made_by(k, at),
          brought = brought_by(k, at),
          there = brought.rank < 0 ? made : brought;
    *from = before;
    if (before.rank >= 0 && times[before.rank].end[before.index] == start)
        return CAUSE_RANK;
    *from = made;
    if (made.rank >= 0 && times[there.rank].end[there.index] == start)
        return CAUSE_DATA;
    *from = waited_for(k, at, start);
    return from->rank < 0 ? CAUSE_START : CAUSE_BUFFER;
}

bool phase_span(const Picture *k, int rank, int phase, double *from, double *to)
{
    const List *list = &k->p->lists[rank];
    const Times *times = &k->p->times[rank];
    const int bounds[] = {0, list->steady, list->cooldown, list->count};
    bool found = false;
    for (int i = bounds[phase]; i < bounds[phase + 1]; i++) {
        if (list->at[i].kind > ACT_W)
            continue;
        *from = found ? *from : times->start[i];
        *to = times->end[i];
        found = true;
    }
    return found;
}

/* ---- bytes over time ---- */

/* At one time the most and the last are kept, so that the curve stays exact
 * where several entries take no time. */
static void add_level(Arena *arena, Curve *c, double time, size_t floats)
{
    Level *end = c->at + c->count;
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
    const Times *times = &p->times[rank];
    ptrdiff_t alive = 0;
    double clock = 0;
    for (int i = 0; i < p->lists[rank].count; i++) {
        ActionKind kind = p->lists[rank].at[i].kind;
        bool message = kind >= ACT_SEND_F && kind <= ACT_RECV_B;
        double begin = kind <= ACT_W || kind >= ACT_REDUCE ? times->start[i]
                                                           : clock;
        alive += change[i];
        add_level(p->arena, c, begin, (size_t)alive);
        if (!message)
            clock = times->end[i];
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

static void index_entries(Picture *k)
{
    Program *p = k->p;
    size_t cells = cell_of(p, 0, p->microbatches);
    for (int kind = 0; kind < ACT_REDUCE; kind++) {
        k->entry[kind] = arena_take(p->arena, sizeof(int) * (cells + 1));
        memset(k->entry[kind], -1, sizeof(int) * cells);
    }
    for (int r = 0; r < p->ranks; r++) {
        for (int i = 0; i < p->lists[r].count; i++) {
            Action a = p->lists[r].at[i];
            if (a.kind < ACT_REDUCE)
                k->entry[a.kind][cell_of(p, a.chunk, a.micro)] = i;
            if (a.kind <= ACT_W)
                k->used[a.kind] = true;
        }
    }
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
    index_entries(&k);
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

const char *chunk_layers(Program *p, int chunk)
{
    const Chunk *c = &p->chunks[chunk];
    const char *first = p->layers[c->first_layer].name;
    if (c->layer_count == 1)
        return first;
    return text_format(p->arena, "%s .. %s", first,
                       p->layers[c->first_layer + c->layer_count - 1].name);
}

const char *title_line(const Picture *k)
{
    const Program *p = k->p;
    int virtuals = (int)p->set.virtuals.value;
    return text_format(
        p->arena, "%s, schedule %s: P = %d ranks, %s, M = %d micro-batches",
        p->name, p->set.schedule->name, p->ranks,
        p->copies > 1 ? "two copies of the model"
                      : text_format(p->arena, "v = %d chunk%s per rank",
                                    virtuals, virtuals > 1 ? "s" : ""),
        p->microbatches);
}

/* What the lighter colours are. */
const char *lighter_line(const Picture *k)
{
    return k->p->copies > 1 ? "lighter: the second copy of the model"
                            : "lighter: the later chunks of the rank";
}

/* "2", or "1.8 to 2.1" when the chunks differ. */
static const char *range_text(const Picture *k, const double *costs, int from,
                              int to)
{
    double least = costs[from], most = costs[from];
    for (int c = from; c < to; c++) {
        least = costs[c] < least ? costs[c] : least;
        most = costs[c] > most ? costs[c] : most;
    }
    least *= k->scale;
    most *= k->scale;
    const char *low = text_format(k->p->arena, "%.3g", least),
               *high = text_format(k->p->arena, "%.3g", most);
    return strcmp(low, high) == 0
               ? low
               : text_format(k->p->arena, "%s to %s", low, high);
}

const char *cost_line(const Picture *k)
{
    Program *p = k->p;
    const Settings *s = &p->set;
    const char *text = p->cost.unit ? "cost model: in forwards of one chunk"
                                    : text_format(p->arena,
                                                  "cost model: in %s per chunk",
                                                  k->unit);
    for (int kind = 0; kind <= ACT_W; kind++)
        if (k->used[kind])
            text = text_format(
                p->arena, "%s, %s %s", text, action_names[kind],
                range_text(k, p->cost.compute[kind], 0, p->chunk_count));
    text = text_format(p->arena, "%s, a message %s", text,
                       p->chunk_count > 1
                           ? range_text(k, p->cost.message, 1, p->chunk_count)
                           : "0");
    if (p->cost.unit || !s->has_cluster)
        return text;
    text = s->given[ACT_F].count
               ? text_format(p->arena, "%s; by the times of the file", text)
               : text_format(p->arena, "%s; by %.4g Tflop/s", text,
                             s->flops.value / 1e12);
    if (s->link.value > 0)
        text = text_format(p->arena, "%s, a link of %.4g GB/s", text,
                           s->link.value / 1e9);
    return text_format(p->arena, "%s, latency %.4g us", text,
                       1e6 * s->latency.value);
}

const char *result_line(const Picture *k)
{
    const Program *p = k->p;
    double own = 0;
    for (int r = 0; r < p->ranks; r++)
        if (span_time(p, r) > 0)
            own += 1 - busy_time(p, r) / span_time(p, r);
    return text_format(p->arena,
                       "makespan %.4g %s; bubble %.2f %% of the makespan, %.2f "
                       "%% of each rank's own span",
                       p->makespan * k->scale, k->unit, 100 * bubble_of(p),
                       100 * own / p->ranks);
}
