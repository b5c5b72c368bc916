/* prove_run.c: all lists at once: a linear order of the whole graph, with times,
 * or a circle.
 *
 * Always the entry that can run first is next; each that runs is one more of the
 * order. If none can run, ranks wait for one another in a circle, and the circle
 * is printed. The rules of the clock are those of docs/language.md, "Times of a
 * step":
 *
 *     rank a   F0 SEND   F1 SEND              a SEND hands its message to the wire
 *     wire         [ bytes 0 ][ bytes 1 ]     one message at a time
 *     rank b       .   RECV   ^ arrive        latency behind the bytes
 *
 * Where the ranks of a machine share an adapter, a message that its wire could
 * carry stands in the heap as well, with the time at which it is ready: so the
 * adapter takes them in that order. It orders times, not the proof. */
#include "prove.h"

#include <math.h>

/* ---- the heap: ranks that can go on, and messages ready for an adapter ---- */

/* Of equal times: ranks come first, since what they send now is ready now; then
 * messages by sender, then by receiver, whatever wire they are on. */
static int turn_of(const Prover *prover, int queue)
{
    const Program *p = prover->p;
    if (queue < p->ranks || !prover->both)
        return queue;
    const Wire *wire = &prover->wires[queue - p->ranks];
    const Message *message = &p->messages[wire->first + wire->carried];
    return p->ranks + place_of(p, message->send).rank * p->ranks +
           place_of(p, message->receive).rank;
}

static bool before(const Prover *prover, int a, int b)
{
    return prover->key[a] < prover->key[b] ||
           (prover->key[a] == prover->key[b] &&
            turn_of(prover, a) < turn_of(prover, b));
}

static void heap_push(Prover *prover, int queue, double key)
{
    int i = prover->heap_count++;
    prover->key[queue] = key;
    for (; i > 0 && before(prover, queue, prover->heap[(i - 1) / 2]);
         i = (i - 1) / 2)
        prover->heap[i] = prover->heap[(i - 1) / 2];
    prover->heap[i] = queue;
}

