/* search_exact.c: the best orders of a small problem, by branch and bound.
 *
 * Actions are placed one by one in the order of their begins, each as early as
 * its rank and its input allow. A partial order is given up when
 *
 *   - an I or a W, which only free memory, would fit in the time that the rank
 *     is left idle before the action: with it there nothing ends later;
 *   - no rank can end early enough: each chunk's actions still to come are
 *     timed with nothing but their own chunk in the way, and each rank has its
 *     work left to do after them;
 *   - the same actions were placed before with no rank, no message and no
 *     begin the worse.
 *
 * The first holds as far as what is put in delays nothing: an I may hold up
 * others' messages on its wire, and where receives are posted every action moves
 * the posts behind it. */
#include "search_wires.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SEEN = 1 << 20, SLOTS = 1 << 16 };

/* A partial order that was looked at: what it has placed, and its times. */
typedef struct Seen {
    struct Seen *next;
    double *times;           // [width]
    unsigned char placed[];  // [SEARCH_KINDS * chunks]
} Seen;

typedef struct Branches {
    const Problem *q;
    Exact *exact;
    Arena *arena;
    Sequence *best;
    Sequence *orders;           // [rank] so far
    double limit;               // to be below
    double floor;               // when reached, nothing is better
    double *end[SEARCH_KINDS];  // [chunk * microbatches + micro]
    unsigned char *placed;      // [chunk * SEARCH_KINDS + kind]
    double *clock, *first, *memory, *work, *tail;  // [rank]
    double *post;  // [rank] end of the action before its last
    Wires wires;
    double last;  // begin of the last action placed
    int left;     // actions
    Seen **slots;
    int seen, width;
    double *times;  // of the present partial order
} Branches;

typedef struct Choice {
    int entry;
    double begin;
} Choice;

static int placed(const Branches *t, int kind, int chunk)
{
    return t->placed[chunk * SEARCH_KINDS + kind];
}

static double *end_of(const Branches *t, int kind, int chunk, int micro)
{
    return &t->end[kind][chunk * t->q->microbatches + micro];
}

/* When the chunk's next action of this kind can begin; -1: not known, or none
 * is left, or it has no room. */
static double begin_of(const Branches *t, int kind, int chunk)
{
    const Problem *q = t->q;
    int micro = placed(t, kind, chunk), r = q->rank[chunk],
        from = kind == SEARCH_F ? chunk - 1 : chunk + 1;
    if (micro == q->microbatches ||
        (kind != SEARCH_F && placed(t, kind - 1, chunk) <= micro) ||
        t->memory[r] + action_growth(q, kind, chunk) > q->limit[r] * (1 + 1e-9))
        return -1;
    if (kind == SEARCH_W || from < 0 || from == q->chunks)
        return t->clock[r];
    if (placed(t, kind, from) <= micro)
        return -1;
    return fmax(t->clock[r],
                wires_arrival(&t->wires, kind, from, micro,
                              *end_of(t, kind, from, micro), t->post[r]));
}

/* Would an action of this kind, in a rank's idle time, delay nothing. */
static bool delays_nothing(const Branches *t, int kind)
{
    const Problem *q = t->q;
    if (!t->wires.matter)
        return kind != SEARCH_F;
    return !q->posted &&
           (kind == SEARCH_W || (kind == SEARCH_I && q->chunks == q->ranks));
}

/* By begin; I before W before F when they are equal. */
static void insert(Choice *choices, int count, Choice c)
{
    static const int last[SEARCH_KINDS] = {2, 0, 1};
    int at = count;
    for (; at > 0; at--) {
        const Choice *o = &choices[at - 1];
        if (o->begin < c.begin ||
            (o->begin == c.begin &&
             last[o->entry % SEARCH_KINDS] <= last[c.entry % SEARCH_KINDS]))
            break;
        choices[at] = *o;
    }
    choices[at] = c;
}

