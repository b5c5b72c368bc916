/* progress.c: the steps of a run, read from the records of all ranks, as lines
 * and a file.
 *
 * A step is done when every rank has done it. Then
 *     loss    sums of all ranks that have one, over their micro-batches
 *     bubble  1 - (sum of the ranks' busy times) / (ranks * (last end - first begin))
 *
 * On a terminal one line is rewritten; in a pipe there are at most some 50
 * lines, with the first and the last. */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "progress.h"
#include "shown.h"

enum {
    LINES = 48,
    REDRAW = 100
};  // lines in a pipe; ms between two on a terminal

static void complain(const char *before, const char *path, const char *behind,
                     int error)
{
    char *shown = strdup(path);
    if (shown)
        pp_show(shown);
    fprintf(stderr, "pprun: error: %s%s%s: %s\n", before, shown ? shown : "?",
            behind, strerror(error));
    free(shown);
}

static Report open_report(const char *path)
{
    Report report = {path, path ? fopen(path, "we") : NULL, 0};
    if (path && !report.file) {
        complain("cannot write ", path, "", errno);
        exit(1);
    }
    return report;
}

void report_flush(Report *report)
{
    errno = 0;
    int failed = report->file &&
                 (fflush(report->file) != 0 || ferror(report->file));
    if (failed && !report->error)
        report->error = errno ? errno : EIO;
}

int report_close(Report *report)
{
    if (!report->file)
        return 0;
    report_flush(report);
    if (fclose(report->file) != 0 && !report->error)
        report->error = errno;
    report->file = NULL;
    if (report->error)
        complain("", report->path, " is not complete", report->error);
    return report->error != 0;
}

static int ends_in(const char *path, const char *ending)
{
    size_t length = strlen(path), own = strlen(ending);
    return length > own && !strcmp(path + length - own, ending);
}

int is_trace_name(const char *path)
{
    return ends_in(path, ".json") || ends_in(path, ".trace");
}

void progress_start(Progress *progress, int quiet, const char *losses,
                    const char *trace)
{
    progress->quiet = quiet;
    progress->terminal = isatty(STDOUT_FILENO);
    progress->losses = open_report(losses);
    progress->trace = open_report(trace);
    progress->trace_json = trace && ends_in(trace, ".json");
}

void progress_break(Progress *progress)
{
    if (progress->open_line)
        putchar('\n');
    progress->open_line = 0;
    fflush(NULL);
}

/* Steps may be as many, and as long, as no integer holds in ns. */
static void print_clock(double ns)
{
    int64_t seconds = (int64_t)(ns / 1e9 + 0.5);
    if (seconds >= 3600)
        printf("%lld:%02d:%02d", (long long)seconds / 3600,
               (int)(seconds / 60 % 60), (int)(seconds % 60));
    else
        printf("%d:%02d", (int)(seconds / 60), (int)(seconds % 60));
}

static void print_rate(const Control *control, int steps, int64_t ns)
{
    int64_t rows = 0;
    int numbers = 0;
    for (int i = 0; i < control->ranks; i++) {
        if (control->records[i].rows_per_step > rows)
            rows = control->records[i].rows_per_step;
        numbers |= control->records[i].numbers;
    }
    if (rows > 0 && ns > 0)
        printf("  %.0f %s/s", (double)rows * steps / ((double)ns / 1e9),
               numbers ? "rows" : "tok");
}

static void print_numbers(const Progress *progress, double norm)
{
    if (progress->has_loss)
        printf("  loss %.4f", progress->loss);
    if (!isnan(norm))
        printf("  norm %.3f", norm);
}

static int planned_steps(const Progress *progress, const Control *control)
{
    return progress->stop > 0 ? progress->stop : control->steps;
}

/* Rates and bubble are of the steps since the last line; the time left is of
 * all but the first. */
static void print_line(Progress *progress, const Control *control)
{
    int total = planned_steps(progress, control),
        width = snprintf(NULL, 0, "%d", control->steps);
    int fresh = progress->steps - progress->shown,
        from_second = progress->shown == 0;
    if (progress->terminal)
        printf("\r\033[K");
    printf("step %*d/%d", width, progress->steps, control->steps);
    print_numbers(progress, progress->norm);
    print_rate(control, fresh, progress->last - progress->shown_at);
    if (fresh > from_second && !isnan(progress->bubble))
        printf("  bubble %.1f %%",
               100 * (progress->bubble - progress->shown_bubble) /
                   (fresh - from_second));
    if (progress->steps == 1)
        printf("  (planned bubble %.1f %%)", 100 * control->bubble);
    else
        printf(" (planned %.1f %%)", 100 * control->bubble);
    if (progress->steps > 1) {
        printf("  ");
        print_clock((double)(progress->last - progress->second) /
                    (progress->steps - 1) * (total - progress->steps));
        printf(" left");
    }
    if (!progress->terminal)
        putchar('\n');
    progress->open_line = progress->terminal;
    fflush(stdout);
    progress->shown = progress->steps;
    progress->shown_at = progress->last;
    progress->shown_bubble = progress->bubble;
}

