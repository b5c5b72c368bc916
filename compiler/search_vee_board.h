/* search_vee_board.h: orders of a Vee problem while they are written, and the
 * earliest times of what they hold so far. */
#ifndef SEARCH_VEE_BOARD_H
#define SEARCH_VEE_BOARD_H

#include "search_vee.h"

typedef struct Board {
    const Problem *q;
    Order *orders;
    double *end[SEARCH_KINDS];              // [chunk * microbatches + micro]
    int *done[SEARCH_KINDS];                // [chunk]
    double *clock, *held, *idle;            // [rank]; idle: since its first entry
} Board;

Board board_open(const Problem *q, Order *orders);
void board_clear(Board *x);
void board_close(Board *x);
/* The rank's chunk that goes forth, or the one that comes back. */
int board_chunk(const Problem *q, int rank, bool back);
/* When the input of the next micro-batch is there; INFINITY: not yet known, or
 * there is none left. */
double board_arrival(const Board *x, int kind, int chunk);
/* Appends the next micro-batch, whose arrival is known. */
void board_put(Board *x, int kind, int chunk);

/* The best of several orders. */
typedef struct VeeBest {
    double value, second;                   // by the problem's metric, and by the other; INFINITY: none yet
    short *entries;                         // [rank * entries of a rank + index]
} VeeBest;

VeeBest vee_best_open(const Problem *q);
/* Keeps the orders if they run, fit and are better; whether they were. */
bool vee_best_offer(VeeBest *best, const Problem *q, const Order *orders);
/* The best into orders; false: there was none. */
bool vee_best_close(VeeBest *best, const Problem *q, Order *orders);

#endif
