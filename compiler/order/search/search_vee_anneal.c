/* search_vee_anneal.c: simulated annealing of orders, by moves inside a rank.
 *
 * A move takes a run of entries of one kind and chunk, one per micro-batch,
 * past as many neighbours each; at times it does so on several ranks at once.
 * What began before the first of them keeps its time; the rest is timed anew in
 * place, and put back if the move is not taken. The cost that will be accepted
 * is drawn beforehand, so that the timing ends as soon as the idle time exceeds
 * it. Where wires or posted receives make a difference, all is timed anew: what a
 * wire carries is known from its beginning on.
 *
 *     cost    the longest time of a rank, and a small part of the mean idle
 *             time, so that ranks other than the worst pull the search too
 *     moves   mostly about a wait: something else fills it, or what it waits
 *             for comes earlier, on the rank where that is decided */
#include "search_vee_board.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CODES = 2 * SEARCH_KINDS, RUN = 64 };

/* One action: of a rank, a code (forth or back, and a kind) and a micro-batch;
 * they are numbered in this order. */
typedef struct Event {
    double end, time, lag;  // lag: after the end of its input
    int input;              // event; -1: none
    int place;              // index in the order of its rank
    short rank, input_rank, code, chunk;
} Event;

typedef struct Shift {
    int rank, from, to;  // indices in the order of the rank
} Shift;

typedef struct Written {
    int event;
    double end;
} Written;

typedef struct Anneal {
    const Problem *q;
    int row;  // entries of a rank
    Event *events;
    int *order;                   // [rank * row + index] event
    double *held, *spent;         // [rank * row + index] memory, work after it
    double *step;                 // [rank * CODES + code] memory
    double *clock, *idle, *work;  // [rank]
    double *post;                 // [rank] end of the entry before its last
    Wires wires;
    int *next, *queue;  // [rank]
    bool *queued;
    Written *log;  // what the timing wrote over
    int logged;
    Shift *run;  // of the move under way
    int shifts;
    int *low;      // [rank] the first index that it changes
    double from;   // and when the first of these began
    double least;  // idle time that is not rounding
    double timed;  // entries, so far
    unsigned long long dice;
} Anneal;

static double begin_of(const Event *n)
{
    return n->end - n->time;
}

/* ---- timing ---- */

/* The first index of a rank, up to `high`, whose entry begins at a time or
 * later. */
