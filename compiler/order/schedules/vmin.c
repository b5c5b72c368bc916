/* vmin: a third of the activations of 1F1B (Qi et al., arXiv 2405.15362; V-Min).
 *
 * As vhalf, with the pattern [r, 2P - r - 1, 2P + g + r, 4P + g - r - 1] (g = 2 if
 * 3 divides P, else 0). Made for F = I = W: idle 4P - 5 (4P - 7 if 3 divides P)
 * for large M, peak 2 floor((P + 4) / 3) chunks of the 2P of 1f1b. */
#include "order/search/search_problem.h"

static double bubble(int stages, int microbatches, int virtuals)
{
    double idle = stages > 1 ? 4.0 * stages - (stages % 3 ? 5 : 7) : 0;
    (void)virtuals;
    return idle / (6.0 * microbatches + idle);
}

static bool plan_orders(Program *p)
{
    return pattern_orders(p, VEE_MIN);
}

const Schedule schedule_vmin = {
    .name = "vmin",
    .summary =
        "V-Min: a third of the activations of 1f1b, by a repeated pattern",
    .least_chunks = 2,
    .placement = PLACE_VEE,
    .chapter_bubble = "(4P-5)/(6M+4P-5)",
    .bubble = bubble,
    .orders = plan_orders,
};
