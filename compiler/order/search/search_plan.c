/* search_plan.c: `schedule auto`: an order searched for the costs, the placement
 * and the memory of a plan.
 *
 * Reads: set, chunks, cost, tensors. Writes: order, search. Guarantees: no longer
 * than any named schedule of this placement that fits the same limits; where
 * `memory` is given, no rank's arena is larger; where `activations` is given, no
 * rank holds more.
 *
 * The search counts memory in a simple way: so much from F to I, so much of it
 * until W. What `activations` limits is just that, in chunks. What else is in an
 * arena, parameters, scratch, buffers of messages, is found by planning the order as
 * it would be run:
 *
 *     limit of the search  ->  order  ->  communicate, prove, memory  ->  arena
 *            ^                                                              |
 *            +----------- less by what the arena is too large --------------+
 *
 * Everything that is tried, whole plans too, is charged to one budget, the option
 * `effort`; only the schedules with a name are planned whatever it is. */
#include "order/order.h"
#include "search_plan.h"
#include "order/written.h"

#include "search_vee.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRIES = 8, HALVINGS = 3 };  // of a limit
static const double ENOUGH = 1e5;  // actions timed, for each action of the plan
// Of the effort: for a search that only finds a limit; at most, for all of these; of the
// rest, for the order, and then for a smaller one; for mixtures; and before all
// orders of a small problem are looked at.
static const double SHORT = 0.0125, LIMITS = 0.4, FIRST = 0.75, MENDED = 0.5,
                    SMALL = 0.25;
static const double EXACT = 60000;  // partial orders at effort 1
// What they cost, in actions timed: a partial order; an action of an order that is
// planned as it would be run, of one that vee_greedy makes.
static const double LOOK = 100, PLANNED = 100, GREEDY = 10;

typedef struct Plan {
    Program *p;
    Problem q;
    double left;      // of the effort
    double *limit;    // [rank] floats that the search may count
    double *over;     // [rank] floats by which an order was too large
    double bytes;     // of a whole arena, as written; INFINITY: no limit
    double memory;    // the same in whole floats
    int activations;  // chunks, as written; 0: no limit
    double *counted;  // [rank] the same in floats; INFINITY: no limit
    const double *held, *kept;  // [chunk] floats, as they are
    Sequence *best;
    Result result;
    double bound;
    List *order;            // the best that fits
    double value;           // its metric; INFINITY: none does
    const Schedule *named;  // the same of the schedules with a name; NULL: none
    List *named_order;
    double named_value;
    double *least;  // [rank] floats of an arena with one micro-batch at a time
    int least_chunks;  // that `activations` needs for that
    size_t *arena;     // [rank] floats, of the last trial
    double *excess;    // [rank] floats that do not fit, of the last trial
    double *lasting;   // [rank] of its arena, what lives all along
    int peak;          // most chunks that a rank holds, of the last trial
} Plan;

static double actions_of(const Problem *q)
{
    return (double)SEARCH_KINDS * q->chunks * q->microbatches;
}

/* ---- memory ---- */

static size_t read_by(const Program *p, int c, int readers)
{
    const Frame *frame = &p->frames[c];
    const Chunk *chunk = &p->chunks[c];
    size_t floats = 0;
    if (frame->x & readers)
        floats += aligned(p->tensors[chunk->x].floats);
    if (frame->y & readers && chunk->y >= 0)
        floats += aligned(p->tensors[chunk->y].floats);
    return floats;
}

/* What a micro-batch holds: from F to the end of I, and from there to W. */
static void fill_memory(Plan *n)
{
    Program *p = n->p;
    size_t chunks = (size_t)p->chunk_count;
    double *held = arena_take(p->arena, sizeof *held * chunks),
           *kept = arena_take(p->arena, sizeof *kept * chunks);
    take_frames(p);
    for (int c = 0; c < p->chunk_count; c++) {
        const Chunk *chunk = &p->chunks[c];
        frame_chunk(p, c, true);
        const Frame *frame = &p->frames[c];
        size_t gradients = frame->dhold;
        if (frame->dy & READ_WEIGHT && chunk->dy >= 0)
            gradients += aligned(p->tensors[chunk->dy].floats);
        if (frame->dx & READ_WEIGHT && chunk->dx >= 0 && chunk->dx != chunk->dy)
            gradients += aligned(p->tensors[chunk->dx].floats);
        held[c] = (double)(frame->keep + frame->hold +
                           read_by(p, c, READ_INPUT | READ_WEIGHT));
        kept[c] = (double)(frame->hold + read_by(p, c, READ_WEIGHT) +
                           gradients);
        held[c] = held[c] > 0 ? held[c] : 1;
    }
    n->q.held = n->held = held;
    n->q.kept = n->kept = kept;
}

