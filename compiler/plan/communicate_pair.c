/* communicate_pair.c: where a pair of ranks has one queue for both directions:
 * all SENDs and RECVs of the two stand in one order, the same in both lists.
 *
 * Reads: order, chunks, cost. Writes: lists. Guarantees: what runs as computes
 * alone runs with these messages, too.
 *
 * Given a time for each compute, messages are ordered by the time of the compute
 * that makes them. A RECV stands where its rank is then: before the first of its
 * own computes with a later time. So it is posted early, and holds up no SEND
 * that is made before:
 *
 *     rank 0  [  F0  ][  F1  ]      [  F2  ]          0F0 SEND  0F1 SEND  RECV 0F2 TAKE 0B0
 *                     >      >     <
 *     rank 1          [ F0 ][ B0  ][ F1 ]             RECV 1F0  RECV 1B0 SEND  1F1
 *
 * The messages of all ranks are in one order by that, which no dependency
 * contradicts, if the times do not: the lists cannot wait for each other, even
 * where a rank has one queue for all others. And where messages take no time and
 * the times are those of the plan, nothing is later than without messages.
 *
 * Which times: those of the plan whose receives block, then those of the plan
 * that this gives; or, as PyTorch does (torch 2.15, schedules.py,
 * `_add_send_recv`), rounds in which every rank in turn does one thing if it
 * can. The plan that is done first is taken. */
#include "communicate.h"
#include "nodes.h"

#include <math.h>
#include <stdlib.h>

typedef struct When {  // of a compute
    double time;       // its end, or its round
    int turn;          // among those of one time
} When;

typedef struct Maker {  // of a message
    When when;
    int from, to;
    Action action;
} Maker;

typedef struct Times {
    When **of;        // [rank][entry of its order]
    double makespan;  // of the plan that they give
} Times;

static Times new_times(Program *p)
{
    Times times = {
        .of = arena_take(p->arena, sizeof *times.of * (size_t)p->ranks)};
    for (int r = 0; r < p->ranks; r++)
        times.of[r] = arena_take(p->arena, sizeof **times.of *
                                               (size_t)(p->order[r].count + 1));
    return times;
}

static bool is_before(When a, When b)
{
    return a.time < b.time || (a.time == b.time && a.turn < b.turn);
}

/* ---- times -> lists ---- */

/* By receiver, then by time. */
static int by_receiver(const void *a, const void *b)
{
    const Maker *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return is_before(x->when, y->when) ? -1 : is_before(y->when, x->when);
}

static Maker *makers_of(Program *p, const Times *times, int *count)
{
    Maker *makers = NULL;
    int to;
    *count = 0;
    for (int r = 0; r < p->ranks; r++) {
        for (int i = 0; i < p->order[r].count; i++) {
            Action a = p->order[r].at[i];
            if (!what_goes(p, a, &to))
                continue;
            makers = array_grow(p->arena, makers, *count, sizeof *makers);
            makers[(*count)++] = (Maker){times->of[r][i], r, to, a};
        }
    }
    if (makers)
        qsort(makers, (size_t)*count, sizeof *makers, by_receiver);
    return makers;
}

/* One rank's order, with the messages that it gets among its computes. */
static void merge(Program *p, int rank, const When *when, const Maker **maker,
                  const Maker *last)
{
    const List *order = &p->order[rank];
    List *list = &p->lists[rank];
    for (int i = 0, end; i <= order->count; i = end) {
        mark_phases(list, order, i);
        for (; *maker < last && (*maker)->to == rank &&
               (i == order->count || is_before((*maker)->when, when[i]));
             (*maker)++)
            add_receive(p, rank, (*maker)->action, (*maker)->from);
        if (i == order->count)
            break;
        end = i + 1 + is_pair(order, i);
        add_computes(p, rank, i, end);
    }
}

static void merge_all(Program *p, const Times *times)
{
    int count;
    const Maker *maker = makers_of(p, times, &count), *last = maker + count;
    open_lists(p);
    for (int r = 0; r < p->ranks; r++)
        merge(p, r, times->of[r], &maker, last);
    add_collectives(p);
}

/* ---- lists -> times ---- */

