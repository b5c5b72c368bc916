/* search_vee_list.c: a list scheduler for two chunks per rank.
 *
 * The rank whose next action begins first commits it, so that every choice
 * knows all that could have arrived by then, and the end of what is under way.
 *
 * A rank that gave all its memory to forwards on their way forth could not take
 * them when they come back, and would wait for ever: as long as no micro-batch
 * on its way back is held, room for one is kept. With that the oldest
 * micro-batch always moves on, and every problem is solved in which a rank can
 * hold one micro-batch of both its chunks. */
#include "search_vee_board.h"

#include <math.h>
#include <stdlib.h>

typedef struct Choice {
    int chunk, kind;
    double begin, rank;  // INFINITY: nothing can be done yet
} Choice;

/* What the rule comes to on a rank. */
typedef struct Taste {
    double bias[2][SEARCH_KINDS];
    double room;  // memory kept for forwards on their way back, in units of one
} Taste;

typedef struct Dispatch {
    Board board;
    const VeeRule *rule;
    Taste *taste;  // [rank]
    Choice *next;  // [rank]
    int *
        first;  // [leaves + rank] rank; above, the one of two that begins first
    int leaves;
} Dispatch;

/* Room that a forward on its way forth must leave for those on their way
 * back. */
static double room_kept(const Dispatch *x, int rank)
{
    const Board *b = &x->board;
    int back = b->q->chunks - 1 - rank;
    int inside = b->done[SEARCH_F][back] - b->done[SEARCH_I][back];
    double wanted = x->taste[rank].room;
    if (b->done[SEARCH_F][back] == b->q->microbatches)
        return 0;
    if (b->done[SEARCH_F][rank] == b->done[SEARCH_I][rank])
        wanted = 1;
    return wanted > inside ? (wanted - inside) * b->q->held[back] : 0;
}

static bool fits(const Dispatch *x, int rank, int chunk)
{
    const Problem *q = x->board.q;
    double kept = chunk < q->ranks ? room_kept(x, rank) : 0;
    return x->board.held[rank] + q->held[chunk] + kept <=
           q->limit[rank] * (1 + 1e-9);
}

/* The rule on one rank; times come in units of an average action. */
static Taste taste_of(const Problem *q, const VeeRule *rule, int rank)
{
    Taste t;
    double unit = 0, slots = q->limit[rank] / q->held[q->chunks - 1 - rank];
    double stay = (double)(rank + 1) / (q->chunks + 1),
           along = q->ranks > 1 ? (double)rank / (q->ranks - 1) : 0;
    for (int k = 0; k < SEARCH_KINDS; k++)
        for (int c = 0; c < q->chunks; c++)
            unit += q->time[k][c] / (SEARCH_KINDS * q->chunks);
    for (int k = 0; k < SEARCH_KINDS; k++)
        for (int back = 0; back < 2; back++)
            t.bias[back][k] = unit * (rule->bias[back][k] +
                                      along * rule->slope[back][k]);
    t.room = isinf(slots) ? 1 : floor(rule->spare + rule->share * stay * slots);
    t.room = t.room < 1 || isnan(t.room) ? 1 : t.room;
    return t;
}

static Choice choose(const Dispatch *x, int rank)
{
    const Problem *q = x->board.q;
    const VeeRule *rule = x->rule;
    Choice best = {.rank = INFINITY, .begin = INFINITY};
    double urgent = INFINITY;  // of forwards that wait for room
    for (int kind = 0; kind < SEARCH_KINDS; kind++)
        for (int back = 1; back >= 0; back--) {
            int chunk = board_chunk(q, rank, back);
            double begin = board_arrival(&x->board, kind, chunk);
            if (isinf(begin))
                continue;
            begin = later(begin, x->board.clock[rank]);
            double place = begin + x->taste[rank].bias[back][kind];
            if (rule->plan)
                place += rule->follow *
                         (rule->plan[kind][chunk * q->microbatches +
                                           x->board.done[kind][chunk]] -
                          begin);
            if (kind == SEARCH_F && !fits(x, rank, chunk)) {
                urgent = urgent < place ? urgent : place;
                continue;
            }
            if (kind == SEARCH_W && urgent < place)
                place = urgent;
            if (place < best.rank)
                best = (Choice){chunk, kind, begin, place};
        }
    return best;
}

/* Renews the choice of a rank, and the tree above it, whose root is at 1. */
static void renew(Dispatch *x, int rank)
{
    x->next[rank] = choose(x, rank);
    for (int at = (x->leaves + rank) / 2; at > 0; at /= 2) {
        int a = x->first[2 * at], b = x->first[2 * at + 1];
        x->first[at] = b < 0 || (a >= 0 && x->next[a].begin <= x->next[b].begin)
                           ? a
                           : b;
    }
}

static bool dispatch(Dispatch *x)
{
    const Problem *q = x->board.q;
    int left = SEARCH_KINDS * q->chunks * q->microbatches;
    for (int i = 0; i < 2 * x->leaves; i++)
        x->first[i] = i >= x->leaves && i < x->leaves + q->ranks ? i - x->leaves
                                                                 : -1;
    for (int r = q->ranks - 1; r >= 0; r--)
        x->next[r].begin = INFINITY;
    for (int r = 0; r < q->ranks; r++)
        renew(x, r);
    for (; left > 0; left--) {
        int rank = x->first[1];
        if (isinf(x->next[rank].begin))
            return false;
        board_put(&x->board, x->next[rank].kind, x->next[rank].chunk);
        for (int r = rank - 1; r <= rank + 1; r++)
            if (r >= 0 && r < q->ranks)
                renew(x, r);
    }
    return true;
}

bool vee_list(const Problem *q, const VeeRule *rule, Sequence *orders)
{
    Dispatch x = {.board = board_open(q, orders), .rule = rule};
    x.next = room((size_t)q->ranks, sizeof *x.next);
    x.taste = room((size_t)q->ranks, sizeof *x.taste);
    for (x.leaves = 1; x.leaves < q->ranks; x.leaves *= 2) {
    }
    x.first = room(2 * (size_t)x.leaves, sizeof *x.first);
    for (int r = 0; r < q->ranks; r++)
        x.taste[r] = taste_of(q, rule, r);
    bool good = dispatch(&x);
    board_close(&x.board);
    free(x.next);
    free(x.taste);
    free(x.first);
    return good;
}