/* What an average chunk of a rank holds. */
static double average_held(const Plan *n, int rank)
{
    double sum = 0;
    int count = 0;
    for (int c = 0; c < n->q.chunks; c++)
        if (n->q.rank[c] == rank) {
            sum += n->held[c];
            count++;
        }
    return sum / count;
}

static void fill_counted(Plan *n)
{
    for (int r = 0; r < n->q.ranks; r++)
        n->counted[r] = n->activations > 0 ? n->activations * average_held(n, r)
                                           : INFINITY;
}

static bool is_limited(const Plan *n)
{
    return !isinf(n->memory) || n->activations > 0;
}

/* What the search may count on a rank, as far as is known. */
static double limit_of(const Plan *n, int rank)
{
    return fmin(n->memory - n->lasting[rank], n->counted[rank]);
}

/* The most that what is in `order` holds on a rank. A whole B needs no more than
 * before it. */
static double counted_peak(const Plan *n, int rank)
{
    const List *order = &n->p->order[rank];
    double now = 0, most = 0;
    for (int i = 0; i < order->count; i++) {
        Action a = order->at[i];
        double held = n->held[a.chunk], kept = n->kept[a.chunk];
        now += a.kind == ACT_F   ? held
               : a.kind == ACT_B ? -held
               : a.kind == ACT_I ? kept - held
                                 : -kept;
        most = fmax(most, now);
    }
    return most;
}

static double *room_of(const Plan *n)
{
    return arena_take(n->p->arena, sizeof(double) * (size_t)n->q.chunks);
}

/* The search is best where W never needs more than I. Where it does, memory can
 * also be counted too low, which is right for a W behind its I, or too high,
 * which is right for one that waits. */
static bool needs_more_for_weights(const Plan *n)
{
    for (int c = 0; c < n->q.chunks; c++)
        if (n->q.kept[c] > n->q.held[c])
            return true;
    return false;
}

static void count_low(Plan *n, double *kept)
{
    for (int c = 0; c < n->q.chunks; c++)
        kept[c] = fmin(n->q.kept[c], n->q.held[c]);
    n->q.kept = kept;
}

static void count_high(Plan *n, double *held)
{
    for (int c = 0; c < n->q.chunks; c++)
        held[c] = fmax(n->q.held[c], n->q.kept[c]);
    n->q.held = held;
}

/* What of a rank's limits it exceeds, in floats. */
static double excess_of(const Plan *n, int rank)
{
    double counted = n->counted[rank] * (1 + 1e-9), more = 0;
    if (!isinf(counted))
        more = fmax(0, counted_peak(n, rank) - counted);
    return fmax(more, (double)n->arena[rank] - n->memory);
}

/* Its arenas, what lasts of them, its peak; returns the metric. */
static double measure(Plan *n, const Program *trial)
{
    double longest = 0;
    n->peak = 0;
    for (int r = 0; r < trial->ranks; r++) {
        int peak = peak_copies(trial, r);
        n->arena[r] = trial->arena_floats[r];
        n->excess[r] = excess_of(n, r);
        n->lasting[r] = 0;
        n->peak = peak > n->peak ? peak : n->peak;
        longest = fmax(longest, span_time(trial, r));
    }
    for (int i = 0; i < trial->block_count; i++)
        if (trial->blocks[i].kind < BLOCK_KEEP)
            n->lasting[trial->blocks[i].rank] +=
                (double)trial->blocks[i].floats;
    return n->q.metric == METRIC_SPAN ? longest : trial->makespan;
}

/* Plans what is in `order` as it would be run, with the WAITs that its arenas need:
 * their sizes and the metric; INFINITY: it cannot run. */
static double try_order(Plan *n)
{
    Program trial = *n->p;
    trial.arena = arena_open();
    bool good = communicate(&trial) && prove(&trial) && memory(&trial);
    double value = good ? measure(n, &trial) : INFINITY;
    arena_close(trial.arena);
    return value;
}

/* The same, at the budget's cost. */
static double pay_for_trial(Plan *n)
{
    double actions = 0;
    for (int r = 0; r < n->q.ranks; r++)
        actions += n->p->order[r].count;
    n->left -= PLANNED * actions / EFFORT;
    return try_order(n);
}

