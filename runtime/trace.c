/* trace.c: --trace, what each rank has left of its last steps when all have
 * gone, as one file, in the form that its name asks for.
 *
 *     .trace    the format, then a line for each action: rank step action start_ns end_ns
 *     .json     Chrome's events: a slice for each action, a flow for each message */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "progress.h"

enum { TRACE_FORMAT = 1 };  // of .trace; compiler/study/measured.c reads it

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
                "# pipec trace %d: %s, schedule %s, %d ranks, steps %d to %d: "
                "rank step action start_ns end_ns\n",
                TRACE_FORMAT, t->control->name, t->control->schedule,
                t->control->ranks, t->first, t->last);
    for (int step = t->first; step <= t->last; step++)
        write_step(t, step, json);
    if (json)
        fputs("\n]}\n", t->out);
}

void trace_write(Progress *progress, const Control *control, int fd)
{
    size_t ranks = (size_t)control->ranks;
    Trace t = {.out = progress->trace.file, .control = control, .first = 1};
    if (!t.out || progress->steps == 0)
        return;
    t.last = progress->steps;
    t.events = calloc(ranks, sizeof *t.events);
    t.cursor = calloc(ranks * ranks, sizeof *t.cursor);
    if (!t.events || !t.cursor || !map_events(&t, fd)) {
        fputs("pprun: error: no events for --trace: these programs keep none\n",
              stderr);
        progress->trace.error = ENODATA;
        return;
    }
    write_trace(&t, progress->trace_json);
}
