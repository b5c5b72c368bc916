/* search_problem.h: between a Program and the search. */
#ifndef SEARCH_PROBLEM_H
#define SEARCH_PROBLEM_H

#include "search_vee.h"

/* Times are those of the plan's cost model, memory is counted in chunks, which
 * are held from F to W; `most` of them on a rank. */
Problem problem_in_chunks(Program *p, double most);
Sequence *take_orders(Program *p, const Problem *q);           // room for a whole order of each rank
void use_orders(Program *p, const Problem *q, const Sequence *orders);     // -> order, with phases
bool pattern_orders(Program *p, VeePattern which);          // V-Half or V-Min -> order
/* The same, if what is in `order` is longer by the metric, or as long and longer by the other one. */
void use_if_shorter(Program *p, const Problem *q, const Sequence *orders);

#endif