static int index_at(const Anneal *x, int rank, int high, double time)
{
    const int *order = x->order + rank * x->row;
    int low = 0;
    while (low < high) {
        int middle = (low + high) / 2;
        if (begin_of(&x->events[order[middle]]) < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void rewind_rank(Anneal *x, int rank, int index)
{
    const int *order = x->order + rank * x->row;
    bool span = x->q->metric == METRIC_SPAN;
    x->next[rank] = index;
    x->clock[rank] = x->idle[rank] = x->post[rank] = 0;
    if (index == 0)
        return;
    x->clock[rank] = x->events[order[index - 1]].end;
    x->idle[rank] = x->clock[rank] - x->spent[rank * x->row + index - 1] -
                    (span ? begin_of(&x->events[order[0]]) : 0);
}

static int micro_of(const Anneal *x, const Event *n)
{
    return (int)(n - x->events) % x->q->microbatches;
}

/* When the input of an event, which has ended, is there. */
static double arrival(Anneal *x, const Event *n, double post)
{
    const Event *input = &x->events[n->input];
    if (!x->wires.matter)
        return input->end + n->lag;
    return wires_take(&x->wires, input->code % SEARCH_KINDS, input->chunk,
                      micro_of(x, input), input->end, post);
}

/* Times a rank until it lacks an input. False: the cost exceeds `most`. */
static bool time_rank(Anneal *x, int rank, double most)
{
    const int *order = x->order + rank * x->row;
    bool span = x->q->metric == METRIC_SPAN;
    double clock = x->clock[rank], idle = x->idle[rank], post = x->post[rank];
    int i = x->next[rank];
    for (; i < x->row; i++) {
        Event *n = &x->events[order[i]];
        double before = clock;
        if (n->input >= 0) {
            const Event *input = &x->events[n->input];
            if (input->place >=
                (n->input_rank == rank ? i : x->next[n->input_rank]))
                break;
            double wait = arrival(x, n, post) - before;
            if (wait > 0) {
                clock += wait;
                if (i > 0 || !span) {
                    idle += wait;
                    if (x->work[rank] + idle > most)
                        return false;
                }
            }
        }
        x->log[x->logged++] = (Written){order[i], n->end};
        n->end = clock += n->time;
        post = before;
        if (x->wires.matter)
            wires_send(&x->wires, n->code % SEARCH_KINDS, n->chunk,
                       micro_of(x, n), clock);
    }
    x->timed += i - x->next[rank];
    x->post[rank] = post;
    x->next[rank] = i;
    x->clock[rank] = clock;
    x->idle[rank] = idle;
    return true;
}

/* Times all that began at x->from or later, and every rank from x->low[rank]
 * on. The cost; INFINITY: it exceeds `most`, or the orders wait for one
 * another. */
static double retime(Anneal *x, double most)
{
    int ranks = x->q->ranks, head = 0, count = ranks;
    double worst = 0;
    x->logged = 0;
    wires_clear(&x->wires);
    for (int r = 0; r < ranks; r++) {
        int from = x->wires.matter ? 0 : index_at(x, r, x->low[r], x->from);
        rewind_rank(x, r, from);
        x->queue[r] = r;
        x->queued[r] = true;
    }
    for (; count > 0; count--) {
        int r = x->queue[head], before = x->next[r];
        head = head + 1 == ranks ? 0 : head + 1;
        x->queued[r] = false;
        if (!time_rank(x, r, most))
            return INFINITY;
        for (int s = r - 1; s <= r + 1; s += 2)
            if (x->next[r] > before && s >= 0 && s < ranks && !x->queued[s]) {
                x->queue[(head + count - 1) % ranks] = s;
                x->queued[s] = true;
                count++;
            }
    }
    for (int r = 0; r < ranks; r++) {
        if (x->next[r] < x->row)
            return INFINITY;
        worst = fmax(worst, x->work[r] + x->idle[r]);
    }
    return worst > most ? INFINITY : worst;
}

static void untime(Anneal *x)
{
    while (x->logged > 0) {
        x->logged--;
        x->events[x->log[x->logged].event].end = x->log[x->logged].end;
    }
}

/* ---- moves ---- */

/* Does code `a` of a micro-batch need code `b` of the same, on one rank. */
static bool needs(const Anneal *x, int rank, int a, int b)
{
    int kind = a % SEARCH_KINDS;
    if (kind != SEARCH_F && a - 1 == b)
        return true;
    return rank == x->q->ranks - 1 &&
           ((a == SEARCH_KINDS + SEARCH_F && b == SEARCH_F) ||
            (a == SEARCH_I && b == SEARCH_KINDS + SEARCH_I));
}

static bool may_pass(const Anneal *x, const Event *early, const Event *late)
{
    int m = x->q->microbatches;
    if (early->code == late->code)
        return false;
    return (int)(early - x->events) % m != (int)(late - x->events) % m ||
           !needs(x, early->rank, late->code, early->code);
}

static void shift(Anneal *x, int rank, int from, int to)
{
    int *order = x->order + rank * x->row, event = order[from];
    int low = from < to ? from : to, high = from < to ? to : from;
    double *held = x->held + rank * x->row, *spent = x->spent + rank * x->row;
    if (from > to)
        memmove(order + to + 1, order + to,
                (size_t)(from - to) * sizeof *order);
    else
        memmove(order + from, order + from + 1,
                (size_t)(to - from) * sizeof *order);
    order[to] = event;
    for (int i = low; i <= high; i++) {
        Event *n = &x->events[order[i]];
        n->place = i;
        held[i] = (i > 0 ? held[i - 1] : 0) + x->step[rank * CODES + n->code];
        spent[i] = (i > 0 ? spent[i - 1] : 0) + n->time;
    }
}

static void unshift(Anneal *x, int down_to)
{
    for (; x->shifts > down_to; x->shifts--) {
        Shift h = x->run[x->shifts - 1];
        shift(x, h.rank, h.to, h.from);
    }
}

/* Where an entry comes to stand that passes `by` neighbours; -1: it may not. */
static int target(const Anneal *x, int rank, int from, int by)
{
    const int *order = x->order + rank * x->row;
    const Event *n = &x->events[order[from]];
    int to = from + by;
    if (to < 0 || to >= x->row)
        return -1;
    for (int i = from; i != to; i += by < 0 ? -1 : 1) {
        const Event *other = &x->events[order[i + (by < 0 ? -1 : 1)]];
        if (by < 0 ? !may_pass(x, other, n) : !may_pass(x, n, other))
            return -1;
    }
    return to;
}

static bool within_limit(const Anneal *x, Shift h)
{
    double limit = x->q->limit[h.rank] * (1 + 1e-9);
    int low = h.from < h.to ? h.from : h.to,
        high = h.from < h.to ? h.to : h.from;
    for (int i = low; i <= high; i++)
        if (x->held[h.rank * x->row + i] > limit)
            return false;
    return true;
}

/* What a move changes: `length` micro-batches from an event on pass `by`
 * neighbours, to the front if that is negative; and the same on the next
 * ranks. */
typedef struct Move {
    int event, by, length, ranks;
} Move;

static void apply_to(Anneal *x, int event, int by, int length)
{
    int rank = x->events[event].rank, before = x->shifts;
    int left = x->q->microbatches - event % x->q->microbatches;
    length = length < left ? length : left;
    for (int i = 0; i < length; i++) {
        int from = x->events[event + (by < 0 ? i : length - 1 - i)].place;
        int to = target(x, rank, from, by), low = from < to ? from : to;
        if (to < 0)
            break;
        x->low[rank] = low < x->low[rank] ? low : x->low[rank];
        x->from = fmin(x->from,
                       begin_of(&x->events[x->order[rank * x->row + low]]));
        x->run[x->shifts++] = (Shift){rank, from, to};
        shift(x, rank, from, to);
    }
    for (int s = before; s < x->shifts; s++)
        if (!within_limit(x, x->run[s])) {
            unshift(x, before);
            x->low[rank] = x->row;
            return;
        }
}

/* False: nothing may move so. */
static bool apply(Anneal *x, Move m)
{
    int rank = x->events[m.event].rank;
    x->shifts = 0;
    x->from = INFINITY;
    for (int r = 0; r < x->q->ranks; r++)
        x->low[r] = x->row;
    for (int r = 0; r < m.ranks && rank + r < x->q->ranks; r++) {
        apply_to(x, m.event + r * x->row, m.by, m.length);
        if (x->shifts == 0)
            return false;
    }
    return true;
}

static double wait_before(const Anneal *x, int rank, int index)
{
    const int *order = x->order + rank * x->row;
    const Event *n = &x->events[order[index]];
    if (index == 0)
        return 0;
    return begin_of(n) - x->events[order[index - 1]].end;
}

/* An entry that a rank waits for, from a random one on; -1: it never waits. */
static int find_wait(Anneal *x, int rank)
{
    int from = roll_below(&x->dice, x->row);
    for (int k = 0; k < x->row; k++) {
        int i = from + k < x->row ? from + k : from + k - x->row;
        if (wait_before(x, rank, i) > x->least)
            return i;
    }
    return -1;
}

/* Was the input of an event ready before its receive was posted, at the end of
 * the event two places earlier. */
static bool posted_late(const Anneal *x, const Event *n)
{
    if (!x->wires.matter || !x->q->posted || n->place < 2 ||
        x->events[n->input].rank == n->rank)
        return false;
    int before = x->order[n->rank * x->row + n->place - 2];
    return x->events[before].end > x->events[n->input].end;
}

/* Walks up what decided the time of an event, and moves something forward. */
static Move hasten(Anneal *x, int event)
{
    const Event *n = &x->events[event];
    while (roll(&x->dice) < 0.8) {
        int at = n->rank * x->row + n->place;
        if (n->place > 0 && wait_before(x, n->rank, n->place) <= x->least) {
            if (roll(&x->dice) < 0.3)
                break;
            n = &x->events[x->order[at - 1]];
        } else if (n->input >= 0 && posted_late(x, n))
            n = &x->events[x->order[at - 2]];
        else if (n->input >= 0)
            n = &x->events[n->input];
        else
            break;
    }
    return (Move){(int)(n - x->events), -1 - roll_below(&x->dice, 3), 1, 1};
}

static Move propose(Anneal *x, int worst)
{
    int rank = roll(&x->dice) < 0.5 ? worst : roll_below(&x->dice, x->q->ranks);
    int wait = roll(&x->dice) < 0.85 ? find_wait(x, rank) : -1;
    Move m;
    if (wait < 0) {
        int by = 1 + roll_below(&x->dice, 4);
        m = (Move){roll_below(&x->dice, x->q->ranks * x->row),
                   roll(&x->dice) < 0.5 ? by : -by, 1, 1};
    } else if (roll(&x->dice) < 0.4) {
        int by = 1 + roll_below(&x->dice, 8);
        int index = wait + by < x->row ? wait + by : x->row - 1;
        m = (Move){x->order[rank * x->row + index], wait - index, 1, 1};
    } else
        m = hasten(x, x->events[x->order[rank * x->row + wait]].input);
    m.length = roll(&x->dice) < 0.6 ? 1 : 1 << roll_below(&x->dice, 7);
    if (roll(&x->dice) < 0.2) {
        int before = x->events[m.event].rank;
        m.ranks = 1 + roll_below(&x->dice, x->q->ranks);
        before = roll_below(&x->dice,
                            (before < m.ranks ? before : m.ranks) + 1);
        m.event -= before * x->row;
    }
    return m;
}

/* ---- the search ---- */

static int worst_rank(const Anneal *x)
{
    int worst = 0;
    for (int r = 1; r < x->q->ranks; r++)
        if (x->work[r] + x->idle[r] > x->work[worst] + x->idle[worst])
            worst = r;
    return worst;
}

static void give(const Anneal *x, Sequence *orders)
{
    for (int r = 0; r < x->q->ranks; r++)
        for (int i = 0; i < x->row; i++) {
            const Event *n = &x->events[x->order[r * x->row + i]];
            int chunk = board_chunk(x->q, r, n->code >= SEARCH_KINDS);
            orders[r].at[i] = (short)(chunk * SEARCH_KINDS +
                                      n->code % SEARCH_KINDS);
        }
}

static void link_event(Anneal *x, int rank, int code, int micro)
{
    const Problem *q = x->q;
    int kind = code % SEARCH_KINDS, back = code / SEARCH_KINDS,
        chunk = board_chunk(q, rank, back);
    int from = kind == SEARCH_F ? chunk - 1 : chunk + 1;
    Event *n = &x->events[(rank * CODES + code) * q->microbatches + micro];
    *n = (Event){.time = q->time[kind][chunk],
                 .input = -1,
                 .rank = (short)rank,
                 .code = (short)code,
                 .chunk = (short)chunk};
    if (kind == SEARCH_W || from < 0 || from == q->chunks)
        return;
    n->input_rank = (short)q->rank[from];
    n->lag = q->message[kind == SEARCH_F ? chunk : from];
    n->input = (q->rank[from] * CODES + (from >= q->ranks) * SEARCH_KINDS +
                kind) *
                   q->microbatches +
               micro;
}

static void take(Anneal *x, const Sequence *orders)
{
    const Problem *q = x->q;
    for (int r = 0; r < q->ranks; r++) {
        int seen[CODES] = {0};
        double held = 0, spent = 0;
        for (int code = 0; code < CODES; code++)
            for (int m = 0; m < q->microbatches; m++)
                link_event(x, r, code, m);
        for (int i = 0; i < x->row; i++) {
            int chunk = orders[r].at[i] / SEARCH_KINDS,
                kind = orders[r].at[i] % SEARCH_KINDS;
            int code = (chunk >= q->ranks) * SEARCH_KINDS + kind;
            int event = (r * CODES + code) * q->microbatches + seen[code]++;
            double step = action_growth(q, kind, chunk);
            x->step[r * CODES + code] = step;
            x->order[r * x->row + i] = event;
            x->events[event].place = i;
            x->held[r * x->row + i] = held += step;
            x->spent[r * x->row + i] = spent += x->events[event].time;
        }
        x->work[r] = spent;
    }
}

static Anneal anneal_open(const Problem *q, int seed)
{
    size_t ranks = (size_t)q->ranks;
    Anneal x = {.q = q, .row = CODES * q->microbatches, .wires = wires_open(q)};
    size_t all = ranks * (size_t)x.row;
    x.dice = (unsigned long long)seed * 2862933555777941757u + 3037000493u;
    x.events = room(all, sizeof *x.events);
    x.order = room(all, sizeof *x.order);
    x.log = room(all, sizeof *x.log);
    x.held = room(2 * all, sizeof *x.held);
    x.spent = x.held + all;
    x.step = room(ranks * (CODES + 4), sizeof *x.step);
    x.clock = x.step + ranks * CODES;
    x.idle = x.clock + ranks;
    x.work = x.idle + ranks;
    x.post = x.work + ranks;
    x.next = room(3 * ranks, sizeof *x.next);
    x.queue = x.next + ranks;
    x.low = x.queue + ranks;
    x.run = room(ranks * RUN, sizeof *x.run);
    x.queued = room(ranks, sizeof *x.queued);
    return x;
}

static void anneal_close(Anneal *x)
{
    wires_close(&x->wires);
    free(x->events);
    free(x->order);
    free(x->log);
    free(x->held);
    free(x->step);
    free(x->next);
    free(x->queued);
    free(x->run);
}

/* Cools from `hot` to `cold` while no more than `budget` entries are timed. */
static void cool(Anneal *x, double budget, double hot, double cold,
                 Sequence *orders)
{
    for (int r = 0; r < x->q->ranks; r++)
        x->low[r] = 0;
    double cost = retime(x, INFINITY), heat = hot;
    int worst = worst_rank(x);
    double best = x->work[worst] + x->idle[worst];
    x->least = 1e-9 * best;
    for (long tries = 0; x->timed < budget; tries++) {
        if (tries % 64 == 0)
            heat = hot * pow(cold / hot, x->timed / budget);
        Move m = propose(x, worst);
        x->timed += 10;
        if (!apply(x, m))
            continue;
        double most = cost - heat * log(roll(&x->dice) + 1e-300);
        double now = retime(x, most);
        if (isinf(now)) {
            untime(x);
            unshift(x, 0);
            continue;
        }
        cost = now;
        worst = worst_rank(x);
        double value = x->work[worst] + x->idle[worst];
        if (value < best * (1 - 1e-9)) {
            best = value;
            give(x, orders);
        }
    }
}

void vee_anneal(const Problem *q, int seed, double budget, double hot,
                double cold, Sequence *orders)
{
    Anneal x = anneal_open(q, seed);
    double unit = 0;
    for (int k = 0; k < SEARCH_KINDS; k++)
        for (int c = 0; c < q->chunks; c++)
            unit += q->time[k][c] / (SEARCH_KINDS * q->chunks);
    take(&x, orders);
    cool(&x, budget, hot * unit, cold * unit, orders);
    anneal_close(&x);
}
