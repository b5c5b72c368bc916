/* communicate.c: compute order -> plus SEND, RECV, REDUCE and STEP, in an order
 * that both ends share.
 *
 * Reads: order, rows, chunks. Writes: lists, ties. Guarantees: for every ordered pair
 * of ranks the k-th send meets the k-th receive.
 *
 * A tensor is sent right after it was computed, so the sender's compute order
 * is the order of each queue. The receiver takes a message right before the
 * action that needs it, and before it, in queue order, all messages that were
 * sent earlier on that queue:
 *
 *     rank 0 sends     1SEND_B2 0SEND_F3          queue 0 -> 1:  a  b
 *     rank 1 needs b first:  0RECV_B2 1RECV_F3 1F3
 *
 * On a device whose messages travel beside the compute, a receive is posted one
 * action early and only the TAKE stands before the action:
 *
 *     cpu     1RECV_F0 1F0 1RECV_F1 1F1
 *     cuda    1RECV_F0 1RECV_F1 1TAKE_F0 1F0 1TAKE_F1 1F1
 *
 * An earlier message never delays a later one, since its sender computed it
 * earlier. So if the compute order can run at all, the lists can. Chunks that
 * are neighbours on one rank hand over in memory.
 *
 * Where a pair of ranks has one queue for both directions, communicate_pair.c
 * makes the lists; where a file has messages, they stand as they do there. */
#include "communicate.h"

typedef struct Line {  // from one rank to another
    Action *messages;  // the action that makes each
    int count, taken;
} Line;

typedef struct Wires {
    Program *p;
    Line *lines;      // [from * ranks + to]
    int *ordinal[2];  // [cell] place of the activation, the gradient, or -1
} Wires;

Meeting meeting_of(const Program *p)
{
    return p->meet != MEET_BY_TARGET  ? p->meet
           : p->target == TARGET_CUDA ? MEET_POSTED
                                      : MEET_BLOCKING;
}

/* Does what a chunk makes go to another rank. */
static bool crosses(const Program *p, int chunk, bool back, int *peer)
{
    int other = back ? p->chunks[chunk].previous : p->chunks[chunk].next;
    if (other < 0 || p->chunks[other].rank == p->chunks[chunk].rank)
        return false;
    if (back && p->chunks[chunk].dx < 0)
        return false;
    *peer = p->chunks[other].rank;
    return true;
}

/* First pass: what every rank will send, in its compute order. */
static void fill_queues(Wires *wires)
{
    Program *p = wires->p;
    for (int r = 0; r < p->ranks; r++) {
        for (int i = 0; i < p->order[r].count; i++) {
            Action a = p->order[r].at[i];
            bool back = is_back(a.kind);
            int peer;
            if (a.chunk < 0 || a.chunk >= p->chunk_count ||
                !what_goes(p, a, &peer))
                continue;
            Line *line = &wires->lines[r * p->ranks + peer];
            line->messages = array_grow(p->arena, line->messages, line->count,
                                        sizeof *line->messages);
            wires->ordinal[back][cell_of(p, a.chunk, a.micro)] = line->count;
            line->messages[line->count++] = a;
        }
    }
}

bool what_goes(const Program *p, Action a, int *peer)
{
    return a.kind != ACT_W && crosses(p, a.chunk, is_back(a.kind), peer);
}

bool what_comes(const Program *p, Action a, int *peer)
{
    bool back = is_back(a.kind);
    int own,
        from = back ? p->chunks[a.chunk].next : p->chunks[a.chunk].previous;
    if (a.kind == ACT_W || from < 0 || !crosses(p, from, back, &own))
        return false;
    *peer = p->chunks[from].rank;
    return true;
}

void add_receive(Program *p, int rank, Action maker, int from)
{
    bool back = is_back(maker.kind);
    push_action(p, &p->lists[rank],
                (Action){back ? ACT_RECV_B : ACT_RECV_F,
                         maker.chunk + (back ? -1 : 1), maker.micro, from, 0,
                         0});
}

static void add_send(Program *p, int rank, Action maker)
{
    int peer;
    if (what_goes(p, maker, &peer))
        push_action(p, &p->lists[rank],
                    (Action){is_back(maker.kind) ? ACT_SEND_B : ACT_SEND_F,
                             maker.chunk, maker.micro, peer, 0, maker.written});
}

static void add_take(Program *p, int rank, Action a)
{
    int peer;
    if (what_comes(p, a, &peer))
        push_action(p, &p->lists[rank],
                    (Action){is_back(a.kind) ? ACT_TAKE_B : ACT_TAKE_F, a.chunk,
                             a.micro, peer, 0, 0});
}

/* Receives up to the message that brings an action its input or output
 * gradient. */
static void receive_for(Wires *wires, int rank, int entry)
{
    Program *p = wires->p;
    const List *order = &p->order[rank];
    int peer;
    if (entry >= order->count || !what_comes(p, order->at[entry], &peer))
        return;
    Action a = order->at[entry];
    bool back = is_back(a.kind);
    int from = back ? p->chunks[a.chunk].next : p->chunks[a.chunk].previous;
    Line *line = &wires->lines[peer * p->ranks + rank];
    int wanted = wires->ordinal[back][cell_of(p, from, a.micro)];
    for (; line->taken <= wanted; line->taken++)
        add_receive(p, rank, line->messages[line->taken], peer);
}

