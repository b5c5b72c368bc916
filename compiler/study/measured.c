/* measured.c: what `run --trace` has recorded, beside the plan.
 *
 * Reads: lists, chunks, times. Writes: measured and the fields beside it.
 *
 *     # pipec trace 1: gpt, ...          the format; 1 where it is not given
 *     0 3 2F1 41200145 46203771          rank step action start_ns end_ns
 *
 * A trace is taken as a whole or not at all: in each step every compute, SEND and
 * RECV of the plan stands once, on its rank, in its order; waits, which depend on
 * where buffers lie, are taken where both have them. Of all steps the one of
 * median length stands for the run; the first of a run, which also warms up,
 * only where there is no other.
 *
 * To draw it, the Program is copied and the copy given measured times: one
 * graph, one timeline, one picture, whether planned or measured. */
#include "measured.h"
#include "escape.h"
#include "show/picture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Sample {  // one line
    int node;
    int step, line;
    double start, end;  // seconds
} Sample;

typedef struct Reader {
    Program *p;
    const char *path;
    int line;
    Sample *samples;
    int count;
    int first, last;  // steps
    int needed;       // entries that each step has to have
    int waits;        // lines of entries that it may have
    int *found;       // [step - first][node] sample + 1
} Reader;

/* ---- lines ---- */

__attribute__((format(printf, 2, 3))) static bool bad(Reader *r,
                                                      const char *format, ...)
{
    va_list list;
    va_start(list, format);
    r->p->errors++;
    const char *why = text_format_list(r->p->arena, format, list);
    va_end(list);
    fprintf(r->p->diagnostics, "%s:%d: error: %s\n",
            shown_text(r->p->arena, r->path), r->line,
            shown_text(r->p->arena, why));
    return false;
}

/* Digits, then the character `after`; the place moves behind it. */
static bool take_number(const char **at, char after, long long most,
                        long long *number)
{
    const char *from = *at;
    long long value = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        int digit = **at - '0';
        if (value > (most - digit) / 10)
            return false;
        value = 10 * value + digit;
    }
    *number = value;
    return *at > from && *(*at)++ == after;
}

/* "12SEND_F3" -> its node; -1: it is none of this plan. */
static int find_entry(const Reader *r, const char *word, size_t length,
                      long long rank, Action *action)
{
    if (!read_action(word, length, action))
        return -1;
    int node = find_node(r->p, action->kind, action->chunk, action->micro);
    return node >= 0 && place_of(r->p, node).rank == rank ? node : -1;
}

/* Where a rank waits for a buffer depends on the plan's times: it may differ. */
static bool may_be_missing(ActionKind kind)
{
    return is_wait(kind);
}

static bool read_line(Reader *r, const char *at)
{
    long long rank, step, start, end;
    const long long most = 1000000000000000000;
    if (!take_number(&at, ' ', 1000000, &rank) ||
        !take_number(&at, ' ', 2147483647, &step))
        return bad(r, "not `rank step action start_ns end_ns`");
    size_t length = strcspn(at, " \n");
    const char *word = at;
    at += length;
    if (length == 0 || *at++ != ' ' || !take_number(&at, ' ', most, &start) ||
        !take_number(&at, '\n', most, &end))
        return bad(r, "not `rank step action start_ns end_ns`");
    Action action;
    int node = find_entry(r, word, length, rank, &action);
    if (node < 0 && is_wait(action.kind) && rank < r->p->ranks)
        return true;
    if (node < 0) {
        bad(r, "rank %lld has no action %.*s in this plan", rank,
            (int)(length < 40 ? length : 40), word);
        help(r->p, "read a trace with the file and the -D that it was made "
                   "with");
        return false;
    }
    if (step == 0 || end < start)
        return bad(r, step ? "the action ends before it begins"
                           : "steps are counted from 1");
    r->samples = array_grow(r->p->arena, r->samples, r->count,
                            sizeof *r->samples);
    r->samples[r->count++] = (Sample){node, (int)step, r->line,
                                      1e-9 * (double)start, 1e-9 * (double)end};
    r->waits += may_be_missing(action.kind);
    r->first = r->count == 1 || step < r->first ? (int)step : r->first;
    r->last = step > r->last ? (int)step : r->last;
    return true;
}

enum { TRACE_FORMAT = 1 };  // the latest that is known here

