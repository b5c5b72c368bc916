/* inspect.c: the plan as text: partition, timeline, bubble, memory, messages.
 *
 * Every figure comes from the action lists, their times and the blocks; the
 * cost model is named. */
#include "show.h"

#include "order/search/search_plan.h"

#include <math.h>
#include <string.h>

static long all_parameters(const Program *p)
{
    long sum = 0;
    for (int i = 0; i < p->parameter_count; i++)
        if (p->parameters[i].tied < 0)
            sum += (long)parameter_values(&p->parameters[i]);
    return sum;
}

const char *layers_text(Program *p, int chunk)
{
    const Chunk *c = &p->chunks[chunk];
    if (!c->layer_count)
        return "none";
    const char *first = p->layers[c->first_layer].name;
    if (c->layer_count == 1)
        return first;
    return text_format(p->arena, "%s .. %s", first,
                       p->layers[c->first_layer + c->layer_count - 1].name);
}

static const char *layer_range(Program *p, int chunk)
{
    const char *layers = layers_text(p, chunk);
    return p->chunks[chunk].targets >= 0
               ? text_format(p->arena, "%s, loss", layers)
               : layers;
}

/* The copies of a twin are tied as well, under one name: nothing to say here. */
static void tie_line(const Program *p, const Tie *tie, FILE *out)
{
    const char *first = p->parameters[tie->uses[0]].name;
    int names = 1;
    for (int u = 1; u < tie->use_count / p->copies; u++) {
        const char *name = p->parameters[tie->uses[u]].name;
        fprintf(out, names++ == 1 ? "tied: %s = %s" : " = %s", first, name);
    }
    if (names > 1)
        fprintf(out, " (counted at every use above)\n");
}

static void partition_table(Program *p, FILE *out)
{
    size_t width = 6;
    for (int c = 0; c < p->chunk_count; c++)
        if (strlen(layer_range(p, c)) > width)
            width = strlen(layer_range(p, c));
    fprintf(out,
            "chunk rank layers %-*s  parameters   F Mflop   I Mflop   W Mflop  "
            "keeps bytes\n",
            (int)width, "");
    for (int c = 0; c < p->chunk_count; c++) {
        const Chunk *chunk = &p->chunks[c];
        fprintf(out, "%5d %4d %6d %-*s %11ld %9.1f %9.1f %9.1f %12zu\n", c,
                chunk->rank, chunk->layer_count, (int)width, layer_range(p, c),
                chunk->parameters, chunk->work[ENTRY_FORWARD] / 1e6,
                chunk->work[ENTRY_INPUT] / 1e6, chunk->work[ENTRY_WEIGHT] / 1e6,
                4 * (p->frames[c].keep + p->frames[c].hold));
    }
    if (p->stand_ins)
        fprintf(out,
                "m.%s in place of layers `mtp`, which the file does not have: "
                "as heavy as a block, for plans alone\n",
                p->stand_ins == 1 ? "0" : "0 and others");
    for (int t = 0; t < p->tie_count; t++)
        tie_line(p, &p->ties[t], out);
    if (p->copies > 1)
        fprintf(out,
                "two copies of the model, chunks 0 .. %d and %d .. %d: "
                "their gradients are added\n",
                p->copy_chunks - 1, p->copy_chunks, p->chunk_count - 1);
}

const char *time_text(Program *p, double time)
{
    return p->cost.unit ? text_format(p->arena, "%g", time)
                        : seconds_text(p->arena, time);
}

static void bubble_lines(Program *p, FILE *out)
{
    const Schedule *s = p->set.schedule;
    fprintf(out, "makespan %s, %s\n", time_text(p, p->makespan),
            p->cost.unit ? "in forwards of one chunk (F 1, B 2, messages 0)"
                         : cost_source(p));
    if (has_formula(p))
        fprintf(out, "bubble by the textbook, %s: %s\n", s->chapter_bubble,
                share_text(p->arena, formula_bubble(p)));
    fprintf(out,
            "bubble of the makespan: %s; of each rank's own span, on "
            "average: %s\n",
            share_text(p->arena, bubble_of(p)),
            share_text(p->arena, own_bubble(p)));
}

