/* prove.c: actions -> exactly once, matched, acyclic; times by longest path.
 *
 * Reads: lists, chunks, ties, set. Writes: cost, times, linear, makespan.
 * Guarantees: with queues that are first in first out and have no tags, sends
 * that wait for nobody until a WAIT says so, and receives that block, every
 * rank runs to its end, whatever the delays; every micro-batch passes every
 * chunk once, in data order; in which order gradients are added is known.
 *
 * It believes nothing that `communicate` intended: it matches by position alone
 * and looks only at the lists. The last check runs all lists against each
 * other, always the entry that can start first. Each entry that runs is one
 * more of a linear order of the whole graph; if none can run, ranks wait for
 * one another in a circle, and the circle is printed. */
#include "compile.h"

#include <string.h>

typedef struct Queue {  // from one rank to another
    Place *sends, *receives;
    int send_count, receive_count;
    int sent, posted;      // by the run so far
    int taken;             // messages whose two ends have met
    double *start, *took;  // [message] when it left; when it was taken
    double *ready;         // [message] when the receiver was ready for it
} Queue;

typedef struct Prover {
    Program *p;
    int microbatches;
    unsigned short *done;  // [cell] what its rank has done
    bool posts;            // receives do not block; TAKEs do
    Queue *queues;         // [from * ranks + to]
    int *ordinal[2];       // [cell] place in its queue of SEND_F, of SEND_B
    int *expected[2];      // [cell] the same of RECV_F, of RECV_B
    int *next;             // [rank] the entry that runs next
    double *clock;         // [rank] end of its last compute
    double *arrival[2];    // [micro * chunks + chunk] of x, of dy
    bool *parked;          // [rank] waits for another rank
    int *arrived;          // [tie, then step] ranks at the collective
    int *heap;             // ranks, ordered by key
    double *key;           // [rank]
    int heap_count;
} Prover;

static bool is_send(ActionKind kind)
{
    return kind == ACT_SEND_F || kind == ACT_SEND_B;
}

static bool is_receive(ActionKind kind)
{
    return kind == ACT_RECV_F || kind == ACT_RECV_B;
}

static bool is_wait(ActionKind kind)
{
    return kind == ACT_WAIT_F || kind == ACT_WAIT_B;
}

static bool is_take(ActionKind kind)
{
    return kind == ACT_TAKE_F || kind == ACT_TAKE_B;
}

static bool is_compute(ActionKind kind)
{
    return kind <= ACT_W;
}

static bool is_back(ActionKind kind)  // does a message carry a gradient
{
    return kind == ACT_SEND_B || kind == ACT_RECV_B || kind == ACT_WAIT_B ||
           kind == ACT_TAKE_B;
}

static Action at(const Prover *v, int rank, int index)
{
    return v->p->lists[rank].at[index];
}

static size_t cell(const Prover *v, int chunk, int micro)
{
    return cell_of(v->p, chunk, micro);
}

static bool wrong(Prover *v, int rank, int index, const char *why)
{
    Program *p = v->p;
    Origin from = origin_in_lists(p, rank, index);
    const char *what = text_format(
        p->arena, "rank %d, action %d: %s%s: %s", rank, index,
        action_text(p, at(v, rank, index)), from.text, why);
    if (from.at.source >= 0)
        error_at(p, from.at, "%s", what);
    else
        error_plain(p, "%s", what);
    return false;
}

/* ---- each list by itself: every action once, on its rank, after what it needs ---- */

enum {
    DONE_F = 1,
    DONE_B = 2,
    DONE_I = 4,
    DONE_W = 8,
    HAS_X = 16,
    HAS_DY = 32,
    SENT_F = 64,
    SENT_B = 128,
    POSTED_F = 256,
    POSTED_B = 512
};

