/* whatif.h: what compare, explain and diff share.
 *
 *     replan.c    the same file planned again with other settings; what a plan
 *                 comes to
 *     compare.c   many plans in one table
 *     explain.c   why a rank is idle
 *     diff.c      two plans side by side
 *     scatter.c   the plot of compare
 *     schedule_list.c   the schedules that --schedule names
 *
 * `explain` and `diff` need plans that `memory` has finished. */
#ifndef WHATIF_H
#define WHATIF_H

#include "plan/nodes.h"
#include "show/show.h"

/* ---- replan.c ---- */

typedef struct Replan {
    Program *p;              // in an arena of its own: close_replan
    const char *refused_by;  // the pass that said no; NULL: planned
    const char *reason;      // its first error, without the place
    bool recut;              // the file's sizes did not fit: split balanced
} Replan;

/* The sources of `from` with -D settings added, which take the place of its
 * own. A split by sizes that the new chunks do not fit becomes balanced, unless
 * a setting says otherwise. Costs that a caller has brought are kept as long as
 * the chunks are the same. */
Replan replan(const Program *from, const char *const *settings, int count);
void close_replan(Replan *plan);

typedef struct Summary {
    double makespan;  // in the plan's cost model
    double step;      // seconds; without a cluster, forwards of the whole model
    double formula;   // bubble by the textbook; -1: it has none
    double bubble, own;  // of the makespan; of each rank's own span, on average
    size_t bytes;        // of the largest arena
    int copies;          // peak chunks of the worst rank
    long messages;       // of one step
    double message_bytes;
    bool too_large;  // for the memory of a rank
} Summary;

Summary summary_of(const Program *p);
/* ---- the commands: each returns the exit status ---- */

enum { RANKS_DIFFER = 0 };  // a value of `virtual`: each rank has its own

typedef struct Trial {     // one combination
    const char *schedule;  // as `-D schedule=` takes it
    int stages, virtuals, microbatches;
    Summary sum;
    const char *refused_by, *reason;  // NULL: planned
    bool recut;  // see Replan
    bool best;  // nothing is both faster per micro-batch and smaller
} Trial;

typedef struct CompareOptions {  // lists with commas; NULL: what the file says
    const char *schedules;       // NULL: all
    const char *stages, *virtuals, *microbatches;  // virtuals NULL: 1,2,4
    bool csv, json;
    const char *plot;  // path of the SVG, or NULL
} CompareOptions;

int explain(Program *p, const char *where, FILE *out, bool all);
int diff(Program *a, Program *b, FILE *out, bool all);
/* Two schedules of one file, which `import` has read: "1f1b,gpipe". */
int diff_schedules(Program *p, const char *list, FILE *out, bool all);

/* "1f1b,interleaved(group = 4)" -> its words; NULL or "all": every schedule but
 * those that search. Returns how many, 0 for an error that was reported. Needs
 * `import` to have run. */
int schedule_list(Program *p, const char *list, const char **schedules,
                  int most);
/* The file's schedule as `-D schedule=` takes it, with the options that it has:
 * "interleaved(group = 4)". Its option number `changed`, -1: none, is `value`. */
const char *schedule_words(Program *p, int changed, double value);

/* Needs `import` to have run. */
int compare(Program *p, const CompareOptions *options, FILE *out);
const char *virtual_text(Arena *arena, int virtuals, const char *differ);
/* Bubble against peak bytes, as SVG. */
void scatter(Arena *arena, const Trial *trials, int count, FILE *out);

#endif
