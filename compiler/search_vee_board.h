/* search_vee_board.h: orders of a Vee problem while they are written, and the
 * earliest times of what they hold so far. */
#ifndef SEARCH_VEE_BOARD_H
#define SEARCH_VEE_BOARD_H

#include "search_vee.h"

typedef struct Board {
    const Problem *q;
    Order *orders;
    double *end[SEARCH_KINDS];    // [chunk * microbatches + micro]
    int *done[SEARCH_KINDS];      // [chunk]
    double *clock, *held, *idle;             // [rank]; idle since its first entry
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
/* The chunk whose W waits longest; -1: none waits. */
int board_weight(const Board *x, int rank);

/* Puts the W's of orders anew: where a rank waits and `patience` of it fits,
 * where the next action lacks the memory that it frees, and at the end. False:
 * the orders without W wait for one another. */
bool vee_weigh(const Problem *q, Order *orders, double patience);
/* Moves entries up into idle time without a delay of any other and without
 * passing a limit, until none fits. */
void vee_fill(const Problem *q, Order *orders);
/* Orders for `microbatches` from those for q->microbatches, fewer, by repeating
 * what takes the least time. False: no time was found between which every rank
 * runs the same number of micro-batches. */
bool vee_stretch(const Problem *q, const Order *from, int microbatches,
                 Order *orders);

/* Copies of orders. */
Order *orders_copy(const Problem *q, const Order *orders);
void orders_free(Order *orders);

/* The best of several orders. */
typedef struct VeeBest {
    double value,
        second;  // by the metric, and the other one
    short *entries;  // [rank * entries of a rank + index]
} VeeBest;

VeeBest vee_best_open(const Problem *q);
/* Keeps the orders if they run, fit and are better; whether they were. */
bool vee_best_offer(VeeBest *best, const Problem *q, const Order *orders);
/* The best into orders; false: there was none. */
bool vee_best_close(VeeBest *best, const Problem *q, Order *orders);

#endif