static bool in_bounds(Prover *v, int rank, int index)
{
    Program *p = v->p;
    Action a = at(v, rank, index);
    if (a.kind == ACT_STEP)
        return true;
    if (a.kind == ACT_REDUCE)
        return (a.micro >= 0 && a.micro < p->tie_count) ||
               wrong(v, rank, index, "no such tied parameter");
    if (a.chunk < 0 || a.chunk >= p->chunk_count ||
        p->chunks[a.chunk].rank != rank)
        return wrong(v, rank, index, "this rank does not own the chunk");
    if (a.micro < 0 || a.micro >= v->microbatches)
        return wrong(v, rank, index, "there is no such micro-batch");
    if (!goes_through(p, a.chunk, a.micro))
        return wrong(v, rank, index,
                     "this micro-batch passes the other copy of the model");
    return true;
}

/* The chunk at the other end of a boundary; -1 when nothing crosses it. */
static int neighbour(const Program *p, Action a)
{
    bool forth = a.kind == ACT_SEND_F || a.kind == ACT_WAIT_F ||
                 a.kind == ACT_RECV_B || a.kind == ACT_TAKE_B;
    int other = forth ? p->chunks[a.chunk].next : p->chunks[a.chunk].previous;
    if (other < 0 || p->chunks[other].rank == p->chunks[a.chunk].rank)
        return -1;
    int gradient = forth ? other : a.chunk;  // the chunk whose dx would cross
    return is_back(a.kind) && p->chunks[gradient].dx < 0 ? -1 : other;
}

static bool right_peer(Prover *v, int rank, int index)
{
    Action a = at(v, rank, index);
    int other = neighbour(v->p, a);
    if (other < 0)
        return wrong(v, rank, index, "no message crosses this boundary");
    if (a.peer != v->p->chunks[other].rank)
        return wrong(v, rank, index,
                     "the peer does not own the neighbouring chunk");
    return true;
}

static bool once(Prover *v, int rank, int index, unsigned short *done, int bit,
                 int needs, const char *missing)
{
    if (*done & bit)
        return wrong(v, rank, index, "a second time");
    if ((*done & needs) != needs)
        return wrong(v, rank, index, missing);
    *done = (unsigned short)(*done | bit);
    return true;
}

/* Does chunk c need a message for its x, its dy; or does it come from this
 * rank's own memory, or from nowhere. */
static int needs_x(const Program *p, const unsigned short *done,
                   const Prover *v, Action a)
{
    int from = p->chunks[a.chunk].previous;
    if (from < 0)
        return 0;
    if (p->chunks[from].rank != p->chunks[a.chunk].rank)
        return HAS_X;
    return done[cell(v, from, a.micro)] & DONE_F ? 0 : HAS_X;
}

static int needs_dy(const Program *p, const unsigned short *done,
                    const Prover *v, Action a)
{
    int from = p->chunks[a.chunk].next;
    if (from < 0 || p->chunks[from].dx < 0)
        return 0;
    if (p->chunks[from].rank != p->chunks[a.chunk].rank)
        return HAS_DY;
    return done[cell(v, from, a.micro)] & (DONE_B | DONE_I) ? 0 : HAS_DY;
}

static bool compute_once(Prover *v, int rank, int index, unsigned short *done)
{
    Action a = at(v, rank, index);
    unsigned short *own = &done[cell(v, a.chunk, a.micro)];
    switch (a.kind) {
    case ACT_F:
        return once(v, rank, index, own, DONE_F, needs_x(v->p, done, v, a),
                    "before its input is there");
    case ACT_W:
        return once(v, rank, index, own, DONE_W, DONE_I,
                    *own & DONE_B ? "its whole backward has done that already"
                                  : "before the backward for the input");
    default:
        if (*own & (DONE_B | DONE_I))
            return wrong(v, rank, index, "a second backward");
        if (!(*own & DONE_F))
            return wrong(v, rank, index, "before its forward");
        return once(v, rank, index, own, a.kind == ACT_B ? DONE_B : DONE_I,
                    needs_dy(v->p, done, v, a), "before its gradient is there");
    }
}

