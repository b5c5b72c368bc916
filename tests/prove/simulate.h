/* simulate.h: the times of a step, by events. It was written from
 * docs/language.md, "Times of a step", by someone who has not read `prove`, so
 * that the two can be held against each other.
 *
 * Time only runs forward. At each instant everything happens that can: ranks
 * take entries and wires take messages, and when none of them moves any more,
 * the adapters choose. Then time jumps to the next end or arrival:
 *
 *     now 0   rank 0 begins 0F0                 coming  3
 *     now 3   0F0 ends, 0SEND_F0, wire 0 -> 1   coming  3.5 (end)  4 (arrive)
 *     now 4   rank 1 gets over 1RECV_F0, begins 1F0 */
#ifndef SIMULATE_H
#define SIMULATE_H

#include "compile.h"

enum { SIM_RANKS = 8, SIM_CHUNKS = 32 };

typedef struct Machine {  // every number of the text that makes times
    int ranks;
    Meeting meet;
    double compute[4][SIM_CHUNKS];  // [F B I W][chunk] s
    double bytes[SIM_CHUNKS];       // of a message over the boundary before it
    double link, latency;           // between machines; link 0: takes no time
    int node;                       // ranks of one machine
    double node_link, node_latency;
    bool shared;  // what leaves a machine goes through one adapter
} Machine;

/* Rules to leave out, to see in which plans they matter. */
typedef enum {
    WITHOUT_NOTHING,
    WITHOUT_WIRES,     // a wire carries any number of messages at a time
    WITHOUT_POSTS,     // a message need not wait for its RECV
    WITHOUT_BLOCKING,  // only the action that reads a message waits for it
    WITHOUT_WAITS,     // WAIT does nothing
    WITHOUT_NODES,     // every rank has a machine of its own
    WITHOUT_ADAPTERS,
    WITHOUT_SHARING,  // pair: each direction has a wire of its own
    WITHOUT_COUNT
} Without;

typedef struct Interval {
    double start, end;
} Interval;

typedef struct Parcel {
    int from, to;
    int boundary, micro;  // of the chunk before which it crosses
    bool back;
    bool sent, posted, received;
    enum { HELD, READY, CARRIED } state;
    double ready, end, arrive;
} Parcel;

typedef struct Wire {  // its messages are neighbours, in their order
    int first, count, matched, next;
} Wire;

typedef struct Simulation {
    const Machine *machine;
    Without without;
    const List *lists;
    Arena *arena;
    Parcel *messages;
    int message_count;
    Wire wires[SIM_RANKS][SIM_RANKS];  // [from][to]; shared: [lower][higher]
    double adapter_end[SIM_RANKS];     // [machine]
    int *message[SIM_RANKS];           // [rank][entry] that it is about, or -1
    int next[SIM_RANKS];               // [rank] the entry to take
    double clock[SIM_RANKS];
    Interval *times[SIM_RANKS];  // [rank][entry]
    double now, makespan;
    double *coming;  // ends and arrivals after now
    int coming_count;
} Simulation;

/* ---- which message an entry is about ---- */

static bool goes_back(ActionKind kind)
{
    return kind == ACT_SEND_B || kind == ACT_RECV_B || kind == ACT_TAKE_B ||
           kind == ACT_WAIT_B || kind == ACT_B || kind == ACT_I;
}

/* The chunk before which the message of a SEND or RECV crosses. */
static int boundary_of(Action a)
{
    return a.chunk + (a.kind == ACT_SEND_F || a.kind == ACT_RECV_B);
}

/* The last SEND or RECV before `entry`, as `wanted` says, with the same
 * direction, chunk and micro-batch; -1: there is none. */
static int earlier_message(const Simulation *s, int rank, int entry,
                           bool (*wanted)(ActionKind kind))
{
    const Action *at = s->lists[rank].at, *a = &at[entry];
    for (int i = entry - 1; i >= 0; i--)
        if (wanted(at[i].kind) && goes_back(at[i].kind) == goes_back(a->kind) &&
            at[i].chunk == a->chunk && at[i].micro == a->micro)
            return s->message[rank][i];
    return -1;
}

