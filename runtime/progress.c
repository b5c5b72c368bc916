/* progress.c: the steps of a run, read from the records of all ranks, as lines
 * and a file.
 *
 * A step is done when every rank has done it. Then
 *     loss    sums of all ranks that have one, over their micro-batches
 *     bubble  1 - (sum of the ranks' busy times) / (ranks * (last end - first begin))
 *
 * --trace: what each rank has left of its last steps, when all have gone, as
 * one file, in the form that its name asks for.
 * On a terminal one line is rewritten; in a pipe there are at most some 50
 * lines, with the first and the last. */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "progress.h"

enum {
    LINES = 48,
    REDRAW = 100
};  // lines in a pipe; ms between two on a terminal

static FILE *open_output(const char *path)
{
    FILE *file = path ? fopen(path, "we") : NULL;
    if (path && !file) {
        fprintf(stderr, "pprun: error: cannot write %s: %s\n", path,
                strerror(errno));
        exit(1);
    }
    return file;
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
    progress->losses = open_output(losses);
    progress->trace = open_output(trace);
    progress->trace_json = trace && ends_in(trace, ".json");
}

void progress_break(Progress *progress)
{
    if (progress->open_line)
        putchar('\n');
    progress->open_line = 0;
    fflush(NULL);
}

static void print_clock(int64_t ns)
{
    int64_t seconds = (ns + 500000000) / 1000000000;
    if (seconds >= 3600)
        printf("%d:%02d:%02d", (int)(seconds / 3600), (int)(seconds / 60 % 60),
               (int)(seconds % 60));
    else
        printf("%d:%02d", (int)(seconds / 60), (int)(seconds % 60));
}

static void print_rate(const Control *control, int steps, int64_t ns)
{
    int rows = 0, numbers = 0;
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
        print_clock((progress->last - progress->second) /
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
        every = (control->steps + LINES - 1) / LINES;
    if (progress->quiet)
        return 0;
    if (progress->steps == 1 || progress->steps == total)
        return 1;
    if (progress->terminal)
        return progress->last - progress->shown_at >= REDRAW * 1000000LL;
    return progress->steps % every == 0;
}

static void add_step(Progress *progress, const Control *control, int step)
{
    double loss = 0, busy = 0;
    int losses = 0, unknown = 0;
    int64_t begin = INT64_MAX, end = 0;
    progress->norm = NAN;
    for (int i = 0; i < control->ranks; i++) {
        const StepRecord *record = &control->records[i].steps[step % STEP_RING];
        loss += record->loss;
        losses += record->losses;
        busy += (double)record->busy;
        unknown |= record->busy == BUSY_UNKNOWN;
        if (!isnan(record->norm))
            progress->norm = (double)record->norm;
        if (record->begin > 0 && record->begin < begin)
            begin = record->begin;
        if (record->end > end)
            end = record->end;
    }
    progress->has_loss = losses > 0;
    progress->loss = losses ? (double)(float)(loss / losses) : NAN;
    progress->last = end;
    if (step <= 2)
        progress->span = 0;
    progress->span += (double)(end - begin);
    if (step == 1)
        progress->first = progress->shown_at = begin, progress->second = end;
    else if (end > begin)
        progress->bubble += unknown ? NAN
                                    : 1 - busy / ((double)control->ranks *
                                                  (double)(end - begin));
    if (progress->losses)
        fprintf(progress->losses, "%d %.9g %.9g\n", step, progress->loss,
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
    if (progress->losses)
        fflush(progress->losses);
}

void progress_end(Progress *progress, const Control *control)
{
    cpu_set_t cores;
    int64_t ns = progress->last - progress->first;
    progress_break(progress);
    if (progress->losses && fclose(progress->losses) != 0)
        fprintf(stderr,
                "pprun: error: the file of --losses is not complete: %s\n",
                strerror(errno));
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
            print_clock(ns);
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
                   "no action ended more than %.2f ms late\n",
                   step / 1e6, control->makespan / 1e6,
                   100 * (step / control->makespan - 1), (double)late / 1e6);
        return;
    }
    if (sched_getaffinity(0, sizeof cores, &cores) == 0 &&
        control->ranks > CPU_COUNT(&cores))
        printf("note: %d ranks share %d cores: the times say little about the "
               "schedule\n",
               control->ranks, CPU_COUNT(&cores));
}

