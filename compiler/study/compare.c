/* compare.c: `pipec compare`: many plans of one file in one table.
 *
 * Reads: sources, set. Each combination of stages, virtual, microbatches and
 * schedule is planned and proved like any other (replan.c). What no pass
 * accepts is counted with its reason. A star marks the plans that nothing
 * beats: no other is at least as fast per micro-batch and as small, and better
 * in one of them.
 *
 * Where does interleaving stop paying? Its steps are shorter and its messages
 * more. With the link as the only unknown, the step of either plan grows as the
 * link gets slower; the crossover is the link at which both take the same time.
 * It is guessed by halving on the two graphs as they are kept, and then planned
 * again on both sides; where that says otherwise, halving goes on by plans. */
#include "output.h"
#include "escape.h"
#include "whatif.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 64, MAX_TRIALS = 4096, USAGE = 2 };

typedef struct Crossover {
    int stages, virtuals, microbatches;
    double link;      // bytes per second; 0: none
    const char *why;  // there is none
} Crossover;

typedef struct Comparison {
    Program *p;
    int stages[MAX_VALUES], virtuals[MAX_VALUES], microbatches[MAX_VALUES];
    const char *schedules[MAX_VALUES];
    int stage_count, virtual_count, microbatch_count, schedule_count;
    Trial *trials;
    int count, planned;
    Crossover *crossovers;
    int crossover_count;
} Comparison;

/* ---- what was typed ---- */

static int wrong_list(Program *p, const char *option, const char *list,
                      const char *help)
{
    fprintf(stderr, "pipec: `%s` cannot be `%s`\n  help: %s\n", option,
            shown_text(p->arena, list), help);
    return 0;
}

/* "4,8,16" -> values; returns how many, 0 for an error that was reported. */
static int take_numbers(Program *p, const char *option, const char *list,
                        int fallback, int *values)
{
    int count = 0;
    if (!list) {
        values[0] = fallback;
        return 1;
    }
    for (const char *at = list; count < MAX_VALUES;) {
        char *end;
        long value = strtol(at, &end, 10);
        if (end == at || value < 1 || value > 65536)
            break;
        values[count++] = (int)value;
        if (!*end)
            return count;
        if (*end != ',')
            break;
        at = end + 1;
    }
    return wrong_list(p, option, list,
                      "whole numbers from 1 to 65536 with commas between, at "
                      "most 64: 4,8,16");
}

/* The file's own schedule keeps the options that the file gives it, and its
 * rows say so. An order from a file has no other name; it is the first. */
static int list_schedules(Comparison *c, const char *list)
{
    const Settings *set = &c->p->set;
    bool all = !list || strcmp(list, "all") == 0,
         first = all && set->schedule_path;
    int count = schedule_list(c->p, list, c->schedules + first,
                              MAX_VALUES - first);
    for (int i = 0; i < count && !set->schedule_path; i++)
        if (strcmp(c->schedules[i], set->schedule->name) == 0)
            c->schedules[i] = schedule_words(c->p, -1, 0);
    if (first)
        c->schedules[0] = schedule_words(c->p, -1, 0);
    return count ? count + first : 0;
}

/* A list of ranks has its own number of chunks. */
static int listed_virtual(const Settings *set)
{
    int virtuals = (int)set->virtuals.value, stages = (int)set->stages.value;
    return set->listed_count == virtuals * stages ? virtuals : RANKS_DIFFER;
}

static void take_virtuals(Comparison *c, const CompareOptions *o)
{
    const Settings *set = &c->p->set;
    if (!set->listed || set->placement_at.source < 0 || o->virtuals) {
        c->virtual_count = take_numbers(c->p, "--virtual",
                                        o->virtuals ? o->virtuals : "1,2,4", 1,
                                        c->virtuals);
        return;
    }
    c->virtual_count = 1;
    c->virtuals[0] = listed_virtual(set);
}

const char *virtual_text(Arena *arena, int virtuals, const char *differ)
{
    return virtuals == RANKS_DIFFER ? differ
                                    : text_format(arena, "%d", virtuals);
}

