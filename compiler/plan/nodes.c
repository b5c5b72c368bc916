/* nodes.c: questions to the graph that `prove` has kept.
 *
 * Reads: nodes, node_of, messages, linear, cost. Writes nothing of the Program.
 *
 * An entry ends when the last of its edges does, and that edge is its cause:
 * found by comparing times, so that it is the same for planned times, for those
 * of other costs, and for measured ones. */
#include "nodes.h"

#include <math.h>

int node_at(const Program *p, int rank, int index)
{
    return p->first_node[rank] + index;
}

Place place_of(const Program *p, int node)
{
    int low = 0, high = p->ranks;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (p->first_node[middle] <= node)
            low = middle;
        else
            high = middle;
    }
    return (Place){low, node - p->first_node[low]};
}

Action action_of(const Program *p, int node)
{
    Place at = place_of(p, node);
    return p->lists[at.rank].at[at.index];
}

int find_node(const Program *p, ActionKind kind, int chunk, int micro)
{
    if (kind >= ACT_REDUCE || !p->node_of[kind] || chunk < 0 || micro < 0 ||
        chunk >= p->chunk_count || micro >= p->microbatches)
        return -1;
    return p->node_of[kind][cell_of(p, chunk, micro)];
}

int find_backward(const Program *p, int chunk, int micro)
{
    int whole = find_node(p, ACT_B, chunk, micro);
    return whole >= 0 ? whole : find_node(p, ACT_I, chunk, micro);
}

const Message *message_of(const Program *p, int node)
{
    ActionKind kind = action_of(p, node).kind;
    int end = is_take(kind) || is_wait(kind) ? p->nodes[node].data : node;
    return is_message(kind) ? &p->messages[p->message_index[end]] : NULL;
}

int node_before(const Program *p, int node)
{
    return place_of(p, node).index > 0 ? node - 1 : -1;
}

int compute_before(const Program *p, int node)
{
    int index = place_of(p, node).index;
    while (--index >= 0)
        if (is_compute(action_of(p, --node).kind))
            return node;
    return -1;
}

int maker_of(const Program *p, int node)
{
    do
        node = p->nodes[node].data;
    while (node >= 0 && !is_compute(action_of(p, node).kind));
    return node;
}

/* ---- causes ---- */

/* The entry before it that its rank had to end: a SEND holds nothing up. */
static int held_by(const Program *p, int node)
{
    do
        node = node_before(p, node);
    while (node >= 0 && is_send(action_of(p, node).kind));
    return node;
}

/* When the rank goes on. */
static double goes_on(const Program *p, const Node *nodes, int node)
{
    return is_send(action_of(p, node).kind) ? nodes[node].start
                                            : nodes[node].end;
}

/* When the wire of a message is free again. */
static double wire_end(const Program *p, const Cost *cost, const Node *nodes,
                       int send)
{
    return nodes[send].end - cost->delay[message_of(p, send)->boundary];
}

/* What an entry waits for beside its rank: the node that frees its buffer, or
 * the SEND of its message. -1: nothing. A RECEIVE that is posted before waits
 * for nothing, and a collective for all ranks. */
static int waits_for(const Program *p, const Node *nodes, int node)
{
    const Node *own = &nodes[node];
    ActionKind kind = action_of(p, node).kind;
    if (is_wait(kind) && own->freed >= 0)
        return own->freed;
    bool waits = is_take(kind) || is_wait(kind) ||
                 (is_receive(kind) && nodes[own->data].post < 0);
    return waits ? own->data : -1;
}

static void later(double time, int node, double *latest, int *cause)
{
    if (node < 0 || time <= *latest)
        return;
    *latest = time;
    *cause = node;
}

