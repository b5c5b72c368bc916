/* search_rounds.c: orders of one chunk per rank, built round by round.
 *
 * Round 0 gives each rank its warm-up: some forwards, then one I. In each later
 * round every rank, first to last, may take one more forward; then every rank,
 * last to first, takes one I:
 *
 *     rank 0   F F F F F . . I  [W] F [W] I  ...
 *     rank 1     F F F . . I    [W] F [W] I
 *     rank 2       F . . I      [W] F [W] I
 *                  round 0      round 1
 *
 * Each time is exact when an action is placed, since its input was placed
 * before. A W goes where it fits without delay, where memory requires it, and
 * where idle time would exceed that of another rank. */
#include "search_linear.h"

#include <math.h>
#include <stdlib.h>

typedef struct Draft {
    const Problem *q;
    const RoundsRecipe *recipe;
    const int *warm;  // [rank]
    Sequence *orders;
    double *end[SEARCH_KINDS];  // [rank * microbatches + micro]; of W not known
    double *clock, *memory, *idle,
        *ahead;     // [rank]; the work it has not yet run
    double *first;  // [rank] what its time is counted from
    double *post;   // [rank] end of the action before its last
    double *left
        [SEARCH_W];  // [rank] when the last message for an F, an I left its wire
    int *done[SEARCH_KINDS];  // [rank]
    double most_idle;         // of all ranks
    double most;              // that the value may be
    long long placed;         // actions
    bool failed;  // an action has no room, or the value will be above
} Draft;

/* When the message for the rank's next action of this kind leaves its wire; 0: it
 * needs none. */
static double carried(const Draft *d, int kind, int r)
{
    const Problem *q = d->q;
    int from = kind == SEARCH_F ? r - 1 : r + 1;
    if (kind == SEARCH_W || from < 0 || from == q->ranks)
        return 0;
    return off_wire(q, boundary_before(kind, r),
                    d->end[kind][from * q->microbatches + d->done[kind][r]],
                    d->left[kind][r], d->post[r]);
}

/* When the input of the rank's next action of this kind is there. */
static double arrival(const Draft *d, int kind, int r)
{
    double left = carried(d, kind, r);
    return left > 0 ? left + d->q->message[boundary_before(kind, r)] : 0;
}

static void put(Draft *d, int kind, int r)
{
    const Problem *q = d->q;
    double ready = arrival(d, kind, r),
           begin = ready > d->clock[r] ? ready : d->clock[r];
    if (d->done[SEARCH_F][r] > 0)
        d->idle[r] += begin - d->clock[r];
    else if (q->metric == METRIC_SPAN)
        d->first[r] = begin;
    if (d->idle[r] > d->most_idle)
        d->most_idle = d->idle[r];
    if (kind != SEARCH_W)
        d->left[kind][r] = carried(d, kind, r);
    d->post[r] = d->clock[r];
    d->clock[r] = begin + q->time[kind][r];
    d->end[kind][r * q->microbatches + d->done[kind][r]++] = d->clock[r];
    d->memory[r] += action_growth(q, kind, r);
    d->orders[r].at[d->orders[r].count++] = (short)(r * SEARCH_KINDS + kind);
    d->placed++;
    d->ahead[r] -= q->time[kind][r];
    d->failed |= d->clock[r] + d->ahead[r] - d->first[r] > d->most;
}

static bool has_room(const Draft *d, int kind, int r)
{
    return d->memory[r] + action_growth(d->q, kind, r) <=
           d->q->limit[r] * (1 + 1e-9);
}

static bool has_weight(const Draft *d, int r)
{
    return d->done[SEARCH_W][r] < d->done[SEARCH_I][r];
}

/* Places the W that come before the rank's next action of this kind. */
static void put_weights(Draft *d, int kind, int r)
{
    double ready = arrival(d, kind, r), each = d->q->time[SEARCH_W][r];
    while (!has_room(d, kind, r) && has_weight(d, r))
        put(d, SEARCH_W, r);
    d->failed |= !has_room(d, kind, r);
    if (d->recipe->delay >= 0)
        return;
    while (has_weight(d, r) && d->clock[r] + each <= ready + 1e-9 * ready)
        put(d, SEARCH_W, r);
    double gap = ready - d->clock[r];
    if (gap > 1e-9 * ready && has_weight(d, r) &&
        (d->recipe->fill || gap > d->most_idle - d->idle[r]))
        put(d, SEARCH_W, r);
}