static bool take_lists(Comparison *c, const CompareOptions *o)
{
    const Settings *set = &c->p->set;
    c->stage_count = take_numbers(c->p, "--stages", o->stages,
                                  (int)set->stages.value, c->stages);
    take_virtuals(c, o);
    c->microbatch_count = take_numbers(c->p, "--microbatches", o->microbatches,
                                       (int)set->microbatches.value,
                                       c->microbatches);
    c->schedule_count = list_schedules(c, o->schedules);
    double trials = (double)c->stage_count * c->virtual_count *
                    c->microbatch_count * c->schedule_count;
    if (trials > MAX_TRIALS)
        fprintf(stderr,
                "pipec: %.0f combinations are too many\n  help: at most %d "
                "are compared at a time\n",
                trials, MAX_TRIALS);
    return trials > 0 && trials <= MAX_TRIALS;
}

/* ---- planning ---- */

static Replan plan_trial(Comparison *c, const char *schedule, int stages,
                         int virtuals, int microbatches, double link)
{
    Program *p = c->p;
    const char *settings[5];
    int count = 0;
    settings[count++] = text_format(p->arena, "stages=%d", stages);
    if (virtuals != RANKS_DIFFER)
        settings[count++] = text_format(p->arena, "virtual=%d", virtuals);
    settings[count++] = text_format(p->arena, "microbatches=%d", microbatches);
    settings[count++] = text_format(p->arena, "schedule=%s", schedule);
    if (link > 0)
        settings[count++] = text_format(p->arena, "link=%.17g", link);
    return replan(p, settings, count);
}

static void try_one(Comparison *c, const char *schedule, int stages,
                    int virtuals, int microbatches)
{
    Replan plan = plan_trial(c, schedule, stages, virtuals, microbatches, 0);
    Trial *t = &c->trials[c->count++];
    *t = (Trial){.schedule = schedule,
                 .stages = stages,
                 .virtuals = virtuals,
                 .microbatches = microbatches,
                 .refused_by = plan.refused_by,
                 .recut = plan.recut};
    if (plan.refused_by) {
        t->reason = text_copy(c->p->arena, plan.reason, strlen(plan.reason));
    } else {
        t->sum = summary_of(plan.p);
        c->planned++;
    }
    close_replan(&plan);
}

/* The order of a file whose ranks differ in their chunks: no value of `virtual`. */
static bool is_own_unequal(const Comparison *c, int schedule)
{
    const Settings *set = &c->p->set;
    return set->schedule_path && set->listed &&
           listed_virtual(set) == RANKS_DIFFER &&
           strncmp(c->schedules[schedule], "from ", 5) == 0;
}

static void try_all(Comparison *c)
{
    c->trials = arena_take(c->p->arena,
                           sizeof *c->trials *
                               (size_t)(c->stage_count * c->microbatch_count *
                                        c->schedule_count * c->virtual_count));
    for (int p = 0; p < c->stage_count; p++)
        for (int m = 0; m < c->microbatch_count; m++)
            for (int s = 0; s < c->schedule_count; s++)
                for (int v = 0; v < c->virtual_count; v++)
                    if (!is_own_unequal(c, s))
                        try_one(c, c->schedules[s], c->stages[p],
                                c->virtuals[v], c->microbatches[m]);
                    else if (v == 0)
                        try_one(c, c->schedules[s], c->stages[p], RANKS_DIFFER,
                                c->microbatches[m]);
}

static double pace(const Trial *t)
{
    return t->sum.step / t->microbatches;
}

static bool beats(const Trial *a, const Trial *b)
{
    double slack = 1e-12 * pace(b);
    return !a->refused_by && !a->sum.too_large && pace(a) <= pace(b) + slack &&
           a->sum.bytes <= b->sum.bytes &&
           (pace(a) < pace(b) - slack || a->sum.bytes < b->sum.bytes);
}

