/* search_whole.c: whole backwards beside split ones, where a B takes less time than
 * its I and its W.
 *
 * The other parts of the search know only I and W. So they also search a problem in
 * which an I takes the time of the B and a W none; what they find for either is then
 * mended by moves of single actions and of an I with its W, which may leave one
 * another and meet again. Every move is timed in full by order_result, which counts
 * an I with its W behind it as one action.
 *
 *     split      F F I W F I W      all ranks, or those where B takes longer
 *     whole      F F B   F B
 *     mended     F F B   F I F W    a gradient handed back early where one waits */
#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_shorter(const Problem *q, int chunk)
{
    return q->whole && q->whole[chunk] <
                           q->time[SEARCH_I][chunk] + q->time[SEARCH_W][chunk];
}

Problem whole_problem(const Problem *q, double *numbers)
{
    Problem made = *q;
    double *input = numbers, *weight = input + q->chunks,
           *kept = weight + q->chunks;
    for (int c = 0; c < q->chunks; c++) {
        bool shorter = is_shorter(q, c);
        input[c] = shorter ? q->whole[c] : q->time[SEARCH_I][c];
        weight[c] = shorter ? 0 : q->time[SEARCH_W][c];
        kept[c] = shorter ? 0 : q->kept[c];
    }
    made.time[SEARCH_I] = input;
    made.time[SEARCH_W] = weight;
    made.kept = kept;
    made.whole = NULL;
    return made;
}

void join_weights(const Problem *q, Sequence *orders)
{
    for (int r = 0; r < q->ranks; r++) {
        Sequence *order = &orders[r];
        size_t bytes = (size_t)order->count * sizeof *order->at;
        short *from = room(bytes + 1, 1);
        memcpy(from, order->at, bytes);
        int count = 0;
        for (int i = 0; i < order->count; i++) {
            int kind = from[i] % SEARCH_KINDS;
            bool shorter = is_shorter(q, from[i] / SEARCH_KINDS);
            if (kind != SEARCH_W || !shorter)
                order->at[count++] = from[i];
            if (kind == SEARCH_I && shorter)
                order->at[count++] = (short)(from[i] + SEARCH_W - SEARCH_I);
        }
        free(from);
    }
}

/* `length` entries from `from` on change places with those up to `to`. */
static void rotate(short *at, int from, int length, int to)
{
    short moved[2];
    memcpy(moved, at + from, (size_t)length * sizeof *at);
    if (to < from)
        memmove(at + to + length, at + to, (size_t)(from - to) * sizeof *at);
    else
        memmove(at + from, at + from + length,
                (size_t)(to - from) * sizeof *at);
    memcpy(at + to, moved, (size_t)length * sizeof *at);
}

typedef struct Step {
    int rank, from, length, to;
} Step;

/* Where the W at `index` would stand right behind its I. */
static int behind_input(const Sequence *order, int index)
{
    int entry = order->at[index], number = 0, at = 0;
    for (int i = 0; i < index; i++)
        number += order->at[i] == entry;
    for (; at < order->count; at++)
        if (order->at[at] == entry - SEARCH_W + SEARCH_I && number-- == 0)
            break;
    return at + 1;
}

static Step propose(const Problem *q, const Sequence *orders,
                    unsigned long long *dice)
{
    int rank = roll_below(dice, q->ranks);
    const Sequence *order = &orders[rank];
    int from = roll_below(dice, order->count), entry = order->at[from];
    bool pair = entry % SEARCH_KINDS == SEARCH_I && from + 1 < order->count &&
                order->at[from + 1] == entry + 1;
    int length = pair && roll(dice) < 0.7 ? 2 : 1;
    int far = 1 + roll_below(dice, 1 << roll_below(dice, 5)),
        to = roll(dice) < 0.5 ? from - far : from + far;
    if (entry % SEARCH_KINDS == SEARCH_W && roll(dice) < 0.3)
        to = behind_input(order, from);
    to = to < 0 ? 0 : to;
    to = to > order->count - length ? order->count - length : to;
    return (Step){rank, from, length, to};
}

static void make_step(Sequence *orders, Step s)
{
    rotate(orders[s.rank].at, s.from, s.length, s.to);
}

static void copy(const Problem *q, Sequence *to, const Sequence *from)
{
    for (int r = 0; r < q->ranks; r++)
        memcpy(to[r].at, from[r].at, (size_t)from[r].count * sizeof(short));
}

void mend_orders(const Problem *q, Sequence *best, int seed, double budget)
{
    Arena *arena = arena_open();
    Sequence *orders = arena_take(arena, (size_t)q->ranks * sizeof *orders);
    unsigned long long dice = (unsigned long long)seed + 1;
    double all = 0, hot = 0;
    for (int r = 0; r < q->ranks; r++) {
        orders[r] = (Sequence){
            arena_take(arena, (size_t)best[r].count * sizeof(short)),
            best[r].count};
        all += best[r].count;
    }
    for (int c = 0; c < q->chunks; c++)
        hot += 0.3 * q->time[SEARCH_F][c] / q->chunks;
    copy(q, orders, best);
    Result result;
    double now = order_result(q, orders, &result, NULL) ? metric_of(q, &result)
                                                        : INFINITY;
    double least = now;
    for (double timed = 0; timed < budget; timed += all) {
        Step s = propose(q, orders, &dice);
        double heat = hot * (1 - timed / budget);
        double most = now - heat * log(roll(&dice) + 1e-300);
        make_step(orders, s);
        if (!order_result(q, orders, &result, NULL) ||
            metric_of(q, &result) > most || !order_fits(q, orders)) {
            make_step(orders, (Step){s.rank, s.to, s.length, s.from});
            continue;
        }
        now = metric_of(q, &result);
        if (now < least * (1 - 1e-12)) {
            least = now;
            copy(q, best, orders);
        }
    }
    arena_close(arena);
}
