/* clock.c: the clock of the search, on random orders of the problems of random.h.
 *
 * First against a slow evaluation that is written from docs/language.md, "Times of
 * a step", and knows nothing of search_wires.c: it makes the lists with every
 * entry, and gives each its time as soon as all that it needs have theirs. Then
 * against `prove`, on plans with the same costs. */
#include "plan.h"
#include "random.h"

#include "order/search/search_problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 16 * CHUNKS * MICROS };

/* ---- the slow evaluation ---- */

typedef enum { DO, SEND, RECV, TAKE } Word;

typedef struct Line {
    Word word;
    int kind, chunk, micro;  // of a message: what sends it
    bool whole;
    int peer, number;  // of a message: its place on its wire
} Line;

typedef struct Slow {
    const Problem *q;
    Line list[RANKS][ROOM];
    int count[RANKS], at[RANKS];
    double clock[RANKS], makespan;
    bool ended[SEARCH_KINDS][CHUNKS][MICROS];
    // [from][to][number]; NAN: not yet known
    double sent[RANKS][RANKS][ROOM], post[RANKS][RANKS][ROOM],
        end[RANKS][RANKS][ROOM], arrive[RANKS][RANKS][ROOM];
    Line messages[RANKS][RANKS][ROOM];
    int sends[RANKS][RANKS], receives[RANKS][RANKS];
} Slow;

static int receiver(const Problem *q, int kind, int chunk)
{
    int to = kind == SEARCH_F ? chunk + 1 : chunk - 1;
    bool sends = kind != SEARCH_W && to >= 0 && to < q->chunks &&
                 q->rank[to] != q->rank[chunk];
    return sends ? q->rank[to] : -1;
}

/* The computes of a rank, with micro-batches, and I and W in one where that is
 * shorter; returns how many. */
static int computes(const Problem *q, const Sequence *order, Line *made)
{
    int done[CHUNKS][SEARCH_KINDS] = {{0}}, count = 0;
    for (int i = 0; i < order->count; i++) {
        int chunk = order->at[i] / SEARCH_KINDS,
            kind = order->at[i] % SEARCH_KINDS, micro = done[chunk][kind]++;
        made[count++] = (Line){DO, kind, chunk, micro, false, -1, 0};
        if (kind != SEARCH_I || !q->whole || i + 1 == order->count ||
            order->at[i + 1] != chunk * SEARCH_KINDS + SEARCH_W ||
            done[chunk][SEARCH_W] != micro ||
            q->whole[chunk] >=
                q->time[SEARCH_I][chunk] + q->time[SEARCH_W][chunk])
            continue;
        made[count - 1].whole = true;
        done[chunk][SEARCH_W]++;
        i++;
    }
    return count;
}

static void number_messages(Slow *s, const Sequence *orders)
{
    static Line made[ROOM];
    for (int r = 0; r < s->q->ranks; r++) {
        int count = computes(s->q, &orders[r], made);
        for (int i = 0; i < count; i++) {
            int to = receiver(s->q, made[i].kind, made[i].chunk);
            if (to < 0)
                continue;
            made[i].number = s->sends[r][to];
            s->messages[r][to][s->sends[r][to]++] = made[i];
        }
    }
}

/* The message that brings a compute its input; false: none does. */
static bool message_for(const Slow *s, Line a, int *from, int *number)
{
    const Problem *q = s->q;
    int before = a.kind == SEARCH_F ? a.chunk - 1 : a.chunk + 1;
    if (a.kind == SEARCH_W || before < 0 || before >= q->chunks ||
        q->rank[before] == q->rank[a.chunk])
        return false;
    *from = q->rank[before];
    int to = q->rank[a.chunk];
    for (int k = 0; k < s->sends[*from][to]; k++) {
        Line m = s->messages[*from][to][k];
        if (m.kind == a.kind && m.chunk == before && m.micro == a.micro)
            *number = k;
    }
    return true;
}

static void push(Slow *s, int rank, Line e)
{
    s->list[rank][s->count[rank]++] = e;
}

