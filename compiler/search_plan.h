/* search_plan.h: `schedule auto`. */
#ifndef SEARCH_PLAN_H
#define SEARCH_PLAN_H

#include "search_problem.h"

/* The schedule's options -> order, searched. Reports what does not fit. */
bool search_plan(Program *p);

#endif
