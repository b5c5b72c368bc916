/* search_improve.c: an order of one chunk per rank, made better move by move.
 *
 * A move takes one action of one rank elsewhere in that rank's order. What is
 * made small is the sum, over the ranks, of the time above the target; a move
 * that makes it larger is kept now and then, ever more rarely (annealing). The
 * draw that decides comes before the move is timed, so that timing stops as
 * soon as any one rank shows that the move will be turned down.
 *
 * Timing follows changes only: the actions whose begin may change, taken in the
 * order of their begins. A move that makes the orders wait for one another goes
 * round until it is over the limit, and so needs no other test.
 *
 * Where wires or posted receives make a difference, an action also has the time at
 * which its message leaves the wire. That follows from the message before on the
 * wire, which is the last one of the kind on this rank, and from the end of the
 * action two places earlier; so both are looked at again when these change. */
#include "search_linear.h"
#include "search_wires.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct Lane {     // one rank's order
    unsigned char *kind;  // [at]
    short *before[2];     // [at] F, I that come before this one
    short *place[2];      // [micro] where its F, I stand
    double *start;        // [at]
    double *left;         // [at] when its message left the wire; 0: it has none
    uint64_t *dirty;      // bits: the begin may have changed
    double time[SEARCH_KINDS],
        after[SEARCH_KINDS];  // time; that and the message
    double held, kept, limit;
    double work;
    double over;  // above the target, with the last move kept
    int first;    // the first dirty one
} Lane;

typedef struct Change {
    short rank, at;
    double start, left;
} Change;

typedef struct Bench {
    const Problem *q;
    Lane *lanes;
    double *key;  // [rank] begin of the first dirty action; INFINITY: none
    bool matter;  // wires or posted receives
    int count;    // of a rank's actions
    int words;    // of a lane's dirty bits
    double target;
    double ahead;     // of the other ranks, that one may be timed
    Change *changes;  // since the last move kept
    int changed, room;
    long long timed;
    uint64_t random;
} Bench;

static uint64_t draw(Bench *b)
{
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    return b->random * 0x2545f4914f6cdd1d;
}

static int draw_below(Bench *b, int limit)
{
    return (int)((draw(b) >> 32) * (uint64_t)limit >> 32);
}

static double draw_share(Bench *b)
{
    return (double)((draw(b) >> 11) + 1) * 0x1p-53;
}

static double end_at(const Lane *lane, int at)
{
    return at < 0 ? 0 : lane->start[at] + lane->time[lane->kind[at]];
}

/* When its message leaves the wire, by what is now known; it has one. */
static double left_at(const Bench *b, int r, int at)
{
    const Lane *lane = &b->lanes[r];
    int kind = lane->kind[at], micro = lane->before[kind][at];
    const Lane *other = &b->lanes[kind == SEARCH_F ? r - 1 : r + 1];
    double before = micro > 0 ? lane->left[lane->place[kind][micro - 1]] : 0;
    return off_wire(b->q, boundary_before(kind, r),
                    end_at(other, other->place[kind][micro]), before,
                    end_at(lane, at - 2));
}

/* Does it need a message. */
static bool receives(const Bench *b, int r, int kind)
{
    return (kind == SEARCH_F && r > 0) ||
           (kind == SEARCH_I && r + 1 < b->q->ranks);
}

/* Its begin, by what is now known of its inputs. */
static double begin_at(const Bench *b, int r, int at)
{
    const Lane *lane = &b->lanes[r];
    int kind = lane->kind[at];
    double begin = end_at(lane, at - 1), ready;
    if (!receives(b, r, kind))
        return begin;
    if (b->matter) {
        ready = left_at(b, r, at) + b->q->message[boundary_before(kind, r)];
    } else {
        const Lane *other = &b->lanes[kind == SEARCH_F ? r - 1 : r + 1];
        ready = other->start[other->place[kind][lane->before[kind][at]]] +
                other->after[kind];
    }
    return ready > begin ? ready : begin;
}

static void find_first(Bench *b, int r, int from)
{
    Lane *lane = &b->lanes[r];
    for (int w = from / 64; w < b->words; w++)
        if (lane->dirty[w]) {
            lane->first = w * 64 + __builtin_ctzll(lane->dirty[w]);
            b->key[r] = begin_at(b, r, lane->first);
            return;
        }
    b->key[r] = INFINITY;
    lane->first = b->count;
}