static bool fits(const Plan *n)
{
    for (int r = 0; r < n->q.ranks; r++)
        if (n->excess[r] > 0)
            return false;
    return true;
}

/* ---- named schedules ---- */

/* One micro-batch at a time. */
static void run_alone(Program *p)
{
    for (int r = 0; r < p->ranks; r++) {
        for (int m = 0; m < p->microbatches; m++) {
            for (int c = 0; c < p->chunk_count; c++)
                if (p->chunks[c].rank == r)
                    forward(p, r, c, m);
            for (int c = p->chunk_count; c-- > 0;)
                if (p->chunks[c].rank == r)
                    backward(p, r, c, m);
        }
    }
}

static void run_schedule(Program *p, const Schedule *s)
{
    p->order = arena_take(p->arena, sizeof *p->order * (size_t)p->ranks);
    p->set.schedule = s;
    for (int i = 0; i < MOST_OPTIONS; i++)
        p->set.option[i].value = s->fallback[i];
    if (s->orders)
        s->orders(p);
    for (int r = 0; !s->orders && r < p->ranks; r++)
        s->order(p, r);
}

/* The best of those that fit the memory, as they are without options; of two as
 * good the one that holds less. */
static void best_of_named(Plan *n)
{
    Program *p = n->p;
    Settings kept = p->set;
    int peak = 0;
    n->named_value = INFINITY;
    for (int i = 0; i < schedule_count; i++) {
        const Schedule *s = schedules[i];
        if (s == kept.schedule || !schedule_takes(s, kept.placement, p->ranks,
                                                  (int)kept.virtuals.value))
            continue;
        run_schedule(p, s);
        double value = try_order(n), slack = 1e-9 * value;
        if (!fits(n) || value > n->named_value + slack ||
            (value >= n->named_value - slack && n->peak >= peak))
            continue;
        peak = n->peak;
        n->named = s;
        n->named_order = p->order;
        n->named_value = value;
    }
    p->set = kept;
    n->order = n->named_order;
    n->value = n->named_value;
}

/* The order that was tried last, if it fits and is better than what is known. */
static void keep_if_better(Plan *n, double value)
{
    if (!fits(n) || value >= n->value)
        return;
    n->order = n->p->order;
    n->value = value;
}

/* ---- the search ---- */

static bool is_small(const Plan *n)
{
    return n->q.ranks <= 4 && n->q.microbatches <= 8 &&
           n->q.chunks <= 2 * n->q.ranks;
}

/* The orders of a small problem that are proved to be best, or the best met. */
static bool search_exactly(Plan *n, bool *proved)
{
    Exact exact = {.budget = (long long)(EXACT * option(n->p, "effort"))};
    Result result;
    bool found = exact_orders(&n->q, &exact, n->best, &result);
    n->left -= LOOK * (double)exact.looked / EFFORT;
    if (!found)
        return false;
    *proved = exact.proved;
    n->result = result;
    return true;
}

static bool search_vee_parts(Plan *n, double effort, int seed, bool last)
{
    n->left -= last ? effort : GREEDY * actions_of(&n->q) / EFFORT;
    if (last)
        return search_vee(&n->q, seed, effort, n->best, &n->result);
    return vee_greedy(&n->q, n->best) &&
           order_result(&n->q, n->best, &n->result, NULL);
}

/* Of the Plan's problem. */
static void search_parts(Plan *n, double effort, bool last)
{
    Program *p = n->p;
    bool found, proved = false;
    int seed = (int)option(p, "seed");
    Search search = {.seed = seed,
                     .effort = is_small(n) ? SMALL * effort : effort};
    if (p->set.placement == PLACE_VEE) {
        found = search_vee_parts(n, search.effort, seed, last);
    } else {
        found = search_orders(&n->q, &search, n->best, &n->result);
        n->left -= (double)search.timed / EFFORT;
    }
    if (!found)
        n->best[0].count = 0;
    if (last && is_small(n) && !(found && search.optimal) &&
        !needs_more_for_weights(n))
        found |= search_exactly(n, &proved);
    if (!found)
        n->result = (Result){INFINITY, INFINITY, 0};
}

static void copy_orders(const Plan *n, Sequence *to, const Sequence *from)
{
    for (int r = 0; r < n->q.ranks; r++) {
        to[r].count = from[r].count;
        memcpy(to[r].at, from[r].at, (size_t)from[r].count * sizeof *to[r].at);
    }
}

