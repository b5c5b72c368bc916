/* search.c: what `schedule auto(activations = N, span = 1)` gives a person for one
 * chunk per rank, beside the published heuristic, on the inputs of
 * tests/search/published.h, by `build/bin/pipec inspect` of a .pipe file. A cell is
 * a bubble rate: what no order can be below, the heuristic's, ours, and the seconds
 * of a core that the command took. Arguments: effort, first row, last row.
 *
 *     =    ours is the bound, and so the optimum
 *     <    ours is below the heuristic's
 *     !    ours is above the heuristic's */
#include "search/typed.h"

#include <sys/resource.h>

typedef struct Totals {
    int cells, optimal, below, above;
    double seconds, slowest;
} Totals;

/* Of the commands so far. */
static double seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    return (double)used.ru_utime.tv_sec + 1e-6 * (double)used.ru_utime.tv_usec;
}

static double bound_rate(const Published *p, int cap)
{
    Uniform u;
    uniform_problem(&u, p, 1 + cap * 0.125);
    return 1 - published_work(p) / bound_span(&u.problem);
}

static void cell(int row, int cap, int effort, Totals *totals)
{
    const Published *p = &published[row];
    Typed t = typed_row(row);
    Said said;
    char schedule[100];
    double began = seconds(), theirs = published_rate[row][cap];
    snprintf(schedule, sizeof schedule,
             "auto(activations = %d, span = 1, effort = %d)",
             t.ranks * (8 + cap) / 8, effort);
    if (!inspect_typed(&t, schedule, &said)) {
        fprintf(stderr, "pipec inspect of %s failed\n", schedule);
        exit(1);
    }
    double took = seconds() - began;
    bool above = said.idle > theirs + 5e-5, below = said.idle < theirs - 5e-5;
    printf("%-6s %3d %4d  %.3f   %.4f   %.4f   %.4f  %c%c  %6.2f\n", p->name,
           p->ranks, p->microbatches, 1 + cap * 0.125, bound_rate(p, cap),
           theirs, said.idle, said.best ? '=' : ' ',
           above   ? '!'
           : below ? '<'
                   : ' ',
           took);
    fflush(stdout);
    totals->cells++;
    totals->optimal += said.best;
    totals->below += below;
    totals->above += above;
    totals->seconds += took;
    totals->slowest = took > totals->slowest ? took : totals->slowest;
}

int main(int count, char **argument)
{
    int effort = count > 1 ? atoi(argument[1]) : 1,
        from = count > 2 ? atoi(argument[2]) : 0,
        to = count > 3 ? atoi(argument[3]) : PUBLISHED_ROWS;
    Totals totals = {0};
    printf("model    p    m  limit    bound  heuristic  ours        seconds\n");
    for (int row = from; row < to; row++)
        for (int cap = 0; cap < PUBLISHED_CAPS; cap++)
            cell(row, cap, effort, &totals);
    printf("%d cells: %d optimal, %d below the heuristic, %d above; "
           "%.1f s, at most %.1f s\n",
           totals.cells, totals.optimal, totals.below, totals.above,
           totals.seconds, totals.slowest);
}