static void mark(Bench *b, int r, int at)
{
    Lane *lane = &b->lanes[r];
    lane->dirty[at / 64] |= (uint64_t)1 << (at % 64);
    if (at <= lane->first) {
        lane->first = at;
        b->key[r] = begin_at(b, r, at);
    }
}

/* Marks an action behind the one that is being timed. */
static void mark_behind(Lane *lane, int at)
{
    lane->dirty[at / 64] |= (uint64_t)1 << (at % 64);
}

static double work_before(const Lane *lane, int at)
{
    int f = lane->before[0][at], i = lane->before[1][at];
    return f * lane->time[SEARCH_F] + i * lane->time[SEARCH_I] +
           (at - f - i) * lane->time[SEARCH_W];
}

/* When the rank's time is counted from. */
static double origin(const Bench *b, int r)
{
    return b->q->metric == METRIC_SPAN ? b->lanes[r].start[0] : 0;
}

static void note(Bench *b, int r, int at)
{
    if (b->changed == b->room) {
        Change *more = room(2 * (size_t)b->room, sizeof *more);
        memcpy(more, b->changes, (size_t)b->room * sizeof *more);
        free(b->changes);
        b->changes = more;
        b->room *= 2;
    }
    b->changes[b->changed++] = (Change){
        (short)r, (short)at, b->lanes[r].start[at], b->lanes[r].left[at]};
}

/* The message of the action leaves its wire at another time: the next one of the
 * wire may, too. */
static void time_message(Bench *b, int r, int at)
{
    Lane *lane = &b->lanes[r];
    int kind = lane->kind[at];
    double left = receives(b, r, kind) ? left_at(b, r, at) : 0;
    if (left == lane->left[at])
        return;
    note(b, r, at);
    lane->left[at] = left;
    int micro = lane->before[kind][at] + 1;
    if (micro < b->q->microbatches)
        mark_behind(lane, lane->place[kind][micro]);
}

/* Times the first dirty action of a rank. False: its rank will be above the
 * target by more than `most`. */
static bool time_first(Bench *b, int r, double most)
{
    Lane *lane = &b->lanes[r];
    int at = lane->first, kind = lane->kind[at];
    double begin = b->key[r];
    b->timed++;
    lane->dirty[at / 64] &= ~((uint64_t)1 << (at % 64));
    if (b->matter && kind != SEARCH_W)
        time_message(b, r, at);
    if (begin == lane->start[at]) {
        find_first(b, r, at);
        return true;
    }
    note(b, r, at);
    lane->start[at] = begin;
    if (b->q->posted && b->matter && at + 2 < b->count)
        mark_behind(lane, at + 2);
    if (begin + lane->work - work_before(lane, at) - origin(b, r) - b->target >
        lane->over + most)
        return false;
    int next = kind == SEARCH_F ? r + 1 : r - 1;
    if (kind != SEARCH_W && next >= 0 && next < b->q->ranks)
        mark(b, next, b->lanes[next].place[kind][lane->before[kind][at]]);
    if (at + 1 == b->count) {
        find_first(b, r, at);
        return true;
    }
    mark_behind(lane, at + 1);
    lane->first = at + 1;
    b->key[r] = begin_at(b, r, at + 1);
    return true;
}

/* Brings all begins up to date. The rank whose first dirty action begins before
 * all others' goes on until it is well ahead of them: what it then times too
 * early is timed again, which is cheaper than changing ranks at every action. */
static bool time_all(Bench *b, double most)
{
    for (;;) {
        int r = 0, ranks = b->q->ranks;
        double other = INFINITY;
        for (int k = 1; k < ranks; k++)
            if (b->key[k] < b->key[r]) {
                other = b->key[r];
                r = k;
            } else if (b->key[k] < other) {
                other = b->key[k];
            }
        if (b->key[r] == INFINITY)
            return true;
        while (b->key[r] <= other + b->ahead && b->key[r] < INFINITY) {
            if (!time_first(b, r, most))
                return false;
            if (r > 0 && b->key[r - 1] < other)
                other = b->key[r - 1];
            if (r + 1 < ranks && b->key[r + 1] < other)
                other = b->key[r + 1];
        }
    }
}

