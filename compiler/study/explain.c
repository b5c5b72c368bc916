/* explain.c: `pipec explain X.pipe r2@14`, or `2F3`: what a rank does there, or
 * what it waits for and why, and what would have to be different.
 *
 * Reads: everything up to memory. A wait ends when an action starts; what that
 * one started right after is what it waited for, and so on back until the time
 * at which the wait began: the chain. It is a piece of the longest path that
 * ends in the action. Remedies are tried, not guessed: an action that costs
 * nothing and messages that take no time on the same graph (plan/nodes.c), other
 * settings by planning the file again (replan.c). */
#include "escape.h"
#include "whatif.h"

#include <stdlib.h>
#include <string.h>

enum {
    USAGE = 2,
    CHAIN_SHOWN = 24,  // lines of a chain
    PATH_SHOWN = 12,   // of a path around the action
    NEAREST = 64,      // links of the chain that are tried for free
    CAUSES = 6         // and those that are shown
};

typedef struct Gap {  // of one rank; before an action, or after the last one
    int rank;
    int before, after;  // nodes: what ran before it; what ends it, -1: the step
    double from, to;
    int source;  // node: what it waits for, where `after` is -1
} Gap;

typedef struct Explanation {
    Program *p;
    int *next;       // [node] along the longest path through it
    double *latest;  // [node] end that does not make the step longer
    Node *other;     // [node] times of the same graph with other costs
    FILE *out;
    bool all;
    double makespan, tiny;  // times closer than this are the same
    int *chain, chain_count;
    Summary sum;  // of the plan as it is
} Explanation;

/* ---- words ---- */

static const char *name_of(const Explanation *e, int node)
{
    return action_text(e->p, action_of(e->p, node));
}

static const char *time_of(const Explanation *e, double time)
{
    return time_text(e->p, time);
}

/* ---- where ---- */

/* "r2@14", "r2@1.4ms"; without a unit it is the plan's own: forwards of a
 * chunk, or ms. */
static bool take_place(const Explanation *e, const char *text, int *rank,
                       double *time)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
    char *end;
    if (text[0] != 'r' || text[1] < '0' || text[1] > '9')
        return false;
    *rank = (int)strtol(text + 1, &end, 10);
    if (*end != '@' || !((end[1] >= '0' && end[1] <= '9') || end[1] == '.'))
        return false;
    *time = strtod(end + 1, &end);
    if (!*end) {
        *time *= e->p->cost.unit ? 1 : 1e-3;
        return true;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].name) == 0 && !e->p->cost.unit) {
            *time *= units[i].seconds;
            return true;
        }
    }
    return false;
}

/* "2F3" -> its node; -2: no compute is written like that, -1: there is none. */
static int take_action(const Explanation *e, const char *text)
{
    Action a;
    if (!read_action(text, strlen(text), &a) || !is_compute(a.kind))
        return -2;
    return find_node(e->p, a.kind, a.chunk, a.micro);
}

/* ---- the wait ---- */

static Gap gap_before(const Program *p, int node)
{
    int before = compute_before(p, node);
    return (Gap){place_of(p, node).rank,
                 before,
                 node,
                 before < 0 ? 0 : p->nodes[before].end,
                 p->nodes[node].start,
                 node};
}

/* The compute that ends the step. */
static int last_of_all(const Program *p)
{
    int last = -1;
    for (int i = 0; i < p->first_node[p->ranks]; i++)
        if (is_compute(action_of(p, i).kind) &&
            (last < 0 || p->nodes[i].end > p->nodes[last].end))
            last = i;
    return last;
}

/* What the rank does at that time: an action, or a gap. */
static int at_time(const Explanation *e, int rank, double time, Gap *gap)
{
    const Program *p = e->p;
    int last = -1;
    for (int i = p->first_node[rank]; i < p->first_node[rank + 1]; i++) {
        if (!is_compute(action_of(p, i).kind))
            continue;
        if (time < p->nodes[i].start - e->tiny) {
            *gap = gap_before(p, i);
            return -1;
        }
        last = i;
        if (time < p->nodes[i].end - e->tiny)
            return i;
    }
    *gap = (Gap){rank,        last,
                 -1,          last < 0 ? 0 : p->nodes[last].end,
                 e->makespan, last_of_all(p)};
    return -1;
}

