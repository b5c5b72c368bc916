/* vhalf: half the activations of 1F1B (Qi et al., arXiv 2405.15362; V-Half).
 *
 * A pattern of six slots per micro-batch is repeated over a V, whose rank r has
 * its F, F back, I back and I at [2r, 3P - r - 2, 3P + g + 2r - 1, 6P + g - r - 2]
 * (g = 3 if P is even, else 0), W in what is free; then begin and end are moved
 * together (search_vee_pattern.c). Made for F = I = W: idle 3P - 7 for even P >= 4
 * and large M, peak P + 2 chunks of the 2P of 1f1b. */
#include "order/search/search_problem.h"

static double bubble(int stages, int microbatches, int virtuals)
{
    double idle = stages > 2 ? 3.0 * stages - 7 : 0;
    (void)virtuals;
    return idle / (6.0 * microbatches + idle);
}

static bool plan_orders(Program *p)
{
    return pattern_orders(p, VEE_HALF);
}

const Schedule schedule_vhalf = {
    .name = "vhalf",
    .summary = "V-Half: half the activations of 1f1b, by a repeated pattern",
    .least_chunks = 2,
    .placement = PLACE_VEE,
    .chapter_bubble = "(3P-7)/(6M+3P-7)",
    .bubble = bubble,
    .orders = plan_orders,
};