static bool is_posted(const Simulation *s)
{
    return s->machine->meet != MEET_BLOCKING;
}

static bool share_wires(const Simulation *s)
{
    return s->machine->meet == MEET_PAIR && s->without != WITHOUT_SHARING;
}

static Wire *wire_of(Simulation *s, int from, int to)
{
    bool turned = share_wires(s) && from > to;
    return turned ? &s->wires[to][from] : &s->wires[from][to];
}

static bool is_end(Action a)
{
    return is_send(a.kind) || is_receive(a.kind);
}

/* Of the two ends of a message one gives its place on the wire: the SEND, or
 * where both directions share the wire that in the list of the lower rank. */
static bool gives_place(const Simulation *s, int rank, Action a)
{
    return is_end(a) && (share_wires(s) ? rank < a.peer : is_send(a.kind));
}

static Wire *wire_of_end(Simulation *s, int rank, Action a)
{
    return is_send(a.kind) ? wire_of(s, rank, a.peer)
                           : wire_of(s, a.peer, rank);
}

static Parcel parcel_of(int rank, Action a)
{
    bool sends = is_send(a.kind);
    return (Parcel){.from = sends ? rank : a.peer,
                     .to = sends ? a.peer : rank,
                     .boundary = boundary_of(a),
                     .micro = a.micro,
                     .back = goes_back(a.kind)};
}

static void lay_out_wires(Simulation *s)
{
    int ranks = s->machine->ranks;
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < s->lists[r].count; i++)
            if (gives_place(s, r, s->lists[r].at[i]))
                wire_of_end(s, r, s->lists[r].at[i])->count++;
    for (int from = 0; from < ranks; from++) {
        for (int to = 0; to < ranks; to++) {
            Wire *wire = &s->wires[from][to];
            wire->first = s->message_count;
            s->message_count += wire->count;
            wire->count = 0;
        }
    }
    s->messages = arena_take(s->arena, ((size_t)s->message_count + 1) *
                                           sizeof *s->messages);
}

static void number_places(Simulation *s, int rank)
{
    for (int i = 0; i < s->lists[rank].count; i++) {
        Action a = s->lists[rank].at[i];
        if (!gives_place(s, rank, a))
            continue;
        Wire *wire = wire_of_end(s, rank, a);
        int message = wire->first + wire->count++;
        s->message[rank][i] = message;
        s->messages[message] = parcel_of(rank, a);
    }
}

static bool is_same(const Parcel *a, const Parcel *b)
{
    return a->from == b->from && a->to == b->to && a->boundary == b->boundary &&
           a->micro == b->micro && a->back == b->back;
}

/* False when the k-th end of one list is no end of the message of the other's
 * k-th. */
static bool number_matches(Simulation *s, int rank)
{
    for (int i = 0; i < s->lists[rank].count; i++) {
        Action a = s->lists[rank].at[i];
        if (!is_end(a) || gives_place(s, rank, a))
            continue;
        Wire *wire = wire_of_end(s, rank, a);
        if (wire->matched == wire->count)
            return false;
        int message = wire->first + wire->matched++;
        s->message[rank][i] = message;
        Parcel mine = parcel_of(rank, a);
        if (!is_same(&mine, &s->messages[message]))
            return false;
    }
    return true;
}

static bool all_matched(const Simulation *s)
{
    for (int from = 0; from < s->machine->ranks; from++)
        for (int to = 0; to < s->machine->ranks; to++)
            if (s->wires[from][to].matched < s->wires[from][to].count)
                return false;
    return true;
}

/* Of an F, B or I: the message that brings what it reads. */
static bool number_others(Simulation *s, int rank)
{
    for (int i = 0; i < s->lists[rank].count; i++) {
        ActionKind kind = s->lists[rank].at[i].kind;
        bool reads = is_compute(kind) && kind != ACT_W;
        if (is_take(kind) || reads)
            s->message[rank][i] = earlier_message(s, rank, i, is_receive);
        else if (is_wait(kind))
            s->message[rank][i] = earlier_message(s, rank, i, is_send);
        if ((is_take(kind) || is_wait(kind)) && s->message[rank][i] < 0)
            return false;
    }
    return true;
}

