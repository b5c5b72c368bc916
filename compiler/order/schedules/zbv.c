/* zbv: zero bubble at the activations of 1F1B, by a V (Qi et al., arXiv
 * 2401.10241, section 6; the order is that of PyTorch's ScheduleZBVZeroBubble).
 *
 *     P = 2:  r0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 ...
 *             r1  .   1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 ...
 *
 * a is the rank's chunk on the way down, b the one on the way back:
 *
 *     1  2 (P - r) - 1  x  Fa             4  until all is done: Fa Ia Wa Fb Ib Wb
 *     2       r         x  Fb Fa          5  r x Ia Ib
 *     3     P - r       x  Fb Ib Wb       6  P - r x Ia Wa, then the W that are left
 *
 * With F = I = W and M >= 2 P - 1 no rank is idle in its own span; peak 2 P chunks
 * on every rank. Where the costs of the plan differ, or M is smaller, a greedy
 * order with those costs may be shorter: then it is taken. Shorter is, as in the
 * paper, what has the shorter own span, and of two as long what has the shorter
 * makespan. */
#include "order/order.h"
#include "order/search/search_problem.h"
#include "order/search/search_vee.h"

typedef struct Steps {
    Program *p;
    int rank, chunk[2];  // a, b
    int forwards[2], inputs[2], weights[2];
} Steps;

/* What a step would run on a micro-batch that is none is left out. */
static void f(Steps *s, int which)
{
    int m = s->forwards[which]++;
    if (m < s->p->microbatches)
        forward(s->p, s->rank, s->chunk[which], m);
}

static void i(Steps *s, int which)
{
    int m = s->inputs[which]++;
    if (m < s->p->microbatches)
        backward_input(s->p, s->rank, s->chunk[which], m);
}

static void w(Steps *s, int which)
{
    int m = s->weights[which]++;
    if (m < s->p->microbatches)
        backward_weight(s->p, s->rank, s->chunk[which], m);
}

static void fill(Steps *s, int ranks)
{
    for (int k = 0; k < 2 * (ranks - s->rank) - 1; k++)
        f(s, 0);
    for (int k = 0; k < s->rank; k++) {
        f(s, 1);
        f(s, 0);
    }
    for (int k = 0; k < ranks - s->rank; k++) {
        f(s, 1);
        i(s, 1);
        w(s, 1);
    }
}

static void alternate(Steps *s, int count)
{
    while (s->forwards[1] < s->forwards[0] || s->forwards[0] < count) {
        if (s->forwards[0] < count)
            f(s, 0);
        i(s, 0);
        w(s, 0);
        f(s, 1);
        i(s, 1);
        w(s, 1);
    }
}

static void drain(Steps *s, int ranks, int count)
{
    for (int k = 0; k < s->rank; k++) {
        i(s, 0);
        i(s, 1);
    }
    for (int k = 0; k < ranks - s->rank; k++) {
        i(s, 0);
        w(s, 0);
    }
    while (s->weights[1] < count)
        w(s, 1);
    while (s->weights[0] < count)
        w(s, 0);
}

static void closed_form(Program *p, int rank)
{
    int microbatches = p->microbatches, least = 2 * p->ranks - 1,
        count = microbatches > least ? microbatches : least;
    Steps s = {.p = p, .rank = rank, .chunk = {rank, 2 * p->ranks - 1 - rank}};
    fill(&s, p->ranks);
    begin_steady(p, rank);
    alternate(&s, count);
    begin_cooldown(p, rank);
    drain(&s, p->ranks, count);
}

static double bubble(int stages, int microbatches, int virtuals)
{
    (void)stages, (void)microbatches, (void)virtuals;
    return 0;
}

static bool orders(Program *p)
{
    for (int r = 0; r < p->ranks; r++)
        closed_form(p, r);
    Problem q = problem_in_chunks(p, 2 * p->ranks);
    q.metric = METRIC_SPAN;
    Sequence *greedy = take_orders(p, &q);
    if (vee_greedy(&q, greedy))
        use_if_shorter(p, &q, greedy);
    return true;
}

const Schedule schedule_zbv = {
    .name = "zbv",
    .summary = "ZB-V: split backward over a V; no bubble where F = I = W, "
               "activations as in 1f1b on every rank",
    .least_chunks = 2,
    .placement = PLACE_VEE,
    .chapter_bubble = "0 of each rank's own span",
    .bubble = bubble,
    .orders = orders,
};