/* A plan that may be thrown away, in an arena of its own. */
static Program open_trial(const Program *p, Meeting meet)
{
    Program trial = *p;
    trial.arena = arena_open();
    trial.meet = meet;
    return trial;
}

/* What a pair makes leaves when both have ended, and nothing comes between. */
static void join_pairs(const Program *plan, Times *times)
{
    for (int r = 0; r < plan->ranks; r++) {
        When *of = times->of[r];
        for (int i = 0; i < plan->order[r].count; i++)
            if (is_pair(&plan->order[r], i))
                of[i] = (When){of[i + 1].time, of[i + 1].turn - 1};
    }
}

/* `linear` puts what ends at one time in an order that respects dependencies. */
static void read_times(Program *plan, Times *times)
{
    int *next = arena_take(plan->arena, sizeof *next * (size_t)plan->ranks);
    for (int i = 0; i < plan->linear_count; i++) {
        int node = plan->linear[i], rank = place_of(plan, node).rank;
        if (is_compute(action_of(plan, node).kind))
            times->of[rank][next[rank]++] = (When){plan->nodes[node].end,
                                                   2 * i + 1};
    }
    join_pairs(plan, times);
}

static bool can_run(const Program *plan, const bool *done, Action a)
{
    int maker = maker_of(plan, find_node(plan, a.kind, a.chunk, a.micro));
    return maker < 0 || done[maker];
}

/* The turn of a rank: its next compute, or the next two if they are a pair. */
static void take_turn(const Program *plan, int rank, bool *done, int *next,
                      When when, Times *times)
{
    const List *order = &plan->order[rank];
    int first = *next, last = first + is_pair(order, first);
    if (first >= order->count || !can_run(plan, done, order->at[first]) ||
        !can_run(plan, done, order->at[last]))
        return;
    for (; *next <= last; ++*next) {
        Action a = order->at[*next];
        done[find_node(plan, a.kind, a.chunk, a.micro)] = true;
        times->of[rank][*next] = when;
        when.turn++;
    }
}

static void count_rounds(Program *plan, Times *times)
{
    size_t ranks = (size_t)plan->ranks;
    int *next = arena_take(plan->arena, sizeof *next * ranks), left = 1;
    bool *done = arena_take(plan->arena, (size_t)plan->first_node[ranks] + 1);
    for (int round = 0; left > 0; round++) {
        left = 0;
        for (int r = 0; r < plan->ranks; r++) {
            take_turn(plan, r, done, &next[r], (When){round, 2 * r}, times);
            left += next[r] < plan->order[r].count;
        }
    }
}

/* ---- the best of them ---- */

/* Plans the lists that the times give; `next` is given the times of that plan. */
static void try_times(Program *p, Times *times, Times *next)
{
    Program trial = open_trial(p, MEET_PAIR);
    merge_all(&trial, times);
    times->makespan = prove_quietly(&trial) ? trial.makespan : INFINITY;
    if (next && times->makespan < INFINITY)
        read_times(&trial, next);
    arena_close(trial.arena);
}

static bool messages_take_time(const Program *p)
{
    for (int c = 0; c < p->chunk_count; c++)
        if (p->cost.wire[c] + p->cost.delay[c] > 0)
            return true;
    return false;
}

bool pair_lists(Program *p)
{
    enum { PLANS = 3, ROUNDS = PLANS, ALL };
    Times times[ALL];
    int best = 0;
    choose_cost(p);
    for (int i = 0; i < ALL; i++)
        times[i] = new_times(p);
    Program plan = open_trial(p, MEET_BLOCKING);
    queue_lists(&plan);
    bool runs = prove_quietly(&plan), differ = runs && messages_take_time(p);
    if (runs)
        read_times(&plan, &times[0]);
    if (differ)
        count_rounds(&plan, &times[ROUNDS]);
    arena_close(plan.arena);
    for (int i = 0; differ && i < ALL; i++) {
        try_times(p, &times[i], i + 1 < PLANS ? &times[i + 1] : NULL);
        best = times[i].makespan < times[best].makespan ? i : best;
    }
    if (runs)
        merge_all(p, &times[best]);
    return runs;
}