static bool number_messages(Simulation *s)
{
    bool good = true;
    lay_out_wires(s);
    for (int r = 0; r < s->machine->ranks; r++) {
        size_t room = (size_t)s->lists[r].count + 1;
        s->message[r] = arena_take(s->arena, room * sizeof(int));
        for (size_t i = 0; i < room; i++)
            s->message[r][i] = -1;
        number_places(s, r);
    }
    for (int r = 0; r < s->machine->ranks; r++)
        good = good && number_matches(s, r) && number_others(s, r);
    return good && all_matched(s);
}

/* ---- one instant ---- */

static void expect(Simulation *s, double time)
{
    if (time > s->now)
        s->coming[s->coming_count++] = time;
}

static bool has_arrived(const Simulation *s, int message)
{
    const Parcel *m = &s->messages[message];
    return m->state == CARRIED && m->arrive <= s->now;
}

/* Has every rank that has this REDUCE or STEP come to it. */
static bool all_have_come(const Simulation *s, Action a)
{
    for (int r = 0; r < s->machine->ranks; r++) {
        const Action *at = s->lists[r].at;
        int i = s->lists[r].count - 1;
        while (i >= 0 && !(at[i].kind == a.kind && at[i].micro == a.micro))
            i--;
        if (i > s->next[r] || (i == s->next[r] && s->clock[r] > s->now))
            return false;
    }
    return true;
}

/* Does the rank stay before the entry until later. */
static bool must_wait(const Simulation *s, int rank, int entry)
{
    Action a = s->lists[rank].at[entry];
    int message = s->message[rank][entry];
    bool posted = is_posted(s);
    if (is_compute(a.kind))
        return s->without == WITHOUT_BLOCKING && !posted && message >= 0 &&
               !has_arrived(s, message);
    if (is_receive(a.kind))
        return !posted && s->without != WITHOUT_BLOCKING &&
               !has_arrived(s, message);
    if (is_take(a.kind))
        return !has_arrived(s, message);
    if (is_wait(a.kind))
        return s->without != WITHOUT_WAITS &&
               !(posted ? has_arrived(s, message)
                        : s->messages[message].received);
    if (is_send(a.kind))
        return false;
    return !all_have_come(s, a);
}

static bool move_rank(Simulation *s, int rank)
{
    int entry = s->next[rank];
    if (entry == s->lists[rank].count || s->clock[rank] > s->now ||
        must_wait(s, rank, entry))
        return false;
    Action a = s->lists[rank].at[entry];
    double end = s->now;
    if (is_compute(a.kind)) {
        end += s->machine->compute[a.kind][a.chunk];
        if (end > s->makespan)
            s->makespan = end;
        expect(s, end);
    } else if (is_send(a.kind)) {
        s->messages[s->message[rank][entry]].sent = true;
    } else if (is_receive(a.kind)) {
        s->messages[s->message[rank][entry]].posted = true;
        s->messages[s->message[rank][entry]].received = true;
    }
    s->times[rank][entry] = (Interval){s->now, end};
    s->clock[rank] = end;
    s->next[rank]++;
    return true;
}

static int machine_of_rank(const Simulation *s, int rank)
{
    return s->without == WITHOUT_NODES ? rank : rank / s->machine->node;
}

static void carry(Simulation *s, Parcel *m)
{
    bool inside = machine_of_rank(s, m->from) == machine_of_rank(s, m->to);
    double link = inside ? s->machine->node_link : s->machine->link;
    double bytes = s->machine->bytes[m->boundary];
    m->state = CARRIED;
    m->end = s->now + (link > 0 ? bytes / link : 0);
    m->arrive = m->end +
                (inside ? s->machine->node_latency : s->machine->latency);
    expect(s, m->end);
    expect(s, m->arrive);
}