/* Split backwards, whole ones, and from the better of the two a mixture. */
static void search_mixed(Plan *n, double effort, bool last)
{
    Problem q = n->q;
    Arena *arena = n->p->arena;
    Sequence *split = take_orders(n->p, &q);
    double mended = effort * MENDED, each = (effort - mended) / 2;
    search_parts(n, each, last);
    Result found = n->result;
    copy_orders(n, split, n->best);
    n->q = whole_problem(
        &q, arena_take(arena, 3 * sizeof(double) * (size_t)q.chunks));
    search_parts(n, each, last);
    n->q = q;
    if (!isinf(n->result.makespan)) {
        join_weights(&q, n->best);
        order_result(&q, n->best, &n->result, NULL);
    }
    if (metric_of(&q, &found) < metric_of(&q, &n->result)) {
        copy_orders(n, n->best, split);
        n->result = found;
    }
    if (isinf(n->result.makespan))
        return;
    n->left -= mended;
    mend_orders(&q, n->best, (int)option(n->p, "seed"), mended * EFFORT);
    order_result(&q, n->best, &n->result, NULL);
}

static void search_once(Plan *n, double effort, bool last)
{
    if (n->q.whole)
        search_mixed(n, effort, last);
    else
        search_parts(n, effort, last);
}

/* Of one micro-batch at a time: its arenas, and of them what lasts in any
 * order: parameters, what the optimizer keeps, scratch. */
static void find_least(Plan *n)
{
    Program *p = n->p;
    run_alone(p);
    try_order(n);
    for (int r = 0; r < p->ranks; r++) {
        double chunks = ceil(counted_peak(n, r) / average_held(n, r) - 1e-9);
        n->least[r] = (double)n->arena[r];
        n->least_chunks = (int)fmax(n->least_chunks, chunks);
    }
}

/* Whole backwards in place of I, and no W, on ranks that hold too much: what a W
 * reads need not stay. */
static void make_whole(Plan *n)
{
    Program *p = n->p;
    List *order = arena_take(p->arena, sizeof *order * (size_t)p->ranks);
    for (int r = 0; r < p->ranks; r++) {
        const List *from = &p->order[r];
        bool whole = n->excess[r] > 0;
        for (int i = 0; i < from->count; i++) {
            Action a = from->at[i];
            if (whole && a.kind == ACT_I)
                a.kind = ACT_B;
            if (!whole || a.kind != ACT_W)
                push_action(p, &order[r], a);
        }
        find_phases(&order[r]);
    }
    p->order = order;
}

static const char *value_text(const Program *p, double value)
{
    return p->cost.unit ? text_format(p->arena, "%g", value)
                        : seconds_text(p->arena, value);
}

/* A line for a person who waits; NULL clears it. */
static void progress(const Plan *n, const char *stage)
{
    FILE *out = n->p->diagnostics;
    if (out != stderr || !isatty(STDERR_FILENO))
        return;
    fputs("\r\033[K", out);
    if (stage && !isinf(n->value))
        fprintf(out, "search: %s so far, not below %s; %s",
                value_text(n->p, n->value), value_text(n->p, n->bound), stage);
    else if (stage)
        fprintf(out, "search: nothing fits so far; %s", stage);
    fflush(out);
}

/* Searches within the limits. True: the order fits as a whole; else `over` is
 * what its arenas are too large by. */
static bool try_limits(Plan *n, double effort, bool last)
{
    Program *p = n->p;
    progress(n, last ? "the best that fits" : "what fits");
    search_once(n, effort, last);
    if (isinf(n->result.makespan))
        return false;
    p->order = arena_take(p->arena, sizeof(List) * (size_t)n->q.ranks);
    use_orders(p, &n->q, n->best);
    keep_if_better(n, pay_for_trial(n));
    bool good = fits(n);
    for (int r = 0; r < n->q.ranks; r++)
        n->over[r] = fmax(0, n->excess[r]);
    for (int more = 0; !fits(n) && more < 2; more++) {
        make_whole(n);
        keep_if_better(n, pay_for_trial(n));
    }
    return good;
}

/* Does an order within what the search counts fit as a whole. */
static bool counts_all(const Plan *n)
{
    return isinf(n->memory) && !(n->activations && needs_more_for_weights(n));
}

/* The memory model leaves out buffers of messages, and that blocks of different
 * sizes do not pack. So what an order is too large by is taken off the rank's limit
 * until one fits; from there half the way back up, and so on. Short searches find
 * the limit. False: nothing fits. */
