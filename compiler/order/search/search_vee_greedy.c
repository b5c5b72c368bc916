/* search_vee_greedy.c: the greedy schedule of ZB-V with the costs of a problem.
 *
 * As arXiv 2401.10241 (section 6) puts it: forwards until memory is full, then
 * rounds in which every rank does one backward and one forward, with W where it
 * delays nothing. On four ranks, f and b going back:
 *
 *     warm-up      F F F F F F F f      the first micro-batch turns, and others
 *                    F F F F F f f      follow as long as there is time and
 *                      F F F f F f      memory before it is back
 *                        F f F f F f
 *     balance      until every rank has as many forwards as the one before it
 *     rounds       I of the chunk that comes back if it may, else of the other;
 *                  F likewise
 *
 * Before a wait W runs if it fits, and, if it does not, may still run where the
 * rank would idle longer than the worst rank has: that wait is dearer than a
 * delay. The waits of a first pass tell a second one what the worst will be.
 * Four variants differ in whether that holds before F and before I; the
 * shortest is kept. */
#include "search_vee_board.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FORTH, BACK };

typedef struct Greedy {
    Board board;
    bool fill[2];            // [F, I] may W delay it
    const double *approved;  // [rank] idle time of the pass before, or NULL
    double worst_approved;
} Greedy;

/* The idle time that a rank may still add without being the worst. */
static double idle_allowed(const Greedy *x, int rank)
{
    const Board *b = &x->board;
    double most = 0;
    for (int r = 0; r < b->q->ranks; r++)
        most = fmax(most, b->idle[r]);
    if (x->approved)
        most = fmax(most, x->worst_approved - x->approved[rank]);
    return most - b->idle[rank];
}

static bool put_weight(Board *b, int rank)
{
    int chunk = board_weight(b, rank);
    if (chunk >= 0)
        board_put(b, SEARCH_W, chunk);
    return chunk >= 0;
}

/* Puts an action whose input is known. */
static bool put(Board *b, int kind, int chunk)
{
    if (isinf(board_arrival(b, kind, chunk)))
        return false;
    board_put(b, kind, chunk);
    return true;
}

static bool make_room(Board *b, int rank, double more)
{
    while (b->held[rank] + more > b->q->limit[rank] * (1 + 1e-9))
        if (!put_weight(b, rank))
            return false;
    return true;
}

/* An action after the W's that fit before it, and perhaps one that does not. */
static bool put_after_weights(Greedy *x, int rank, int kind, int chunk)
{
    Board *b = &x->board;
    const Problem *q = b->q;
    double more = action_growth(q, kind, chunk);
    double begin = board_arrival(b, kind, chunk);
    if (!make_room(b, rank, more) || isinf(begin))
        return false;
    for (int w = board_weight(b, rank);
         w >= 0 && b->clock[rank] + q->time[SEARCH_W][w] <= begin;
         w = board_weight(b, rank))
        board_put(b, SEARCH_W, w);
    bool always = kind == SEARCH_I && chunk < q->ranks;
    if ((always || x->fill[kind]) &&
        begin - b->clock[rank] > idle_allowed(x, rank))
        put_weight(b, rank);
    board_put(b, kind, chunk);
    return true;
}

static bool warm_up(Board *b)
{
    const Problem *q = b->q;
    int last = q->ranks - 1;
    for (int r = 0; r <= last; r++)
        if (!put(b, SEARCH_F, r))
            return false;
    for (int r = last; r >= 0; r--) {
        int chunk = board_chunk(q, r, BACK);
        double room = q->held[r] * (r + 1) + q->held[chunk] * (r + 1);
        while (b->held[r] + room <= q->limit[r] * (1 + 1e-9) &&
               b->clock[r] + q->time[SEARCH_F][r] <=
                   board_arrival(b, SEARCH_F, chunk) &&
               b->done[SEARCH_F][r] < q->microbatches && r < last)
            for (int j = 0; j <= r; j++)
                if (!put(b, SEARCH_F, j))
                    return false;
        if (!put(b, SEARCH_F, chunk))
            return false;
    }
    return true;
}

static int forwards(const Board *b, int rank)
{
    return b->done[SEARCH_F][rank] +
           b->done[SEARCH_F][board_chunk(b->q, rank, BACK)];
}