static void mark_front(Comparison *c)
{
    for (int i = 0; i < c->count; i++) {
        Trial *t = &c->trials[i];
        t->best = !t->refused_by && !t->sum.too_large;
        for (int k = 0; k < c->count && t->best; k++)
            t->best = !beats(&c->trials[k], t);
    }
}

/* ---- where interleaving stops paying ---- */

typedef struct Rivals {  // the same P and M, without and with interleaving
    Comparison *c;
    const char *plain, *interleaved;
    int stages, virtuals, microbatches;
    Program *one, *many;  // as the file's link has them
    Node *nodes;          // room for the times of either
} Rivals;

static bool pays_on_graphs(const Rivals *r, double link)
{
    Cost one = cluster_cost(r->one, link), many = cluster_cost(r->many, link);
    return retime(r->many, &many, -1, r->nodes) <
           retime(r->one, &one, -1, r->nodes);
}

static bool pays_as_planned(const Rivals *r, double link)
{
    Replan one = plan_trial(r->c, r->plain, r->stages, 1, r->microbatches,
                            link),
           many = plan_trial(r->c, r->interleaved, r->stages, r->virtuals,
                             r->microbatches, link);
    bool pays = !one.refused_by && !many.refused_by &&
                many.p->makespan < one.p->makespan;
    close_replan(&one);
    close_replan(&many);
    return pays;
}

/* Halves [slow, fast], between which it begins to pay, to one part in
 * `parts`. */
static double halve(const Rivals *r, bool (*pays)(const Rivals *r, double link),
                    double slow, double fast, double parts)
{
    while (fast - slow > fast / parts) {
        double middle = slow + (fast - slow) / 2;
        if (pays(r, middle))
            fast = middle;
        else
            slow = middle;
    }
    return fast;
}

/* The largest link, up to a factor of two, at which it no longer pays. */
static Crossover guess(const Rivals *r)
{
    double fast = 1e18, slow = fast;
    while (slow >= 1 && pays_on_graphs(r, slow)) {
        fast = slow;
        slow /= 2;
    }
    if (slow == fast)
        return (Crossover){.why = "never pays, however fast the link"};
    if (slow < 1)
        return (Crossover){.why = "pays on every link"};
    return (Crossover){.link = halve(r, pays_on_graphs, slow, fast, 1e6)};
}

static const double NEAR = 1e-4;  // both sides are planned so far from it

/* Planned again at both sides of the guess: it holds, or it is looked for by
 * plans. */
static Crossover find_crossover(const Rivals *r)
{
    Crossover found = guess(r);
    if (found.why)
        return pays_as_planned(r, 1e18) == (found.why[0] == 'p')
                   ? found
                   : (Crossover){.why = "pays on some links and not on others"};
    double slow = found.link * (1 - NEAR), fast = found.link * (1 + NEAR);
    for (int i = 0; i < 8 && pays_as_planned(r, slow); i++)
        slow /= 2;
    for (int i = 0; i < 8 && !pays_as_planned(r, fast); i++)
        fast *= 2;
    if (pays_as_planned(r, slow) || !pays_as_planned(r, fast))
        return (Crossover){.why = "pays on some links and not on others"};
    found.link = halve(r, pays_as_planned, slow, fast, 1 / (2.5 * NEAR));
    return found;
}

/* Of the list: by its name, or by that of the file's own with its options. */
static const char *listed(const Comparison *c, const char *name)
{
    bool own = strcmp(c->p->set.schedule->name, name) == 0;
    const char *words = own ? schedule_words(c->p, -1, 0) : name;
    for (int i = 0; i < c->schedule_count; i++)
        if (strcmp(c->schedules[i], words) == 0)
            return words;
    return NULL;
}