/* From what ends the wait back to what was under way when it began. */
static void find_chain(Explanation *e, const Gap *gap)
{
    e->chain = NULL;
    e->chain_count = 0;
    for (int node = gap->source; node >= 0;
         node = cause_compute(e->p, e->p->nodes, node)) {
        e->chain = array_grow(e->p->arena, e->chain, e->chain_count,
                              sizeof *e->chain);
        e->chain[e->chain_count++] = node;
        if (node != gap->after &&
            e->p->nodes[node].start <= gap->from + e->tiny)
            break;
    }
}

static const char *message_text(const Explanation *e, int send)
{
    Program *p = e->p;
    const Message *message = message_of(p, send);
    double takes = p->nodes[send].end - message->begin;
    const char *text = text_format(p->arena, "%s to rank %d",
                                   action_text(p, action_of(p, send)),
                                   action_of(p, send).peer);
    return takes > e->tiny ? text_format(p->arena, "%s, %s on the way", text,
                                         time_of(e, takes))
                           : text;
}

/* How many messages its wire still had to carry when it was sent. */
static int ahead_of(const Program *p, int send)
{
    const Message *message = message_of(p, send);
    int count = 0;
    for (int k = 1; k <= message->ordinal; k++)
        count += message[-k].end > p->nodes[send].start;
    return count;
}

/* Why an action of another rank, or of its own, begins when it does. */
static const char *wait_text(const Explanation *e, int node)
{
    Program *p = e->p;
    int from, message;
    Waits waits = why_waits(p, p->nodes, node, &from, &message);
    const char *carried = message < 0 ? "" : message_text(e, message);
    switch (waits) {
    case WAITS_RANK:
        return text_format(p->arena, "%s is next on this rank",
                           name_of(e, node));
    case WAITS_LINK:
        return text_format(
            p->arena, "the link %d -> %d is the cause: %s, behind %d other%s%s",
            place_of(p, message).rank, action_of(p, message).peer, carried,
            ahead_of(p, message), ahead_of(p, message) == 1 ? "" : "s",
            message_of(p, message)->adapter >= 0
                ? " and what its adapter carried"
                : "");
    case WAITS_POST:
        return text_format(p->arena,
                           "its receive is the cause: posted only then; %s",
                           carried);
    case WAITS_BUFFER:
        return text_format(p->arena,
                           "a buffer of rank %d is the cause: free when the "
                           "message in it is taken; %s",
                           place_of(p, node).rank, carried);
    default: return carried;
    }
}

/* How `node` leads to the action `next`. */
static const char *reaches(const Explanation *e, int node, int next)
{
    int from, message;
    why_waits(e->p, e->p->nodes, next, &from, &message);
    if (from == node)
        return wait_text(e, next);
    if (place_of(e->p, node).rank == place_of(e->p, next).rank)
        return text_format(e->p->arena, "%s is next on this rank",
                           name_of(e, next));
    if (maker_of(e->p, next) == node)  // there as late as its rank was busy
        return message_text(e, e->p->nodes[e->p->nodes[next].data].data);
    return text_format(e->p->arena, "%s of rank %d waits for it",
                       name_of(e, next), place_of(e->p, next).rank);
}

static void step_line(const Explanation *e, int node, int next)
{
    const Node *n = &e->p->nodes[node];
    fprintf(e->out, "  %10s .. %-10s rank %-3d ", time_of(e, n->start),
            time_of(e, n->end), place_of(e->p, node).rank);
    if (next < 0)
        fprintf(e->out, "%s\n", name_of(e, node));
    else
        fprintf(e->out, "%-8s %s\n", name_of(e, node), reaches(e, node, next));
}

