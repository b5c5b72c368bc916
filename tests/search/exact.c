/* exact.c: on many tiny problems with random costs, messages and limits, some with
 * wires that fill up and receives that are posted, every order is tried: the bounds are never above the best, the exact search finds
 * it, and the quick search is never below it. Some have more chunks than ranks,
 * for the exact search alone. */
#include "order/search/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNKS = 4, MICROBATCHES = 3, WORDS = 1 << 15, LENGTH = 12 };

typedef struct Tiny {
    Problem problem;
    int rank[CHUNKS];
    double time[SEARCH_KINDS][CHUNKS], message[CHUNKS], wire[CHUNKS],
        whole[CHUNKS], held[CHUNKS], kept[CHUNKS], limit[CHUNKS];
} Tiny;

static unsigned long state = 12345;

static int draw(int limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (unsigned long)limit);
}

static void random_problem(Tiny *t, int chunks, int microbatches)
{
    for (int c = 0; c < chunks; c++) {
        t->rank[c] = c;
        for (int k = 0; k < SEARCH_KINDS; k++)
            t->time[k][c] = 1 + draw(9) + draw(2) * 0.37;
        t->message[c] = c > 0 ? draw(3) * 0.4 : 0;
        t->whole[c] = 1 + draw(16);
        t->wire[c] = c > 0 ? draw(3) * 1.7 : 0;
        t->held[c] = 4 + draw(3);
        t->kept[c] = draw((int)t->held[c] + 1);
        t->limit[c] = t->held[c] + draw(3 * (int)t->held[c]);
        if (draw(4) == 0)
            t->limit[c] = INFINITY;
    }
    t->problem = (Problem){
        .ranks = chunks,
        .chunks = chunks,
        .microbatches = microbatches,
        .rank = t->rank,
        .time = {t->time[SEARCH_F], t->time[SEARCH_I], t->time[SEARCH_W]},
        .message = t->message,
        .wire = draw(2) ? t->wire : NULL,
        .posted = draw(2),
        .held = t->held,
        .kept = t->kept,
        .limit = t->limit,
        .metric = draw(2) ? METRIC_SPAN : METRIC_MAKESPAN,
    };
}

/* Chunks 0 1 1 0 on two ranks, or 0 0 on one. */
static void fold(Tiny *t)
{
    int chunks = t->problem.chunks;
    t->problem.ranks = chunks / 2;
    for (int c = 0; c < chunks; c++) {
        t->rank[c] = c < chunks / 2 ? c : chunks - 1 - c;
        t->limit[c] *= 2;
    }
    t->message[chunks / 2] = t->wire[chunks / 2] = 0;
    for (int c = chunks / 2 + 1; c < chunks; c++)
        t->message[c] = t->message[chunks - c];
}

typedef struct Words {
    const Problem *q;
    int rank, count, length;
    int done[CHUNKS * SEARCH_KINDS];
    short word[LENGTH];
    short all[WORDS][LENGTH];
} Words;

/* All orders of one rank: F before I before W of each micro-batch. */
static void extend(Words *w)
{
    bool full = true;
    for (int e = 0; e < SEARCH_KINDS * w->q->chunks; e++) {
        if (w->q->rank[e / SEARCH_KINDS] != w->rank ||
            w->done[e] == (e % SEARCH_KINDS == SEARCH_F ? w->q->microbatches
                                                        : w->done[e - 1]))
            continue;
        full = false;
        w->done[e]++;
        w->word[w->length++] = (short)e;
        extend(w);
        w->length--;
        w->done[e]--;
    }
    if (full)
        memcpy(w->all[w->count++], w->word, sizeof w->word);
}

static double value(const Problem *q, const Result *result)
{
    return q->metric == METRIC_SPAN ? result->span : result->makespan;
}