/* ---- --trace ---- */

typedef struct Trace {
    FILE *out;
    const Control *control;
    const Event **events;  // [ranks], mapped
    int first, last;       // steps that all ranks have kept
    int64_t zero;          // ns: begin of the first event
    uint32_t *cursor;      // [from][to]: sends of the step matched so far
    int flows;
} Trace;

static int map_events(Trace *t, int fd)
{
    struct stat file;
    if (fstat(fd, &file) != 0)
        return 0;
    for (int i = 0; i < t->control->ranks; i++) {
        const RankRecord *record = &t->control->records[i];
        size_t bytes = (size_t)record->actions * record->kept * sizeof(Event);
        if (bytes == 0 || record->events + bytes > (uint64_t)file.st_size)
            return 0;
        void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd,
                        (off_t)record->events);
        if (at == MAP_FAILED)
            return 0;
        t->events[i] = at;
        if (t->first < t->last - (int)record->kept + 1)
            t->first = t->last - (int)record->kept + 1;
    }
    return 1;
}

static const Event *events_of(const Trace *t, int rank, int step)
{
    const RankRecord *record = &t->control->records[rank];
    return t->events[rank] +
           (size_t)((uint32_t)(step - 1) % record->kept) * record->actions;
}

/* The place behind the last event of this step. */
static const Event *events_end(const Trace *t, int rank, int step)
{
    const Event *at = events_of(t, rank, step);
    uint32_t i = 0;
    while (i < t->control->records[rank].actions && at[i].step == step)
        i++;
    return at + i;
}

static int64_t step_begin(const Trace *t, int step)
{
    int64_t begin = INT64_MAX;
    for (int i = 0; i < t->control->ranks; i++) {
        const Event *e = events_of(t, i, step);
        if (e < events_end(t, i, step) && e->begin < begin)
            begin = e->begin;
    }
    return begin;
}

/* "12SEND_F" -> "12" and, as a WAIT is named after what was sent, "WAIT_F". */
static void name_event(const Event *e, char *chunk, char *kind)
{
    size_t digits = strspn(e->name, "0123456789");
    snprintf(chunk, EVENT_NAME, "%.*s", (int)digits, e->name);
    snprintf(kind, EVENT_NAME, "%s", e->name + digits);
    if (e->kind == EVENT_WAIT && strncmp(kind, "SEND", 4) == 0)
        memcpy(kind, "WAIT", 4);
}

static void write_line(const Trace *t, int rank, const Event *e)
{
    char chunk[EVENT_NAME], kind[EVENT_NAME];
    name_event(e, chunk, kind);
    fprintf(t->out, "%d %d %s%s%d %lld %lld\n", rank, e->step, chunk, kind,
            e->micro, (long long)(e->begin - t->zero),
            (long long)(e->end - t->zero));
}

static void put_time(FILE *out, int64_t ns)  // as microseconds
{
    fprintf(out, "%lld.%03d", (long long)(ns / 1000), (int)(ns % 1000));
}

static void write_slice(const Trace *t, int rank, const Event *e)
{
    char chunk[EVENT_NAME], kind[EVENT_NAME];
    name_event(e, chunk, kind);
    fprintf(t->out,
            ",\n{\"ph\":\"X\",\"name\":\"%s%s%d\",\"cat\":\"%s\",\"pid\":0,"
            "\"tid\":%d,\"ts\":",
            chunk, kind, e->micro, kind, rank);
    put_time(t->out, e->begin - t->zero);
    fputs(",\"dur\":", t->out);
    put_time(t->out, e->end - e->begin);
    fprintf(t->out, ",\"args\":{\"chunk\":%s,\"microbatch\":%d,\"step\":%d}}",
            *chunk ? chunk : "0", e->micro, e->step);
}

/* A flow belongs to the slice that is open at its time: it leaves with the
 * send, and arrives a moment before the receive ends. */