/* Should the rank, in this round, take a forward before its I. */
static bool takes_forward(const Draft *d, int r, double back)
{
    const Problem *q = d->q;
    const int *forwards = d->done[SEARCH_F];
    if (forwards[r] == q->microbatches ||
        (r > 0 && forwards[r - 1] == forwards[r]))
        return false;
    if (forwards[r] == d->done[SEARCH_I][r])
        return true;
    if (r + 1 < q->ranks && forwards[r] <= forwards[r + 1])
        return true;
    if (!d->recipe->backward_first)
        return true;
    double slack = fmax(0, d->most_idle - d->idle[r]);
    double begin = fmax(arrival(d, SEARCH_F, r), d->clock[r]);
    return begin + q->time[SEARCH_F][r] <= back + slack;
}

/* Without delays, the next I of each rank arrives no earlier than this. */
static void guess_arrivals(const Draft *d, double *back)
{
    const Problem *q = d->q;
    for (int r = q->ranks - 1; r >= 0; r--) {
        back[r] = 0;
        if (r + 1 < q->ranks)
            back[r] = fmax(back[r + 1], d->clock[r + 1]) +
                      q->time[SEARCH_I][r + 1] + crossing(q, r + 1);
    }
}

static void forward_part(Draft *d)
{
    double back[d->q->ranks];
    guess_arrivals(d, back);
    for (int r = 0; r < d->q->ranks; r++)
        if (takes_forward(d, r, back[r])) {
            put_weights(d, SEARCH_F, r);
            put(d, SEARCH_F, r);
        }
}

static void backward_part(Draft *d)
{
    for (int r = d->q->ranks - 1; r >= 0; r--) {
        put_weights(d, SEARCH_I, r);
        put(d, SEARCH_I, r);
        if (d->recipe->delay >= 0 &&
            d->done[SEARCH_I][r] > d->recipe->delay * r)
            put(d, SEARCH_W, r);
    }
}

static void all_rounds(Draft *d)
{
    const Problem *q = d->q;
    for (int r = 0; r < q->ranks; r++)
        while (d->done[SEARCH_F][r] < d->warm[r])
            put(d, SEARCH_F, r);
    backward_part(d);
    for (int round = 1; round < q->microbatches && !d->failed; round++) {
        forward_part(d);
        backward_part(d);
    }
    for (int r = 0; r < q->ranks && !d->failed; r++)
        while (has_weight(d, r))
            put(d, SEARCH_W, r);
}

bool rounds_orders(const Problem *q, const RoundsRecipe *recipe,
                   const int *warm, double most, Sequence *orders,
                   long long *timed)
{
    size_t ranks = (size_t)q->ranks, cells = ranks * (size_t)q->microbatches;
    double *numbers = room(SEARCH_KINDS * cells + 8 * ranks, sizeof *numbers);
    int *counts = room(SEARCH_KINDS * ranks, sizeof *counts);
    Draft d = {
        .q = q, .recipe = recipe, .warm = warm, .most = most, .orders = orders};
    for (int k = 0; k < SEARCH_KINDS; k++) {
        d.end[k] = numbers + (size_t)k * cells;
        d.done[k] = counts + (size_t)k * ranks;
    }
    d.clock = numbers + SEARCH_KINDS * cells;
    d.memory = d.clock + ranks;
    d.idle = d.memory + ranks;
    d.post = d.idle + ranks;
    d.left[SEARCH_F] = d.post + ranks;
    d.left[SEARCH_I] = d.left[SEARCH_F] + ranks;
    d.ahead = d.left[SEARCH_I] + ranks;
    d.first = d.ahead + ranks;
    for (int r = 0; r < q->ranks; r++) {
        orders[r].count = 0;
        d.ahead[r] = work_in_parts(q, r);
    }
    all_rounds(&d);
    *timed += d.placed;
    free(numbers);
    free(counts);
    return !d.failed;
}