/* The actions that may come next. */
static int choices_of(const Branches *t, Choice *choices)
{
    const Problem *q = t->q;
    double fits[q->ranks];
    int count = 0;
    for (int r = 0; r < q->ranks; r++)
        fits[r] = INFINITY;
    for (int entry = 0; entry < SEARCH_KINDS * q->chunks; entry++) {
        int kind = entry % SEARCH_KINDS, chunk = entry / SEARCH_KINDS,
            r = q->rank[chunk];
        double begin = begin_of(t, kind, chunk);
        if (begin >= 0 && delays_nothing(t, kind))
            fits[r] = fmin(fits[r], begin + q->time[kind][chunk]);
    }
    for (int entry = 0; entry < SEARCH_KINDS * q->chunks; entry++) {
        int chunk = entry / SEARCH_KINDS;
        double begin = begin_of(t, entry % SEARCH_KINDS, chunk);
        if (begin >= t->last && begin < fits[q->rank[chunk]])
            insert(choices, count++, (Choice){entry, begin});
    }
    return count;
}

/* What is left of a rank's work from a chunk's micro-batch on, and its end. */
static void at_least(Branches *t, int chunk, int micro, double begin,
                     bool forward)
{
    const Problem *q = t->q;
    int r = q->rank[chunk];
    double after = q->time[SEARCH_I][chunk] + q->time[SEARCH_W][chunk] +
                   (forward ? q->time[SEARCH_F][chunk] : 0);
    t->tail[r] = fmax(t->tail[r], begin + (q->microbatches - micro) * after);
}

/* Times what is to come, each chunk by itself. */
static void time_chunks(Branches *t)
{
    const Problem *q = t->q;
    for (int way = SEARCH_F; way <= SEARCH_I; way++)
        for (int i = 0; i < q->chunks; i++) {
            int chunk = way == SEARCH_F ? i : q->chunks - 1 - i,
                from = way == SEARCH_F ? chunk - 1 : chunk + 1;
            double free = t->clock[q->rank[chunk]];
            for (int j = placed(t, way, chunk); j < q->microbatches; j++) {
                if (from >= 0 && from < q->chunks)
                    free = fmax(
                        free, *end_of(t, way, from, j) +
                                  crossing(q, way == SEARCH_F ? chunk : from));
                if (way == SEARCH_I)
                    free = fmax(free, *end_of(t, SEARCH_F, chunk, j));
                at_least(t, chunk, j, free, way == SEARCH_F);
                free += q->time[way][chunk];
                *end_of(t, way, chunk, j) = free;
            }
        }
}

/* No rank of any order that begins like this ends earlier, by the metric. */
static double least(Branches *t)
{
    const Problem *q = t->q;
    double most = 0;
    for (int r = 0; r < q->ranks; r++)
        t->tail[r] = t->clock[r] + t->work[r];
    time_chunks(t);
    for (int r = 0; r < q->ranks; r++) {
        bool began = t->orders[r].count > 0;
        double from = q->metric == METRIC_MAKESPAN ? 0
                      : began                      ? t->first[r]
                                                   : t->tail[r];
        most = fmax(most, t->tail[r] - from);
    }
    return most;
}

/* What a chunk has handed over and nobody has received: its end; or on a wire its
 * SEND, or its arrival if that is known, and its place, so that only orders with
 * the same places are compared. */
static int write_message(const Branches *t, int way, int chunk, int micro,
                         double *times)
{
    const Wires *w = &t->wires;
    times[0] = *end_of(t, way, chunk, micro);
    if (!w->matter)
        return 1;
    times[1] = times[2] = 0;
    if (w->out[way][chunk] >= 0) {
        const Wire *wire = &w->wires[w->out[way][chunk]];
        int place = w->place[way][chunk * t->q->microbatches + micro];
        if (place < wire->timed)
            times[0] = w->parcels[wire->first + place].there;
        times[1] = place;
        times[2] = -place;
    }
    return 3;
}

/* The times that decide what can still come of this partial order: of two with
 * the same actions placed, the one with no larger time is as good. */