static void add_crossover(Comparison *c, int stages, int microbatches,
                          int virtuals)
{
    const char *plain = listed(c, "1f1b"),
               *interleaved = listed(c, "interleaved");
    Replan one = plan_trial(c, plain, stages, 1, microbatches, 0),
           many = plan_trial(c, interleaved, stages, virtuals, microbatches, 0);
    if (!one.refused_by && !many.refused_by) {
        Rivals r = {c,     plain,  interleaved, stages, virtuals, microbatches,
                    one.p, many.p, NULL};
        int a = one.p->first_node[stages], b = many.p->first_node[stages];
        r.nodes = arena_take(many.p->arena,
                             sizeof *r.nodes * (size_t)((a > b ? a : b) + 1));
        Crossover found = find_crossover(&r);
        found.stages = stages;
        found.virtuals = virtuals;
        found.microbatches = microbatches;
        c->crossovers[c->crossover_count++] = found;
    }
    close_replan(&one);
    close_replan(&many);
}

static void find_crossovers(Comparison *c)
{
    c->crossovers = arena_take(c->p->arena,
                               sizeof *c->crossovers * (size_t)(c->count + 1));
    if (!has_seconds(c->p) || !listed(c, "1f1b") || !listed(c, "interleaved"))
        return;
    for (int p = 0; p < c->stage_count; p++)
        for (int m = 0; m < c->microbatch_count; m++)
            for (int v = 0; v < c->virtual_count; v++)
                if (c->virtuals[v] > 1 && c->stages[p] > 1)
                    add_crossover(c, c->stages[p], c->microbatches[m],
                                  c->virtuals[v]);
}

/* ---- printing ---- */

static double shown_step(const Comparison *c, double step)
{
    return has_seconds(c->p) ? 1e3 * step : step;
}

static int schedule_width(const Comparison *c)
{
    int width = 8;
    for (int i = 0; i < c->schedule_count; i++)
        if ((int)strlen(c->schedules[i]) > width)
            width = (int)strlen(c->schedules[i]);
    return width;
}

/* Rows that are cut in another way than the file says must not pass for its. */
static void print_recut(const Comparison *c, FILE *out)
{
    for (int i = 0; i < c->count; i++) {
        if (c->trials[i].refused_by || !c->trials[i].recut)
            continue;
        fprintf(out,
                "\nthe file's split has %d sizes; rows with another number of "
                "chunks use `split balanced`\n",
                c->p->set.size_count);
        return;
    }
}

static const char *step_text(const Comparison *c, double step)
{
    Arena *arena = c->p->arena;
    return has_seconds(c->p) ? seconds_text(arena, step)
                             : text_format(arena, "%.5g", step);
}

static void print_trial(const Comparison *c, const Trial *t, int width,
                        FILE *out)
{
    Arena *arena = c->p->arena;
    const Summary *sum = &t->sum;
    fprintf(out,
            "%c %-*s %3d %2s %4d %10s %10s %10s %11s %11s %13s%c %6d %8ld "
            "%13s\n",
            t->best ? '*' : ' ', width, shown_text(arena, t->schedule),
            t->stages, virtual_text(arena, t->virtuals, "-"), t->microbatches,
            sum->formula < 0 ? "-" : share_text(arena, sum->formula),
            share_text(arena, sum->bubble), share_text(arena, sum->own),
            step_text(c, sum->step), step_text(c, pace(t)),
            bytes_text(arena, (double)sum->bytes), sum->too_large ? '!' : ' ',
            sum->copies, sum->messages, bytes_text(arena, sum->message_bytes));
}

/* The same complaint about other numbers and other names. */
static bool same_kind(const char *a, const char *b)
{
    while (*a && *b) {
        if (*a == '`' && *b == '`') {
            a += 1 + strcspn(a + 1, "`");
            b += 1 + strcspn(b + 1, "`");
        }
        if (*a >= '0' && *a <= '9' && *b >= '0' && *b <= '9') {
            a += strspn(a, "0123456789");
            b += strspn(b, "0123456789");
        } else if (*a++ != *b++) {
            return false;
        }
    }
    return *a == *b;
}