static bool needs_adapter(const Simulation *s, const Parcel *m)
{
    return s->machine->shared && s->without != WITHOUT_ADAPTERS &&
           machine_of_rank(s, m->from) != machine_of_rank(s, m->to);
}

/* The wire lets go of what it has carried, or begins its next message. */
static bool move_wire(Simulation *s, Wire *wire)
{
    if (wire->next == wire->count)
        return false;
    Parcel *m = &s->messages[wire->first + wire->next];
    if (m->state == CARRIED) {
        if (m->end > s->now && s->without != WITHOUT_WIRES)
            return false;
        wire->next++;
        return true;
    }
    bool awaits_post = is_posted(s) && !m->posted;
    if (m->state == READY || !m->sent ||
        (awaits_post && s->without != WITHOUT_POSTS))
        return false;
    m->state = READY;
    m->ready = s->now;
    if (!needs_adapter(s, m))
        carry(s, m);
    return true;
}

/* In which order an adapter takes them. */
static bool is_earlier(const Parcel *a, const Parcel *b)
{
    if (a->ready != b->ready)
        return a->ready < b->ready;
    return a->from != b->from ? a->from < b->from : a->to < b->to;
}

/* The adapter takes the message that has been ready for longest. */
static bool move_adapter(Simulation *s, int machine)
{
    if (s->adapter_end[machine] > s->now)
        return false;
    Parcel *first = NULL;
    for (int from = 0; from < s->machine->ranks; from++) {
        for (int to = 0; to < s->machine->ranks; to++) {
            const Wire *wire = &s->wires[from][to];
            if (wire->next == wire->count)
                continue;
            Parcel *m = &s->messages[wire->first + wire->next];
            if (m->state == READY && machine_of_rank(s, m->from) == machine &&
                (!first || is_earlier(m, first)))
                first = m;
        }
    }
    if (!first)
        return false;
    carry(s, first);
    s->adapter_end[machine] = first->end;
    return true;
}

static bool ranks_and_wires_move(Simulation *s)
{
    bool moved = false;
    for (int r = 0; r < s->machine->ranks; r++)
        while (move_rank(s, r))
            moved = true;
    for (int from = 0; from < s->machine->ranks; from++)
        for (int to = 0; to < s->machine->ranks; to++)
            while (move_wire(s, &s->wires[from][to]))
                moved = true;
    return moved;
}

static bool adapters_move(Simulation *s)
{
    bool moved = false;
    for (int machine = 0; machine < s->machine->ranks; machine++)
        moved |= move_adapter(s, machine);
    return moved;
}

/* ---- all of them ---- */

/* To the next end or arrival; false: nothing is on its way. */
static bool jump(Simulation *s)
{
    if (!s->coming_count)
        return false;
    double next = s->coming[0];
    for (int i = 1; i < s->coming_count; i++)
        if (s->coming[i] < next)
            next = s->coming[i];
    int kept = 0;
    for (int i = 0; i < s->coming_count; i++)
        if (s->coming[i] > next)
            s->coming[kept++] = s->coming[i];
    s->coming_count = kept;
    s->now = next;
    return true;
}

/* Fills times and makespan; false when messages do not match or a rank never
 * gets to the end of its list. */
static bool simulate(Simulation *s, Arena *arena, const Machine *machine,
                     const List *lists, Without without)
{
    *s = (Simulation){
        .machine = machine, .without = without, .lists = lists, .arena = arena};
    if (!number_messages(s))
        return false;
    for (int r = 0; r < machine->ranks; r++)
        s->times[r] = arena_take(arena, ((size_t)lists[r].count + 1) *
                                            sizeof *s->times[r]);
    int most = machine->ranks + 2 * s->message_count;
    s->coming = arena_take(arena, (size_t)most * sizeof *s->coming);
    do {
        do {
            while (ranks_and_wires_move(s))
                continue;
        } while (adapters_move(s));
    } while (jump(s));
    for (int r = 0; r < machine->ranks; r++)
        if (s->next[r] < lists[r].count)
            return false;
    return true;
}

#endif