static bool balance(Board *b)
{
    const Problem *q = b->q;
    int side = FORTH;
    for (int r = 1; r < q->ranks; r++) {
        int *back = b->done[SEARCH_F] + board_chunk(q, r, BACK);
        while (forwards(b, r) < forwards(b, r - 1) ||
               (back[0] <= back[1] && back[1] < q->microbatches)) {
            for (int j = q->ranks - 1; j >= r; j--) {
                int chunk = board_chunk(q, j, side);
                if (b->done[SEARCH_F][chunk] < q->microbatches &&
                    (!make_room(b, j, q->held[chunk]) ||
                     !put(b, SEARCH_F, chunk)))
                    return false;
            }
            side = !side;
        }
    }
    return true;
}

/* The side whose I a rank takes in this round: what went forth, whose room has
 * been taken longest, if its input was there before the round. */
static int backward_side(const Board *b, int rank)
{
    if (!isinf(board_arrival(b, SEARCH_I, rank)))
        return FORTH;
    int back = board_chunk(b->q, rank, BACK);
    return b->done[SEARCH_I][back] < b->q->microbatches ? BACK : FORTH;
}

static bool backwards(Greedy *x, int *side)
{
    const Problem *q = x->board.q;
    for (int r = 0; r < q->ranks; r++)
        side[r] = backward_side(&x->board, r);
    for (int r = 0; r < q->ranks; r++)
        if (side[r] == BACK &&
            !put_after_weights(x, r, SEARCH_I, board_chunk(q, r, BACK)))
            return false;
    for (int r = q->ranks - 1; r >= 0; r--)
        if (side[r] == FORTH && !put_after_weights(x, r, SEARCH_I, r))
            return false;
    return true;
}

static bool round_of_forwards(Greedy *x)
{
    Board *b = &x->board;
    for (int r = 0; r < b->q->ranks; r++) {
        int chunk = board_chunk(b->q, r, BACK);
        if (isinf(board_arrival(b, SEARCH_F, chunk)))
            chunk = r;
        if (!isinf(board_arrival(b, SEARCH_F, chunk)) &&
            !put_after_weights(x, r, SEARCH_F, chunk))
            return false;
    }
    return true;
}

static bool attempt(Greedy *x, int *side)
{
    const Problem *q = x->board.q;
    board_clear(&x->board);
    if (!warm_up(&x->board) || !balance(&x->board))
        return false;
    for (int i = 0; i < 2 * q->microbatches; i++)
        if (!backwards(x, side) || !round_of_forwards(x))
            return false;
    for (int r = 0; r < q->ranks; r++)
        while (put_weight(&x->board, r)) {
        }
    return true;
}

/* Passes of one variant, as long as they shorten it. The best is kept. */
static void improve(Greedy *x, VeeBest *best)
{
    const Problem *q = x->board.q;
    double *approved = room((size_t)q->ranks, sizeof *approved);
    int *side = room((size_t)q->ranks, sizeof *side);
    double worst = INFINITY;
    x->approved = NULL;
    while (attempt(x, side)) {
        double idle = 0;
        vee_best_offer(best, q, x->board.orders);
        for (int r = 0; r < q->ranks; r++)
            idle = fmax(idle, x->board.idle[r]);
        if (idle >= worst)
            break;
        worst = x->worst_approved = idle;
        memcpy(approved, x->board.idle, (size_t)q->ranks * sizeof *approved);
        x->approved = approved;
    }
    free(approved);
    free(side);
}

bool vee_greedy(const Problem *q, Sequence *orders)
{
    static const VeeRule plain = {.bias = {{0, 0.2, 3}, {-0.5, -0.7, 3}},
                                  .share = 1};
    VeeBest best = vee_best_open(q);
    Greedy x = {.board = board_open(q, orders)};
    for (int variant = 0; variant < 4; variant++) {
        x.fill[SEARCH_F] = variant & 1;
        x.fill[SEARCH_I] = variant & 2;
        improve(&x, &best);
    }
    board_close(&x.board);
    if (vee_list(q, &plain, orders))
        vee_best_offer(&best, q, orders);
    bool good = vee_best_give(&best, q, orders);
    vee_best_drop(&best);
    return good;
}