/* Of the message of a SEND: why it does not begin to travel earlier. */
static int cause_of_send(const Program *p, const Node *nodes, int node)
{
    const Node *own = &nodes[node];
    int cause = own->data, adapter = message_of(p, node)->adapter;
    double latest = own->start;
    if (own->wire >= 0)
        later(wire_end(p, &p->cost, nodes, own->wire), own->wire, &latest,
              &cause);
    if (adapter >= 0)
        later(wire_end(p, &p->cost, nodes, adapter), adapter, &latest, &cause);
    if (own->post >= 0)
        later(nodes[own->post].start, own->post, &latest, &cause);
    return cause;
}

int cause_of(const Program *p, const Node *nodes, int node)
{
    const Node *own = &nodes[node];
    ActionKind kind = action_of(p, node).kind;
    if (is_send(kind))
        return cause_of_send(p, nodes, node);
    int cause = held_by(p, node);
    double latest = cause < 0 ? 0 : nodes[cause].end;
    if (is_collective(kind) && own->data >= 0)
        later(nodes[own->data].start, own->data, &latest, &cause);
    int until = waits_for(p, nodes, node);
    if (until >= 0)
        later(nodes[until].end, until, &latest, &cause);
    return cause;
}

static Waits kind_of_wait(const Program *p, const Node *nodes, int node,
                          int cause, Waits so_far)
{
    const Node *own = &nodes[node];
    ActionKind kind = action_of(p, node).kind;
    if (is_send(kind) && (so_far == WAITS_DATA || so_far == WAITS_BUFFER))
        return cause == own->data   ? so_far
               : cause == own->post ? WAITS_POST
                                    : WAITS_LINK;
    if (so_far != WAITS_RANK || cause == held_by(p, node))
        return so_far;
    return is_collective(kind) ? WAITS_OTHERS
           : is_wait(kind)     ? WAITS_BUFFER
                               : WAITS_DATA;
}

Waits why_waits(const Program *p, const Node *nodes, int node, int *from,
                int *message)
{
    Waits waits = WAITS_RANK;
    *message = -1;
    for (;;) {
        int cause = cause_of(p, nodes, node);
        *from = cause;
        if (cause < 0)
            return waits == WAITS_RANK ? WAITS_START : waits;
        waits = kind_of_wait(p, nodes, node, cause, waits);
        if (is_send(action_of(p, cause).kind) && *message < 0)
            *message = cause;
        if (is_compute(action_of(p, cause).kind))
            return waits;
        node = cause;
    }
}

int cause_compute(const Program *p, const Node *nodes, int node)
{
    int from, message;
    why_waits(p, nodes, node, &from, &message);
    return from;
}

/* ---- the same graph with other costs ---- */

static double duration_of(const Program *p, const Cost *cost, int free,
                          int node)
{
    Action a = action_of(p, node);
    return !is_compute(a.kind) || node == free ? 0
                                               : cost->compute[a.kind][a.chunk];
}

static void settle(const Program *p, const Cost *cost, const Message *message,
                   Node *nodes)
{
    Node *own = &nodes[message->send];
    double begin = own->start;
    int before[2] = {own->wire, message->adapter};
    for (int i = 0; i < 2; i++) {
        if (before[i] < 0)
            continue;
        double end = wire_end(p, cost, nodes, before[i]);
        begin = end > begin ? end : begin;
    }
    if (own->post >= 0 && nodes[own->post].start > begin)
        begin = nodes[own->post].start;
    own->end = begin + cost->wire[message->boundary] +
               cost->delay[message->boundary];
}

/* A collective ends when the last rank comes to it. They stand at the ends of
 * the lists, and what is before them has run. */
static double last_to_come(const Program *p, Action a, const Node *nodes)
{
    double last = 0;
    for (int r = 0; r < p->ranks; r++) {
        for (int i = p->lists[r].count; i-- > 0;) {
            Action other = p->lists[r].at[i];
            if (is_compute(other.kind))
                break;
            int before = node_before(p, node_at(p, r, i));
            if (other.kind == a.kind && other.micro == a.micro && before >= 0)
                last = fmax(last, goes_on(p, nodes, before));
        }
    }
    return last;
}