bool is_pair(const List *order, int entry)
{
    return entry + 1 < order->count && order->at[entry].pair;
}

void mark_phases(List *list, const List *order, int entry)
{
    if (entry <= order->steady)
        list->steady = list->count;
    if (entry <= order->cooldown)
        list->cooldown = list->count;
}

void add_computes(Program *p, int rank, int first, int end)
{
    const List *order = &p->order[rank];
    bool posts = meeting_of(p) != MEET_BLOCKING;
    for (int i = first; posts && i < end; i++)
        add_take(p, rank, order->at[i]);
    for (int i = first; i < end; i++)
        push_action(p, &p->lists[rank], order->at[i]);
    for (int i = first; i < end; i++)
        add_send(p, rank, order->at[i]);
}

/* The entries from `first` to `last`: all messages that they need, they
 * themselves, all that they make. */
static void run_entries(Wires *wires, int rank, int first, int last)
{
    Program *p = wires->p;
    bool posts = meeting_of(p) != MEET_BLOCKING;
    for (int i = first; i <= last + posts; i++)
        receive_for(wires, rank, i);
    add_computes(p, rank, first, last + 1);
}

static void rank_list(Wires *wires, int rank)
{
    const List *order = &wires->p->order[rank];
    List *list = &wires->p->lists[rank];
    for (int i = 0, end; i < order->count; i = end) {
        mark_phases(list, order, i);
        end = i + 1 + is_pair(order, i);
        run_entries(wires, rank, i, end - 1);
    }
    mark_phases(list, order, order->count);
}

static void find_ties(Program *p)
{
    p->ties = NULL;
    p->tie_count = 0;
    for (int i = 0; i < p->parameter_count; i++) {
        Tie tie = {.root = i};
        for (int k = i; k < p->parameter_count; k++) {
            if (k != i && p->parameters[k].tied != i)
                continue;
            tie.uses = array_grow(p->arena, tie.uses, tie.use_count,
                                  sizeof *tie.uses);
            tie.uses[tie.use_count++] = k;
        }
        if (tie.use_count == 1)
            continue;
        p->ties = array_grow(p->arena, p->ties, p->tie_count, sizeof *p->ties);
        p->ties[p->tie_count++] = tie;
    }
}

/* Collectives come last, in the order of the parameters, on every rank that has
 * a share. */
static void collectives(Program *p)
{
    for (int t = 0; t < p->tie_count; t++) {
        for (int r = 0; r < p->ranks; r++) {
            for (int u = 0; u < p->ties[t].use_count; u++) {
                int c = chunk_of_layer(p,
                                       p->parameters[p->ties[t].uses[u]].layer);
                if (p->chunks[c].rank != r)
                    continue;
                push_action(p, &p->lists[r],
                            (Action){ACT_REDUCE, c, t, -1, 0, 0});
                break;
            }
        }
    }
    for (int r = 0; r < p->ranks; r++)
        push_action(p, &p->lists[r], (Action){ACT_STEP, -1, -1, -1, 0, 0});
}

void open_lists(Program *p)
{
    p->lists = arena_take(p->arena, sizeof *p->lists * (size_t)p->ranks);
}

void add_collectives(Program *p)
{
    find_ties(p);
    collectives(p);
}

void queue_lists(Program *p)
{
    open_lists(p);
    size_t ranks = (size_t)p->ranks;
    size_t cells = cell_of(p, 0, p->microbatches);
    Wires wires = {.p = p,
                   .lines = arena_take(p->arena, sizeof(Line) * ranks * ranks)};
    for (int back = 0; back < 2; back++) {
        wires.ordinal[back] = arena_take(p->arena, sizeof(int) * cells);
        for (size_t i = 0; i < cells; i++)
            wires.ordinal[back][i] = -1;
    }
    fill_queues(&wires);
    for (int r = 0; r < p->ranks; r++)
        rank_list(&wires, r);
    add_collectives(p);
}

/* SENDs and RECVs stand as a file has them. */
static void bound_lists(Program *p)
{
    bool posts = meeting_of(p) != MEET_BLOCKING;
    open_lists(p);
    for (int r = 0; r < p->ranks; r++) {
        const List *order = &p->order[r], *row = &p->rows[r];
        List *list = &p->lists[r];
        for (int i = 0, computes = 0; i < row->count; i++) {
            if (is_compute(row->at[i].kind))
                mark_phases(list, order, computes);
            if (posts && is_compute(row->at[i].kind))
                add_take(p, r, row->at[i]);
            computes += is_compute(row->at[i].kind);
            push_action(p, list, row->at[i]);
        }
        mark_phases(list, order, order->count);
    }
    add_collectives(p);
}

/* Where computes wait for each other in a circle, they do so however messages
 * meet; the circle is what `prove` finds. */
static void contradicting_lists(Program *p)
{
    p->meet = MEET_BLOCKING;
    queue_lists(p);
}

bool communicate(Program *p)
{
    if (p->rows)
        bound_lists(p);
    else if (meeting_of(p) != MEET_PAIR)
        queue_lists(p);
    else if (!pair_lists(p))
        contradicting_lists(p);
    return true;
}