static bool find_limits(Plan *n, double effort)
{
    size_t bytes = sizeof(double) * (size_t)n->q.ranks;
    double *low = arena_take(n->p->arena, bytes),
           *high = arena_take(n->p->arena, bytes),
           until = n->left - LIMITS * effort;
    int below = 0, above = 0;
    for (int i = 0; i < TRIES && below < HALVINGS && n->left > until; i++) {
        bool good = try_limits(n, SHORT * effort, false);
        if (!good && isinf(n->result.makespan) && !below)
            return false;
        memcpy(good ? low : high, n->limit, bytes);
        below += good;
        above += !good;
        if (good && !above)
            break;
        for (int r = 0; r < n->q.ranks; r++)
            n->limit[r] = below ? (low[r] + high[r]) / 2
                                : n->limit[r] - n->over[r];
    }
    if (below)
        memcpy(n->limit, low, bytes);
    return true;
}

/* Short searches for the limits, long ones for the order. */
static void search_within(Plan *n, double effort)
{
    double until = n->left - effort, least = SHORT * effort;
    if (!counts_all(n) && !find_limits(n, effort))
        return;
    double first = (n->left - until) * (counts_all(n) ? 1 : FIRST);
    if (try_limits(n, fmax(first, least), true) || counts_all(n))
        return;
    for (int r = 0; r < n->q.ranks; r++)
        n->limit[r] -= n->over[r];
    try_limits(n, fmax(n->left - until, least), true);
}

/* With each way to count memory, until the bound is reached. */
static void search_all(Plan *n)
{
    enum { LOW, AS_IT_IS, HIGH, WAYS };
    Problem q = n->q;
    int ways = needs_more_for_weights(n) && is_limited(n) ? WAYS : 1;
    for (int way = 0; way < ways && n->value > n->bound * (1 + 1e-9); way++) {
        n->q = q;
        if (ways > 1 && way == LOW)
            count_low(n, room_of(n));
        else if (way == HIGH)
            count_high(n, room_of(n));
        for (int r = 0; r < q.ranks; r++)
            n->limit[r] = limit_of(n, r);
        search_within(n, fmax(n->left, 0) / (ways - way));
    }
    n->q = q;
}

/* ---- what no order is below ---- */

/* For any placement: a rank cannot begin before the first micro-batch has come
 * to it, and then has all its work to do. */
static double work_bound(const Problem *q)
{
    double most = 0;
    for (int r = 0; r < q->ranks; r++) {
        double arrival = 0;
        for (int c = 0; q->rank[c] != r && q->metric == METRIC_MAKESPAN; c++)
            arrival += q->time[SEARCH_F][c] + crossing(q, c + 1);
        most = fmax(most, rank_work(q, r) + arrival);
    }
    return most;
}

/* A chunk without parameters before it sends no gradient: then the chunk before
 * waits for nothing, which only `work_bound` allows for. */
static bool gradients_cross(const Program *p)
{
    for (int c = 0; c < p->chunk_count; c++)
        if (p->chunks[c].previous >= 0 && p->chunks[c].dx < 0)
            return false;
    return true;
}

/* Of all orders whose arenas fit: beside what lasts, whatever else is in them,
 * there is room for what the search counts, or less. A whole B holds no more
 * than before it. */
static void find_bound(Plan *n)
{
    Problem kept = n->q, *q = &n->q;
    bool proved = false;
    count_low(n, room_of(n));
    for (int r = 0; r < q->ranks; r++)
        n->limit[r] = limit_of(n, r);
    n->bound = work_bound(q);
    if (q->chunks == q->ranks && gradients_cross(n->p))
        n->bound = fmax(n->bound, bound_metric(q));
    n->best[0].count = 0;
    *q = in_parts(q, room_of(n), room_of(n));
    if (is_small(n) && gradients_cross(n->p) && search_exactly(n, &proved) &&
        proved)
        n->bound = fmax(n->bound, metric_of(q, &n->result));
    n->q = kept;
}

/* ---- the schedule ---- */