/* The time of a rank above the target. */
static double over_target(const Bench *b, int r)
{
    const Lane *lane = &b->lanes[r];
    int last = b->count - 1;
    double over = lane->start[last] + lane->time[lane->kind[last]] -
                  origin(b, r) - b->target;
    return over > 0 ? over : 0;
}

/* Of all ranks together. */
static double excess(const Bench *b)
{
    double sum = 0;
    for (int r = 0; r < b->q->ranks; r++)
        sum += over_target(b, r);
    return sum;
}

/* After a move that is kept: the largest of all ranks. */
static double set_over(Bench *b)
{
    double most = 0;
    for (int r = 0; r < b->q->ranks; r++) {
        b->lanes[r].over = over_target(b, r);
        if (b->lanes[r].over > most)
            most = b->lanes[r].over;
    }
    return most;
}

/* What stands from `low` to `high`, counted again after a change of kinds. */
static void count_again(Lane *lane, int low, int high)
{
    int f = lane->before[0][low], i = lane->before[1][low];
    for (int at = low; at <= high; at++) {
        lane->before[0][at] = (short)f;
        lane->before[1][at] = (short)i;
        if (lane->kind[at] == SEARCH_F)
            lane->place[0][f++] = (short)at;
        else if (lane->kind[at] == SEARCH_I)
            lane->place[1][i++] = (short)at;
    }
}

/* Takes an action elsewhere; its begin goes with it. */
static void shift(Lane *lane, int from, int to)
{
    unsigned char moved = lane->kind[from];
    double start = lane->start[from], left = lane->left[from];
    size_t length = (size_t)(from < to ? to - from : from - to);
    int low = from < to ? from : to;
    unsigned char *kind = lane->kind + low;
    double *begin = lane->start + low, *leave = lane->left + low;
    if (from < to) {
        memmove(kind, kind + 1, length);
        memmove(begin, begin + 1, length * sizeof *begin);
        memmove(leave, leave + 1, length * sizeof *leave);
    } else {
        memmove(kind + 1, kind, length);
        memmove(begin + 1, begin, length * sizeof *begin);
        memmove(leave + 1, leave, length * sizeof *leave);
    }
    lane->kind[to] = moved;
    lane->start[to] = start;
    lane->left[to] = left;
    count_again(lane, low, low + (int)length);
}

/* F before I before W of each micro-batch, and never above the limit. */
static bool allowed(const Lane *lane, int low, int high)
{
    for (int at = low; at <= high; at++) {
        int f = lane->before[0][at], i = lane->before[1][at], w = at - f - i;
        f += lane->kind[at] == SEARCH_F;
        i += lane->kind[at] == SEARCH_I;
        w += lane->kind[at] == SEARCH_W;
        if (i > f || w > i ||
            (f - i) * lane->held + (i - w) * lane->kept > lane->limit)
            return false;
    }
    return true;
}

static void undo(Bench *b)
{
    while (b->changed > 0) {
        Change c = b->changes[--b->changed];
        b->lanes[c.rank].start[c.at] = c.start;
        b->lanes[c.rank].left[c.at] = c.left;
    }
    for (int r = 0; r < b->q->ranks; r++) {
        Lane *lane = &b->lanes[r];
        if (b->key[r] < INFINITY)
            memset(lane->dirty, 0, (size_t)b->words * sizeof *lane->dirty);
        b->key[r] = INFINITY;
        lane->first = b->count;
    }
}

typedef struct Move {
    int rank, from, to;
} Move;

/* Tries the move; keeps it when the excess grows from `now` by `more` at most. */
static bool try_move(Bench *b, Move m, double now, double more)
{
    Lane *lane = &b->lanes[m.rank];
    int low = m.from < m.to ? m.from : m.to,
        high = m.from < m.to ? m.to : m.from;
    b->changed = 0;
    for (int at = low; at <= high; at++)
        note(b, m.rank, at);
    shift(lane, m.from, m.to);
    if (allowed(lane, low, high)) {
        int last = high + (b->q->posted && b->matter ? 2 : 1);
        for (int at = low; at <= last && at < b->count; at++)
            mark_behind(lane, at);
        find_first(b, m.rank, low);
        if (time_all(b, more) && excess(b) <= now + more)
            return true;
    }
    shift(lane, m.to, m.from);
    undo(b);
    return false;
}