static bool message_once(Prover *v, int rank, int index, unsigned short *done)
{
    Action a = at(v, rank, index);
    unsigned short *own = &done[cell(v, a.chunk, a.micro)];
    if (!right_peer(v, rank, index))
        return false;
    switch (a.kind) {
    case ACT_RECV_F:
        return once(v, rank, index, own, v->posts ? POSTED_F : HAS_X, 0, "");
    case ACT_RECV_B:
        return once(v, rank, index, own, v->posts ? POSTED_B : HAS_DY, 0, "");
    case ACT_TAKE_F:
        return once(v, rank, index, own, HAS_X, POSTED_F, "before its receive");
    case ACT_TAKE_B:
        return once(v, rank, index, own, HAS_DY, POSTED_B,
                    "before its receive");
    case ACT_SEND_F:
        return once(v, rank, index, own, SENT_F, DONE_F,
                    "before it is computed");
    case ACT_SEND_B:
        if (!(*own & (DONE_B | DONE_I)))
            return wrong(v, rank, index, "before it is computed");
        return once(v, rank, index, own, SENT_B, 0, "");
    default:
        return (*own & (a.kind == ACT_WAIT_F ? SENT_F : SENT_B)) ||
               wrong(v, rank, index, "before it is sent");
    }
}

static bool all_done(Prover *v, int rank, const unsigned short *done)
{
    Program *p = v->p;
    for (int m = 0; m < v->microbatches; m++) {
        for (int c = 0; c < p->chunk_count; c++) {
            unsigned short d = done[cell(v, c, m)];
            const char *missing = !(d & DONE_F)                   ? "F"
                                  : !(d & (DONE_B | DONE_I))      ? "B"
                                  : (d & DONE_I) && !(d & DONE_W) ? "W"
                                                                  : NULL;
            if (p->chunks[c].rank != rank || !missing || !goes_through(p, c, m))
                continue;
            error_plain(p, "rank %d never runs %d%s%d", rank, c, missing, m);
            return false;
        }
    }
    return true;
}

static bool list_is_sound(Prover *v, int rank)
{
    Program *p = v->p;
    unsigned short *done = v->done;
    bool collectives = false;
    for (int i = 0; i < p->lists[rank].count; i++) {
        Action a = at(v, rank, i);
        if (!in_bounds(v, rank, i))
            return false;
        if (a.kind == ACT_REDUCE || a.kind == ACT_STEP) {
            if (!collectives && !all_done(v, rank, done))
                return false;
            collectives = true;
        } else if (is_compute(a.kind) ? !compute_once(v, rank, i, done)
                                      : !message_once(v, rank, i, done)) {
            return false;
        }
    }
    return all_done(v, rank, done);
}

/* ---- all lists together: queues match by position ---- */

static void add_place(Program *p, Place **places, int *count, Place place)
{
    *places = array_grow(p->arena, *places, *count, sizeof **places);
    (*places)[(*count)++] = place;
}

static void collect_messages(Prover *v)
{
    Program *p = v->p;
    for (int r = 0; r < p->ranks; r++) {
        for (int i = 0; i < p->lists[r].count; i++) {
            Action a = at(v, r, i);
            if (is_send(a.kind)) {
                Queue *q = &v->queues[r * p->ranks + a.peer];
                v->ordinal[is_back(a.kind)][cell(v, a.chunk, a.micro)] =
                    q->send_count;
                add_place(p, &q->sends, &q->send_count, (Place){r, i});
            } else if (is_receive(a.kind)) {
                Queue *q = &v->queues[a.peer * p->ranks + r];
                v->expected[is_back(a.kind)][cell(v, a.chunk, a.micro)] =
                    q->receive_count;
                add_place(p, &q->receives, &q->receive_count, (Place){r, i});
            }
        }
    }
}