static bool read_comment(Reader *r, const char *text)
{
    int format;
    if (sscanf(text, "# pipec trace %d", &format) != 1 ||
        format <= TRACE_FORMAT)
        return true;
    bad(r, "a trace of format %d, and this pipec reads up to %d", format,
        TRACE_FORMAT);
    help(r->p, "read it with the pipec that made it");
    return false;
}

static bool read_lines(Reader *r)
{
    FILE *in = fopen(r->path, "re");
    if (!in) {
        error_plain(r->p, "cannot read %s: %s", r->path, strerror(errno));
        return false;
    }
    char *text = NULL;
    size_t room = 0;
    bool fine = true;
    while (fine && getline(&text, &room, in) > 0) {
        r->line++;
        if (!strchr(text, '\n'))
            fine = bad(r, "the line is not complete");
        else if (text[0] == '{')
            fine = bad(r, "this is no .trace: make it with `pipec run --trace "
                          "NAME.trace`");
        else
            fine = text[0] == '#' ? read_comment(r, text) : read_line(r, text);
    }
    if (fine && ferror(in)) {
        error_plain(r->p, "cannot read %s: %s", r->path, strerror(errno));
        fine = false;
    }
    free(text);
    fclose(in);
    return fine;
}

/* ---- steps ---- */

/* Reductions and the update are of no micro-batch. */
static bool is_needed(const Program *p, int node)
{
    ActionKind kind = action_of(p, node).kind;
    return kind < ACT_REDUCE && !may_be_missing(kind);
}

static int *found_at(const Reader *r, int step, int node)
{
    size_t nodes = (size_t)r->p->first_node[r->p->ranks];
    return &r->found[(size_t)(step - r->first) * nodes + (size_t)node];
}

/* As many lines as actions and none twice: then none is missing. */
static bool is_whole(Reader *r)
{
    Program *p = r->p;
    long long steps = (long long)r->last - r->first + 1;
    if (r->count == 0)
        return bad(r, "no action is recorded here");
    for (int i = 0; i < p->first_node[p->ranks]; i++)
        r->needed += is_needed(p, i);
    if (r->count - r->waits != steps * r->needed)
        return bad(r,
                   "%d actions and messages for steps %d to %d: this plan has "
                   "%d in each step",
                   r->count - r->waits, r->first, r->last, r->needed);
    r->found = arena_take(p->arena, sizeof *r->found * (size_t)steps *
                                        (size_t)p->first_node[p->ranks]);
    for (int i = 0; i < r->count; i++) {
        const Sample *s = &r->samples[i];
        int *found = found_at(r, s->step, s->node);
        r->line = s->line;
        if (*found)
            return bad(r, "%s of step %d a second time, after line %d",
                       action_text(p, action_of(p, s->node)), s->step,
                       r->samples[*found - 1].line);
        *found = i + 1;
    }
    return true;
}

/* NULL: the trace has none. */
static const Sample *sample_at(const Reader *r, int step, int node)
{
    int found = *found_at(r, step, node);
    return found ? &r->samples[found - 1] : NULL;
}

static bool is_in_order(Reader *r, int step)
{
    Program *p = r->p;
    for (int rank = 0; rank < p->ranks; rank++) {
        const Sample *before = NULL;
        for (int i = 0; i < p->lists[rank].count; i++) {
            const Sample *own = sample_at(r, step, node_at(p, rank, i));
            if (!own)
                continue;
            r->line = own->line;
            if (before && own->start < before->end)
                return bad(
                    r, "%s begins before %s ends: not the order of this plan",
                    action_text(p, action_of(p, own->node)),
                    action_text(p, action_of(p, before->node)));
            before = own;
        }
    }
    return true;
}

typedef struct Length {  // of one step
    int step;
    double begin, makespan, bubble;
} Length;

static Length length_of(const Reader *r, int step)
{
    const Program *p = r->p;
    double begin = INFINITY, end = 0, busy = 0;
    for (int i = 0; i < p->first_node[p->ranks]; i++) {
        if (!is_compute(action_of(p, i).kind))
            continue;
        const Sample *s = sample_at(r, step, i);
        begin = s->start < begin ? s->start : begin;
        end = s->end > end ? s->end : end;
        busy += s->end - s->start;
    }
    return (Length){step, begin, end - begin,
                    end > begin ? 1 - busy / ((end - begin) * p->ranks) : 0};
}

static int by_makespan(const void *a, const void *b)
{
    const Length *x = a, *y = b;
    if (x->makespan != y->makespan)
        return x->makespan < y->makespan ? -1 : 1;
    return x->step - y->step;
}