/* The least of all orders; INFINITY: none fits. */
static double try_all(const Problem *q)
{
    static Words words[CHUNKS];
    int total = 1;
    double best = INFINITY;
    for (int r = 0; r < q->ranks; r++) {
        words[r].q = q;
        words[r].rank = r;
        words[r].count = words[r].length = 0;
        memset(words[r].done, 0, sizeof words[r].done);
        extend(&words[r]);
        total *= words[r].count;
    }
    for (int number = 0; number < total; number++) {
        Sequence orders[CHUNKS];
        Result result;
        int rest = number;
        for (int r = 0; r < q->ranks; rest /= words[r++].count)
            orders[r] = (Sequence){words[r].all[rest % words[r].count],
                                   SEARCH_KINDS * q->microbatches * q->chunks /
                                       q->ranks};
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

static void open_orders(short space[][LENGTH], Sequence *orders)
{
    for (int r = 0; r < CHUNKS; r++)
        orders[r] = (Sequence){space[r], 0};
}

static int exact_faults(const Problem *q, double best)
{
    short space[CHUNKS][LENGTH];
    Sequence orders[CHUNKS];
    Exact exact = {.budget = 1000000};
    Result result = {0};
    open_orders(space, orders);
    if (isinf(best))
        return exact_orders(q, &exact, orders, &result) &&
               wrong("exact", q, value(q, &result), best);
    if (exact_orders(q, &exact, orders, &result) && exact.proved &&
        order_fits(q, orders) && fabs(value(q, &result) - best) < 1e-6 * best)
        return 0;
    return wrong("exact", q, value(q, &result), best);
}

/* The bound, and the quick search. */
static int quick_faults(const Problem *q, double best, int *tight)
{
    short space[CHUNKS][LENGTH];
    Sequence orders[CHUNKS];
    Search search = {.seed = 1, .effort = 0.002};
    Result result = {0};
    double bound = q->metric == METRIC_SPAN ? bound_span(q) : bound_makespan(q);
    int bad = 0;
    open_orders(space, orders);
    *tight += bound > best * (1 - 1e-9);
    if (bound > best * (1 + 1e-9))
        bad += wrong("bound", q, bound, best);
    if (!search_orders(q, &search, orders, &result) || !order_fits(q, orders) ||
        value(q, &result) < best * (1 - 1e-9) ||
        (search.optimal && value(q, &result) > best * (1 + 1e-8)))
        bad += wrong("search", q, value(q, &result), best);
    return bad;
}

/* Whole backwards that may be shorter than their parts: bounds, and what is mended
 * from whole ones. */
static int whole_faults(Tiny *t, int *found)
{
    short space[CHUNKS][LENGTH];
    double numbers[3 * CHUNKS], bound;
    Sequence orders[CHUNKS];
    Search search = {.seed = 1, .effort = 0.002};
    Result result = {0};
    Problem *q = &t->problem, whole;
    int bad = 0;
    q->whole = t->whole;
    whole = whole_problem(q, numbers);
    double best = try_all(q);
    bound = bound_metric(q);
    open_orders(space, orders);
    if (bound > best * (1 + 1e-9))
        bad += wrong("bound with whole backwards", q, bound, best);
    if (!search_orders(&whole, &search, orders, &result))
        return bad;
    join_weights(q, orders);
    mend_orders(q, orders, 1, 50000);
    if (!order_result(q, orders, &result, NULL) || !order_fits(q, orders) ||
        value(q, &result) < best * (1 - 1e-9))
        bad += wrong("mended", q, value(q, &result), best);
    *found += value(q, &result) <= best * (1 + 1e-9);
    return bad;
}

int main(void)
{
    enum { LINEAR = 400, FOLDED = 60, WHOLE = 120 };
    int bad = 0, tight = 0, mended = 0;
    Tiny t;
    for (int i = 0; i < LINEAR; i++) {
        int ranks = 1 + draw(3), microbatches = 1 + draw(MICROBATCHES);
        if (ranks == 3 && microbatches == 3 && i % 16)
            microbatches = 2;
        random_problem(&t, ranks, microbatches);
        double best = try_all(&t.problem);
        bad += exact_faults(&t.problem, best);
        bad += quick_faults(&t.problem, best, &tight);
    }
    printf("# the bound is the optimum in %d of %d\n", tight, LINEAR);
    for (int i = 0; i < FOLDED; i++) {
        int ranks = 1 + i % 2;
        random_problem(&t, 2 * ranks, 3 - ranks);
        fold(&t);
        bad += exact_faults(&t.problem, try_all(&t.problem));
    }
    for (int i = 0; i < WHOLE; i++) {
        random_problem(&t, 1 + draw(3), 2);
        bad += whole_faults(&t, &mended);
    }
    printf("%s mended to the best in %d of %d\n",
           mended >= WHOLE * 95 / 100 ? "ok" : "not ok", mended, WHOLE);
    printf("%s %d tiny problems against all their orders\n",
           bad ? "not ok" : "ok", LINEAR + FOLDED + WHOLE);
    return bad != 0;
}