static void print_chain(const Explanation *e, const Gap *gap)
{
    int first = e->chain_count - 1;
    for (int i = first; i >= 0; i--) {
        if (!e->all && e->chain_count > CHAIN_SHOWN &&
            first - i == CHAIN_SHOWN / 2) {
            fprintf(e->out, "  (%d more; --all shows them)\n",
                    e->chain_count - CHAIN_SHOWN);
            i = CHAIN_SHOWN / 2;
            continue;
        }
        step_line(e, e->chain[i], i > 0 ? e->chain[i - 1] : -1);
    }
    if (gap->after < 0)
        fprintf(e->out, "  %10s    the step ends\n", time_of(e, e->makespan));
}

static const char *needs(const Explanation *e, int node)
{
    Program *p = e->p;
    int from = maker_of(p, node);
    if (from < 0)
        return "nothing";
    if (action_of(p, node).chunk == action_of(p, from).chunk)
        return name_of(e, from);
    return text_format(p->arena, "the %s of %s, from rank %d",
                       is_back(action_of(p, node).kind) ? "gradient" : "output",
                       name_of(e, from), place_of(p, from).rank);
}

static void print_gap(Explanation *e, const Gap *gap)
{
    fprintf(e->out, "rank %d is idle from %s to %s (%s)%s%s", gap->rank,
            time_of(e, gap->from), time_of(e, gap->to),
            time_of(e, gap->to - gap->from),
            gap->before < 0 ? ": it has not begun" : ", after ",
            gap->before < 0 ? "" : name_of(e, gap->before));
    if (gap->after < 0)
        fputs(": its work of this step is done\n\nthe others still work:\n",
              e->out);
    else
        fprintf(e->out,
                "\n\n%s is its next action and needs %s. How that came to "
                "be:\n",
                name_of(e, gap->after), needs(e, gap->after));
    find_chain(e, gap);
    print_chain(e, gap);
}

/* ---- the longest path through an action ---- */

static void print_path(Explanation *e, int node)
{
    int *path = NULL, count = 0;
    for (int n = node; n >= 0; n = cause_compute(e->p, e->p->nodes, n)) {
        path = array_grow(e->p->arena, path, count, sizeof *path);
        path[count++] = n;
    }
    for (int i = 0; i < count / 2; i++) {
        int other = path[i];
        path[i] = path[count - 1 - i];
        path[count - 1 - i] = other;
    }
    int here = count - 1;
    for (int n = next_compute(e->p, e->next, node); n >= 0;
         n = next_compute(e->p, e->next, n)) {
        path = array_grow(e->p->arena, path, count, sizeof *path);
        path[count++] = n;
    }
    double slack = e->latest[node] - e->p->nodes[node].end;
    slack = slack > e->tiny ? slack : 0;
    fprintf(e->out,
            "\nthe longest path through %s: %s of the step's %s; %s%s\n",
            name_of(e, node), time_of(e, e->makespan - slack),
            time_of(e, e->makespan),
            slack > 0 ? "it can be later by "
                      : "it is critical: any delay "
                        "makes the step longer",
            slack > 0 ? time_of(e, slack) : "");
    for (int i = 0; i < count; i++) {
        bool near = abs(i - here) <= PATH_SHOWN / 2 || i < 3 || i > count - 4;
        if (!e->all && !near) {
            int skipped = 0;
            while (i < count && abs(i - here) > PATH_SHOWN / 2 &&
                   i <= count - 4)
                i++, skipped++;
            fprintf(e->out, "  (%d more; --all shows them)\n", skipped);
            i--;
            continue;
        }
        step_line(e, path[i], i + 1 < count ? path[i + 1] : -1);
    }
}

/* ---- what would remove the wait ---- */

typedef struct Outcome {
    const char *change;
    double wait, idle, step;  // wait -1: there is no such action
    int copies;               // peak chunks of the worst rank
    size_t bytes;             // of its arena
    bool removes;
} Outcome;

