/* picture_trace.c: the plan as Chrome trace events, for Perfetto and
 * chrome://tracing.
 *
 * One process, a thread per rank; every compute is a complete event, every
 * message a flow from the compute that made it to the one that reads it, bytes
 * alive a counter per rank. Times are microseconds; without modelled seconds
 * one forward of a chunk is a millisecond. Events are in order of time. */
#include "picture.h"

#include <stdlib.h>

typedef enum {
    EVENT_COUNTER,
    EVENT_COMPUTE,
    EVENT_FLOW_END,
    EVENT_FLOW_START
} EventKind;

typedef struct Event {
    double time;  // microseconds
    EventKind kind;
    Place at;      // of the compute; of a counter: rank, level
    int sequence;  // ties stay in this order
} Event;

typedef struct Trace {
    Picture k;
    FILE *out;
    double scale;  // microseconds per unit of time
    Event *events;
    int count;
    int *first;  // [rank] number of its first entry among all: names of flows
} Trace;

static void add(Trace *t, double time, EventKind kind, Place at)
{
    Arena *arena = t->k.p->arena;
    t->events = array_grow(arena, t->events, t->count, sizeof *t->events);
    t->events[t->count] = (Event){time, kind, at, t->count};
    t->count++;
}

/* A flow belongs to the slice that is open at its time: it leaves a moment
 * before its compute ends, and arrives with the one that reads it. */
static void add_compute(Trace *t, Place at)
{
    const Times *times = t->k.p->times;
    double start = times[at.rank].start[at.index] * t->scale;
    add(t, start, EVENT_COMPUTE, at);
    if (brought_by(&t->k, at).rank < 0)
        return;
    Place made = made_by(&t->k, at);
    double end = times[made.rank].end[made.index] * t->scale,
           length = end - times[made.rank].start[made.index] * t->scale;
    add(t, end - (length < 0.002 ? length / 2 : 0.001), EVENT_FLOW_START, at);
    add(t, start, EVENT_FLOW_END, at);
}

static void collect(Trace *t)
{
    const Program *p = t->k.p;
    for (int r = 0; r < p->ranks; r++) {
        for (int i = 0; i < t->k.curves[r].count; i++)
            add(t, t->k.curves[r].at[i].time * t->scale, EVENT_COUNTER,
                (Place){r, i});
        for (int i = 0; i < p->lists[r].count; i++)
            if (p->lists[r].at[i].kind <= ACT_W)
                add_compute(t, (Place){r, i});
    }
}

static int by_time(const void *a, const void *b)
{
    const Event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->sequence < y->sequence ? -1 : 1;
}

/* ---- printing ---- */

static unsigned long long picoseconds(double microseconds)
{
    return (unsigned long long)(microseconds * 1e6 + 0.5);
}

/* Picoseconds as microseconds, without trailing zeros. */
static void put_time(FILE *out, unsigned long long whole)
{
    char text[32], *at = text + sizeof text;
    unsigned part = (unsigned)(whole % 1000000);
    int places = 6;
    for (; places && part % 10 == 0; places--)
        part /= 10;
    for (int i = 0; i < places; i++, part /= 10)
        *--at = (char)('0' + part % 10);
    if (places)
        *--at = '.';
    whole /= 1000000;
    do
        *--at = (char)('0' + whole % 10);
    while (whole /= 10);
    fwrite(at, 1, (size_t)(text + sizeof text - at), out);
}