static bool queue_matches(Prover *v, Queue *q, int from, int to)
{
    Program *p = v->p;
    int both = q->send_count < q->receive_count ? q->send_count
                                                : q->receive_count;
    for (int k = 0; k < both; k++) {
        Action s = at(v, from, q->sends[k].index),
               r = at(v, to, q->receives[k].index);
        bool back = s.kind == ACT_SEND_B;
        if (back == (r.kind == ACT_RECV_B) && s.micro == r.micro &&
            r.chunk == s.chunk + (back ? -1 : 1))
            continue;
        error_plain(p,
                    "message %d from rank %d to rank %d: rank %d, action %d: "
                    "%s meets rank %d, action %d: %s",
                    k, from, to, from, q->sends[k].index, action_text(p, s), to,
                    q->receives[k].index, action_text(p, r));
        return false;
    }
    if (q->send_count > both)
        return wrong(v, from, q->sends[both].index, "nobody receives it");
    if (q->receive_count > both)
        return wrong(v, to, q->receives[both].index, "nobody sends it");
    q->start = arena_take(p->arena, sizeof(double) * (size_t)(both + 1));
    q->took = arena_take(p->arena, sizeof(double) * (size_t)(both + 1));
    q->ready = arena_take(p->arena, sizeof(double) * (size_t)(both + 1));
    return true;
}

/* Collectives meet in the order in which they stand: it must be one order. */
static bool collectives_match(Prover *v)
{
    Program *p = v->p;
    for (int r = 0; r < p->ranks; r++) {
        int last = -1, steps = 0;
        for (int i = 0; i < p->lists[r].count; i++) {
            Action a = at(v, r, i);
            if (a.kind == ACT_REDUCE && (a.micro <= last || steps))
                return wrong(v, r, i, "not in the order of the other ranks");
            if (a.kind == ACT_REDUCE)
                v->arrived[last = a.micro]--;
            steps += a.kind == ACT_STEP;
        }
        if (steps != 1) {
            error_plain(p, "rank %d has %d STEPs, not one", r, steps);
            return false;
        }
        v->arrived[p->tie_count]--;
    }
    return true;
}

/* Whether every owner of a tied parameter comes; counts below are minus the
 * number of ranks that came. */
static bool owners_come(Prover *v)
{
    Program *p = v->p;
    for (int t = 0; t < p->tie_count; t++) {
        for (int u = 0; u < p->ties[t].use_count; u++) {
            int c = chunk_of_layer(p, p->parameters[p->ties[t].uses[u]].layer);
            const List *list = &p->lists[p->chunks[c].rank];
            int i = 0;
            while (i < list->count &&
                   !(list->at[i].kind == ACT_REDUCE && list->at[i].micro == t))
                i++;
            if (i < list->count)
                continue;
            error_plain(p, "rank %d never reduces %s, which it owns",
                        p->chunks[c].rank, p->parameters[p->ties[t].root].name);
            return false;
        }
    }
    return true;
}

/* ---- the run: a linear order, or a circle ---- */

static bool before(const Prover *v, int a, int b)
{
    return v->key[a] < v->key[b] || (v->key[a] == v->key[b] && a < b);
}

static void heap_push(Prover *v, int rank, double key)
{
    int i = v->heap_count++;
    v->key[rank] = key;
    for (; i > 0 && before(v, rank, v->heap[(i - 1) / 2]); i = (i - 1) / 2)
        v->heap[i] = v->heap[(i - 1) / 2];
    v->heap[i] = rank;
}

static int heap_pop(Prover *v)
{
    int top = v->heap[0], moved = v->heap[--v->heap_count], i = 0;
    for (int child = 1; child < v->heap_count; child = 2 * i + 1) {
        if (child + 1 < v->heap_count &&
            before(v, v->heap[child + 1], v->heap[child]))
            child++;
        if (!before(v, v->heap[child], moved))
            break;
        v->heap[i] = v->heap[child];
        i = child;
    }
    v->heap[i] = moved;
    return top;
}

/* The boundary before chunk c: what crosses it, either way, takes the same
 * time. */
static double message_time(const Prover *v, Action a)
{
    bool above = a.kind == ACT_SEND_F || a.kind == ACT_RECV_B ||
                 a.kind == ACT_WAIT_F;
    return v->p->cost.message[a.chunk + (above ? 1 : 0)];
}

