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
 *     begin the worse. */
#include "search.h"

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
    Order *best;
    Order *orders;              // [rank] so far
    double limit;               // to be below
    double floor;               // when reached, nothing is better
    double *end[SEARCH_KINDS];  // [chunk * microbatches + micro]
    unsigned char *placed;      // [chunk * SEARCH_KINDS + kind]
    double *clock, *first, *memory, *work, *tail;  // [rank]
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
    return fmax(t->clock[r], *end_of(t, kind, from, micro) +
                                 q->message[kind == SEARCH_F ? chunk : from]);
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
        if (begin >= 0 && kind != SEARCH_F)
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
                    free = fmax(free,
                                *end_of(t, way, from, j) +
                                    q->message[way == SEARCH_F ? chunk : from]);
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

/* The times that decide what can still come of this partial order: of two with
 * the same actions placed, the one with no larger time is as good. */
static void write_times(Branches *t)
{
    const Problem *q = t->q;
    int count = 0;
    t->times[count++] = t->last;
    for (int r = 0; r < q->ranks; r++) {
        t->times[count++] = t->clock[r];
        t->times[count++] = t->orders[r].count ? -t->first[r] : 0;
    }
    for (int chunk = 0; chunk < q->chunks; chunk++)
        for (int way = SEARCH_F; way <= SEARCH_I; way++) {
            int to = way == SEARCH_F ? chunk + 1 : chunk - 1;
            for (int j = 0; j < q->microbatches; j++) {
                bool waits = to >= 0 && to < q->chunks &&
                             j < placed(t, way, chunk) &&
                             j >= placed(t, way, to);
                t->times[count++] = waits ? *end_of(t, way, chunk, j) : 0;
            }
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

/* Places an action, looks further, and takes it back. */
static void follow(Branches *t, Choice c)
{
    const Problem *q = t->q;
    int kind = c.entry % SEARCH_KINDS, chunk = c.entry / SEARCH_KINDS,
        r = q->rank[chunk];
    Order *order = &t->orders[r];
    double clock = t->clock[r], last = t->last, memory = t->memory[r],
           work = t->work[r];
    *end_of(t, kind, chunk,
            t->placed[c.entry]++) = t->clock[r] = c.begin +
                                                  q->time[kind][chunk];
    if (order->count == 0)
        t->first[r] = c.begin;
    order->at[order->count++] = (short)c.entry;
    t->memory[r] += action_growth(q, kind, chunk);
    t->work[r] -= q->time[kind][chunk];
    t->last = c.begin;
    t->left--;
    look(t);
    t->left++;
    t->last = last;
    t->work[r] = work;
    t->memory[r] = memory;
    t->clock[r] = clock;
    order->count--;
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
    t->width = 1 + 2 * q->ranks + 2 * q->chunks * q->microbatches;
    t->times = arena_take(t->arena, (size_t)t->width * sizeof(double));
    t->clock = arena_take(t->arena, 5 * ranks * sizeof(double));
    t->first = t->clock + ranks;
    t->memory = t->first + ranks;
    t->work = t->memory + ranks;
    t->tail = t->work + ranks;
    t->orders = arena_take(t->arena, ranks * sizeof *t->orders);
    for (int r = 0; r < q->ranks; r++)
        t->work[r] = rank_work(q, r);
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

bool exact_orders(const Problem *q, Exact *exact, Order *best, Result *result)
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
    exact->proved = exact->looked < exact->budget;
    arena_close(t.arena);
    return t.limit < INFINITY && order_result(q, best, result, NULL);
}
