/* picture_trace.c: the plan as Chrome trace events, for Perfetto and
 * chrome://tracing.
 *
 * One process, a thread per rank; every compute is a complete event, every
 * message a flow from the compute that made it to the one that reads it, bytes
 * alive a counter per rank. A second process has a thread for each wire that
 * carries its messages for a time. Times are microseconds; without modelled seconds
 * one forward of a chunk is a millisecond. Events are in order of time. */
#include "escape.h"
#include "picture.h"

#include <stdlib.h>

typedef enum {
    EVENT_COUNTER,
    EVENT_COMPUTE,
    EVENT_MESSAGE,
    EVENT_FLOW_END,
    EVENT_FLOW_START
} EventKind;

typedef struct Event {
    double time;  // microseconds
    EventKind kind;
    int node;      // of the compute, of the SEND; of a counter: the level
    int rank;      // of a counter
    int sequence;  // ties stay in this order
} Event;

typedef struct Trace {
    Picture k;
    FILE *out;
    double scale;  // microseconds per unit of time
    int process;   // of the ranks; the next one is of the wires
    int first_id;  // of its flows
    Event *events;
    int count;
} Trace;

static Event *add(Trace *t, double time, EventKind kind, int node)
{
    Arena *arena = t->k.p->arena;
    t->events = array_grow(arena, t->events, t->count, sizeof *t->events);
    t->events[t->count] = (Event){time * t->scale, kind, node, 0, t->count};
    return &t->events[t->count++];
}

/* A flow belongs to the slice that is open at its time: it leaves a moment
 * before its compute ends, and arrives with the one that reads it. */
static void add_compute(Trace *t, int node)
{
    const Program *p = t->k.p;
    const Node *own = &p->nodes[node];
    add(t, own->start, EVENT_COMPUTE, node);
    int maker = maker_of(p, node);
    if (maker < 0 || maker == own->data)  // in memory
        return;
    double end = p->nodes[maker].end, length = end - p->nodes[maker].start,
           moment = 0.001 / t->scale;
    add(t, end - (length < 2 * moment ? length / 2 : moment), EVENT_FLOW_START,
        node);
    add(t, own->start, EVENT_FLOW_END, node);
}