/* Moves an action by some places, not past one of its kind: then micro-batches
 * would change places. W may pass W, for nothing waits for a W. */
static bool near_move(Bench *b, Move *m, int r, int from, int to)
{
    const Lane *lane = &b->lanes[r];
    int kind = lane->kind[from], step = to > from ? 1 : -1;
    if (to < 0 || to >= b->count)
        to = to < 0 ? 0 : b->count - 1;
    if (kind != SEARCH_W)
        for (int at = from; at != to; at += step)
            if (lane->kind[at + step] == kind) {
                to = at;
                break;
            }
    *m = (Move){r, from, to};
    return from != to;
}

static bool random_move(Bench *b, Move *m)
{
    int r = draw_below(b, b->q->ranks), from = draw_below(b, b->count),
        far = 1 + draw_below(b, 1 << draw_below(b, 6));
    return near_move(b, m, r, from, draw(b) >> 63 ? from + far : from - far);
}

/* A rank above its target; -1: none. */
static int slow_rank(Bench *b)
{
    int found = -1, seen = 0;
    for (int r = 0; r < b->q->ranks; r++)
        if (b->lanes[r].over > 0 && draw_below(b, ++seen) == 0)
            found = r;
    return found;
}

/* An action of the rank that begins later than the one before it ends. */
static int idle_before(Bench *b, int r)
{
    const Lane *lane = &b->lanes[r];
    int found = -1, seen = 0;
    for (int at = 1; at < b->count; at++)
        if (lane->start[at] - lane->start[at - 1] -
                    lane->time[lane->kind[at - 1]] >
                1e-9 * b->target &&
            draw_below(b, ++seen) == 0)
            found = at;
    return found;
}

/* The action whose end lets the message of this one leave when it does: what sent
 * it, or what its posting waits for, or the same of a message before it. */
static void cause_of_message(const Bench *b, int *r, int *at)
{
    const Lane *lane = &b->lanes[*r];
    int kind = lane->kind[*at], from = kind == SEARCH_F ? *r - 1 : *r + 1;
    for (int micro = lane->before[kind][*at]; b->matter; micro--) {
        const Lane *other = &b->lanes[from];
        double sent = end_at(other, other->place[kind][micro]),
               post = b->q->posted ? end_at(lane, *at - 2) : 0;
        double before = micro > 0 ? lane->left[lane->place[kind][micro - 1]]
                                  : 0;
        if (post > sent && post >= before) {
            *at -= 2;
            return;
        }
        if (before <= sent)
            break;
        *at = lane->place[kind][micro - 1];
    }
    *at = b->lanes[from].place[kind][lane->before[kind][*at]];
    *r = from;
}

/* The action that the begin of this one waits for, on its own rank or on
 * another. False: none. */
static bool cause(const Bench *b, int *r, int *at)
{
    const Lane *lane = &b->lanes[*r];
    if (*at > 0 && lane->start[*at] <= end_at(lane, *at - 1)) {
        --*at;
        return true;
    }
    if (!receives(b, *r, lane->kind[*at]))
        return false;
    cause_of_message(b, r, at);
    return true;
}

/* Fills an idle time of a rank above its target with something later, or makes
 * earlier what the idle time waits for, some steps back. */
static bool aimed_move(Bench *b, Move *m)
{
    int r = slow_rank(b), at = r < 0 ? -1 : idle_before(b, r), kind;
    if (at < 0)
        return random_move(b, m);
    if (draw_below(b, 3) == 0) {
        const Lane *lane = &b->lanes[r];
        kind = draw_below(b, SEARCH_KINDS);
        for (int from = at + 1; from < b->count; from++)
            if (lane->kind[from] == kind)
                return near_move(b, m, r, from, at);
        return false;
    }
    for (int back = 1 + draw_below(b, 1 << draw_below(b, 7)); back > 0; back--)
        if (!cause(b, &r, &at))
            break;
    int far = 1 + draw_below(b, 1 << draw_below(b, 4));
    return near_move(b, m, r, at, draw_below(b, 4) ? at - far : at + far);
}

static void write_orders(const Bench *b, Sequence *orders)
{
    for (int r = 0; r < b->q->ranks; r++)
        for (int at = 0; at < b->count; at++)
            orders[r].at[at] = (short)(r * SEARCH_KINDS + b->lanes[r].kind[at]);
}

