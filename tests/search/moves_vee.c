/* moves_vee.c: the clock that follows the moves of search_vee_anneal.c is, after
 * each of many random moves, kept or taken back, that of search.c: by every begin
 * of every rank; and so is that of orders while they are written. The file is
 * included to look inside. */
#include "order/search/search_vee_anneal.c"
#include "random.h"

#include <stdio.h>

/* Is what the events hold what the orders are. */
static bool agrees(const Anneal *x, Case *c)
{
    static double begins[RANKS][CODES * MICROS];
    double *rows[RANKS];
    Result result;
    for (int r = 0; r < RANKS; r++)
        rows[r] = begins[r];
    give(x, c->orders);
    if (!order_result(&c->q, c->orders, &result, rows))
        return false;
    for (int r = 0; r < c->q.ranks; r++)
        for (int i = 0; i < x->row; i++) {
            const Event *n = &x->events[x->order[r * x->row + i]];
            if (fabs(begins[r][i] - begin_of(n)) > 1e-12 * result.makespan)
                return false;
        }
    return true;
}

/* Random moves from random orders; how many of them went wrong. */
static int follow(Case *c, int moves)
{
    Anneal x = anneal_open(&c->q, 1 + chance(1000));
    int bad = 0;
    take(&x, c->orders);
    double cost = retime(&x, INFINITY);
    x.least = 1e-9 * cost;
    bad += !agrees(&x, c);
    for (int i = 0; i < moves && !bad; i++) {
        double most = chance(3) ? cost + share_by_chance() : INFINITY;
        if (!apply(&x, propose(&x, worst_rank(&x))))
            continue;
        double now = retime(&x, most);
        if (isinf(now)) {
            untime(&x);
            unshift(&x, 0);
        } else {
            cost = now;
        }
        bad += !agrees(&x, c);
    }
    anneal_close(&x);
    return bad;
}

/* Does a Board that the orders are written on have their times. */
static bool board_agrees(Case *c)
{
    static short entries[RANKS][CODES * MICROS];
    Sequence written[RANKS];
    Result result;
    int next[RANKS] = {0};
    for (int r = 0; r < RANKS; r++)
        written[r].at = entries[r];
    Board b = board_open(&c->q, written);
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < c->q.ranks; r++) {
            int entry = next[r] < c->orders[r].count ? c->orders[r].at[next[r]]
                                                     : -1;
            if (entry < 0 || isinf(board_arrival(&b, entry % SEARCH_KINDS,
                                                 entry / SEARCH_KINDS)))
                continue;
            board_put(&b, entry % SEARCH_KINDS, entry / SEARCH_KINDS);
            next[r]++;
            moved = true;
        }
    }
    double latest = 0;
    for (int r = 0; r < c->q.ranks; r++)
        latest = fmax(latest, b.clock[r]);
    board_close(&b);
    return order_result(&c->q, c->orders, &result, NULL) &&
           fabs(latest - result.makespan) <= 1e-12 * latest;
}

int main(void)
{
    enum { CASES = 600, MOVES = 100 };
    static Case c;
    int bad = 0, boards = 0;
    for (int i = 0; i < CASES; i++) {
        random_problem(&c, VEE, 2 + chance(RANKS - 1), 1 + chance(MICROS));
        c.q.whole = NULL;
        if (chance(2))
            c.q.metric = METRIC_SPAN;
        random_orders(&c);
        boards += !board_agrees(&c);
        int wrong = follow(&c, MOVES);
        if (wrong && !bad)
            printf("# p=%d m=%d%s%s\n", c.q.ranks, c.q.microbatches,
                   c.q.posted ? " posted" : "", c.q.wire ? " wires" : "");
        bad += wrong;
    }
    printf("%s %d of %d problems, %d moves each\n", bad ? "not ok" : "ok",
           CASES - bad, CASES, MOVES);
    printf("%s %d of %d orders while they are written\n",
           boards ? "not ok" : "ok", CASES - boards, CASES);
    return 0;
}
