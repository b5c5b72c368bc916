/* search.c: the search for one chunk per rank beside the published heuristic, on
 * the inputs of tests/search/published.h. A cell is a bubble rate: what no order
 * can be below, the heuristic's, ours, and the seconds that ours took.
 *
 *     =    ours is the bound, and so the optimum
 *     <    ours is below the heuristic's
 *     !    ours is above the heuristic's */
#include "../tests/search/published.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct Totals {
    int cells, optimal, below, above;
    double seconds, slowest;
} Totals;

static double seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static void cell(int row, int cap, double effort, Sequence *orders,
                 Totals *totals)
{
    const Published *p = &published[row];
    Uniform u;
    Search search = {.seed = 1, .effort = effort};
    Result result;
    uniform_problem(&u, p, 1 + cap * 0.125);
    double began = seconds();
    if (!search_orders(&u.problem, &search, orders, &result) ||
        !order_fits(&u.problem, orders))
        abort();
    double took = seconds() - began, work = published_work(p),
           ours = 1 - work / result.span, theirs = published_rate[row][cap];
    bool above = round(ours * 1e4) > round(theirs * 1e4),
         below = round(ours * 1e4) < round(theirs * 1e4);
    printf("%-6s %3d %4d  %.3f   %.4f   %.4f   %.4f  %c%c  %6.2f\n", p->name,
           p->ranks, p->microbatches, 1 + cap * 0.125, 1 - work / search.bound,
           theirs, ours, search.optimal ? '=' : ' ',
           above   ? '!'
           : below ? '<'
                   : ' ',
           took);
    fflush(stdout);
    totals->cells++;
    totals->optimal += search.optimal;
    totals->below += below;
    totals->above += above;
    totals->seconds += took;
    totals->slowest = took > totals->slowest ? took : totals->slowest;
}

int main(int count, char **argument)
{
    double effort = count > 1 ? strtod(argument[1], NULL) : 1;
    int from = count > 2 ? atoi(argument[2]) : 0,
        to = count > 3 ? atoi(argument[3]) : PUBLISHED_ROWS;
    Totals totals = {0};
    Sequence orders[MOST_RANKS];
    for (int r = 0; r < MOST_RANKS; r++)
        orders[r].at = malloc(SEARCH_KINDS * 256 * sizeof *orders[r].at);
    printf("model    p    m  limit    bound  heuristic  ours        seconds\n");
    for (int row = from; row < to; row++)
        for (int cap = 0; cap < PUBLISHED_CAPS; cap++)
            cell(row, cap, effort, orders, &totals);
    printf("%d cells: %d optimal, %d below the heuristic, %d above; "
           "%.1f s, at most %.1f s\n",
           totals.cells, totals.optimal, totals.below, totals.above,
           totals.seconds, totals.slowest);
    for (int r = 0; r < MOST_RANKS; r++)
        free(orders[r].at);
}