static void write_times(Branches *t)
{
    const Problem *q = t->q;
    int count = 0;
    memset(t->times, 0, (size_t)t->width * sizeof *t->times);
    t->times[count++] = t->last;
    for (int r = 0; r < q->ranks; r++) {
        t->times[count++] = t->clock[r];
        t->times[count++] = t->orders[r].count ? -t->first[r] : 0;
        t->times[count++] = q->posted ? t->post[r] : 0;
    }
    for (int i = 0; i < t->wires.count; i++) {
        const Wire *wire = &t->wires.wires[i];
        t->times[count++] = wire->end;
        t->times[count++] = wire->there;
        t->times[count++] = wire->timed;
        t->times[count++] = -wire->timed;
    }
    for (int chunk = 0; chunk < q->chunks; chunk++)
        for (int way = SEARCH_F; way <= SEARCH_I; way++) {
            int to = way == SEARCH_F ? chunk + 1 : chunk - 1;
            bool leaves = to >= 0 && to < q->chunks;
            for (int j = leaves ? placed(t, way, to) : q->microbatches;
                 j < placed(t, way, chunk); j++)
                write_message(t, way, chunk, j,
                              t->times + count + (t->wires.matter ? 3 : 1) * j);
            count += (t->wires.matter ? 3 : 1) * q->microbatches;
        }
}

static bool no_later(const double *a, const double *b, int width)
{
    for (int i = 0; i < width; i++)
        if (a[i] > b[i])
            return false;
    return true;
}

/* Was one as good looked at before; if not, this one is noted. */
static bool met_before(Branches *t)
{
    size_t bytes = (size_t)(SEARCH_KINDS * t->q->chunks);
    unsigned long hash = 5381;
    for (size_t i = 0; i < bytes; i++)
        hash = hash * 33 + t->placed[i];
    Seen **slot = &t->slots[(hash ^ hash >> 16) % SLOTS];
    write_times(t);
    for (Seen *s = *slot; s; s = s->next)
        if (memcmp(s->placed, t->placed, bytes) == 0 &&
            no_later(s->times, t->times, t->width))
            return true;
    if (t->seen++ >= MOST_SEEN)
        return false;
    Seen *fresh = arena_take(t->arena, sizeof *fresh + bytes);
    fresh->times = arena_take(t->arena, (size_t)t->width * sizeof(double));
    memcpy(fresh->times, t->times, (size_t)t->width * sizeof(double));
    memcpy(fresh->placed, t->placed, bytes);
    fresh->next = *slot;
    *slot = fresh;
    return false;
}

/* All are placed: these orders are better than any before. */
static void keep_best(Branches *t, double value)
{
    t->limit = value * (1 - 1e-9);
    for (int r = 0; r < t->q->ranks; r++) {
        t->best[r].count = t->orders[r].count;
        memcpy(t->best[r].at, t->orders[r].at,
               (size_t)t->orders[r].count * sizeof *t->orders[r].at);
    }
}

static void look(Branches *t);

/* Where the action receives from and sends to; -1: nowhere. */
static int wire_in(const Branches *t, int kind, int chunk)
{
    int from = kind == SEARCH_F ? chunk - 1 : chunk + 1;
    bool needs = t->wires.matter && kind != SEARCH_W && from >= 0 &&
                 from < t->q->chunks;
    return needs ? t->wires.out[kind][from] : -1;
}

static int wire_out(const Branches *t, int kind, int chunk)
{
    return t->wires.matter && kind != SEARCH_W ? t->wires.out[kind][chunk] : -1;
}

/* Receives what the action needs, runs it, and sends what it makes. */
static void pass_messages(Branches *t, int kind, int chunk, int micro,
                          double end)
{
    int from = kind == SEARCH_F ? chunk - 1 : chunk + 1;
    if (wire_in(t, kind, chunk) >= 0)
        wires_take(&t->wires, kind, from, micro, 0, t->post[t->q->rank[chunk]]);
    wires_send(&t->wires, kind, chunk, micro, end);
}

static void place(Branches *t, Choice c)
{
    const Problem *q = t->q;
    int kind = c.entry % SEARCH_KINDS, chunk = c.entry / SEARCH_KINDS,
        r = q->rank[chunk], micro = t->placed[c.entry]++;
    Sequence *order = &t->orders[r];
    double end = c.begin + q->time[kind][chunk];
    pass_messages(t, kind, chunk, micro, end);
    t->post[r] = t->clock[r];
    *end_of(t, kind, chunk, micro) = t->clock[r] = end;
    if (order->count == 0)
        t->first[r] = c.begin;
    order->at[order->count++] = (short)c.entry;
    t->memory[r] += action_growth(q, kind, chunk);
    t->work[r] -= q->time[kind][chunk];
    t->last = c.begin;
    t->left--;
}