static double compute_start(const Prover *v, int rank, Action a)
{
    double start = v->clock[rank];
    size_t own = cell(v, a.chunk, a.micro);
    bool back = a.kind == ACT_B || a.kind == ACT_I;
    if (a.kind != ACT_W && v->arrival[back][own] > start)
        start = v->arrival[back][own];
    return start;
}

static Queue *queue_of(const Prover *v, int rank, Action a)
{
    int ranks = v->p->ranks;
    return is_receive(a.kind) || is_take(a.kind)
               ? &v->queues[a.peer * ranks + rank]
               : &v->queues[rank * ranks + a.peer];
}

/* Place in its queue of the message that a WAIT or a TAKE is about. */
static int ordinal_of(const Prover *v, Action a)
{
    int *const *places = is_take(a.kind) ? v->expected : v->ordinal;
    return places[is_back(a.kind)][cell(v, a.chunk, a.micro)];
}

/* Can this entry run now; raises `key` to the time at which it can. */
static bool is_ready(Prover *v, int rank, Action a, double *key)
{
    if (is_compute(a.kind)) {
        *key = compute_start(v, rank, a);
        return true;
    }
    if (a.kind == ACT_REDUCE || a.kind == ACT_STEP) {
        int which = a.kind == ACT_STEP ? v->p->tie_count : a.micro;
        return ++v->arrived[which] == 0;
    }
    if (is_send(a.kind) || (is_receive(a.kind) && v->posts))
        return true;
    Queue *q = queue_of(v, rank, a);
    double when = 0;
    if (is_receive(a.kind)) {
        if (q->posted == q->sent)
            return false;
        when = q->start[q->posted] + message_time(v, a);
    } else {
        if (q->taken <= ordinal_of(v, a))
            return false;
        when = q->took[ordinal_of(v, a)];
    }
    *key = when > *key ? when : *key;
    return true;
}

/* Puts the rank's next entry where it belongs: among those that can start, or
 * aside. */
static void offer(Prover *v, int rank)
{
    if (v->next[rank] == v->p->lists[rank].count)
        return;
    double key = v->clock[rank];
    v->parked[rank] = !is_ready(v, rank, at(v, rank, v->next[rank]), &key);
    if (!v->parked[rank])
        heap_push(v, rank, key);
}

static void wake(Prover *v, int rank)
{
    if (!v->parked[rank])
        return;
    Action a = at(v, rank, v->next[rank]);
    if (is_receive(a.kind) || is_wait(a.kind) || is_take(a.kind))
        offer(v, rank);
}

/* The last rank to come has released a collective: all that stand at it go on,
 * at the latest clock. */
static void release_collective(Prover *v, int rank, Action a)
{
    Program *p = v->p;
    double latest = v->clock[rank];
    for (int pass = 0; pass < 2; pass++) {
        for (int r = 0; r < p->ranks; r++) {
            if (r == rank || !v->parked[r])
                continue;
            Action other = at(v, r, v->next[r]);
            if (other.kind != a.kind || other.micro != a.micro)
                continue;
            if (pass == 0) {
                latest = v->clock[r] > latest ? v->clock[r] : latest;
            } else {
                v->clock[r] = latest;
                v->parked[r] = false;
                heap_push(v, r, latest);
            }
        }
    }
    v->clock[rank] = latest;
    v->arrived[a.kind == ACT_STEP ? p->tie_count : a.micro] =
        1;  // released: nobody else may release it
}

static double run_compute(Prover *v, int rank, Action a)
{
    Program *p = v->p;
    double start = compute_start(v, rank, a),
           end = start + p->cost.compute[a.kind][a.chunk];
    v->clock[rank] = end;
    const Chunk *chunk = &p->chunks[a.chunk];
    if (a.kind == ACT_F && chunk->next >= 0)  // a RECV overwrites it
        v->arrival[0][cell(v, chunk->next, a.micro)] = end;
    if ((a.kind == ACT_B || a.kind == ACT_I) && chunk->previous >= 0)
        v->arrival[1][cell(v, chunk->previous, a.micro)] = end;
    if (end > p->makespan)
        p->makespan = end;
    return start;
}

