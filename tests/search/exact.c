/* exact.c: on many tiny problems with random costs, messages and limits, every
 * order is tried: the bounds are never above the best, the exact search finds
 * it, and the quick search is never below it. */
#include "search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, MICROBATCHES = 3, WORDS = 64, LENGTH = 9 };

typedef struct Tiny {
    Problem problem;
    int rank[RANKS];
    double time[SEARCH_KINDS][RANKS], message[RANKS], held[RANKS], kept[RANKS],
        limit[RANKS];
} Tiny;

static unsigned long state = 12345;

static int draw(int limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (unsigned long)limit);
}

static void random_problem(Tiny *t, int ranks, int microbatches)
{
    for (int r = 0; r < ranks; r++) {
        t->rank[r] = r;
        for (int k = 0; k < SEARCH_KINDS; k++)
            t->time[k][r] = 1 + draw(9) + draw(2) * 0.37;
        t->message[r] = r > 0 ? draw(3) * 0.4 : 0;
        t->held[r] = 4 + draw(3);
        t->kept[r] = draw((int)t->held[r] + 1);
        t->limit[r] = t->held[r] + draw(3 * (int)t->held[r]);
        if (draw(4) == 0)
            t->limit[r] = INFINITY;
    }
    t->problem = (Problem){
        .ranks = ranks,
        .chunks = ranks,
        .microbatches = microbatches,
        .rank = t->rank,
        .time = {t->time[SEARCH_F], t->time[SEARCH_I], t->time[SEARCH_W]},
        .message = t->message,
        .held = t->held,
        .kept = t->kept,
        .limit = t->limit,
        .metric = draw(2) ? METRIC_SPAN : METRIC_MAKESPAN,
    };
}

/* All orders of one rank's kinds: F before I before W of each micro-batch. */
static void words(short all[][LENGTH], int *count, short *word, int length,
                  const int *done, int microbatches)
{
    if (length == SEARCH_KINDS * microbatches) {
        memcpy(all[(*count)++], word, (size_t)length * sizeof *word);
        return;
    }
    for (int k = 0; k < SEARCH_KINDS; k++) {
        int more[SEARCH_KINDS] = {done[0], done[1], done[2]};
        if (more[k] == (k == 0 ? microbatches : more[k - 1]))
            continue;
        more[k]++;
        word[length] = (short)k;
        words(all, count, word, length + 1, more, microbatches);
    }
}

static double value(const Problem *q, const Result *result)
{
    return q->metric == METRIC_SPAN ? result->span : result->makespan;
}

/* The least of all orders; INFINITY: none fits. */
static double try_all(const Problem *q)
{
    short all[WORDS][LENGTH], word[LENGTH], mine[RANKS][LENGTH];
    int count = 0, total = 1, done[SEARCH_KINDS] = {0};
    double best = INFINITY;
    words(all, &count, word, 0, done, q->microbatches);
    for (int r = 0; r < q->ranks; r++)
        total *= count;
    for (int number = 0; number < total; number++) {
        Order orders[RANKS];
        Result result;
        int rest = number;
        for (int r = 0; r < q->ranks; r++, rest /= count) {
            int length = SEARCH_KINDS * q->microbatches;
            for (int i = 0; i < length; i++)
                mine[r][i] = (short)(r * SEARCH_KINDS + all[rest % count][i]);
            orders[r] = (Order){mine[r], length};
        }
        if (order_fits(q, orders) && order_result(q, orders, &result, NULL))
            best = fmin(best, value(q, &result));
    }
    return best;
}

static int wrong(const char *what, const Problem *q, double is, double best)
{
    printf("# %s: %.6f, best %.6f, p=%d m=%d %s\n", what, is, best, q->ranks,
           q->microbatches, q->metric == METRIC_SPAN ? "span" : "makespan");
    return 1;
}

/* How many statements about this problem are wrong. */
static int faults(const Problem *q, int *tight)
{
    short space[2][RANKS][LENGTH];
    Order orders[2][RANKS];
    Exact exact = {.budget = 1000000};
    Search search = {.seed = 1, .effort = 0.002};
    Result result;
    double best = try_all(q);
    double bound = q->metric == METRIC_SPAN ? bound_span(q) : bound_makespan(q);
    int bad = 0;
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < RANKS; r++)
            orders[i][r] = (Order){space[i][r], 0};
    if (bound > best * (1 + 1e-9))
        bad += wrong("bound", q, bound, best);
    *tight += bound > best * (1 - 1e-9);
    if (!exact_orders(q, &exact, orders[0], &result) || !exact.proved ||
        !order_fits(q, orders[0]) ||
        fabs(value(q, &result) - best) > 1e-6 * best)
        bad += wrong("exact", q, value(q, &result), best);
    if (!search_orders(q, &search, orders[1], &result) ||
        !order_fits(q, orders[1]) || value(q, &result) < best * (1 - 1e-9) ||
        (search.optimal && value(q, &result) > best * (1 + 1e-8)))
        bad += wrong("search", q, value(q, &result), best);
    return bad;
}

int main(void)
{
    int bad = 0, tight = 0, count = 0;
    Tiny t;
    for (int i = 0; i < 400; i++, count++) {
        int ranks = 1 + draw(RANKS), microbatches = 1 + draw(MICROBATCHES);
        if (ranks == 3 && microbatches == 3 && i % 16)
            microbatches = 2;
        random_problem(&t, ranks, microbatches);
        bad += faults(&t.problem, &tight);
    }
    printf("# the bound is the optimum in %d of %d\n", tight, count);
    printf("%s %d tiny problems against all their orders\n",
           bad ? "not ok" : "ok", count);
    return bad != 0;
}
