/* search_plan.h: `schedule auto`. */
#ifndef SEARCH_PLAN_H
#define SEARCH_PLAN_H

#include "search_problem.h"

/* What was found: the longest of the ranks' own spans, or the makespan. */
struct SearchReport {
    bool span;                  // the first of the two
    const char *named;          // the best of the named schedules that fit; NULL: none does
    double before, after;       // its value, and ours
    double bound;               // no order of these chunks is below
    double memory;              // bytes of each rank's arena; INFINITY: no limit
    int activations;            // in chunks, on each rank; 0: no limit
};

/* The limits in words; empty: there are none. */
const char *within_text(Arena *arena, double bytes, int activations);

/* The schedule's options -> order and search. Reports what does not fit. */
bool search_plan(Program *p);

#endif
