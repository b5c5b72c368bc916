/* search_vee_weigh.c: puts the W's of orders anew; F and I keep their order. */
#include "search_vee_board.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool step(Board *b, int rank, int entry, double patience)
{
    const Problem *q = b->q;
    int chunk = entry / SEARCH_KINDS, kind = entry % SEARCH_KINDS;
    double begin = board_arrival(b, kind, chunk);
    double more = action_growth(q, kind, chunk);
    if (isinf(begin))
        return false;
    for (int w = board_weight(b, rank); w >= 0; w = board_weight(b, rank)) {
        double limit = q->limit[rank] * (1 + 1e-9);
        if (b->clock[rank] + patience * q->time[SEARCH_W][w] >
                begin * (1 + 1e-12) &&
            b->held[rank] + more <= limit)
            break;
        board_put(b, SEARCH_W, w);
    }
    board_put(b, kind, chunk);
    return true;
}

bool vee_weigh(const Problem *q, Sequence *orders, double patience)
{
    Sequence *from = orders_copy(q, orders);
    Board b = board_open(q, orders);
    int *next = room((size_t)q->ranks, sizeof *next), moved = 1, left = 0;
    while (moved) {
        moved = 0;
        for (int r = 0; r < q->ranks; r++)
            while (next[r] < from[r].count) {
                int entry = from[r].at[next[r]];
                if (entry % SEARCH_KINDS != SEARCH_W &&
                    !step(&b, r, entry, patience))
                    break;
                next[r]++;
                moved++;
            }
    }
    for (int r = 0; r < q->ranks; r++) {
        left += from[r].count - next[r];
        for (int w = board_weight(&b, r); w >= 0; w = board_weight(&b, r))
            board_put(&b, SEARCH_W, w);
    }
    board_close(&b);
    free(next);
    orders_free(from);
    return left == 0;
}
