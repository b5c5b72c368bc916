/* search_vee_fill.c: moves actions up into idle time, where they delay nothing.
 *
 *     before   F F . . I W F I W        another F fits into the wait, has its
 *     after    F F F . I W I W          input and the room
 *
 * An action that moves so begins earlier, and nothing begins later; the orders
 * then close up. Every pass looks at the times that the pass before left, which
 * stay true for all its moves: they only ever get better. A message may hold up
 * another on its wire, though, and posted receives move with the entries: there
 * this is a guess, and whoever calls times what comes out. */
#include "search_vee_board.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PASSES = 6 };  // later ones move little

typedef struct Fill {
    const Problem *q;
    Sequence *orders;
    double **start;             // [rank][index]
    double *end[SEARCH_KINDS];  // [chunk * microbatches + micro]
    double *held;               // [index] of one rank, after the entry
} Fill;

static double memory_step(const Problem *q, int entry)
{
    return action_growth(q, entry % SEARCH_KINDS, entry / SEARCH_KINDS);
}

static bool measure(Fill *x)
{
    const Problem *q = x->q;
    Result result;
    if (!order_result(q, x->orders, &result, x->start))
        return false;
    for (int r = 0; r < q->ranks; r++) {
        int seen[2][SEARCH_KINDS] = {{0}};
        for (int i = 0; i < x->orders[r].count; i++) {
            int entry = x->orders[r].at[i], chunk = entry / SEARCH_KINDS,
                kind = entry % SEARCH_KINDS;
            int micro = seen[chunk >= q->ranks][kind]++;
            x->end[kind][chunk * q->microbatches + micro] =
                x->start[r][i] + q->time[kind][chunk];
        }
    }
    return true;
}

/* When micro-batch `micro` could run after everything before the gap, of which
 * `seen` says how many have; INFINITY: not in this gap. */
static double could_begin(const Fill *x, int entry, int seen[2][SEARCH_KINDS])
{
    const Problem *q = x->q;
    int chunk = entry / SEARCH_KINDS, kind = entry % SEARCH_KINDS;
    int *own = seen[chunk >= q->ranks], micro = own[kind];
    int from = kind == SEARCH_F ? chunk - 1 : chunk + 1;
    if (kind != SEARCH_F && own[kind - 1] <= micro)
        return INFINITY;
    if (kind == SEARCH_W || from < 0 || from == q->chunks)
        return 0;
    if (q->rank[from] == q->rank[chunk] &&
        seen[from >= q->ranks][kind] <= micro)
        return INFINITY;
    return x->end[kind][from * q->microbatches + micro] +
           crossing(q, kind == SEARCH_F ? chunk : from);
}

/* May the entry at `from` move to `to`. */
static bool room_between(const Fill *x, int rank, int to, int from)
{
    double more = memory_step(x->q, x->orders[rank].at[from]);
    double limit = x->q->limit[rank] * (1 + 1e-9);
    if (more <= 0)
        return true;
    if ((to > 0 ? x->held[to - 1] : 0) + more > limit)
        return false;
    for (int i = to; i < from; i++)
        if (x->held[i] + more > limit)
            return false;
    return true;
}

/* The entry that moves into the gap before index `at`; -1: none. */
static int find_filler(const Fill *x, int rank, int at, double from,
                       int seen[2][SEARCH_KINDS])
{
    const Sequence *order = &x->orders[rank];
    int looked = 0, left = 0, weight = -1;
    for (int bit = 0; bit < 2 * SEARCH_KINDS; bit++)
        if (seen[bit % 2][bit / 2] < x->q->microbatches)
            left |= 1 << bit;
    for (int j = at; looked != left; j++) {
        int entry = order->at[j], kind = entry % SEARCH_KINDS,
            chunk = entry / SEARCH_KINDS;
        int bit = 1 << (kind * 2 + (chunk >= x->q->ranks));
        if (looked & bit)
            continue;
        looked |= bit;
        double begin = fmax(from, could_begin(x, entry, seen));
        if (j == at ||
            begin + x->q->time[kind][chunk] >
                x->start[rank][at] * (1 + 1e-12) ||
            !room_between(x, rank, at, j))
            continue;
        if (kind != SEARCH_W)
            return j;
        weight = weight < 0 ? j : weight;
    }
    return weight;
}

static void move_up(Fill *x, int rank, int from, int to)
{
    short *at = x->orders[rank].at, entry = at[from];
    double more = memory_step(x->q, entry);
    memmove(at + to + 1, at + to, (size_t)(from - to) * sizeof *at);
    memmove(x->start[rank] + to + 1, x->start[rank] + to,
            (size_t)(from - to) * sizeof(double));
    at[to] = entry;
    for (int i = from; i > to; i--)
        x->held[i] = x->held[i - 1] + more;
    x->held[to] = (to > 0 ? x->held[to - 1] : 0) + more;
}

/* Fills the gaps of a rank; how many entries moved. */
static int fill_rank(Fill *x, int rank)
{
    const Problem *q = x->q;
    Sequence *order = &x->orders[rank];
    int seen[2][SEARCH_KINDS] = {{0}}, moved = 0;
    double clock = 0, held = 0;
    for (int i = 0; i < order->count; i++)
        x->held[i] = held += memory_step(q, order->at[i]);
    for (int i = 0; i < order->count; i++) {
        int filler = x->start[rank][i] > clock * (1 + 1e-12)
                         ? find_filler(x, rank, i, clock, seen)
                         : -1;
        if (filler >= 0) {
            double begin = fmax(clock, could_begin(x, order->at[filler], seen));
            move_up(x, rank, filler, i);
            x->start[rank][i] = begin;
            moved++;
        }
        int entry = order->at[i], chunk = entry / SEARCH_KINDS;
        seen[chunk >= q->ranks][entry % SEARCH_KINDS]++;
        clock = x->start[rank][i] + q->time[entry % SEARCH_KINDS][chunk];
    }
    return moved;
}

void vee_fill(const Problem *q, Sequence *orders)
{
    size_t row = 2 * SEARCH_KINDS * (size_t)q->microbatches,
           ranks = (size_t)q->ranks;
    double *numbers = room((2 * ranks + 1) * row, sizeof *numbers);
    Fill x = {.q = q, .orders = orders};
    x.start = room(ranks, sizeof *x.start);
    for (size_t r = 0; r < ranks; r++)
        x.start[r] = numbers + r * row;
    for (int k = 0; k < SEARCH_KINDS; k++)
        x.end[k] = numbers + ranks * row + (size_t)k * row / 3 * ranks;
    x.held = numbers + 2 * ranks * row;
    for (int pass = 0, moved = 1; pass < PASSES && moved > 0 && measure(&x);
         pass++) {
        moved = 0;
        for (int r = 0; r < q->ranks; r++)
            moved += fill_rank(&x, r);
    }
    free(numbers);
    free(x.start);
}