static void push_receives(Slow *s, int rank, Line a)
{
    int from, number = -1;
    if (!message_for(s, a, &from, &number))
        return;
    while (s->receives[from][rank] <= number) {
        Line e = s->messages[from][rank][s->receives[from][rank]++];
        e.word = RECV;
        e.peer = from;
        push(s, rank, e);
    }
}

static void push_take(Slow *s, int rank, Line a)
{
    int from, number = -1;
    if (!message_for(s, a, &from, &number))
        return;
    Line e = s->messages[from][rank][number];
    e.word = TAKE;
    e.peer = from;
    push(s, rank, e);
}

static void make_list(Slow *s, const Sequence *order, int rank)
{
    static Line made[ROOM];
    int next[RANKS] = {0}, count = computes(s->q, order, made);
    for (int i = 0; i < count; i++) {
        push_receives(s, rank, made[i]);
        if (s->q->posted && i + 1 < count)
            push_receives(s, rank, made[i + 1]);
        if (s->q->posted)
            push_take(s, rank, made[i]);
        push(s, rank, made[i]);
        int to = receiver(s->q, made[i].kind, made[i].chunk);
        if (to < 0)
            continue;
        Line e = made[i];
        e.word = SEND;
        e.peer = to;
        e.number = next[to]++;
        push(s, rank, e);
    }
}

/* What is on a wire, as far as it can be known. */
static void carry(Slow *s, int from, int to)
{
    const Problem *q = s->q;
    double free = 0;
    for (int k = 0; k < s->sends[from][to]; k++) {
        Line m = s->messages[from][to][k];
        int boundary = m.kind == SEARCH_F ? m.chunk + 1 : m.chunk;
        double begin = fmax(s->sent[from][to][k], free);
        if (isnan(s->sent[from][to][k]) ||
            (q->posted && isnan(s->post[from][to][k])))
            return;
        if (q->posted)
            begin = fmax(begin, s->post[from][to][k]);
        free = begin + (q->wire ? q->wire[boundary] : 0);
        s->end[from][to][k] = free;
        s->arrive[from][to][k] = free + q->message[boundary];
    }
}

/* Runs the next entry of a rank; false: not yet. */
static bool run_entry(Slow *s, int rank)
{
    const Problem *q = s->q;
    if (s->at[rank] == s->count[rank])
        return false;
    Line e = s->list[rank][s->at[rank]];
    double *clock = &s->clock[rank];
    if (e.word == DO) {
        int from = e.kind == SEARCH_F ? e.chunk - 1 : e.chunk + 1;
        if (e.kind != SEARCH_W && from >= 0 && from < q->chunks &&
            q->rank[from] == rank && !s->ended[e.kind][from][e.micro])
            return false;
        *clock += e.whole ? q->whole[e.chunk] : q->time[e.kind][e.chunk];
        s->ended[e.kind][e.chunk][e.micro] = true;
        s->makespan = fmax(s->makespan, *clock);
    } else if (e.word == SEND) {
        s->sent[rank][e.peer][e.number] = *clock;
    } else if (e.word == RECV && q->posted) {
        s->post[e.peer][rank][e.number] = *clock;
    } else if (isnan(s->arrive[e.peer][rank][e.number])) {
        return false;
    } else {
        *clock = fmax(*clock, s->arrive[e.peer][rank][e.number]);
    }
    s->at[rank]++;
    return true;
}

static double slow_makespan(const Problem *q, const Sequence *orders)
{
    static Slow s;
    memset(&s, 0, sizeof s);
    s.q = q;
    number_messages(&s, orders);
    for (int a = 0; a < q->ranks; a++) {
        make_list(&s, &orders[a], a);
        for (int b = 0; b < q->ranks; b++)
            for (int k = 0; k < ROOM; k++)
                s.sent[a][b][k] = s.post[a][b][k] = s.arrive[a][b][k] = NAN;
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < q->ranks; r++)
            while (run_entry(&s, r))
                moved = true;
        for (int a = 0; a < q->ranks; a++)
            for (int b = 0; b < q->ranks; b++)
                carry(&s, a, b);
    }
    for (int r = 0; r < q->ranks; r++)
        if (s.at[r] < s.count[r])
            return INFINITY;
    return s.makespan;
}

