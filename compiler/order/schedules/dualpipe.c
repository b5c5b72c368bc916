/* dualpipe: two copies of the model in opposite directions (DeepSeek-V3,
 * arXiv 2412.19437, section 3.2.1; the list is that of github.com/deepseek-ai/
 * DualPipe).
 *
 * Micro-batches enter at both ends. On a rank of place h (counted from the
 * nearer end) of `depth` = P / 2, phase 0 is the copy whose micro-batches come
 * first. The steps, with B split into I and W from the middle of step 6 on:
 *
 *     1  2 (depth - h - 1) x  F0
 *     2          (h + 1)   x  F0 F1
 *     3  (depth - h - 1)   x  I1 W1 F1
 *     4  (count - 2 depth + h + 1) x  F0&B1 F1&B0
 *     5  (depth - h - 1)   x  B1 F1&B0
 *     6          (h + 1)   x  B1 B0
 *     7  (depth - h - 1)   x  W I0
 *     8          (h + 1)   x  W
 *
 * idle (P / 2 - 1)(F&B + B - 3 W), peak P + 1 chunks. A pair F&B runs one after
 * the other here, and each of its messages leaves when it can; with atomic = 1
 * both wait for both inputs and leave together, as in the published figures. */
#include "dualpipe.h"

typedef struct Steps {
    Program *p;
    int rank;
    const DualPipe *d;
    int forwards[2], backwards[2];  // of each phase, so far
    int *weights;                   // phases whose W is put off, in order
    int put_off, caught_up;
    int weight[2];  // of each phase, so far put off and run
    bool split;
} Steps;

/* A micro-batch that a phase does not have, when there are few, is left out. */
static bool exists(const Steps *s, int phase, int k)
{
    return goes_through(s->p, s->d->chunk[phase], s->d->first[phase] + k);
}

static void step_forward(Steps *s, int phase)
{
    int k = s->forwards[phase]++;
    if (exists(s, phase, k))
        forward(s->p, s->rank, s->d->chunk[phase], s->d->first[phase] + k);
}

static void step_backward(Steps *s, int phase)
{
    int k = s->backwards[phase]++, micro = s->d->first[phase] + k;
    if (s->split)
        s->weights[s->put_off++] = 2 * k + phase;
    if (!exists(s, phase, k))
        return;
    if (s->split)
        backward_input(s->p, s->rank, s->d->chunk[phase], micro);
    else
        backward(s->p, s->rank, s->d->chunk[phase], micro);
}

/* The oldest W that was put off. */
static void step_weight(Steps *s)
{
    int next = s->weights[s->caught_up++], phase = next % 2, k = next / 2;
    if (exists(s, phase, k))
        backward_weight(s->p, s->rank, s->d->chunk[phase],
                        s->d->first[phase] + k);
}

/* F of one phase with B of the other. */
static void step_pair(Steps *s, int phase)
{
    bool both = exists(s, phase, s->forwards[phase]) &&
                exists(s, 1 - phase, s->backwards[1 - phase]);
    step_forward(s, phase);
    if (both && option(s->p, "atomic"))
        pair_with_next(s->p, s->rank);
    step_backward(s, 1 - phase);
}

static void fill(Steps *s)
{
    int h = s->d->place, rest = s->d->depth - h - 1;
    for (int i = 0; i < 2 * rest; i++)
        step_forward(s, 0);
    for (int i = 0; i <= h; i++) {
        step_forward(s, 0);
        step_forward(s, 1);
    }
    for (int i = 0; i < rest; i++) {
        s->split = true;
        step_backward(s, 1);
        step_weight(s);
        step_forward(s, 1);
    }
    s->split = false;
}

static void pairs(Steps *s)
{
    int h = s->d->place, rest = s->d->depth - h - 1;
    for (int i = 0; i < s->d->count - 2 * s->d->depth + h + 1; i++) {
        if (i == 0 && rest == 0) {  // the middle: its B needs this F
            step_forward(s, 0);
            step_backward(s, 1);
        } else {
            step_pair(s, 0);
        }
        step_pair(s, 1);
    }
    for (int i = 0; i < rest; i++) {
        step_backward(s, 1);
        step_pair(s, 1);
    }
}

static void drain(Steps *s)
{
    int h = s->d->place, rest = s->d->depth - h - 1;
    for (int i = 0; i <= h; i++) {
        s->split |= i == (h + 1) / 2 && h % 2 == 1;
        step_backward(s, 1);
        s->split |= i == (h + 1) / 2 && h % 2 == 0;
        step_backward(s, 0);
    }
    for (int i = 0; i < rest; i++) {
        step_weight(s);
        step_backward(s, 0);
    }
    while (s->caught_up < s->put_off)
        step_weight(s);
}

void dualpipe_order(Program *p, int rank, const DualPipe *d)
{
    Steps s = {.p = p, .rank = rank, .d = d};
    s.weights = arena_take(p->arena,
                           sizeof *s.weights * 2 * (size_t)(d->count + 1));
    fill(&s);
    begin_steady(p, rank);
    pairs(&s);
    begin_cooldown(p, rank);
    drain(&s);
}

static double bubble(int stages, int microbatches, int virtuals)
{
    (void)virtuals;
    return (stages - 2.0) / (3.0 * microbatches + stages - 2.0);
}

static void order(Program *p, int rank)
{
    int half = p->ranks / 2, twin = 2 * p->ranks - 1 - rank;
    bool near = rank < half;
    DualPipe d = {.depth = half,
                  .place = near ? rank : p->ranks - 1 - rank,
                  .chunk = {near ? rank : twin, near ? twin : rank}};
    d.count = p->chunks[0].micro_count;
    for (int phase = 0; phase < 2; phase++)
        d.first[phase] = p->chunks[d.chunk[phase]].first_micro;
    if (d.count < 2 * half - 1)
        d.count = 2 * half - 1;
    dualpipe_order(p, rank, &d);
}

static int least_micros(int stages)
{
    return 2 * stages - 2;
}

const Schedule schedule_dualpipe = {
    .name = "dualpipe",
    .summary = "DualPipe: two copies of the model, micro-batches enter at both "
               "ends; option atomic = 1",
    .placement = PLACE_TWIN,
    .even_stages = true,
    .option = {"atomic"},
    .most = {1},
    .least_micros = least_micros,
    .chapter_bubble = "(P-2)/(3M+P-2)",
    .bubble = bubble,
    .order = order,
};
