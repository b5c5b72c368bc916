/* vee.c: what search_vee finds with two chunks per rank, beside what was
 * published, and the seconds it takes on one core.
 *
 * Inputs of arXiv 2401.10241, tables 8 and 9; a rate is the share of the time
 * in which the slowest rank idles, from its own begin to its own end. Limits
 * are in chunks per rank; the numbers beside them are what the authors'
 * schedulers give on these inputs, re-computed (table 8: printed). An argument
 * is the effort; 1 when there is none. Where one search finds nothing better than
 * published, three more follow. */
#include "vee.h"

#include <time.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One cell: published, the greedy schedule, the search. */
static void cell(const VeeInput *in, double limit, double published,
                 double effort)
{
    Vee v = vee_open(in, in->ranks, in->microbatches, limit);
    Result greedy = {INFINITY, INFINITY, 0}, found = {INFINITY, INFINITY, 0};
    double begin = seconds();
    if (vee_greedy(&v.q, v.orders))
        order_result(&v.q, v.orders, &greedy, NULL);
    double middle = seconds();
    bool good = search_vee(&v.q, 1, effort, v.orders, &found);
    bool again = vee_rate(&v, found.span) > published - 5e-5 && published > 0;
    if (again)
        good = search_vee(&v.q, 2, 3 * effort, v.orders, &found);
    double end = seconds();
    printf("%-6s %3d %4d %4.0f  ", in->model, in->ranks, in->microbatches,
           limit);
    if (published > 0)
        printf("%.4f", published);
    else
        printf("     -");
    printf("  %.4f %6.3f s  %.4f %5.1f s%s\n", vee_rate(&v, greedy.span),
           middle - begin, vee_rate(&v, found.span), end - middle,
           !good || !order_fits(&v.q, v.orders) ? "  does not fit"
           : again                              ? "  (three more seeds)"
                                                : "");
    fflush(stdout);
    vee_close(&v);
}

int main(int argc, char **argv)
{
    double effort = argc > 1 ? atof(argv[1]) : 1;
    puts("model  ranks   m limit  known   greedy           search");
    for (int i = 0; i < 9; i++)
        cell(&vee_table8[i], 2 * vee_table8[i].ranks, vee_printed[i], effort);
    for (int i = 0; i < 12; i++) {
        const VeeInput *in = &vee_table9[i];
        const double *known = vee_published_caps[i];
        cell(in, 2 * ((in->ranks + 4) / 3), vee_published_min[i], effort);
        cell(in, in->ranks + 2, vee_published_half[i], effort);
        cell(in, 2 * in->ranks, known[0], effort);
        cell(in, 2.5 * in->ranks, vee_published_quarter[i], effort);
        cell(in, 3 * in->ranks, known[1], effort);
        cell(in, 4 * in->ranks, known[2], effort);
    }
    return 0;
}
