/* replan.c: the same file planned again with other settings, and what a plan
 * comes to.
 *
 * A plan is made by the passes that make any plan: nothing is estimated. Each
 * has an arena of its own, so thousands can be tried one after another. What
 * they say is kept, not printed: a refusal is an answer here. */
#include "whatif.h"

#include "program/passes.h"

#include <stdlib.h>
#include <string.h>

static size_t key_length(const char *setting)
{
    return strcspn(setting, "=");
}

static bool same_key(const char *a, const char *b)
{
    return key_length(a) == key_length(b) && strncmp(a, b, key_length(a)) == 0;
}

static void add_source(Program *p, const char *name, const char *text,
                       int length)
{
    p->sources = array_grow(p->arena, p->sources, p->source_count,
                            sizeof *p->sources);
    p->sources[p->source_count++] = (Source){name, text, length};
}

static double setting_or(const char *const *settings, int count,
                         const char *key, double fallback)
{
    for (int i = 0; i < count; i++)
        if (same_key(settings[i], key))
            fallback = atof(settings[i] + strlen(key) + 1);
    return fallback;
}

static bool is_set(const char *const *settings, int count, const char *key)
{
    for (int i = 0; i < count; i++)
        if (same_key(settings[i], key))
            return true;
    return false;
}

static bool split_fits(const Program *from, const char *const *settings,
                       int count)
{
    if (is_set(settings, count, "split"))
        return true;
    bool same = from->set.placement_at.source >= 0 ||
                is_set(settings, count, "placement") ||
                !is_set(settings, count, "schedule");
    if (from->set.listed && same)
        return from->set.split != SPLIT_EXPLICIT ||
               from->set.size_count == from->set.listed_count;
    return from->set.split != SPLIT_EXPLICIT ||
           from->set.size_count ==
               setting_or(settings, count, "stages", from->set.stages.value) *
                   setting_or(settings, count, "virtual",
                              from->set.virtuals.value);
}

/* Settings that leave the costs of a chunk alone, if it has the same layers. */
static bool keeps_costs(const char *const *settings, int count)
{
    static const char *const free[] = {"schedule", "microbatches", "stages",
                                       "virtual", "split"};
    for (int i = 0; i < count; i++) {
        bool found = false;
        for (size_t k = 0; k < sizeof free / sizeof *free; k++)
            found |= same_key(settings[i], free[k]);
        if (!found)
            return false;
    }
    return true;
}

static bool same_chunks(const Program *a, const Program *b)
{
    bool same = a->chunk_count == b->chunk_count && a->ranks == b->ranks;
    for (int c = 0; same && c < a->chunk_count; c++)
        same = a->chunks[c].first_layer == b->chunks[c].first_layer &&
               a->chunks[c].rank == b->chunks[c].rank;
    return same;
}

static bool is_imported(const Program *p, Number number)
{
    return p->import && number.at.source == p->set.schedule_at.source &&
           number.at.begin == p->set.schedule_at.begin;
}

/* What the file of an order has said of the pipeline holds for other schedules as
 * well. */
static void keep_imported(const Program *from, Program *p,
                          const char *const *settings, int count)
{
    const char *text = NULL;
    if (is_imported(from, from->set.stages) &&
        !is_set(settings, count, "stages"))
        text = text_format(p->arena, "stages=%g", from->set.stages.value);
    if (text)
        add_source(p, "-D", text, (int)strlen(text));
    text = NULL;
    if (is_imported(from, from->set.microbatches) &&
        !is_set(settings, count, "microbatches"))
        text = text_format(p->arena, "microbatches=%d", from->microbatches);
    if (text)
        add_source(p, "-D", text, (int)strlen(text));
}

/* "file:3:5: error: TEXT" -> TEXT, of the first line. */
static const char *first_error(Program *p, const char *said)
{
    const char *at = strstr(said, "error: ");
    at = at ? at + strlen("error: ") : said;
    return text_copy(p->arena, at, strcspn(at, "\n"));
}

Replan replan(const Program *from, const char *const *settings, int count)
{
    Arena *arena = arena_open();
    Program *p = arena_take(arena, sizeof *p);
    Replan plan = {.p = p};
    char *said = NULL;
    size_t length = 0;
    p->arena = arena;
    p->target = from->target;
    p->meet = from->meet;
    p->diagnostics = open_memstream(&said, &length);
    if (!p->diagnostics) {
        fputs("pipec: error: out of memory\n", stderr);
        exit(1);
    }
    for (int i = 0; i < from->source_count; i++) {
        bool replaced = false;
        for (int k = 0; i > 0 && k < count; k++)
            replaced |= same_key(from->sources[i].text, settings[k]);
        if (!replaced)
            add_source(p, from->sources[i].name, from->sources[i].text,
                       from->sources[i].length);
    }
    bool fits = split_fits(from, settings, count);
    for (int i = 0; i < count; i++)
        add_source(p, "-D", settings[i], (int)strlen(settings[i]));
    if (is_set(settings, count, "schedule"))
        keep_imported(from, p, settings, count);
    plan.recut = !fits;
    if (!fits)
        add_source(p, "-D", "split=balanced", (int)strlen("split=balanced"));
    for (int i = 0; i < PLAN_PASSES; i++) {
        if (passes[i].run == communicate && from->cost.wire &&
            keeps_costs(settings, count) && same_chunks(from, p))
            p->cost = from->cost;
        if (passes[i].run(p))
            continue;
        plan.refused_by = passes[i].name;
        break;
    }
    fclose(p->diagnostics);
    p->diagnostics = NULL;
    if (plan.refused_by)
        plan.reason = first_error(p, said);
    free(said);
    return plan;
}

void close_replan(Replan *plan)
{
    arena_close(plan->p->arena);
    plan->p = NULL;
}

Summary summary_of(const Program *p)
{
    Traffic traffic = traffic_of(p);
    Summary sum = {.makespan = p->makespan,
                   .step = p->cost.unit ? p->makespan / p->copy_chunks
                                        : p->makespan,
                   .formula = has_formula(p) ? formula_bubble(p) : -1,
                   .bubble = bubble_of(p),
                   .own = own_bubble(p),
                   .messages = traffic.messages[0] + traffic.messages[1],
                   .message_bytes = traffic.bytes[0] + traffic.bytes[1]};
    for (int r = 0; r < p->ranks; r++) {
        double bytes = 4.0 * (double)p->arena_floats[r],
               most = rank_memory(p, r);
        sum.too_large |= most > 0 && bytes > most;
        if (4 * p->arena_floats[r] > sum.bytes)
            sum.bytes = 4 * p->arena_floats[r];
        if (peak_copies(p, r) > sum.copies)
            sum.copies = peak_copies(p, r);
    }
    return sum;
}
