/* progress.h: what pprun shows of a run that goes well. */
#ifndef PP_PROGRESS_H
#define PP_PROGRESS_H

#include <stdio.h>

#include "local/control.h"

typedef struct Report {             // a file that the user has asked for
    const char *path;               // NULL: not asked for
    FILE *file;
    int error;                      // errno of the first write that failed; 0: all fine so far
} Report;

typedef struct Progress {
    int quiet, terminal;
    Report losses;                  // --losses
    Report trace;                   // --trace
    int trace_json;                 // its form: Chrome events, else a line for each action
    int steps;                      // read from all ranks
    int stop;                       // > 0: asked to stop after this step
    int64_t first, last;            // ns: begin of the first step, end of the last
    int64_t second;                 // ns: end of the first step; later steps are typical
    int has_loss;                   // some rank has told one
    double loss, norm;              // of the last step; norm NaN: none
    int skipped, first_skipped;     // steps that were left out
    double span;                    // ns: sum over the same steps of last end - first begin; the first's if alone
    int64_t model;                  // emulation: ns of the last step by the ranks' clocks
    double bubble;                  // sum of the measured shares of all steps but the first
    int shown;                      // steps at the last line
    int64_t shown_at;               // ns: end of that step
    double shown_bubble;            // `bubble` at the last line
    int open_line;                  // a terminal: the line waits to be rewritten
} Progress;

void progress_start(Progress *progress, int quiet, const char *losses, const char *trace);
void progress_read(Progress *progress, Control *control);   // shows the steps that all have done
void progress_break(Progress *progress);                        // before anything else is printed
void progress_end(Progress *progress, const Control *control);  // the summary
void report_flush(Report *report);                              // notes an error
int report_close(Report *report);                               // 0: it is whole; else it was said that it is not
int is_trace_name(const char *path);                            // by its ending

/* trace.c: writes the events that the ranks have left in the file of the shared memory. */
void trace_write(Progress *progress, const Control *control, int fd);

#endif