static Length choose_step(Reader *r)
{
    int from = r->first == 1 && r->last > 1 ? 2 : r->first,
        count = r->last - from + 1;
    Length *lengths = arena_take(r->p->arena, sizeof *lengths * (size_t)count);
    for (int i = 0; i < count; i++) {
        lengths[i] = length_of(r, from + i);
        r->p->measured_bubble += lengths[i].bubble / count;
    }
    qsort(lengths, (size_t)count, sizeof *lengths, by_makespan);
    r->p->measured_steps = count;
    return lengths[(count - 1) / 2];
}

/* What a receive waited for before the step began is not of this step. */
static double clamp(double time, double most)
{
    return time < 0 ? 0 : time > most ? most : time;
}

/* A message that is there is copied: no slower than this. */
static const double COPY_BYTES = 1e9, COPY_BEGINS = 100e-6;  // per second; s

/* Where a rank waits for a message: at its receive or, if that is posted, where
 * it is taken. */
static const Node *taken(const Program *p, const Message *message)
{
    Action a = action_of(p, message->receive);
    int take = find_node(p, is_back(a.kind) ? ACT_TAKE_B : ACT_TAKE_F, a.chunk,
                         a.micro);
    return &p->measured[take < 0 ? message->receive : take];
}

/* When a message is there: when the receiver had it, if that stood ready before
 * it was sent, or took longer than the copy; else it was there already. */
static double arrival_of(const Program *p, const Message *message)
{
    const Node *send = &p->measured[message->send],
               *receive = taken(p, message);
    double copy = COPY_BEGINS +
                  message_bytes(p, message->boundary) / COPY_BYTES;
    bool waited = receive->start <= send->end ||
                  receive->end - receive->start > copy;
    return waited ? receive->end : send->end;
}

/* An entry that is not in the trace takes no time, behind the one before it. */
static void fill_times(Reader *r, const Length *chosen)
{
    Program *p = r->p;
    int nodes = p->first_node[p->ranks];
    p->measured_step = chosen->step;
    p->measured_makespan = chosen->makespan;
    p->measured = arena_take(p->arena,
                             sizeof *p->measured * (size_t)(nodes + 1));
    for (int i = 0; i < nodes; i++) {
        const Sample *s = sample_at(r, chosen->step, i);
        Node *own = &p->measured[i];
        *own = p->nodes[i];
        double before = node_before(p, i) < 0 ? 0 : own[-1].end;
        if (is_collective(action_of(p, i).kind))
            before = chosen->makespan;
        own->start = clamp(s ? s->start - chosen->begin : before,
                           chosen->makespan);
        own->end = clamp(s ? s->end - chosen->begin : before, chosen->makespan);
    }
    for (int i = 0; i < p->message_count; i++) {
        double arrival = arrival_of(p, &p->messages[i]);
        p->measured[p->messages[i].send].end = arrival;
    }
}

bool measured(Program *p, const char *path)
{
    Reader r = {.p = p, .path = path};
    if (!read_lines(&r) || !is_whole(&r))
        return false;
    for (int step = r.first; step <= r.last; step++)
        if (!is_in_order(&r, step))
            return false;
    Length chosen = choose_step(&r);
    fill_times(&r, &chosen);
    return true;
}

/* ---- the copy that is drawn ---- */

/* How often a chunk runs each kind of action. */
static void count_actions(Program *p, int *ran[COMPUTE_KINDS])
{
    for (int kind = 0; kind < COMPUTE_KINDS; kind++)
        ran[kind] = arena_take(p->arena, sizeof(int) * (size_t)p->chunk_count);
    for (int i = 0; i < p->first_node[p->ranks]; i++) {
        Action a = action_of(p, i);
        if (is_compute(a.kind))
            ran[a.kind][a.chunk]++;
    }
}

/* Of the quickest message over each boundary: as much of it is on the wire as
 * in the plan. */
static void share_out_wires(const Program *p, Cost *cost)
{
    for (int c = 0; c < p->chunk_count; c++) {
        double planned = p->cost.wire[c] + p->cost.delay[c];
        if (planned <= 0)
            continue;
        cost->wire[c] = cost->delay[c] * p->cost.wire[c] / planned;
        cost->delay[c] -= cost->wire[c];
    }
}

