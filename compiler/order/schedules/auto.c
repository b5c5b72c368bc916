/* auto: the best order that a search finds for the costs, the placement and the
 * memory of this plan (search_plan.c).
 *
 *     schedule auto(memory = 60G)         the shortest makespan within 60 GB on every rank
 *     schedule auto(activations = 12)     within what 12 chunks keep for their backward
 *     schedule auto(span = 1)             the shortest own span: for a step without a barrier
 *
 * It starts from constructive orders, the named schedules among them, and moves
 * actions; beside the result stands a bound that no order can be below. The same
 * seed and effort give the same order. */
#include "order/search/search_plan.h"

const Schedule schedule_auto = {
    .name = "auto",
    .summary = "the best order found for these costs; options memory = BYTES, "
               "activations = CHUNKS, span = 1, seed = N, effort = N",
    .option = {"memory", "activations", "span", "seed", "effort"},
    .fallback = {0, 0, 0, 1, 1},
    .most = {1000000000000000, 1000000000, 1, 1000000000, 1000},
    .any_placement = true,
    .searches = true,
    .orders = search_plan,
};