/* Of one rank. Messages that take no time on their wire are no slices. */
static void collect_rank(Trace *t, int rank)
{
    const Program *p = t->k.p;
    for (int i = 0; i < t->k.curves[rank].count; i++)
        add(t, t->k.curves[rank].at[i].time, EVENT_COUNTER, i)->rank = rank;
    for (int i = 0; i < p->lists[rank].count; i++) {
        int node = node_at(p, rank, i);
        if (is_compute(p->lists[rank].at[i].kind))
            add_compute(t, node);
        if (!is_send(p->lists[rank].at[i].kind))
            continue;
        const Message *message = message_of(p, node);
        if (message->end > message->begin)
            add(t, message->begin, EVENT_MESSAGE, node);
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

static void put_slice(const Trace *t, const Event *e, int process, int thread,
                      double end)
{
    Action a = action_of(t->k.p, e->node);
    fprintf(t->out,
            "{\"ph\":\"X\",\"name\":\"%d%s%d\",\"cat\":\"%s\",\"pid\":%d,"
            "\"tid\":%d,\"ts\":",
            a.chunk, action_names[a.kind], a.micro, action_names[a.kind],
            process, thread);
    put_time(t->out, picoseconds(e->time));
    fputs(",\"dur\":", t->out);
    put_time(t->out, picoseconds(end * t->scale) - picoseconds(e->time));
}

static void put_compute(const Trace *t, const Event *e)
{
    static const char *const phases[] = {"warmup", "steady", "cooldown"};
    const Program *p = t->k.p;
    Place at = place_of(p, e->node);
    Action a = action_of(p, e->node);
    put_slice(t, e, t->process, at.rank, p->nodes[e->node].end);
    fprintf(t->out,
            ",\"args\":{\"chunk\":%d,\"microbatch\":%d,\"phase\":\"%s\"}}",
            a.chunk, a.micro, phases[phase_of(&p->lists[at.rank], at.index)]);
}

/* Wires are threads of a second process. */
static int wire_thread(const Program *p, int send)
{
    return place_of(p, send).rank * p->ranks + action_of(p, send).peer;
}

static void put_message(const Trace *t, const Event *e)
{
    const Program *p = t->k.p;
    const Message *message = message_of(p, e->node);
    put_slice(t, e, t->process + 1, wire_thread(p, e->node), message->end);
    fprintf(t->out, ",\"args\":{\"bytes\":%.0f}}",
            message_bytes(p, message->boundary));
}

static void put_flow(const Trace *t, const Event *e)
{
    const Program *p = t->k.p;
    bool end = e->kind == EVENT_FLOW_END;
    int thread = place_of(p, end ? e->node : maker_of(p, e->node)).rank;
    fprintf(t->out,
            "{\"ph\":\"%s\",\"name\":\"%s\",\"cat\":\"message\",\"id\":%d,"
            "\"pid\":%d,\"tid\":%d,\"ts\":",
            end ? "f\",\"bp\":\"e" : "s",
            is_back(action_of(p, e->node).kind) ? "gradient" : "activation",
            t->first_id + e->node, t->process, thread);
    put_time(t->out, picoseconds(e->time));
    fputc('}', t->out);
}

static void put_counter(const Trace *t, const Event *e)
{
    size_t floats = t->k.curves[e->rank].at[e->node].floats;
    fprintf(t->out,
            "{\"ph\":\"C\",\"name\":\"bytes of rank %d\",\"pid\":%d,\"tid\":%d,"
            "\"ts\":",
            e->rank, t->process, e->rank);
    put_time(t->out, picoseconds(e->time));
    fprintf(t->out, ",\"args\":{\"alive\":%zu}}", 4 * floats);
}

static void put_name(const Trace *t, const char *what, int process, int thread,
                     const char *value)
{
    fprintf(t->out,
            "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,"
            "\"args\":{%s}},\n",
            what, process, thread, value);
}

/* Of the wires that carry something for a time. */
static void put_wire_names(const Trace *t)
{
    Program *p = t->k.p;
    bool any = false;
    for (int i = 0; i < p->message_count; i++) {
        const Message *message = &p->messages[i];
        if (message->ordinal || p->cost.wire[message->boundary] <= 0)
            continue;
        if (!any)
            put_name(t, "process_name", t->process + 1, 0,
                     "\"name\":\"wires\"");
        any = true;
        put_name(t, "thread_name", t->process + 1,
                 wire_thread(p, message->send),
                 text_format(p->arena, "\"name\":\"%d to %d\"",
                             place_of(p, message->send).rank,
                             place_of(p, message->receive).rank));
    }
}

static void put_names(const Trace *t)
{
    Program *p = t->k.p;
    const char *plan = text_format(p->arena, "%s, %s", p->name,
                                   p->set.schedule->name);
    put_name(t, "process_name", t->process, 0,
             text_format(p->arena, "\"name\":%s", json_string(p->arena, plan)));
    for (int r = 0; r < p->ranks; r++) {
        put_name(t, "thread_name", t->process, r,
                 text_format(p->arena, "\"name\":\"rank %d\"", r));
        put_name(t, "thread_sort_index", t->process, r,
                 text_format(p->arena, "\"sort_index\":%d", r));
    }
    put_wire_names(t);
}

static void put_metadata(const Trace *t)
{
    Arena *arena = t->k.p->arena;
    fprintf(t->out,
            "{\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"plan\":%s,\n"
            "\"cost model\":%s,\n\"result\":%s,\n\"time\":\"%s\"},\n"
            "\"traceEvents\":[\n",
            json_string(arena, title_line(&t->k)),
            json_string(arena, cost_line(&t->k)),
            json_string(arena, result_line(&t->k)),
            t->k.p->cost.unit
                ? "not seconds: 1000 us stand for one forward of one chunk"
                : "modelled microseconds");
}

static void put_plan(Trace *t, bool first)
{
    Program *p = t->k.p;
    for (int r = 0; r < p->ranks; r++)
        collect_rank(t, r);
    qsort(t->events, (size_t)t->count, sizeof *t->events, by_time);
    if (!first)
        fputs(",\n", t->out);
    put_names(t);
    for (int i = 0; i < t->count; i++) {
        const Event *e = &t->events[i];
        (e->kind == EVENT_COMPUTE   ? put_compute
         : e->kind == EVENT_COUNTER ? put_counter
         : e->kind == EVENT_MESSAGE ? put_message
                                    : put_flow)(t, e);
        fputs(i + 1 < t->count ? ",\n" : "", t->out);
    }
}

void picture_trace(Program **plans, int count, FILE *out)
{
    int first_id = 0;
    for (int i = 0; i < count; i++) {
        Program *p = plans[i];
        Trace t = {.k = picture_of(p),
                   .out = out,
                   .scale = p->cost.unit ? 1000 : 1e6,
                   .process = 2 * i,
                   .first_id = first_id};
        if (i == 0)
            put_metadata(&t);
        put_plan(&t, i == 0);
        first_id += p->first_node[p->ranks];
    }
    fputs("\n]}\n", out);
}