static void write_flow(Trace *t, int rank, const Event *receive)
{
    int ranks = t->control->ranks;
    const Event *sends = events_of(t, receive->peer, receive->step),
                *end = events_end(t, receive->peer, receive->step);
    uint32_t *at = &t->cursor[receive->peer * ranks + rank];
    while (sends + *at < end &&
           (sends[*at].kind != EVENT_SEND || sends[*at].peer != rank))
        ++*at;
    if (sends + *at >= end)
        return;
    const Event *send = &sends[(*at)++];
    const char *name = strchr(receive->name, 'B') ? "gradient" : "activation";
    fprintf(t->out,
            ",\n{\"ph\":\"s\",\"name\":\"%s\",\"cat\":\"message\",\"id\":%d,"
            "\"pid\":0,\"tid\":%d,\"ts\":",
            name, t->flows, receive->peer);
    put_time(t->out, send->begin - t->zero);
    fprintf(t->out,
            "},\n{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"%s\",\"cat\":"
            "\"message\",\"id\":%d,\"pid\":0,\"tid\":%d,\"ts\":",
            name, t->flows++, rank);
    put_time(t->out, receive->end - (receive->end > receive->begin) - t->zero);
    fputc('}', t->out);
}

static void write_names(const Trace *t)
{
    const Control *c = t->control;
    fprintf(t->out,
            "{\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"plan\":\"%s, "
            "schedule %s, %d ranks\",\n\"time\":\"measured microseconds%s\"},\n"
            "\"traceEvents\":[\n"
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"tid\":0,"
            "\"args\":{\"name\":\"%s, %s, measured\"}}",
            c->name, c->schedule, c->ranks,
            c->makespan > 0 ? " of an emulation" : "", c->name, c->schedule);
    for (int i = 0; i < c->ranks; i++)
        fprintf(
            t->out,
            ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":%d,"
            "\"args\":{\"name\":\"rank %d\"}}"
            ",\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":0,"
            "\"tid\":%d,\"args\":{\"sort_index\":%d}}",
            i, i, i, i);
}

static void write_step(Trace *t, int step, int json)
{
    int ranks = t->control->ranks;
    memset(t->cursor, 0, sizeof *t->cursor * (size_t)(ranks * ranks));
    if (json) {
        fprintf(t->out,
                ",\n{\"ph\":\"i\",\"s\":\"g\",\"name\":\"step %d\",\"cat\":"
                "\"step\",\"pid\":0,\"tid\":0,\"ts\":",
                step);
        put_time(t->out, step_begin(t, step) - t->zero);
        fputc('}', t->out);
    }
    for (int i = 0; i < ranks; i++) {
        const Event *end = events_end(t, i, step);
        for (const Event *e = events_of(t, i, step); e < end; e++) {
            if (!json)
                write_line(t, i, e);
            else
                write_slice(t, i, e);
            if (json && e->kind == EVENT_RECV)
                write_flow(t, i, e);
        }
    }
}

static void write_trace(Trace *t, int json)
{
    t->zero = step_begin(t, t->first);
    if (json)
        write_names(t);
    else
        fprintf(t->out,
                "# %s, schedule %s, %d ranks, steps %d to %d: rank step action "
                "start_ns end_ns\n",
                t->control->name, t->control->schedule, t->control->ranks,
                t->first, t->last);
    for (int step = t->first; step <= t->last; step++)
        write_step(t, step, json);
    if (json)
        fputs("\n]}\n", t->out);
}

void progress_trace(Progress *progress, const Control *control, int fd)
{
    size_t ranks = (size_t)control->ranks;
    Trace t = {.out = progress->trace, .control = control, .first = 1};
    if (!t.out || progress->steps == 0)
        return;
    t.last = progress->steps;
    t.events = calloc(ranks, sizeof *t.events);
    t.cursor = calloc(ranks * ranks, sizeof *t.cursor);
    if (!t.events || !t.cursor || !map_events(&t, fd)) {
        fputs("pprun: error: no events for --trace: these programs keep none\n",
              stderr);
        return;
    }
    write_trace(&t, progress->trace_json);
    int failed = ferror(t.out);
    if (fclose(t.out) != 0 || failed)
        fprintf(stderr,
                "pprun: error: the file of --trace is not complete: %s\n",
                strerror(errno));
}