static void put_compute(const Trace *t, const Event *e)
{
    static const char *const phases[] = {"warmup", "steady", "cooldown"};
    const Program *p = t->k.p;
    const List *list = &p->lists[e->at.rank];
    const Times *times = &p->times[e->at.rank];
    Action a = list->at[e->at.index];
    int phase = (e->at.index >= list->steady) + (e->at.index >= list->cooldown);
    double end = times->end[e->at.index] * t->scale;
    fprintf(t->out,
            "{\"ph\":\"X\",\"name\":\"%d%s%d\",\"cat\":\"%s\",\"pid\":0,"
            "\"tid\":%d,\"ts\":",
            a.chunk, action_names[a.kind], a.micro, action_names[a.kind],
            e->at.rank);
    put_time(t->out, picoseconds(e->time));
    fputs(",\"dur\":", t->out);
    put_time(t->out, picoseconds(end) - picoseconds(e->time));
    fprintf(t->out,
            ",\"args\":{\"chunk\":%d,\"microbatch\":%d,\"phase\":\"%s\"}}",
            a.chunk, a.micro, phases[phase]);
}

static void put_flow(const Trace *t, const Event *e)
{
    bool end = e->kind == EVENT_FLOW_END;
    Action a = t->k.p->lists[e->at.rank].at[e->at.index];
    Place thread = end ? e->at : made_by(&t->k, e->at);
    fprintf(t->out,
            "{\"ph\":\"%s\",\"name\":\"%s\",\"cat\":\"message\",\"id\":%d,"
            "\"pid\":0,\"tid\":%d,\"ts\":",
            end ? "f\",\"bp\":\"e" : "s",
            a.kind == ACT_F ? "activation" : "gradient",
            t->first[e->at.rank] + e->at.index, thread.rank);
    put_time(t->out, picoseconds(e->time));
    fputc('}', t->out);
}

static void put_counter(const Trace *t, const Event *e)
{
    size_t floats = t->k.curves[e->at.rank].at[e->at.index].floats;
    fprintf(t->out,
            "{\"ph\":\"C\",\"name\":\"bytes of rank %d\",\"pid\":0,\"tid\":%d,"
            "\"ts\":",
            e->at.rank, e->at.rank);
    put_time(t->out, picoseconds(e->time));
    fprintf(t->out, ",\"args\":{\"alive\":%zu}}", 4 * floats);
}

static void put_name(const Trace *t, const char *what, int rank,
                     const char *value)
{
    fprintf(t->out,
            "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":0,\"tid\":%d,\"args\":{%s}},"
            "\n",
            what, rank, value);
}

static void put_names(const Trace *t)
{
    Program *p = t->k.p;
    put_name(t, "process_name", 0,
             text_format(p->arena, "\"name\":\"%s, %s\"", p->name,
                         p->set.schedule->name));
    for (int r = 0; r < p->ranks; r++) {
        put_name(t, "thread_name", r,
                 text_format(p->arena, "\"name\":\"rank %d\"", r));
        put_name(t, "thread_sort_index", r,
                 text_format(p->arena, "\"sort_index\":%d", r));
    }
}

static void put_metadata(const Trace *t)
{
    fprintf(t->out,
            "{\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"plan\":\"%s\",\n"
            "\"cost model\":\"%s\",\n\"result\":\"%s\",\n\"time\":\"%s\"},\n"
            "\"traceEvents\":[\n",
            title_line(&t->k), cost_line(&t->k), result_line(&t->k),
            t->k.p->cost.unit
                ? "not seconds: 1000 us stand for one forward of one chunk"
                : "modelled microseconds");
}

void picture_trace(Program *p, FILE *out)
{
    Trace t = {
        .k = picture_of(p), .out = out, .scale = p->cost.unit ? 1000 : 1e6};
    t.first = arena_take(p->arena, sizeof *t.first * (size_t)(p->ranks + 1));
    for (int r = 0; r < p->ranks; r++)
        t.first[r + 1] = t.first[r] + p->lists[r].count;
    collect(&t);
    qsort(t.events, (size_t)t.count, sizeof *t.events, by_time);
    put_metadata(&t);
    put_names(&t);
    for (int i = 0; i < t.count; i++) {
        const Event *e = &t.events[i];
        (e->kind == EVENT_COMPUTE   ? put_compute
         : e->kind == EVENT_COUNTER ? put_counter
                                    : put_flow)(&t, e);
        fputs(i + 1 < t.count ? ",\n" : "\n", out);
    }
    fputs("]}\n", out);
}