static int refused_alike(const Comparison *c, int trial, int from, int to)
{
    int count = 0;
    for (int k = from; k < to; k++)
        count += c->trials[k].refused_by &&
                 same_kind(c->trials[k].reason, c->trials[trial].reason);
    return count;
}

/* Each kind of reason once, with how many combinations it refuses, in the words
 * of the first. */
static void print_refused(const Comparison *c, FILE *out)
{
    if (c->planned == c->count)
        return;
    fprintf(out, "\n%d of %d combinations are refused:\n",
            c->count - c->planned, c->count);
    for (int i = 0; i < c->count; i++) {
        const Trial *t = &c->trials[i];
        if (!t->refused_by || refused_alike(c, i, 0, i))
            continue;
        fprintf(out, "%5d  by %s, such as %s P=%d v=%s M=%d: %s\n",
                refused_alike(c, i, i, c->count), t->refused_by,
                shown_text(c->p->arena, t->schedule), t->stages,
                virtual_text(c->p->arena, t->virtuals, "-"), t->microbatches,
                t->reason);
    }
}

static void print_crossovers(const Comparison *c, FILE *out)
{
    double link = c->p->set.link.value;
    if (!listed(c, "1f1b") || !listed(c, "interleaved"))
        return;
    if (!has_seconds(c->p)) {
        fprintf(out, "\nwhere interleaving stops paying depends on the link: "
                     "give a `cluster` block with flops, link and latency\n");
        return;
    }
    if (c->crossover_count)
        fprintf(out, "\nwhere interleaving stops paying, against 1f1b with the "
                     "same P and M");
    if (c->crossover_count && link > 0)
        fprintf(out, " (the cluster's link: %s)", rate_text(c->p->arena, link));
    if (c->crossover_count)
        fputs(":\n", out);
    for (int i = 0; i < c->crossover_count; i++) {
        const Crossover *x = &c->crossovers[i];
        fprintf(out, "  P=%d v=%d M=%d: ", x->stages, x->virtuals,
                x->microbatches);
        if (x->why)
            fprintf(out, "it %s\n", x->why);
        else
            fprintf(out, "on links slower than %s\n",
                    rate_text(c->p->arena, x->link));
    }
}

static void print_table(const Comparison *c, FILE *out)
{
    int width = schedule_width(c);
    fprintf(out, "%s: %d layers, micro-batches of %d; times %s\n\n", c->p->name,
            c->p->layer_count, (int)c->p->set.rows.value,
            has_seconds(c->p)
                ? cost_source(c->p)
                : "in forwards of the whole model (every chunk alike, F 1, B "
                  "2, messages 0)");
    fprintf(out,
            "  %-*s %3s %2s %4s %32s %11s %11s %14s %6s %8s %13s\n"
            "  %-*s %3s %2s %4s %10s %10s %10s %11s %11s %14s %6s %8s %13s\n",
            width, "", "", "", "", "------------- bubble -----------", "",
            "step per", "peak memory", "peak", "", "message", width, "schedule",
            "P", "v", "M", "textbook", "makespan", "own span", "step",
            "micro-batch", "of a rank", "chunks", "messages", "bytes");
    for (int i = 0; i < c->count; i++)
        if (!c->trials[i].refused_by)
            print_trial(c, &c->trials[i], width, out);
    fputs("\n  * nothing is both faster per micro-batch and smaller", out);
    fputs(c->p->set.memory.count
              ? "; ! more than the memory of the cluster's devices\n"
              : "\n",
          out);
    print_recut(c, out);
    print_crossovers(c, out);
    print_refused(c, out);
}