/* Mean lengths per chunk, and the quickest message over each boundary. */
static Cost measured_cost(Program *p)
{
    Cost cost = empty_cost(p);
    int *ran[COMPUTE_KINDS];
    cost.unit = false;
    cost.source = "measured";
    count_actions(p, ran);
    for (int i = 0; i < p->first_node[p->ranks]; i++) {
        Action a = action_of(p, i);
        if (is_compute(a.kind))
            cost.compute[a.kind][a.chunk] += (p->measured[i].end -
                                              p->measured[i].start) /
                                             ran[a.kind][a.chunk];
    }
    for (int i = 0; i < p->message_count; i++) {
        const Message *message = &p->messages[i];
        double *least = &cost.delay[message->boundary],
               time = taken(p, message)->end - p->measured[message->send].start;
        if (*least == 0 || time < *least)
            *least = time;
    }
    share_out_wires(p, &cost);
    return cost;
}

/* As far as the trace knows: from the send to the arrival. */
static Message *measured_messages(Program *p)
{
    Message *messages = arena_take(
        p->arena, sizeof *messages * (size_t)(p->message_count + 1));
    for (int i = 0; i < p->message_count; i++) {
        messages[i] = p->messages[i];
        messages[i].begin = p->measured[messages[i].send].start;
        messages[i].end = p->measured[messages[i].send].end;
    }
    return messages;
}

static Program *measured_plan(Program *p)
{
    Program *copy = arena_take(p->arena, sizeof *copy);
    Schedule *schedule = arena_take(p->arena, sizeof *schedule);
    *copy = *p;
    *schedule = *p->set.schedule;
    schedule->name = text_format(p->arena, "%s, measured in step %d",
                                 p->set.schedule->name, p->measured_step);
    copy->set.schedule = schedule;
    copy->nodes = p->measured;
    copy->messages = measured_messages(p);
    copy->makespan = p->measured_makespan;
    copy->cost = measured_cost(p);
    copy->set.has_cluster = false;
    copy->set.given[ACT_F].count = 0;
    return copy;
}

/* ---- the largest differences ---- */

typedef struct Difference {
    int node;
    double adds;  // share of the makespan, measured - planned
} Difference;

/* From when all that the action needs is done to when it ends: its length, and
 * how long its message takes or it hesitates. What others were late is not its
 * own. */
static double own_share(const Program *p, const Node *nodes, double makespan,
                        int node)
{
    int needs[2] = {compute_before(p, node), maker_of(p, node)};
    double ready = 0;
    for (int i = 0; i < 2; i++)
        if (needs[i] >= 0 && nodes[needs[i]].end > ready)
            ready = nodes[needs[i]].end;
    return (nodes[node].end - ready) / makespan;
}

static int by_size(const void *a, const void *b)
{
    const Difference *x = a, *y = b;
    double dx = fabs(x->adds), dy = fabs(y->adds);
    if (dx != dy)
        return dx > dy ? -1 : 1;
    return x->node - y->node;
}

static void print_difference(Program *p, FILE *out, const Difference *d)
{
    const Node *plan = &p->nodes[d->node], *real = &p->measured[d->node];
    double whole[2] = {p->makespan, p->measured_makespan};
    fprintf(out, "%4d  %-9s %9s  %9s  %10s  %9s  %+6.2f %%\n",
            place_of(p, d->node).rank, action_text(p, action_of(p, d->node)),
            share_text(p->arena, plan->start / whole[0]),
            share_text(p->arena, real->start / whole[1]),
            share_text(p->arena, (plan->end - plan->start) / whole[0]),
            share_text(p->arena, (real->end - real->start) / whole[1]),
            100 * d->adds);
}

static void print_differences(Program *p, FILE *out)
{
    enum { SHOWN = 5 };
    Difference *all = NULL;
    int count = 0;
    for (int i = 0; i < p->first_node[p->ranks]; i++) {
        if (!is_compute(action_of(p, i).kind))
            continue;
        all = array_grow(p->arena, all, count, sizeof *all);
        all[count++] = (Difference){
            i, own_share(p, p->measured, p->measured_makespan, i) -
                   own_share(p, p->nodes, p->makespan, i)};
    }
    qsort(all, (size_t)count, sizeof *all, by_size);
    fprintf(out, "largest differences, in %% of each makespan; `adds` is what "
                 "the action itself adds:\n"
                 "its length, and from when all that it needs was done until "
                 "it began\n"
                 "rank  action    starts planned, measured   takes planned, "
                 "measured     adds\n");
    for (int i = 0; i < count && i < SHOWN; i++)
        print_difference(p, out, &all[i]);
}

/* ---- text ---- */