static void against_rules(void)
{
    enum { CASES = 6000 };
    static Case c;
    int bad = 0;
    for (int i = 0; i < CASES; i++) {
        Result result;
        random_problem(&c, i % SHAPES, 2 + chance(RANKS - 1),
                       1 + chance(MICROS));
        random_orders(&c);
        bool good = order_result(&c.q, c.orders, &result, NULL);
        double slow = slow_makespan(&c.q, c.orders);
        if (good && fabs(result.makespan - slow) <= 1e-12 * slow)
            continue;
        if (bad++ < 5)
            printf("# p=%d chunks=%d m=%d%s%s%s: %.9f, by the rules %.9f\n",
                   c.q.ranks, c.q.chunks, c.q.microbatches,
                   c.q.posted ? " posted" : "", c.q.wire ? " wires" : "",
                   c.q.whole ? " whole" : "", result.makespan, slow);
    }
    printf("%s the clock of the search, by the rules: %d of %d orders\n",
           bad ? "not ok" : "ok", CASES - bad, CASES);
}

/* ---- against prove ---- */

/* Costs of the problem, in place of the cluster's. */
static void bring_costs(Program *p, const Case *c)
{
    p->cost = unit_cost(p);
    p->cost.unit = false;
    for (int i = 0; i < p->chunk_count; i++) {
        double both = c->time[SEARCH_I][i] + c->time[SEARCH_W][i];
        p->cost.compute[ACT_F][i] = c->time[SEARCH_F][i];
        p->cost.compute[ACT_I][i] = c->time[SEARCH_I][i];
        p->cost.compute[ACT_W][i] = c->time[SEARCH_W][i];
        p->cost.compute[ACT_B][i] = c->q.whole ? c->whole[i] : both;
        p->cost.delay[i] = c->message[i];
        p->cost.wire[i] = c->q.wire ? c->wire[i] : 0;
    }
}

static double proved_makespan(Case *c, Shape shape)
{
    static const char *const schedules[SHAPES] = {"gpipe", "zbv",
                                                  "interleaved"};
    Program *p;
    plan_target = c->q.posted ? TARGET_CUDA : TARGET_CPU;
    double makespan = NAN;
    if (plan_chain(&p, c->q.ranks, shape == LINEAR ? 1 : 2, c->q.microbatches,
                   schedules[shape])) {
        bring_costs(p, c);
        use_orders(p, &c->q, c->orders);
        if (communicate(p) && prove(p))
            makespan = p->makespan;
    }
    close_plan(p);
    return makespan;
}

static void against_prove(void)
{
    enum { CASES = 600 };
    static Case c;
    int bad = 0;
    for (int i = 0; i < CASES; i++) {
        Shape shape = i % SHAPES;
        int ranks = 2 + chance(RANKS - 1),
            microbatches = shape == LOOP ? ranks * (1 + chance(MICROS / ranks))
                                         : 1 + chance(MICROS);
        Result result = {0};
        random_problem(&c, shape, ranks, microbatches);
        random_orders(&c);
        bool good = order_result(&c.q, c.orders, &result, NULL);
        double proved = proved_makespan(&c, shape);
        if (good && fabs(result.makespan - proved) <= 1e-12 * proved)
            continue;
        if (bad++ < 5)
            printf("# p=%d chunks=%d m=%d%s%s: %.9f, prove %.9f %s\n",
                   c.q.ranks, c.q.chunks, microbatches,
                   c.q.posted ? " posted" : "", c.q.whole ? " whole" : "",
                   result.makespan, proved, plan_said);
    }
    printf("%s the clock of the search and that of prove: %d of %d plans\n",
           bad ? "not ok" : "ok", CASES - bad, CASES);
}

int main(void)
{
    against_rules();
    against_prove();
    return 0;
}