typedef struct Trials {
    Outcome *at;
    int count;
} Trials;

static void add_outcome(Explanation *e, Trials *t, Outcome outcome)
{
    outcome.removes = outcome.wait >= 0 && outcome.wait < e->tiny;
    t->at = array_grow(e->p->arena, t->at, t->count, sizeof *t->at);
    t->at[t->count++] = outcome;
}

static double idle_of(const Program *p, const Node *nodes, int rank,
                      double makespan)
{
    for (int i = p->first_node[rank]; i < p->first_node[rank + 1]; i++)
        if (is_compute(action_of(p, i).kind))
            makespan -= nodes[i].end - nodes[i].start;
    return makespan;
}

static double wait_of(const Node *nodes, const Gap *gap, double makespan)
{
    double from = gap->before < 0 ? 0 : nodes[gap->before].end;
    return (gap->after < 0 ? makespan : nodes[gap->after].start) - from;
}

static Outcome on_graph(Explanation *e, const Gap *gap, const Cost *cost,
                        int free, const char *change)
{
    double step = retime(e->p, cost, free, e->other);
    return (Outcome){.change = change,
                     .wait = wait_of(e->other, gap, step),
                     .idle = idle_of(e->p, e->other, gap->rank, step),
                     .step = step,
                     .copies = e->sum.copies,
                     .bytes = e->sum.bytes};
}

/* Those of the chain that cut the wait most; ties go to the nearer one. */
static void free_actions(Explanation *e, const Gap *gap, Trials *t)
{
    Trials tried = {NULL, 0};
    for (int i = 0; i < e->chain_count && i < NEAREST; i++) {
        int node = e->chain[i];
        if (node == gap->after)
            continue;
        const char *change = text_format(e->p->arena, "%s takes no time",
                                         name_of(e, node));
        add_outcome(e, &tried, on_graph(e, gap, &e->p->cost, node, change));
    }
    for (int k = 0; k < CAUSES; k++) {
        int best = -1;
        for (int i = 0; i < tried.count; i++)
            if (tried.at[i].change &&
                (best < 0 || tried.at[i].wait < tried.at[best].wait - e->tiny))
                best = i;
        if (best < 0)
            break;
        add_outcome(e, t, tried.at[best]);
        tried.at[best].change = NULL;
    }
}

static void free_messages(Explanation *e, const Gap *gap, Trials *t)
{
    Cost cost = e->p->cost, none = empty_cost(e->p);
    double most = 0;
    for (int c = 0; c < e->p->chunk_count; c++)
        if (cost.wire[c] + cost.delay[c] > most)
            most = cost.wire[c] + cost.delay[c];
    if (most <= 0)
        return;
    cost.wire = none.wire;
    add_outcome(e, t, on_graph(e, gap, &cost, -1, "links without limit"));
    cost.delay = none.delay;
    add_outcome(e, t, on_graph(e, gap, &cost, -1, "messages take no time"));
}

/* The same action and the one before it on its rank, in another plan. Times
 * without a cluster are forwards of one chunk: brought to those of ours. */
static void try_settings(Explanation *e, const Gap *gap, Trials *t,
                         const char *change, const char *const *settings,
                         int count)
{
    Replan plan = replan(e->p, settings, count);
    if (!plan.refused_by) {
        Program *q = plan.p;
        double scale = 1;
        Outcome o = {.change = change, .wait = -1};
        if (q->cost.unit)
            scale = (double)e->p->copy_chunks / q->copy_chunks;
        if (gap->after >= 0 && q->chunk_count == e->p->chunk_count) {
            Action a = action_of(e->p, gap->after);
            int node = find_node(q, a.kind, a.chunk, a.micro);
            int before = node < 0 ? -1 : compute_before(q, node);
            if (node >= 0)
                o.wait = q->nodes[node].start -
                         (before < 0 ? 0 : q->nodes[before].end);
        }
        o.step = q->makespan * scale;
        o.idle = (q->makespan - busy_time(q, gap->rank)) * scale;
        o.copies = summary_of(q).copies;
        o.bytes = summary_of(q).bytes;
        add_outcome(e, t, o);
    }
    close_replan(&plan);
}