/* Both ends of the queue's oldest open messages are there: they travel. Where
 * receives are posted a message leaves when both are; where they block, the
 * receiver stands ready when it can no longer be without the message, and the
 * cost model lets it travel as soon as it is sent. */
static void meet(Prover *v, Queue *q)
{
    Program *p = v->p;
    for (; q->taken < q->sent && q->taken < q->posted; q->taken++) {
        int k = q->taken;
        Place s = q->sends[k], r = q->receives[k];
        Action a = at(v, r.rank, r.index);
        double left = q->start[k];
        if (v->posts && q->ready[k] > left)
            left = q->ready[k];
        p->times[r.rank].start[r.index] = left;
        p->times[r.rank].end[r.index] = left + message_time(v, a);
        v->arrival[is_back(a.kind)][cell(v, a.chunk, a.micro)] = left +
                                                                 message_time(
                                                                     v, a);
        q->took[k] = v->posts ? left + message_time(v, a) : q->ready[k];
        p->times[s.rank].release[s.index] = v->next[s.rank];
    }
}

static void run_message(Prover *v, int rank, Action a, Times *times, int index)
{
    Queue *q = queue_of(v, rank, a);
    if (is_send(a.kind)) {
        q->start[q->sent++] = v->clock[rank];
        times->end[index] = v->clock[rank] + message_time(v, a);
    } else {
        q->ready[q->posted++] = v->key[rank];
    }
    meet(v, q);
    wake(v, a.peer);
}

static void run_entry(Prover *v, int rank)
{
    Program *p = v->p;
    int index = v->next[rank]++;
    Action a = at(v, rank, index);
    Times *times = &p->times[rank];
    times->start[index] = times->end[index] = v->clock[rank];
    if (is_compute(a.kind)) {
        times->start[index] = run_compute(v, rank, a);
        times->end[index] = v->clock[rank];
    } else if (is_send(a.kind) || is_receive(a.kind)) {
        run_message(v, rank, a, times, index);
    } else if (is_wait(a.kind) || is_take(a.kind)) {
        v->clock[rank] = times->end[index] = v->key[rank];
    } else if (v->arrived[a.kind == ACT_STEP ? p->tie_count : a.micro] == 0) {
        release_collective(v, rank, a);
        times->start[index] = times->end[index] = v->clock[rank];
    }
    p->linear = array_grow(p->arena, p->linear, p->linear_count,
                           sizeof *p->linear);
    p->linear[p->linear_count++] = (Place){rank, index};
    offer(v, rank);
}

/* The rank that a parked one waits for: the peer, or for a collective the first
 * that has not come. */
static int waits_for(const Prover *v, int rank)
{
    Action a = at(v, rank, v->next[rank]);
    if (a.kind != ACT_REDUCE && a.kind != ACT_STEP)
        return a.peer;
    for (int r = 0; r < v->p->ranks; r++) {
        Action other = v->next[r] < v->p->lists[r].count
                           ? at(v, r, v->next[r])
                           : (Action){ACT_STEP, -1, -1, -1, 0};
        if (r != rank && v->parked[r] &&
            (other.kind != a.kind || other.micro != a.micro))
            return r;
    }
    return rank;
}

static const char *missing_message(Prover *v, int rank)
{
    Program *p = v->p;
    Action a = at(v, rank, v->next[rank]);
    if (a.kind == ACT_REDUCE || a.kind == ACT_STEP)
        return action_text(p, a);
    Queue *q = queue_of(v, rank, a);
    Place other = is_receive(a.kind) ? q->sends[q->posted]
                  : is_take(a.kind)  ? q->sends[ordinal_of(v, a)]
                                     : q->receives[ordinal_of(v, a)];
    return text_format(p->arena, "%s, action %d%s",
                       action_text(p, at(v, other.rank, other.index)),
                       other.index,
                       origin_in_lists(p, other.rank, other.index).text);
}

/* What the rank would do next if its message came: the compute that a person
 * thinks of. */