/* Ranks of another order are alike, but for those that share an adapter. */
static bool can_search(Program *p)
{
    const Settings *set = &p->set;
    bool one = set->placement == PLACE_LOOP && p->chunk_count == p->ranks;
    if ((one || set->placement == PLACE_VEE) &&
        !(is_renamed(set) && set->adapter_shared))
        return true;
    if (set->listed)
        error_at(p, set->schedule_at,
                 "`auto` plans one chunk per rank, or a vee%s; this is %s",
                 set->adapter_shared ? ", with ranks in order where they share "
                                       "an adapter"
                                     : "",
                 placement_text(p));
    else
        error_at(p, set->schedule_at,
                 "`auto` plans one chunk per rank, or a vee; this is a %s of "
                 "`virtual` %d",
                 placement_names[set->placement], p->copy_chunks / p->ranks);
    help(p, set->listed || p->copies > 1
                ? "leave the placement out, or use `placement vee`"
                : "use `placement vee`, or `virtual 1`");
    return false;
}

const char *within_text(Arena *arena, double bytes, int activations)
{
    const char *memory = isinf(bytes)
                             ? ""
                             : text_format(arena, "within %.0f bytes", bytes);
    if (activations == 0)
        return memory;
    return text_format(arena, "%s%s%d activations", memory,
                       *memory ? " and " : "within ", activations);
}

static bool no_order_fits(Plan *n)
{
    Program *p = n->p;
    int worst = 0;
    for (int r = 0; r < p->ranks; r++)
        worst = n->least[r] > n->least[worst] ? r : worst;
    error_at(p, p->set.schedule_at, "no order was found %s",
             within_text(p->arena, n->bytes, n->activations));
    if (n->activations > 0 && n->activations < n->least_chunks)
        help(p, "one micro-batch at a time needs `activations = %d`",
             n->least_chunks);
    else
        help(p,
             "rank %d needs %.0f bytes for one micro-batch at a time: give "
             "more memory, or use fewer rows, or more stages",
             worst, 4 * n->least[worst]);
    return false;
}

/* Times of whole backwards; NULL: none is shorter than its parts. */
static const double *shorter_whole(const Program *p)
{
    double *const *time = p->cost.compute;
    for (int c = 0; c < p->chunk_count; c++)
        if (time[ACT_B][c] < (time[ACT_I][c] + time[ACT_W][c]) * (1 - 1e-9))
            return time[ACT_B];
    return NULL;
}

static Plan start_plan(Program *p)
{
    size_t ranks = (size_t)p->ranks;
    double memory = option(p, "memory");
    Plan n = {.p = p, .q = problem_in_chunks(p, INFINITY)};
    for (int r = 0; r < p->ranks && option(p, "memory") <= 0; r++)
        if (r == 0 || rank_memory(p, r) < memory)
            memory = rank_memory(p, r);
    n.bytes = memory > 0 ? memory : INFINITY;
    n.memory = floor(n.bytes / 4);
    n.activations = (int)option(p, "activations");
    n.left = option(p, "effort") * fmin(1, ENOUGH * actions_of(&n.q) / EFFORT);
    n.q.whole = shorter_whole(p);
    n.q.metric = option(p, "span") ? METRIC_SPAN : METRIC_MAKESPAN;
    n.q.limit = n.limit = arena_take(p->arena, sizeof *n.limit * ranks);
    n.over = arena_take(p->arena, sizeof *n.over * ranks);
    n.lasting = arena_take(p->arena, sizeof *n.lasting * ranks);
    n.least = arena_take(p->arena, sizeof *n.least * ranks);
    n.arena = arena_take(p->arena, sizeof *n.arena * ranks);
    n.excess = arena_take(p->arena, sizeof *n.excess * ranks);
    n.counted = arena_take(p->arena, sizeof *n.counted * ranks);
    n.best = take_orders(p, &n.q);
    fill_memory(&n);
    fill_counted(&n);
    return n;
}

bool search_plan(Program *p)
{
    if (!can_search(p))
        return false;
    Plan n = start_plan(p);
    find_least(&n);
    find_bound(&n);
    best_of_named(&n);
    search_all(&n);
    progress(&n, NULL);
    if (isinf(n.value))
        return no_order_fits(&n);
    if (n.bound > n.value * (1 + 1e-6)) {
        error_at(p, p->set.schedule_at,
                 "the search has proved that no order is below %g s and found "
                 "one of %g s: this is a fault of pipec; please report it",
                 n.bound, n.value);
        return false;
    }
    p->order = n.order;
    p->search = arena_take(p->arena, sizeof *p->search);
    *p->search = (SearchReport){.named = n.named ? n.named->name : NULL,
                                .before = n.named_value,
                                .after = n.value,
                                .bound = fmin(n.bound, n.value),
                                .memory = n.bytes,
                                .activations = n.activations,
                                .span = n.q.metric == METRIC_SPAN};
    return true;
}