static void other_options(Explanation *e, const Gap *gap, Trials *t)
{
    const Settings *set = &e->p->set;
    bool written = false;
    for (int i = 0; i < MOST_OPTIONS && set->schedule->option[i]; i++) {
        written |= set->option[i].at.source >= 0;
        for (int value = 1; value <= 3; value++) {
            if (strcmp(set->schedule->option[i], "warmup") != 0 ||
                (int)set->option[i].value == value)
                continue;
            const char *change = text_format(e->p->arena, "schedule=%s",
                                             schedule_words(e->p, i, value));
            try_settings(e, gap, t, change, &change, 1);
        }
    }
    if (written) {
        const char *plain = text_format(e->p->arena, "schedule=%s",
                                        set->schedule->name);
        try_settings(e, gap, t, plain, &plain, 1);
    }
}

/* The placement as `-D` takes it, where only the file of the order says it. */
static const char *imported_placement(const Program *p)
{
    const Settings *set = &p->set;
    const char *text = "placement=[";
    if (!p->import || (set->placement_at.source >= 0 &&
                       set->placement_at.begin != set->schedule_at.begin))
        return NULL;
    if (!set->listed)
        return text_format(p->arena, "placement=%s",
                           placement_names[set->placement]);
    for (int c = 0; c < set->listed_count; c++)
        text = text_format(p->arena, "%s%s%d", text, c ? " " : "",
                           set->listed[c]);
    return text_format(p->arena, "%s]", text);
}

static void other_schedules(Explanation *e, const Gap *gap, Trials *t)
{
    const Settings *set = &e->p->set;
    const char *settings[3];
    int count = 1;
    settings[count] = imported_placement(e->p);
    if (settings[count] && count++ && !set->listed)
        settings[count++] = text_format(e->p->arena, "virtual=%g",
                                        set->virtuals.value);
    for (int i = 0; i < schedule_count + e->p->written_count; i++) {
        const Schedule *other = known_schedule(e->p, i);
        if (other == e->p->set.schedule || other->searches ||
            !schedule_takes(other, e->p->set.placement, e->p->ranks,
                            (int)e->p->set.virtuals.value))
            continue;
        settings[0] = text_format(e->p->arena, "schedule=%s", other->name);
        try_settings(e, gap, t, settings[0], settings, count);
    }
}

static void other_numbers(Explanation *e, const Gap *gap, Trials *t)
{
    int microbatches = e->p->microbatches,
        virtuals = (int)e->p->set.virtuals.value;
    const char *more = text_format(e->p->arena, "microbatches=%d",
                                   2 * microbatches);
    try_settings(e, gap, t, more, &more, 1);
    for (int v = 1; v <= 4; v *= 2) {
        const char *change = text_format(e->p->arena, "virtual=%d", v);
        if (v != virtuals &&
            schedule_takes(e->p->set.schedule, e->p->set.placement, e->p->ranks,
                           v))
            try_settings(e, gap, t, change, &change, 1);
    }
}

static void outcome_line(const Explanation *e, const Outcome *o)
{
    fprintf(e->out, "  %-44s %9s %12s %9s %7d %10s%s\n", o->change,
            o->wait < 0 ? "-" : time_of(e, o->wait), time_of(e, o->idle),
            time_of(e, o->step), o->copies,
            bytes_text(e->p->arena, (double)o->bytes),
            o->removes ? "   removes the wait" : "");
}