static void run_node(const Program *p, const Cost *cost, int free, int node,
                     Node *nodes)
{
    int before = node_before(p, node), until = waits_for(p, nodes, node);
    Node *own = &nodes[node];
    own->start = own->end = before < 0 ? 0 : goes_on(p, nodes, before);
    if (until >= 0 && nodes[until].end > own->end)
        own->end = nodes[until].end;
    if (is_collective(action_of(p, node).kind))
        own->end = last_to_come(p, action_of(p, node), nodes);
    own->end += duration_of(p, cost, free, node);
}

double retime(const Program *p, const Cost *cost, int free, Node *nodes)
{
    double makespan = 0;
    int settled = 0;
    for (int node = 0; node < p->first_node[p->ranks]; node++)
        nodes[node] = p->nodes[node];
    for (int i = 0; i < p->linear_count; i++) {
        int node = p->linear[i];
        for (; settled < p->message_count &&
               p->messages[p->carried[settled]].settled <= i;
             settled++)
            settle(p, cost, &p->messages[p->carried[settled]], nodes);
        run_node(p, cost, free, node, nodes);
        if (is_compute(action_of(p, node).kind))
            makespan = fmax(makespan, nodes[node].end);
    }
    return makespan;
}

/* ---- how late an entry could be ---- */

typedef struct Late {
    const Program *p;
    double *until;   // [node] when its rank goes on at the latest
    int *next;       // [node] the entry that says so
    double *arrive;  // [message] the same of its arrival
    int *reader;     // [message]
} Late;

static void entry_by(const Late *late, int node, double time, int next)
{
    if (node < 0 || time >= late->until[node])
        return;
    late->until[node] = time;
    late->next[node] = next;
}

static void arrival_by(const Late *late, int send, double time, int next)
{
    int index = send < 0 ? -1 : late->p->message_index[send];
    if (index < 0 || time >= late->arrive[index])
        return;
    late->arrive[index] = time;
    late->reader[index] = next;
}

/* From the latest arrival of a message to all that it waits for. */
static void unsettle(const Late *late, int index)
{
    const Program *p = late->p;
    const Message *message = &p->messages[index];
    const Node *own = &p->nodes[message->send];
    int before[2] = {own->wire, message->adapter}, next = late->reader[index];
    double begin = late->arrive[index] - p->cost.delay[message->boundary] -
                   p->cost.wire[message->boundary];
    entry_by(late, message->send, begin, next);
    entry_by(late, own->post, begin, next);
    for (int i = 0; i < 2; i++)
        if (before[i] >= 0)
            arrival_by(late, before[i],
                       begin +
                           p->cost.delay[message_of(p, before[i])->boundary],
                       next);
}

/* The same of an entry. */
static void unrun(const Late *late, int node)
{
    const Program *p = late->p;
    int from = waits_for(p, p->nodes, node);
    double until = late->until[node];
    entry_by(late, node_before(p, node),
             until - duration_of(p, &p->cost, -1, node), node);
    if (p->nodes[node].freed >= 0)
        entry_by(late, from, until, node);
    else
        arrival_by(late, from, until, node);
}

void latest_ends(Program *p, double *latest, int *next)
{
    size_t messages = (size_t)p->message_count + 1;
    Late late = {p, latest, next,
                 arena_take(p->arena, sizeof(double) * messages),
                 arena_take(p->arena, sizeof(int) * messages)};
    int settled = p->message_count;
    for (int i = 0; i < p->first_node[p->ranks]; i++) {
        latest[i] = p->makespan;
        next[i] = -1;
    }
    for (int i = 0; i < p->message_count; i++)
        late.arrive[i] = INFINITY;
    for (int i = p->linear_count; i-- > 0;) {
        unrun(&late, p->linear[i]);
        for (; settled > 0 && p->messages[p->carried[settled - 1]].settled >= i;
             settled--)
            unsettle(&late, p->carried[settled - 1]);
    }
}

int next_compute(const Program *p, const int *next, int node)
{
    do
        node = next[node];
    while (node >= 0 && !is_compute(action_of(p, node).kind));
    return node;
}