/* Anneals once, from hot to cold. */
static void anneal(Bench *b, Sequence *best, long long budget, double hot)
{
    double now = excess(b), least = set_over(b), least_sum = now, heat = hot;
    for (int tried = 0; b->timed < budget && now > 0; tried++) {
        Move m;
        b->timed++;
        if (tried % 64 == 0)
            heat = hot * pow(0.01, (double)b->timed / (double)budget);
        if (!(draw_below(b, 4) ? aimed_move(b, &m) : random_move(b, &m)) ||
            !try_move(b, m, now, -heat * log(draw_share(b))))
            continue;
        double over = set_over(b);
        now = excess(b);
        if (over < least || (over == least && now < least_sum)) {
            least = over;
            least_sum = now;
            write_orders(b, best);
        }
    }
}

static void read_orders(Bench *b, const Sequence *orders)
{
    for (int r = 0; r < b->q->ranks; r++) {
        Lane *lane = &b->lanes[r];
        for (int at = 0; at < b->count; at++) {
            lane->kind[at] = (unsigned char)(orders[r].at[at] % SEARCH_KINDS);
            lane->start[at] = lane->left[at] = 0;
        }
        lane->before[0][0] = lane->before[1][0] = 0;
        count_again(lane, 0, b->count - 1);
    }
    for (int r = 0; r < b->q->ranks; r++) {
        Lane *lane = &b->lanes[r];
        memset(lane->dirty, 0, (size_t)b->words * sizeof *lane->dirty);
        for (int at = 0; at < b->count; at++)
            mark_behind(lane, at);
        find_first(b, r, 0);
    }
    // Every begin is computed once after its inputs, or again after them.
    b->changed = 0;
    time_all(b, INFINITY);
}

static void open_lane(const Bench *b, Lane *lane, Arena *arena, int r)
{
    const Problem *q = b->q;
    size_t count = (size_t)b->count, row = (size_t)q->microbatches;
    lane->kind = arena_take(arena, count);
    lane->start = arena_take(arena, count * sizeof *lane->start);
    lane->left = arena_take(arena, count * sizeof *lane->left);
    lane->dirty = arena_take(arena, (size_t)b->words * sizeof *lane->dirty);
    for (int k = 0; k < 2; k++) {
        lane->before[k] = arena_take(arena, count * sizeof(short));
        lane->place[k] = arena_take(arena, row * sizeof(short));
    }
    for (int k = 0; k < SEARCH_KINDS; k++) {
        lane->time[k] = lane->after[k] = q->time[k][r];
        lane->work += q->microbatches * q->time[k][r];
    }
    if (r + 1 < q->ranks)
        lane->after[SEARCH_F] += q->message[r + 1];
    lane->after[SEARCH_I] += q->message[r];
    lane->held = q->held[r];
    lane->kept = q->kept[r];
    lane->limit = q->limit[r] * (1 + 1e-9);
}

static Bench open_bench(const Problem *q, Arena *arena, double target, int seed)
{
    Bench b = {.q = q, .target = target * (1 + 1e-10), .room = 4096};
    b.matter = wires_matter(q);
    b.count = SEARCH_KINDS * q->microbatches;
    b.words = b.count / 64 + 1;
    b.random = 0x9e3779b97f4a7c15u * ((uint64_t)seed + 1);
    b.lanes = arena_take(arena, (size_t)q->ranks * sizeof *b.lanes);
    b.key = arena_take(arena, (size_t)q->ranks * sizeof *b.key);
    b.changes = room((size_t)b.room, sizeof *b.changes);
    for (int r = 0; r < q->ranks; r++)
        open_lane(&b, &b.lanes[r], arena, r);
    b.ahead = 2 * b.lanes[0].time[SEARCH_F];
    return b;
}

static void close_bench(Bench *b)
{
    free(b->changes);
}

long long improve_orders(const Problem *q, Sequence *orders, double target,
                         double heat, int seed, long long budget)
{
    Arena *arena = arena_open();
    Bench b = open_bench(q, arena, target, seed);
    read_orders(&b, orders);
    anneal(&b, orders, budget, heat * b.lanes[0].time[SEARCH_F]);
    close_bench(&b);
    arena_close(arena);
    return b.timed;
}
