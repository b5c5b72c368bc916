/* dualpipev: DualPipe cut in half: one copy of the model, folded as a V (github.
 * com/deepseek-ai/DualPipe; PyTorch's ScheduleDualPipeV).
 *
 * The steps are those of dualpipe.c with depth P and place r; phase 0 is the
 * way down, chunk r, phase 1 the way back, chunk 2 P - 1 - r. idle (P - 1)(F&B +
 * B - 3 W), peak 2 P + 1 chunks. */
#include "dualpipe.h"

static double bubble(int stages, int microbatches, int virtuals)
{
    (void)virtuals;
    return (stages - 1.0) / (3.0 * microbatches + stages - 1.0);
}

static void order(Program *p, int rank)
{
    DualPipe d = {.depth = p->ranks,
                  .place = rank,
                  .chunk = {rank, 2 * p->ranks - 1 - rank},
                  .count = p->microbatches};
    if (d.count < 2 * p->ranks - 1)
        d.count = 2 * p->ranks - 1;
    dualpipe_order(p, rank, &d);
}

static int least_micros(int stages)
{
    return 2 * stages - 1;
}

const Schedule schedule_dualpipev = {
    .name = "dualpipev",
    .summary = "DualPipeV: DualPipe in one copy of the model, folded as a V; "
               "option atomic = 1",
    .least_chunks = 2,
    .placement = PLACE_VEE,
    .option = {"atomic"},
    .most = {1},
    .least_micros = least_micros,
    .chapter_bubble = "(P-1)/(3M+P-1)",
    .bubble = bubble,
    .order = order,
};