/* The pipeline's fill and drain are idle in every plan of one step. */
static void verdict(const Explanation *e, const Gap *gap, const Trials *t)
{
    for (int i = 0; i < t->count; i++)
        if (t->at[i].removes)
            return;
    fputs("  none of these removes the wait", e->out);
    if (gap->before < 0)
        fputs(": the pipeline fills, and this rank's first input passes every "
              "rank before it",
              e->out);
    else if (gap->after < 0)
        fputs(": the pipeline drains, and this rank's last gradient leaves it "
              "before the others are done",
              e->out);
    fputc('\n', e->out);
}

static void print_remedies(Explanation *e, const Gap *gap)
{
    Trials t = {NULL, 0};
    add_outcome(e, &t, on_graph(e, gap, &e->p->cost, -1, "as it is"));
    free_actions(e, gap, &t);
    free_messages(e, gap, &t);
    other_options(e, gap, &t);
    other_schedules(e, gap, &t);
    other_numbers(e, gap, &t);
    fprintf(e->out,
            "\n  %-44s %9s %12s %9s %7s %12s\n  %-44s %9s %12s %9s %7s %12s\n",
            "", "this", text_format(e->p->arena, "rank %d idle", gap->rank),
            "the", "peak", "peak", "one change at a time", "wait", "in all",
            "step", "chunks", "bytes");
    for (int i = 0; i < t.count; i++)
        outcome_line(e, &t.at[i]);
    verdict(e, gap, &t);
}

/* ---- the command ---- */

static int no_place(Explanation *e, const char *where)
{
    fprintf(stderr,
            "pipec: `%s` is no place in this plan\n  help: r2@14 is rank 2 at "
            "time 14%s, 2F3 the forward of chunk 2 for micro-batch 3; ranks "
            "are 0 to %d, chunks 0 to %d, micro-batches 0 to %d\n",
            shown_text(e->p->arena, where), e->p->cost.unit ? "" : " ms",
            e->p->ranks - 1, e->p->chunk_count - 1, e->p->microbatches - 1);
    return USAGE;
}

static void print_busy(Explanation *e, int node)
{
    const Node *n = &e->p->nodes[node];
    Gap gap = gap_before(e->p, node);
    fprintf(e->out, "rank %d runs %s from %s to %s", gap.rank, name_of(e, node),
            time_of(e, n->start), time_of(e, n->end));
    if (gap.before >= 0)
        fprintf(e->out, ", after %s", name_of(e, gap.before));
    if (gap.to - gap.from < e->tiny) {
        fputs(gap.before < 0 ? "; it is its first action\n"
                             : " and without a wait\n",
              e->out);
        print_path(e, node);
        return;
    }
    fputs("\n\n", e->out);
    print_gap(e, &gap);
    print_path(e, node);
    print_remedies(e, &gap);
}

int explain(Program *p, const char *where, FILE *out, bool all)
{
    Explanation e = {.p = p, .out = out, .all = all};
    Gap gap;
    int rank;
    double time;
    size_t nodes = (size_t)p->first_node[p->ranks] + 1;
    e.makespan = p->makespan;
    e.tiny = 1e-9 * e.makespan;
    e.next = arena_take(p->arena, sizeof *e.next * nodes);
    e.latest = arena_take(p->arena, sizeof *e.latest * nodes);
    e.other = arena_take(p->arena, sizeof *e.other * nodes);
    latest_ends(p, e.latest, e.next);
    e.sum = summary_of(p);
    int node = take_action(&e, where);
    if (node == -2 && take_place(&e, where, &rank, &time)) {
        if (rank >= p->ranks || time > e.makespan + e.tiny)
            return no_place(&e, where);
        node = at_time(&e, rank, time, &gap);
    } else if (node < 0) {
        return no_place(&e, where);
    }
    fprintf(out, "%s, P=%d v=%s M=%d; times %s\n\n", p->set.schedule->name,
            p->ranks, chunks_text(p), p->microbatches,
            p->cost.unit ? "in forwards of one chunk" : cost_source(p));
    if (node >= 0) {
        print_busy(&e, node);
        return 0;
    }
    print_gap(&e, &gap);
    print_path(&e, gap.source);
    print_remedies(&e, &gap);
    return 0;
}