static void print_csv(const Comparison *c, FILE *out)
{
    Arena *arena = c->p->arena;
    fprintf(out,
            "schedule,stages,virtual,microbatches,bubble_textbook,"
            "bubble_makespan,bubble_own_span,step_%s,peak_bytes,peak_chunks,"
            "messages,message_bytes,pareto,refused_by,reason\n",
            has_seconds(c->p) ? "ms" : "forwards");
    for (int i = 0; i < c->count; i++) {
        const Trial *t = &c->trials[i];
        fprintf(out, "%s,%d,%s,%d,", csv_cell(arena, t->schedule), t->stages,
                virtual_text(arena, t->virtuals, ""), t->microbatches);
        if (t->refused_by) {
            fprintf(out, ",,,,,,,,,%s,%s\n", t->refused_by,
                    csv_cell(arena, t->reason));
            continue;
        }
        if (t->sum.formula >= 0)
            fprintf(out, "%.9g", t->sum.formula);
        fprintf(out, ",%.9g,%.9g,%.9g,%zu,%d,%ld,%.0f,%d,,\n", t->sum.bubble,
                t->sum.own, shown_step(c, t->sum.step), t->sum.bytes,
                t->sum.copies, t->sum.messages, t->sum.message_bytes, t->best);
    }
}

static void json_trial(const Comparison *c, const Trial *t, FILE *out)
{
    Arena *arena = c->p->arena;
    fprintf(out,
            "    {\"schedule\": %s, \"stages\": %d, \"virtual\": %s, "
            "\"microbatches\": %d",
            json_string(arena, t->schedule), t->stages,
            virtual_text(arena, t->virtuals, "null"), t->microbatches);
    if (t->refused_by) {
        fprintf(out, ", \"refused_by\": \"%s\", \"reason\": %s", t->refused_by,
                json_string(arena, t->reason));
    } else {
        fprintf(out,
                ",\n     \"bubble_textbook\": %s, \"bubble_makespan\": %.9g, "
                "\"bubble_own_span\": %.9g,\n     \"step\": %.9g, "
                "\"peak_bytes\": %zu, \"peak_chunks\": %d, \"messages\": %ld, "
                "\"message_bytes\": %.0f, \"pareto\": %s",
                t->sum.formula < 0 ? "null"
                                   : text_format(arena, "%.9g", t->sum.formula),
                t->sum.bubble, t->sum.own, shown_step(c, t->sum.step),
                t->sum.bytes, t->sum.copies, t->sum.messages,
                t->sum.message_bytes, t->best ? "true" : "false");
    }
    fputc('}', out);
}

static void print_json(const Comparison *c, FILE *out)
{
    fprintf(out, "{\"model\": %s, \"step_unit\": \"%s\",\n  \"plans\": [\n",
            json_string(c->p->arena, c->p->name),
            has_seconds(c->p) ? "ms" : "forwards of the whole model");
    for (int i = 0; i < c->count; i++) {
        json_trial(c, &c->trials[i], out);
        fputs(i + 1 < c->count ? ",\n" : "\n", out);
    }
    fputs("  ],\n  \"crossovers\": [", out);
    for (int i = 0; i < c->crossover_count; i++) {
        const Crossover *x = &c->crossovers[i];
        fprintf(out,
                "%s\n    {\"stages\": %d, \"virtual\": %d, \"microbatches\": "
                "%d, ",
                i ? "," : "", x->stages, x->virtuals, x->microbatches);
        if (x->why)
            fprintf(out, "\"link\": null, \"why\": \"interleaving %s\"}",
                    x->why);
        else
            fprintf(out, "\"link\": %.17g}", x->link);
    }
    fputs(c->crossover_count ? "\n  ]}\n" : "]}\n", out);
}

static bool write_plot(const Comparison *c, const char *path)
{
    Output out;
    if (!open_output(c->p, &out, path))
        return false;
    scatter(c->p->arena, c->trials, c->count, out.stream);
    return close_output(&out);
}

int compare(Program *p, const CompareOptions *o, FILE *out)
{
    Comparison *c = arena_take(p->arena, sizeof *c);
    c->p = p;
    if (!take_lists(c, o))
        return USAGE;
    try_all(c);
    mark_front(c);
    find_crossovers(c);
    if (o->csv)
        print_csv(c, out);
    else if (o->json)
        print_json(c, out);
    else
        print_table(c, out);
    if (o->plot && !write_plot(c, o->plot))
        return 1;
    return c->planned == 0;
}