/* Places an action, looks further, and takes it back. */
static void follow(Branches *t, Choice c)
{
    int kind = c.entry % SEARCH_KINDS, chunk = c.entry / SEARCH_KINDS,
        r = t->q->rank[chunk], in = wire_in(t, kind, chunk),
        out = wire_out(t, kind, chunk);
    double clock = t->clock[r], last = t->last, memory = t->memory[r],
           work = t->work[r], post = t->post[r];
    Wire before_in = in >= 0 ? t->wires.wires[in] : (Wire){0},
         before_out = out >= 0 ? t->wires.wires[out] : (Wire){0};
    place(t, c);
    look(t);
    if (in >= 0)
        t->wires.wires[in] = before_in;
    if (out >= 0)
        t->wires.wires[out] = before_out;
    t->left++;
    t->last = last;
    t->work[r] = work;
    t->memory[r] = memory;
    t->clock[r] = clock;
    t->post[r] = post;
    t->orders[r].count--;
    t->placed[c.entry]--;
}

static void look(Branches *t)
{
    Choice choices[SEARCH_KINDS * t->q->chunks];
    if (t->exact->looked == t->exact->budget || t->limit <= t->floor)
        return;
    t->exact->looked++;
    double value = least(t);
    if (value >= t->limit)
        return;
    if (t->left == 0) {
        keep_best(t, value);
        return;
    }
    if (met_before(t))
        return;
    int count = choices_of(t, choices);
    for (int i = 0; i < count; i++)
        follow(t, choices[i]);
}

static void open_tree(Branches *t)
{
    const Problem *q = t->q;
    size_t ranks = (size_t)q->ranks, chunks = (size_t)q->chunks,
           row = (size_t)q->microbatches;
    for (int k = 0; k < SEARCH_KINDS; k++)
        t->end[k] = arena_take(t->arena, chunks * row * sizeof(double));
    t->placed = arena_take(t->arena, SEARCH_KINDS * chunks);
    t->slots = arena_take(t->arena, SLOTS * sizeof *t->slots);
    t->wires = wires_open(q);
    t->width = 1 + 3 * q->ranks + 4 * t->wires.count +
               (t->wires.matter ? 6 : 2) * q->chunks * q->microbatches;
    t->times = arena_take(t->arena, (size_t)t->width * sizeof(double));
    t->clock = arena_take(t->arena, 6 * ranks * sizeof(double));
    t->first = t->clock + ranks;
    t->memory = t->first + ranks;
    t->work = t->memory + ranks;
    t->tail = t->work + ranks;
    t->post = t->tail + ranks;
    t->orders = arena_take(t->arena, ranks * sizeof *t->orders);
    for (int r = 0; r < q->ranks; r++)
        for (int c = 0; c < q->chunks; c++)
            for (int k = 0; k < SEARCH_KINDS && q->rank[c] == r; k++)
                t->work[r] += q->microbatches * q->time[k][c];
    for (size_t r = 0; r < ranks; r++)
        t->orders[r].at = arena_take(t->arena, SEARCH_KINDS * chunks * row *
                                                   sizeof(short));
    t->left = SEARCH_KINDS * q->chunks * q->microbatches;
}

/* Below this nothing can be, when each rank has one chunk. */
static double floor_of(const Problem *q)
{
    for (int chunk = 0; chunk < q->chunks; chunk++)
        if (q->rank[chunk] != chunk)
            return 0;
    return bound_metric(q);
}

bool exact_orders(const Problem *q, Exact *exact, Sequence *best,
                  Result *result)
{
    Branches t = {.q = q, .exact = exact, .best = best, .limit = INFINITY};
    t.arena = arena_open();
    t.floor = floor_of(q);
    exact->looked = 0;
    open_tree(&t);
    if (best[0].count > 0 && order_result(q, best, result, NULL))
        t.limit = metric_of(q, result) * (1 - 1e-9);
    if (t.floor < INFINITY)
        look(&t);
    exact->proved = exact->looked < exact->budget && !q->whole;
    wires_close(&t.wires);
    arena_close(t.arena);
    return t.limit < INFINITY && order_result(q, best, result, NULL);
}
