/* communicate_pair.c: where a pair of ranks has one queue for both directions:
 * all SENDs and RECVs of the two stand in one order, the same in both lists.
 *
 * Reads: order, chunks, cost. Writes: lists. Guarantees: what runs as computes
 * alone runs with these messages, too.
 *
 * Messages are ordered by the ends of the computes that make them, as the order
 * of computes has them when every rank goes on as early as it can. A RECV stands
 * where its rank is at that time, so it is posted early and holds no SEND up
 * that is made before:
 *
 *     rank 0  [  F0  ][  F1  ]      [  F2  ]          0F0 SEND  0F1 SEND  RECV 0F2 TAKE 0B0
 *                     >      >     <
 *     rank 1          [ F0 ][ B0  ][ F1 ]             RECV 1F0  RECV 1B0 SEND  1F1
 *
 * No message waits for one that is made later than it, and none is made before
 * what it needs: so with messages that take no time, nothing is later than in
 * the order of computes. */
#include "compile.h"

#include <stdlib.h>

typedef struct Maker {  // of a message, to the rank that gets it
    double end;         // of the compute
    int turn;           // among computes that end together
    int from, to;
    Action action;
} Maker;

typedef struct Early {  // every rank goes on as early as it can
    Program *p;
    double *end[2];   // [cell] of the forward, the backward; -1: not yet
    int *waiting[2];  // [cell] rank + 1 that stands until it has ended
    int *next;        // [rank] entry of its order
    double *clock;    // [rank]
    int *ready, ready_count;
    int turns;
    Maker *makers;
    int maker_count;
    int **turn;     // [rank][entry]
    double **ends;  // [rank][entry]
} Early;

/* What an action reads of another chunk: false if it is there from the start. */
static bool input_of(const Program *p, Action a, int *chunk, double *travel)
{
    bool back = is_back(a.kind);
    int peer;
    *chunk = back ? p->chunks[a.chunk].next : p->chunks[a.chunk].previous;
    int boundary = back ? *chunk : a.chunk;
    *travel = what_comes(p, a, &peer)
                  ? p->cost.wire[boundary] + p->cost.delay[boundary]
                  : 0;
    return a.kind != ACT_W && *chunk >= 0;
}

/* Runs one entry, unless it has to wait; then it is woken later. */
static bool run_entry(Early *early, int rank, Action a)
{
    Program *p = early->p;
    int chunk;
    double travel, start = early->clock[rank];
    bool back = is_back(a.kind);
    if (input_of(p, a, &chunk, &travel) &&
        (!back || p->chunks[chunk].dx >= 0)) {
        size_t cell = cell_of(p, chunk, a.micro);
        double made = early->end[back][cell];
        if (made < 0) {
            early->waiting[back][cell] = rank + 1;
            return false;
        }
        start = made + travel > start ? made + travel : start;
    }
    early->clock[rank] = start + p->cost.compute[a.kind][a.chunk];
    return true;
}

static void wake(Early *early, Action a)
{
    bool back = is_back(a.kind);
    size_t cell = cell_of(early->p, a.chunk, a.micro);
    if (a.kind == ACT_W)
        return;
    early->end[back][cell] = early->clock[early->p->chunks[a.chunk].rank];
    if (early->waiting[back][cell])
        early->ready[early->ready_count++] = early->waiting[back][cell] - 1;
    early->waiting[back][cell] = 0;
}

static void note(Early *early, int rank, int entry)
{
    Program *p = early->p;
    int peer;
    Action a = p->order[rank].at[entry];
    double end = early->clock[rank];
    early->ends[rank][entry] = end;
    early->turn[rank][entry] = early->turns;
    if (what_goes(p, a, &peer)) {
        early->makers = array_grow(p->arena, early->makers, early->maker_count,
                                   sizeof *early->makers);
        early->makers[early->maker_count++] = (Maker){end, early->turns, rank,
                                                      peer, a};
    }
    early->turns++;
}

static void run_as_far(Early *early, int rank)
{
    const List *order = &early->p->order[rank];
    for (; early->next[rank] < order->count; early->next[rank]++) {
        Action a = order->at[early->next[rank]];
        if (!run_entry(early, rank, a))
            return;
        note(early, rank, early->next[rank]);
        wake(early, a);
    }
}

/* False: orders that contradict each other stand still. */
static bool run_all(Early *early)
{
    int ranks = early->p->ranks;
    for (int r = ranks; r-- > 0;)
        early->ready[early->ready_count++] = r;
    while (early->ready_count)
        run_as_far(early, early->ready[--early->ready_count]);
    for (int r = 0; r < ranks; r++)
        if (early->next[r] < early->p->order[r].count)
            return false;
    return true;
}

static Early start_early(Program *p)
{
    size_t ranks = (size_t)p->ranks, cells = cell_of(p, 0, p->microbatches);
    Early early = {.p = p};
    for (int back = 0; back < 2; back++) {
        early.end[back] = arena_take(p->arena, sizeof(double) * cells);
        early.waiting[back] = arena_take(p->arena, sizeof(int) * cells);
        for (size_t i = 0; i < cells; i++)
            early.end[back][i] = -1;
    }
    early.next = arena_take(p->arena, sizeof *early.next * ranks);
    early.clock = arena_take(p->arena, sizeof *early.clock * ranks);
    early.ready = arena_take(p->arena, sizeof *early.ready * ranks);
    early.turn = arena_take(p->arena, sizeof *early.turn * ranks);
    early.ends = arena_take(p->arena, sizeof *early.ends * ranks);
    for (int r = 0; r < p->ranks; r++) {
        size_t count = (size_t)p->order[r].count + 1;
        early.turn[r] = arena_take(p->arena, sizeof(int) * count);
        early.ends[r] = arena_take(p->arena, sizeof(double) * count);
    }
    return early;
}

/* By receiver, then in the order of the queues. */
static int by_receiver(const void *a, const void *b)
{
    const Maker *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return (x->turn > y->turn) - (x->turn < y->turn);
}

/* Is a message made before the end of a rank's own entry. */
static bool is_before(const Early *early, const Maker *maker, int rank,
                      int entry)
{
    double end = early->ends[rank][entry];
    return maker->end < end ||
           (maker->end == end && maker->turn < early->turn[rank][entry]);
}

static void merge(Early *early, int rank, const Maker **maker)
{
    Program *p = early->p;
    const List *order = &p->order[rank];
    List *list = &p->lists[rank];
    const Maker *last = early->makers + early->maker_count;
    for (int i = 0; i <= order->count; i++) {
        if (i == order->steady)
            list->steady = list->count;
        if (i == order->cooldown)
            list->cooldown = list->count;
        for (; *maker < last && (*maker)->to == rank &&
               (i == order->count || is_before(early, *maker, rank, i));
             (*maker)++)
            add_receive(p, rank, (*maker)->action, (*maker)->from);
        if (i == order->count)
            break;
        add_take(p, rank, order->at[i]);
        push_action(p, list, order->at[i]);
        add_send(p, rank, order->at[i]);
    }
}

bool pair_lists(Program *p)
{
    choose_cost(p);
    Early early = start_early(p);
    if (!run_all(&early))
        return false;
    qsort(early.makers, (size_t)early.maker_count, sizeof *early.makers,
          by_receiver);
    const Maker *maker = early.makers;
    for (int r = 0; r < p->ranks; r++)
        merge(&early, r, &maker);
    return true;
}
