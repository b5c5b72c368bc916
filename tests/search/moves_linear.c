/* moves_linear.c: the clock that follows the moves of search_improve.c is, after
 * each of many random moves, kept or taken back, that of search.c: by every begin
 * of every rank. The file is included to look inside. */
#include "order/search/search_improve.c"
#include "random.h"

#include <stdio.h>

static void fill_begins(double (*begins)[SEARCH_KINDS * MICROS], double **rows)
{
    for (int r = 0; r < RANKS; r++)
        rows[r] = begins[r];
}

/* Is what the lanes hold what the orders are. */
static bool agrees(Bench *b, Case *c)
{
    static double begins[RANKS][SEARCH_KINDS * MICROS];
    double *rows[RANKS];
    Result result;
    fill_begins(begins, rows);
    write_orders(b, c->orders);
    if (!order_result(&c->q, c->orders, &result, rows))
        return false;
    for (int r = 0; r < c->q.ranks; r++)
        for (int at = 0; at < b->count; at++)
            if (fabs(begins[r][at] - b->lanes[r].start[at]) >
                1e-12 * result.makespan)
                return false;
    return true;
}

/* Random moves from random orders; how many of them went wrong. */
static int follow(Case *c, int moves)
{
    Arena *arena = arena_open();
    Bench b = open_bench(&c->q, arena, 0, 1 + chance(1000));
    int bad = 0;
    read_orders(&b, c->orders);
    set_over(&b);
    bad += !agrees(&b, c);
    for (int i = 0; i < moves && !bad; i++) {
        Move m;
        double now = excess(&b), more = chance(3) ? share_by_chance() : 1000;
        if (!(chance(2) ? aimed_move(&b, &m) : random_move(&b, &m)))
            continue;
        if (try_move(&b, m, now, more))
            set_over(&b);
        bad += !agrees(&b, c);
    }
    close_bench(&b);
    arena_close(arena);
    return bad;
}

int main(void)
{
    enum { CASES = 600, MOVES = 100 };
    static Case c;
    int bad = 0;
    for (int i = 0; i < CASES; i++) {
        random_problem(&c, LINEAR, 2 + chance(RANKS - 1), 1 + chance(MICROS));
        c.q.whole = NULL;
        if (chance(2))
            c.q.metric = METRIC_SPAN;
        random_orders(&c);
        int wrong = follow(&c, MOVES);
        if (wrong && !bad)
            printf("# p=%d m=%d%s%s\n", c.q.ranks, c.q.microbatches,
                   c.q.posted ? " posted" : "", c.q.wire ? " wires" : "");
        bad += wrong;
    }
    printf("%s %d of %d problems, %d moves each\n", bad ? "not ok" : "ok",
           CASES - bad, CASES, MOVES);
    return 0;
}
