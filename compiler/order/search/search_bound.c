/* search_bound.c: times that no order of one chunk per rank can be below.
 *
 * Rank i, its F_i, I_i, W_i and the message c_i before it, wire and latency. From the begin of
 * an F on rank i to the end of the same micro-batch's I at least
 *
 *     R_i = sum of (F_k + I_k) over k >= i + twice the messages behind i
 *
 * pass. Two windows of a rank are poor in work:
 *
 *   head, from its first F to its first I: only forwards can run, n of them,
 *   and all n are in memory at its end. Let H_i be its length and g_i its idle
 *   time, H_i = n F_i + g_i. The micro-batch of the first I came back from the
 *   next rank, which had begun its first F and its first I before:
 *
 *       H_i >= H_(i+1) + F_i + I_(i+1) + 2 c_(i+1),    H_last >= F_last
 *
 *   tail, from the begin of its last F to the end of that micro-batch's I, R_i
 *   at least: beside these two only work on what is then in memory can run. x
 *   micro-batches that lack I and W, y that lack W: x + y <= m - 1 and, with
 *   the last F, held (x + 1) + kept y <= limit. The W of the last F comes after.
 *
 * The windows are disjoint unless all m forwards come before the first I, and
 * no other time is needed to be idle. So the largest idle time allowed decides
 * for each rank which H_i are possible; the smallest possible H_last, then the
 * smallest possible H_(last-1) and so on, is best for all ranks at once. That n
 * is a whole number makes the chain stronger than its ranks: H_i just above a
 * multiple of F_i costs little idle time, but H_i just below costs either
 * nearly none with one more forward, or all of it.
 *
 * Three more: memory times time (each micro-batch holds `held` for R_i and `kept`
 * for W_i, and never more than the limit is held); the path to a later rank k, all
 * its F and I, the path back and the last W; and the path to a later wire, all its
 * messages one behind another, and the last of them on to the end and back.
 *
 * A whole backward that is shorter than its parts is counted as an I and a W that
 * are no longer together, the I no longer than the whole: nothing is then later. */
#include "search.h"

#include <math.h>
#include <stdlib.h>

/* A sum in another order must not make a bound too large by its last digit. */
static const double loose = 1e-11;

/* Begin of F to end of I. */
static double round_trip(const Problem *q, int i)
{
    double trip = 0;
    for (int k = i; k < q->chunks; k++)
        trip += q->time[SEARCH_F][k] + q->time[SEARCH_I][k] +
                (k > i ? 2 * crossing(q, k) : 0);
    return trip;
}

static double work(const Problem *q, int i)
{
    return q->microbatches *
           (q->time[SEARCH_F][i] + q->time[SEARCH_I][i] + q->time[SEARCH_W][i]);
}

/* How many of `each` the room holds; at most `most`. */
static int fitting(double room, double each, int most)
{
    if (room < 0)
        return 0;
    return each * most <= room * (1 + loose)
               ? most
               : (int)floor(room / each * (1 + loose) + loose);
}

/* The most forwards in memory at once. */
static int most_forwards(const Problem *q, int i)
{
    return fitting(q->limit[q->rank[i]], q->held[i], q->microbatches);
}

/* The idle time of the tail. */
static double tail_idle(const Problem *q, int i)
{
    double room = q->limit[q->rank[i]] - q->held[i], best = 0,
           both = q->time[SEARCH_I][i] + q->time[SEARCH_W][i];
    int others = q->microbatches - 1, most = fitting(room, q->held[i], others);
    for (int x = 0; x <= most; x++) {
        int y = fitting(room - x * q->held[i], q->kept[i], others - x);
        double busy = x * both + y * q->time[SEARCH_W][i];
        best = busy > best ? busy : best;
    }
    double idle = round_trip(q, i) - q->time[SEARCH_F][i] -
                  q->time[SEARCH_I][i] - best;
    return idle > 0 ? idle : 0;
}

/* The smallest head of at least `needed` whose idle time is allowed. */
static double least_head(double needed, double forward, int most,
                         double allowed)
{
    double slack = loose * needed;
    int n = fitting(needed, forward, most);
    if (allowed < -slack)
        return INFINITY;
    if (needed - n * forward <= allowed + slack && n > 0)
        return needed;
    return n < most ? (n + 1) * forward : INFINITY;
}

/* Before the first begin on rank i, counted from the first begin of all. */
static double lead(const Problem *q, int i)
{
    double time = 0;
    for (int k = 0; q->metric == METRIC_MAKESPAN && k < i; k++)
        time += q->time[SEARCH_F][k] + crossing(q, k + 1);
    return time;
}