/* As many columns as the plan has, so that the two can be laid on each other. */
static void print_measured_timeline(Program *p, FILE *out, bool colour,
                                    bool all)
{
    Program *real = measured_plan(p);
    double column = p->cost.unit ? 1 : shortest_action(p);
    timeline(real, out,
             &(Timeline){"", -1, colour, all ? 0 : 6,
                         column * real->makespan / p->makespan});
}

/* A row of a `cluster` block: a time for each chunk, of two copies the mean. */
static void print_row(Program *p, FILE *out, const char *key,
                      const double *time)
{
    fprintf(out, "  %s [", key);
    for (int c = 0; c < p->copy_chunks; c++) {
        double sum = 0;
        int ran = 0;  // copies that a micro-batch has passed
        for (int k = c; k < p->chunk_count; k += p->copy_chunks) {
            sum += time[k];
            ran += p->chunks[k].micro_count > 0;
        }
        fprintf(out, "%s%.6gms", c ? " " : "", 1e3 * sum / ran);
    }
    fputc(']', out);
}

/* Where a chunk runs only whole backwards, they are shared out by operations. */
static bool split_backwards(Program *p, Cost *cost)
{
    bool split = false;
    for (int c = 0; c < p->chunk_count; c++)
        split |= cost->compute[ACT_I][c] > 0;
    for (int c = 0; split && c < p->chunk_count; c++) {
        double share = input_share(&p->chunks[c]);
        if (cost->compute[ACT_I][c] > 0)
            continue;
        cost->compute[ACT_I][c] = share * cost->compute[ACT_B][c];
        cost->compute[ACT_W][c] = (1 - share) * cost->compute[ACT_B][c];
    }
    return split;
}

/* What was measured, as a `cluster` block that plans with it. Mean times of the
 * step; of messages the mean of the quickest over each boundary. */
static void print_times(Program *p, FILE *out)
{
    Cost cost = measured_cost(p);
    double messages = 0;
    int boundaries = 0;
    for (int c = 0; c < p->chunk_count; c++) {
        double message = cost.wire[c] + cost.delay[c];
        messages += message;
        boundaries += message > 0;
    }
    fputs("\nto plan with these times, in place of the file's own cluster:\n"
          "cluster {",
          out);
    print_row(p, out, "forward", cost.compute[ACT_F]);
    if (split_backwards(p, &cost)) {
        print_row(p, out, "input_gradient", cost.compute[ACT_I]);
        print_row(p, out, "weight_gradient", cost.compute[ACT_W]);
    } else {
        print_row(p, out, "backward", cost.compute[ACT_B]);
    }
    if (boundaries)
        fprintf(out, "  latency %.6gms", 1e3 * messages / boundaries);
    fputs("  }\n", out);
}

void inspect_measured(Program *p, FILE *out, bool colour, bool all)
{
    Picture k = picture_of(p);
    fprintf(out, "%s\n\nplanned\n", title_line(&k));
    timeline(p, out, &(Timeline){"", -1, colour, all ? 0 : 6, 0});
    fprintf(out, "\nmeasured: step %d, the median of %d\n", p->measured_step,
            p->measured_steps);
    print_measured_timeline(p, out, colour, all);
    fprintf(out, "\nmakespan: planned %s%s, measured %s",
            time_text(p, p->makespan),
            p->cost.unit ? " forwards of one chunk" : "",
            seconds_text(p->arena, p->measured_makespan));
    if (!p->cost.unit)
        fprintf(out, " (%+.2f %%)",
                100 * (p->measured_makespan / p->makespan - 1));
    fprintf(out,
            "\nbubble of the makespan: planned %s, measured %s; mean of all "
            "steps %s\n\n",
            share_text(p->arena, bubble_of(p)),
            share_text(p->arena, bubble_of(measured_plan(p))),
            share_text(p->arena, p->measured_bubble));
    print_differences(p, out);
    print_times(p, out);
}

/* ---- pictures ---- */

bool picture_measured(Program *p, const char *path)
{
    const char *suffix = strrchr(path, '.');
    if (!can_picture(p, path))
        return false;
    if (strcmp(suffix, ".csv") == 0 || strcmp(suffix, ".layout") == 0) {
        error_plain(p, "a %s holds no times: nothing of --measured", suffix);
        return false;
    }
    Program *real = measured_plan(p);
    Look look = {.others = &real,
                 .other_count = 1,
                 .all = true,
                 .text = inspect_measured};
    return picture(p, path, &look);
}