static int is_time_to_show(const Progress *progress, const Control *control)
{
    int total = planned_steps(progress, control),
        every = (control->steps - 1) / LINES + 1;
    if (progress->quiet)
        return 0;
    if (progress->steps == 1 || progress->steps == total)
        return 1;
    if (progress->terminal)
        return progress->last - progress->shown_at >= REDRAW * 1000000LL;
    return progress->steps % every == 0;
}

/* An emulation: the step by the ranks' clocks. */
static int64_t model_span(const Control *control, int step)
{
    int64_t begin = INT64_MAX, end = 0;
    for (int i = 0; i < control->ranks; i++) {
        const StepRecord *record = &control->records[i].steps[step % STEP_RING];
        if (record->model_begin > 0 && record->model_begin < begin)
            begin = record->model_begin;
        if (record->model_end > end)
            end = record->model_end;
    }
    return end - begin;
}

static void add_step(Progress *progress, const Control *control, int step)
{
    double loss = 0, busy = 0;
    int losses = 0, unknown = 0, skipped = 0;
    int64_t begin = INT64_MAX, end = 0;
    progress->norm = NAN;
    for (int i = 0; i < control->ranks; i++) {
        const StepRecord *record = &control->records[i].steps[step % STEP_RING];
        loss += record->loss;
        losses += record->losses;
        skipped |= record->skipped;
        busy += (double)record->busy;
        unknown |= record->busy == BUSY_UNKNOWN;
        if (!isnan(record->norm))
            progress->norm = (double)record->norm;
        if (record->begin > 0 && record->begin < begin)
            begin = record->begin;
        if (record->end > end)
            end = record->end;
    }
    if (skipped && progress->skipped++ == 0)
        progress->first_skipped = step;
    progress->has_loss = losses > 0;
    progress->loss = losses ? (double)(float)(loss / losses) : NAN;
    progress->last = end;
    progress->model = model_span(control, step);
    if (step <= 2)
        progress->span = 0;
    progress->span += (double)(end - begin);
    if (step == 1)
        progress->first = progress->shown_at = begin, progress->second = end;
    else if (end > begin)
        progress->bubble += unknown ? NAN
                                    : 1 - busy / ((double)control->ranks *
                                                  (double)(end - begin));
    if (progress->losses.file)
        fprintf(progress->losses.file, "%d %.9g %.9g\n", step, progress->loss,
                progress->norm);
}

static int step_is_done(const Control *control, int step)
{
    for (int i = 0; i < control->ranks; i++) {
        uint32_t done = atomic_load_explicit(&control->records[i].done.value,
                                             memory_order_acquire);
        if ((int32_t)(done - (uint32_t)step) < 0)
            return 0;
    }
    return 1;
}

void progress_read(Progress *progress, Control *control)
{
    int before = progress->steps;
    while (step_is_done(control, progress->steps + 1)) {
        progress->steps++;
        add_step(progress, control, progress->steps);
        raise_counter(&control->reported);
        if (is_time_to_show(progress, control))
            print_line(progress, control);
    }
    if (progress->steps == before)
        return;
    report_flush(&progress->losses);
}

void progress_end(Progress *progress, const Control *control)
{
    cpu_set_t cores;
    int64_t ns = progress->last - progress->first;
    progress_break(progress);
    if (progress->skipped > 0)
        fprintf(stderr,
                "pprun: note: %d of %d steps were left out, the first of them "
                "step %d: their loss or norm is no number\n",
                progress->skipped, progress->steps, progress->first_skipped);
    if (progress->quiet)
        return;
    if (progress->stop > 0 && progress->steps < control->steps)
        printf("stopped after %d of %d steps", progress->steps, control->steps);
    else
        printf("done: %d steps", progress->steps);
    if (progress->steps > 0) {
        printf(" in ");
        if (ns < 10000000000)
            printf("%.1f s", (double)ns / 1e9);
        else
            print_clock((double)ns);
        print_numbers(progress, NAN);
        print_rate(control, progress->steps, ns);
    }
    if (progress->steps > 1 && !isnan(progress->bubble))
        printf("  bubble %.1f %% (planned %.1f %%)",
               100 * progress->bubble / (progress->steps - 1),
               100 * control->bubble);
    putchar('\n');
    if (control->makespan > 0) {
        double step = progress->span /
                      (progress->steps > 1 ? progress->steps - 1 : 1);
        int64_t late = 0;
        for (int i = 0; i < control->ranks; i++)
            if (control->records[i].late > late)
                late = control->records[i].late;
        if (progress->steps > 0)
            printf("emulated: a step took %.3f ms, planned %.3f ms, %+.2f %%; "
                   "by the ranks' clocks %.3f ms; "
                   "no action ended more than %.2f ms late\n",
                   step / 1e6, control->makespan / 1e6,
                   100 * (step / control->makespan - 1),
                   (double)progress->model / 1e6, (double)late / 1e6);
        return;
    }
    if (sched_getaffinity(0, sizeof cores, &cores) == 0 &&
        control->ranks > CPU_COUNT(&cores))
        printf("note: %d ranks share %d cores: the times say little about the "
               "schedule\n",
               control->ranks, CPU_COUNT(&cores));
}