/* What a reader of the numbers should know about the list. */
static void schedule_notes(Program *p, FILE *out)
{
    const Schedule *s = p->set.schedule;
    int microbatches = p->microbatches,
        least = s->least_micros ? s->least_micros(p->ranks) : 1;
    if (microbatches < least)
        fprintf(
            out,
            "`%s` is defined for %d micro-batches and more: with %d this is "
            "its list for %d without the others, which leaves ranks idle\n",
            s->name, least, microbatches, least);
    if (p->sums == SUMS_ASCEND)
        return;
    Place at = p->sums_at;
    fprintf(out,
            "gradients are not added in the order of the micro-batches: %s on "
            "rank %d comes late; %s\n",
            action_text(p, p->lists[at.rank].at[at.index]), at.rank,
            p->sums == SUMS_AGREE
                ? "the order is the same for all chunks, so the last bits "
                  "differ from other schedules', but not with the number of "
                  "ranks"
                : "chunks differ in the order, so the last bits are those of "
                  "this list alone, the same in every run");
}

/* What was found by a search, what was known before, and what cannot be. */
static void search_lines(Program *p, FILE *out)
{
    const SearchReport *r = p->search;
    const char *within = within_text(p->arena, r->memory, r->activations);
    fprintf(out, "searched: %s ", r->span ? "longest own span" : "makespan");
    if (r->named)
        fprintf(out, "%s (%s, the best of those with a name) -> ",
                time_text(p, r->before), r->named);
    fputs(time_text(p, r->after), out);
    if (*within)
        fprintf(out, " %s%s", within,
                r->named ? "" : ", where none with a name fits");
    fprintf(out, "; no order of these chunks%s can be below %s%s\n",
            *within ? " under this limit" : "", time_text(p, r->bound),
            r->after <= r->bound * (1 + 1e-9) ? ", so this is the best" : "");
}

static void rank_table(Program *p, FILE *out)
{
    fprintf(out, "rank  busy        idle        idle/makespan  idle/own span  "
                 "peak chunks   arena bytes    alive at most\n");
    for (int r = 0; r < p->ranks; r++) {
        double busy = busy_time(p, r), span = span_time(p, r);
        fprintf(out,
                "%4d  %-10s  %-10s  %11.2f %%  %11.2f %%  %11d  %12zu  %15zu\n",
                r, time_text(p, busy), time_text(p, p->makespan - busy),
                p->makespan > 0 ? 100 * (1 - busy / p->makespan) : 0,
                span > 0 ? 100 * (1 - busy / span) : 0, peak_copies(p, r),
                4 * p->arena_floats[r], 4 * p->peak_floats[r]);
    }
    for (int r = 0; r < p->ranks; r++) {
        double bytes = 4.0 * (double)p->arena_floats[r],
               most = rank_memory(p, r);
        if (most > 0 && bytes > most)
            fprintf(out, "rank %d needs %s, more than the cluster's %s\n", r,
                    bytes_text(p->arena, bytes), bytes_text(p->arena, most));
    }
}

static void undo_line(Program *p, FILE *out)
{
    enum { SHOWN = 16 };  // ranks
    int shown = 0;
    for (int i = 0; i < p->block_count && shown <= SHOWN; i++) {
        const Block *b = &p->blocks[i];
        if (b->kind != BLOCK_UNDO)
            continue;
        if (shown++ == 0)
            fprintf(out, "clip deferred: bytes of each arena that an update is "
                         "undone with:");
        if (shown <= SHOWN)
            fprintf(out, " %zu", 4 * b->floats);
        else
            fprintf(out, " ...");
    }
    if (shown)
        fputc('\n', out);
}

static void message_lines(Program *p, FILE *out, bool all)
{
    Traffic t = traffic_of(p);
    fprintf(out,
            "messages of one step: %ld activations, %s; %ld gradients, %s\n",
            t.messages[0], bytes_text(p->arena, t.bytes[0]), t.messages[1],
            bytes_text(p->arena, t.bytes[1]));
    if (!p->cost.unit)
        wire_table(p, out, all);
}

void inspect(Program *p, FILE *out, bool colour, bool all)
{
    const Tensor *x = &p->tensors[p->input];
    fprintf(out,
            "%s: %d layers, %ld parameters; %d ranks x %s chunks%s; %d "
            "micro-batches of %d x %ld positions\n\n",
            p->name, p->layer_count, all_parameters(p), p->ranks,
            chunks_text(p), p->copies > 1 ? " x 2 copies" : "", p->microbatches,
            (int)p->set.rows.value, x->seq);
    partition_table(p, out);
    layout_table(p, out);
    fprintf(out, "\nschedule %s: %s\n", p->set.schedule->name,
            p->set.schedule->summary);
    timeline(p, out, &(Timeline){"", -1, colour, all ? 0 : 6, 0});
    fputc('\n', out);
    bubble_lines(p, out);
    schedule_notes(p, out);
    if (p->search)
        search_lines(p, out);
    fputc('\n', out);
    rank_table(p, out);
    undo_line(p, out);
    balance_lines(p, out);
    message_lines(p, out, all);
}
