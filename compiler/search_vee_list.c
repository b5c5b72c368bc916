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

typedef struct Dispatch {
    Board board;
    const VeeRule *rule;
    double unit;   // average time of an action
    Choice *next;  // [rank]
} Dispatch;

/* Room that a forward on its way forth must leave for those on their way
 * back. */
static double room_kept(const Dispatch *x, int rank)
{
    const Problem *q = x->board.q;
    int back = board_chunk(q, rank, true);
    int inside = x->board.done[SEARCH_F][back] - x->board.done[SEARCH_I][back];
    int forth_inside = x->board.done[SEARCH_F][rank] -
                       x->board.done[SEARCH_I][rank];
    double slots = q->limit[rank] / (q->held[back] + 1e-300);
    double stay = (double)(rank + 1) / (q->chunks + 1);
    double wanted = floor(x->rule->spare + x->rule->share * stay * slots);
    if (x->board.done[SEARCH_F][back] == q->microbatches)
        return 0;
    if (wanted < 1 || isinf(slots) || forth_inside == 0)
        wanted = 1;
    return wanted > inside ? (wanted - inside) * q->held[back] : 0;
}

static bool fits(const Dispatch *x, int rank, int chunk)
{
    const Problem *q = x->board.q;
    double kept = chunk < q->ranks ? room_kept(x, rank) : 0;
    return x->board.held[rank] + q->held[chunk] + kept <=
           q->limit[rank] * (1 + 1e-9);
}

static double bias(const Dispatch *x, int rank, bool back, int kind)
{
    double along = x->board.q->ranks > 1
                       ? (double)rank / (x->board.q->ranks - 1)
                       : 0;
    return x->unit *
           (x->rule->bias[back][kind] + along * x->rule->slope[back][kind]);
}

static Choice choose(const Dispatch *x, int rank)
{
    const Problem *q = x->board.q;
    Choice best = {.rank = INFINITY, .begin = INFINITY};
    double urgent = INFINITY;  // of forwards that wait for room
    for (int kind = 0; kind < SEARCH_KINDS; kind++)
        for (int back = 1; back >= 0; back--) {
            int chunk = board_chunk(q, rank, back);
            double begin = fmax(board_arrival(&x->board, kind, chunk),
                                x->board.clock[rank]);
            double place = bias(x, rank, back, kind);
            if (isinf(begin))
                continue;
            if (kind == SEARCH_F && !fits(x, rank, chunk)) {
                urgent = fmin(urgent, begin + place);
                continue;
            }
            if (kind == SEARCH_W)
                place = fmin(place, urgent - begin);
            if (begin + place < best.rank)
                best = (Choice){chunk, kind, begin, begin + place};
        }
    return best;
}

static void commit(Dispatch *x, int rank)
{
    const Problem *q = x->board.q;
    board_put(&x->board, x->next[rank].kind, x->next[rank].chunk);
    for (int r = rank - 1; r <= rank + 1; r++)
        if (r >= 0 && r < q->ranks)
            x->next[r] = choose(x, r);
}

static bool dispatch(Dispatch *x)
{
    const Problem *q = x->board.q;
    int left = SEARCH_KINDS * q->chunks * q->microbatches;
    for (int r = 0; r < q->ranks; r++)
        x->next[r] = choose(x, r);
    for (; left > 0; left--) {
        int first = 0;
        for (int r = 1; r < q->ranks; r++)
            if (x->next[r].begin < x->next[first].begin)
                first = r;
        if (isinf(x->next[first].begin))
            return false;
        commit(x, first);
    }
    return true;
}

bool vee_list(const Problem *q, const VeeRule *rule, Order *orders)
{
    Dispatch x = {.board = board_open(q, orders), .rule = rule};
    x.next = malloc((size_t)q->ranks * sizeof *x.next);
    if (!x.next)
        abort();
    for (int k = 0; k < SEARCH_KINDS; k++)
        for (int c = 0; c < q->chunks; c++)
            x.unit += q->time[k][c] / (SEARCH_KINDS * q->chunks);
    bool good = dispatch(&x);
    board_close(&x.board);
    free(x.next);
    return good;
}