/* Can the heads fit when no rank may end later than `total`. */
static bool heads_fit(const Problem *q, const double *tail, double total)
{
    double head = 0;
    for (int i = q->chunks - 1; i >= 0; i--) {
        double forward = q->time[SEARCH_F][i],
               allowed = total - lead(q, i) - work(q, i), needed = forward;
        int m = q->microbatches, most = most_forwards(q, i);
        if (i + 1 < q->chunks)
            needed = head + forward + q->time[SEARCH_I][i + 1] +
                     2 * crossing(q, i + 1);
        head = least_head(needed, forward, most < m ? most : m - 1,
                          allowed - tail[i]);
        if (most >= m && allowed >= -loose * total) {
            double all = needed > m * forward ? needed : m * forward;
            if (all - m * forward <= allowed + loose * total && all < head)
                head = all;
        }
        if (isinf(head))
            return false;
    }
    return true;
}

/* The largest that is not enough for the heads. */
static double head_bound(const Problem *q)
{
    double tail[q->chunks], low = 0, high = 0;
    for (int i = 0; i < q->chunks; i++) {
        double all = lead(q, i) + work(q, i) + 2 * round_trip(q, i);
        tail[i] = tail_idle(q, i);
        high = all > high ? all : high;
    }
    for (int i = 0; i < 100 && high - low > 1e-14 * high; i++) {
        double middle = (low + high) / 2;
        if (heads_fit(q, tail, middle))
            high = middle;
        else
            low = middle;
    }
    return low;
}

/* To rank k, its F and I, and back to rank i. */
static double path_bound(const Problem *q, int i)
{
    double path = lead(q, i) + q->time[SEARCH_W][i], best = 0;
    for (int k = i; k < q->chunks; k++) {
        double busy = q->microbatches *
                      (q->time[SEARCH_F][k] + q->time[SEARCH_I][k]);
        if (k > i)
            path += q->time[SEARCH_F][k - 1] + q->time[SEARCH_I][k - 1] +
                    2 * crossing(q, k);
        best = path + busy > best ? path + busy : best;
    }
    return best;
}

/* To the wire before a later rank k, its messages, and the last one on to the end
 * and back to rank i. */
static double wire_bound(const Problem *q, int i)
{
    double path = lead(q, i) + q->time[SEARCH_W][i], best = 0;
    for (int k = i + 1; k < q->chunks; k++) {
        double busy = (q->microbatches - 1) * (crossing(q, k) - q->message[k]);
        path += q->time[SEARCH_F][k - 1] + q->time[SEARCH_I][k - 1] +
                2 * crossing(q, k);
        best = fmax(best, path + busy + round_trip(q, k));
    }
    return best;
}

static double area_bound(const Problem *q, int i)
{
    double area = q->microbatches * (q->held[i] * round_trip(q, i) +
                                     q->kept[i] * q->time[SEARCH_W][i]);
    double limit = q->limit[q->rank[i]];
    return lead(q, i) + (isinf(limit) ? 0 : area / limit);
}

static double bound(const Problem *q, Metric metric)
{
    Problem other = *q;
    double best, each;
    other.metric = metric;
    best = head_bound(&other);
    for (int i = 0; i < q->chunks; i++) {
        if ((each = path_bound(&other, i)) > best)
            best = each;
        if ((each = area_bound(&other, i)) > best)
            best = each;
        if ((each = wire_bound(&other, i)) > best)
            best = each;
    }
    return best;
}

Problem in_parts(const Problem *q, double *input, double *weight)
{
    Problem parts = *q;
    for (int c = 0; q->whole && c < q->chunks; c++) {
        double both = q->time[SEARCH_I][c] + q->time[SEARCH_W][c];
        input[c] = fmin(q->time[SEARCH_I][c], q->whole[c]);
        weight[c] = fmin(both, q->whole[c]) - input[c];
    }
    if (q->whole) {
        parts.time[SEARCH_I] = input;
        parts.time[SEARCH_W] = weight;
    }
    parts.whole = NULL;
    return parts;
}

double bound_span(const Problem *q)
{
    double input[q->chunks], weight[q->chunks];
    Problem parts = in_parts(q, input, weight);
    return bound(&parts, METRIC_SPAN);
}

double bound_makespan(const Problem *q)
{
    double input[q->chunks], weight[q->chunks];
    Problem parts = in_parts(q, input, weight);
    return fmax(bound(&parts, METRIC_SPAN), bound(&parts, METRIC_MAKESPAN));
}

double bound_metric(const Problem *q)
{
    return q->metric == METRIC_SPAN ? bound_span(q) : bound_makespan(q);
}