static int heap_pop(Prover *prover)
{
    int *heap = prover->heap;
    int top = heap[0], moved = heap[--prover->heap_count], i = 0;
    for (int child = 1; child < prover->heap_count; child = 2 * i + 1) {
        if (child + 1 < prover->heap_count &&
            before(prover, heap[child + 1], heap[child]))
            child++;
        if (!before(prover, heap[child], moved))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moved;
    return top;
}

/* ---- what a rank's next entry waits for ---- */

/* Can this entry run now; raises `key` to the time at which it ends. */
static bool is_ready(Prover *prover, int rank, int node, double *key)
{
    Program *p = prover->p;
    Action a = action_of(p, node);
    if (is_collective(a.kind)) {
        int which = a.kind == ACT_STEP ? p->tie_count : a.micro;
        return ++prover->arrived[which] == 0;
    }
    if (is_compute(a.kind) || is_send(a.kind) ||
        (is_receive(a.kind) && prover->posts))
        return true;
    int end;
    const Wire *wire = &prover->wires[wire_of_entry(prover, rank, a, &end)];
    const Message *message = message_of(p, node);
    bool freed = is_wait(a.kind) && !prover->posts;
    if (message->ordinal >= (freed ? wire->taken : wire->carried))
        return false;
    double when = p->nodes[freed ? message->receive : message->send].end;
    *key = when > *key ? when : *key;
    return true;
}

/* Puts the rank's next entry where it belongs: among those that can run, or
 * aside. */
static void offer(Prover *prover, int rank)
{
    if (prover->next[rank] == prover->p->lists[rank].count)
        return;
    double key = prover->clock[rank];
    int node = node_at(prover->p, rank, prover->next[rank]);
    prover->parked[rank] = !is_ready(prover, rank, node, &key);
    if (!prover->parked[rank])
        heap_push(prover, rank, key);
}

static void wake(Prover *prover, int rank)
{
    if (!prover->parked[rank])
        return;
    if (!is_collective(entry_at(prover, rank, prover->next[rank]).kind))
        offer(prover, rank);
}

/* ---- wires ---- */

/* The message begins to travel. A posted receive takes it as it comes. */
static void carry(Prover *prover, Wire *wire, double begin)
{
    Program *p = prover->p;
    int index = wire->first + wire->carried++;
    Message *message = &p->messages[index];
    int sender = place_of(p, message->send).rank;
    message->begin = begin;
    message->end = begin + p->cost.wire[message->boundary];
    p->nodes[message->send].end = message->end +
                                  p->cost.delay[message->boundary];
    message->settled = p->linear_count;
    message->release = prover->next[sender];
    p->carried[prover->carried++] = index;
    wake(prover, place_of(p, message->receive).rank);
    wake(prover, sender);
}

/* When the wire could carry its next message; INFINITY: an end of it is not
 * there yet. */
static double ready_at(const Prover *prover, const Wire *wire)
{
    const Program *p = prover->p;
    const Message *message = &p->messages[wire->first + wire->carried];
    if (wire->carried == wire->issued[0] ||
        (prover->posts && wire->carried == wire->issued[1]))
        return INFINITY;
    double ready = p->nodes[message->send].start;
    if (wire->carried > 0 && message[-1].end > ready)
        ready = message[-1].end;
    if (prover->posts && p->nodes[message->receive].start > ready)
        ready = p->nodes[message->receive].start;
    return ready;
}

/* Whatever the wire can carry by now, or, through an adapter, the next of it
 * when its turn comes. */
static void run_wire(Prover *prover, int number)
{
    const Program *p = prover->p;
    int one = number / p->ranks, other = number % p->ranks;
    Wire *wire = &prover->wires[number];
    bool shared = p->set.adapter_shared &&
                  machine_of(p, one) != machine_of(p, other);
    while (!wire->queued) {
        double ready = ready_at(prover, wire);
        if (isinf(ready))
            return;
        if (!shared) {
            carry(prover, wire, ready);
            continue;
        }
        wire->queued = true;
        heap_push(prover, p->ranks + number, ready);
    }
}

/* The adapter of the sender's machine takes the message, when it is free. */
static void run_adapter(Prover *prover, int number)
{
    Program *p = prover->p;
    Wire *wire = &prover->wires[number];
    int index = wire->first + wire->carried,
        from = place_of(p, p->messages[index].send).rank;
    int *last = &prover->adapter[machine_of(p, from)];
    double begin = prover->key[p->ranks + number];
    p->messages[index].adapter = *last;
    if (*last >= 0 && message_of(p, *last)->end > begin)
        begin = message_of(p, *last)->end;
    *last = p->messages[index].send;
    wire->queued = false;
    carry(prover, wire, begin);
    run_wire(prover, number);
}

/* ---- entries ---- */

/* The entry of this collective at which a rank stands; -1: it is elsewhere. The
 * rank that came last has taken it already. */
static int stands_at(const Prover *prover, int rank, int last, Action a)
{
    if (rank != last && !prover->parked[rank])
        return -1;
    int index = prover->next[rank] - (rank == last);
    Action other = entry_at(prover, rank, index);
    return other.kind == a.kind && other.micro == a.micro
               ? node_at(prover->p, rank, index)
               : -1;
}

/* The last rank to come has released a collective: all that stand at it go on,
 * at the latest clock. */
static void release_collective(Prover *prover, int last, Action a)
{
    Program *p = prover->p;
    int latest = last;
    for (int r = 0; r < p->ranks; r++)
        if (prover->clock[r] > prover->clock[latest] &&
            stands_at(prover, r, last, a) >= 0)
            latest = r;
    int cause = stands_at(prover, latest, last, a);
    for (int r = 0; r < p->ranks; r++) {
        int node = stands_at(prover, r, last, a);
        if (node < 0)
            continue;
        p->nodes[node].data = r == latest ? -1 : cause;
        if (r == last)
            continue;
        prover->parked[r] = false;
        heap_push(prover, r, prover->clock[latest]);
    }
    prover->clock[last] = prover->clock[latest];
    prover->arrived[a.kind == ACT_STEP ? p->tie_count : a.micro] =
        1;  // released: nobody else may release it
}

static void run_compute(Prover *prover, int rank, Action a)
{
    Program *p = prover->p;
    prover->clock[rank] += p->cost.compute[a.kind][a.chunk];
    if (prover->clock[rank] > p->makespan)
        p->makespan = prover->clock[rank];
}

/* A receive that blocks has its message now. */
static void take_message(Prover *prover, Wire *wire, int node)
{
    Program *p = prover->p;
    Message *message = &p->messages[p->message_index[node]];
    int sender = place_of(p, message->send).rank;
    wire->taken++;
    message->release = prover->next[sender];
    wake(prover, sender);
}

/* An end of a message is there. */
static void issue(Prover *prover, int rank, int node)
{
    Action a = action_of(prover->p, node);
    int end, number = wire_of_entry(prover, rank, a, &end);
    Wire *wire = &prover->wires[number];
    if (is_receive(a.kind) && !prover->posts) {
        take_message(prover, wire, node);
        return;
    }
    wire->issued[end]++;
    run_wire(prover, number);
}

static void run_rank(Prover *prover, int rank)
{
    Program *p = prover->p;
    int node = node_at(p, rank, prover->next[rank]++);
    Action a = action_of(p, node);
    Node *own = &p->nodes[node];
    own->start = prover->clock[rank];
    if (is_compute(a.kind))
        run_compute(prover, rank, a);
    else if (is_collective(a.kind) &&
             prover->arrived[a.kind == ACT_STEP ? p->tie_count : a.micro] == 0)
        release_collective(prover, rank, a);
    else
        prover->clock[rank] = prover->key[rank];
    own->end = prover->clock[rank];
    p->linear[p->linear_count++] = node;
    if (is_send(a.kind) || is_receive(a.kind))
        issue(prover, rank, node);
    offer(prover, rank);
}

/* ---- a circle ---- */

/* What a parked rank's entry waits for: the end that is not there of the message
 * that is next on its wire, which may be the rank's own; or, where a WAIT frees
 * a buffer, the RECV that takes it out. */
static int missing_end(const Prover *prover, int rank)
{
    const Program *p = prover->p;
    int end, node = node_at(p, rank, prover->next[rank]);
    Action a = action_of(p, node);
    const Wire *wire = &prover->wires[wire_of_entry(prover, rank, a, &end)];
    if (is_wait(a.kind) && !prover->posts)
        return message_of(p, node)->receive;
    int late = wire->issued[0] > wire->carried;
    return prover->ends[wire->first + wire->carried][late];
}

/* The rank that a parked one waits for; for a collective the first that has not
 * come. */
static int waits_for(const Prover *prover, int rank)
{
    Action a = entry_at(prover, rank, prover->next[rank]);
    if (!is_collective(a.kind))
        return place_of(prover->p, missing_end(prover, rank)).rank;
    for (int r = 0; r < prover->p->ranks; r++) {
        Action other = prover->next[r] < prover->p->lists[r].count
                           ? entry_at(prover, r, prover->next[r])
                           : (Action){ACT_STEP, -1, -1, -1, 0, 0};
        if (r != rank && prover->parked[r] &&
            (other.kind != a.kind || other.micro != a.micro))
            return r;
    }
    return rank;
}

static const char *missing_text(Prover *prover, int rank)
{
    Program *p = prover->p;
    Action a = entry_at(prover, rank, prover->next[rank]);
    if (is_collective(a.kind))
        return action_text(p, a);
    int node = missing_end(prover, rank);
    Place place = place_of(p, node);
    return text_format(p->arena, "%s, action %d%s",
                       action_text(p, action_of(p, node)), place.index,
                       origin_of(p, place.rank, action_of(p, node)).text);
}

/* What the rank would do next if its message came: the compute that a person
 * thinks of, if there is one. */
static bool coming_compute(const Prover *prover, int rank, Action *compute)
{
    for (int i = prover->next[rank]; i < prover->p->lists[rank].count; i++) {
        *compute = entry_at(prover, rank, i);
        if (is_compute(compute->kind))
            return true;
    }
    return false;
}

static const char *coming_text(Prover *prover, int rank)
{
    Program *p = prover->p;
    Action a;
    if (!coming_compute(prover, rank, &a))
        return "the end of the step";
    return text_format(p->arena, "%s%s", action_text(p, a),
                       origin_of(p, rank, a).text);
}

/* Where the order comes from: the cell of a file, else its setting. */
static Span circle_at(const Prover *prover, int rank)
{
    Program *p = prover->p;
    Action a;
    return p->schedule_source.text && coming_compute(prover, rank, &a)
               ? origin_of(p, rank, a).at
               : p->set.schedule_at;
}

static bool print_circle(Prover *prover)
{
    Program *p = prover->p;
    int rank = 0;
    while (!prover->parked[rank])
        rank++;
    for (int i = 0; i < p->ranks;
         i++)  // after that many steps we are on the circle
        rank = waits_for(prover, rank);
    Span at = circle_at(prover, rank);
    if (at.source >= 0)
        error_at(p, at, "this schedule would wait for itself");
    else
        error_plain(p, "the schedule would wait for itself");
    int first = rank;
    do {
        int other = waits_for(prover, rank);
        fprintf(p->diagnostics,
                "    rank %d cannot run %s: action %d, %s, waits for rank %d's "
                "%s\n",
                rank, coming_text(prover, rank), prover->next[rank],
                action_text(p, entry_at(prover, rank, prover->next[rank])),
                other, missing_text(prover, rank));
        rank = other;
    } while (rank != first);
    help(p,
         "these orders contradict each other; change %s, or choose another "
         "schedule",
         p->origin ? "them" : "the schedule's options");
    return false;
}

bool runs_to_the_end(Prover *prover)
{
    Program *p = prover->p;
    for (int r = 0; r < p->ranks; r++)
        offer(prover, r);
    while (prover->heap_count) {
        int queue = heap_pop(prover);
        if (queue < p->ranks)
            run_rank(prover, queue);
        else
            run_adapter(prover, queue - p->ranks);
    }
    return p->linear_count == p->first_node[p->ranks] || print_circle(prover);
}