static const char *next_compute(Prover *v, int rank)
{
    for (int i = v->next[rank]; i < v->p->lists[rank].count; i++)
        if (is_compute(at(v, rank, i).kind))
            return text_format(v->p->arena, "%s%s",
                               action_text(v->p, at(v, rank, i)),
                               origin_in_lists(v->p, rank, i).text);
    return "the end of the step";
}

static bool print_circle(Prover *v)
{
    Program *p = v->p;
    int rank = 0;
    while (!v->parked[rank])
        rank++;
    for (int i = 0; i < p->ranks;
         i++)  // after that many steps we are on the circle
        rank = waits_for(v, rank);
    if (p->set.schedule_at.source >= 0)
        error_at(p, p->set.schedule_at, "this schedule would wait for itself");
    else
        error_plain(p, "the schedule would wait for itself");
    int first = rank;
    do {
        int other = waits_for(v, rank);
        fprintf(p->diagnostics,
                "    rank %d cannot run %s: action %d, %s, waits for rank %d's "
                "%s\n",
                rank, next_compute(v, rank), v->next[rank],
                action_text(p, at(v, rank, v->next[rank])), other,
                missing_message(v, rank));
        rank = other;
    } while (rank != first);
    help(p,
         "these orders contradict each other; change %s, or choose another "
         "schedule",
         p->cells || p->set.schedule->block ? "them"
                                            : "the schedule's options");
    return false;
}

static bool runs_to_the_end(Prover *v)
{
    Program *p = v->p;
    int total = 0;
    for (int r = 0; r < p->ranks; r++) {
        total += p->lists[r].count;
        offer(v, r);
    }
    while (v->heap_count)
        run_entry(v, heap_pop(v));
    return p->linear_count == total || print_circle(v);
}

/* ---- the pass ---- */

static Prover start_proof(Program *p)
{
    size_t ranks = (size_t)p->ranks,
           cells = (size_t)p->microbatches * (size_t)p->chunk_count;
    Prover v = {.p = p,
                .microbatches = p->microbatches,
                .posts = p->target == TARGET_CUDA};
    v.done = arena_take(p->arena, sizeof *v.done * cells);
    v.queues = arena_take(p->arena, sizeof *v.queues * ranks * ranks);
    v.next = arena_take(p->arena, sizeof *v.next * ranks);
    v.clock = arena_take(p->arena, sizeof *v.clock * ranks);
    v.parked = arena_take(p->arena, sizeof *v.parked * ranks);
    v.arrived = arena_take(p->arena,
                           sizeof *v.arrived * (size_t)(p->tie_count + 1));
    v.heap = arena_take(p->arena, sizeof *v.heap * ranks);
    v.key = arena_take(p->arena, sizeof *v.key * ranks);
    for (int back = 0; back < 2; back++) {
        v.ordinal[back] = arena_take(p->arena, sizeof(int) * cells);
        v.expected[back] = arena_take(p->arena, sizeof(int) * cells);
        v.arrival[back] = arena_take(p->arena, sizeof(double) * cells);
    }
    p->times = arena_take(p->arena, sizeof *p->times * ranks);
    for (size_t r = 0; r < ranks; r++) {
        size_t count = (size_t)p->lists[r].count;
        p->times[r] = (Times){arena_take(p->arena, sizeof(double) * count),
                              arena_take(p->arena, sizeof(double) * count),
                              arena_take(p->arena, sizeof(int) * count)};
    }
    p->linear = NULL;
    p->linear_count = 0;
    p->makespan = 0;
    return v;
}

bool prove(Program *p)
{
    choose_cost(p);
    Prover v = start_proof(p);
    for (int r = 0; r < p->ranks; r++)
        if (!list_is_sound(&v, r))
            return false;
    prove_sums(p);
    collect_messages(&v);
    for (int from = 0; from < p->ranks; from++)
        for (int to = 0; to < p->ranks; to++)
            if (!queue_matches(&v, &v.queues[from * p->ranks + to], from, to))
                return false;
    return collectives_match(&v) && owners_come(&v) && runs_to_the_end(&v);
}
