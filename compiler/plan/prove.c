/* prove.c: actions -> exactly once, matched, acyclic; times by longest path.
 *
 * Reads: lists, chunks, ties, set. Writes: cost, nodes, node_of, messages,
 * carried, linear, makespan, sums. Guarantees: with queues that are first in
 * first out and have no tags, sends that wait for nobody until a WAIT says so,
 * and receives that block, every rank runs to its end, whatever the delays;
 * every micro-batch passes every chunk once, in data order; in which order
 * gradients are added is known.
 *
 * It believes nothing that `communicate` intended: it matches by position alone
 * and looks only at the lists. What an entry needs is found here, by hand, and
 * kept in the nodes for everybody else. The last check runs all lists against
 * each other, prove_run.c. */
#include "prove.h"

#include <stdlib.h>
#include <string.h>

/* Where a person has written it, if one has. */
static bool wrong_there(Program *p, Span at, const char *what)
{
    if (at.source >= 0)
        error_at(p, at, "%s", what);
    else
        error_plain(p, "%s", what);
    return false;
}

static bool wrong(Prover *prover, int node, const char *why)
{
    Program *p = prover->p;
    Place at = place_of(p, node);
    Origin from = origin_of(p, at.rank, action_of(p, node));
    return wrong_there(
        p, from.at,
        text_format(p->arena, "rank %d, action %d: %s%s: %s", at.rank, at.index,
                    action_text(p, action_of(p, node)),
                    from.at.source == SOURCE_SCHEDULE ? "" : from.text, why));
}

/* ---- each list by itself: every action once, on its rank, after what it needs ---- */

static bool in_bounds(Prover *prover, int rank, int node)
{
    Program *p = prover->p;
    Action a = action_of(p, node);
    if (a.kind == ACT_STEP)
        return true;
    if (a.kind == ACT_REDUCE)
        return (a.micro >= 0 && a.micro < p->tie_count) ||
               wrong(prover, node, "no such tied parameter");
    if (a.chunk < 0 || a.chunk >= p->chunk_count ||
        p->chunks[a.chunk].rank != rank)
        return wrong(prover, node, "this rank does not own the chunk");
    if (a.micro < 0 || a.micro >= p->microbatches)
        return wrong(prover, node, "there is no such micro-batch");
    if (!goes_through(p, a.chunk, a.micro))
        return wrong(prover, node,
                     "this micro-batch passes the other copy of the model");
    return true;
}

/* The chunk at the other end of a boundary; -1 when nothing crosses it. */
static int neighbour(const Program *p, Action a)
{
    bool out = is_send(a.kind) || is_wait(a.kind);
    bool forth = out != is_back(a.kind);
    int other = forth ? p->chunks[a.chunk].next : p->chunks[a.chunk].previous;
    if (other < 0 || p->chunks[other].rank == p->chunks[a.chunk].rank)
        return -1;
    int gradient = forth ? other : a.chunk;  // the chunk whose dx would cross
    return is_back(a.kind) && p->chunks[gradient].dx < 0 ? -1 : other;
}

static bool right_peer(Prover *prover, int node)
{
    const Program *p = prover->p;
    Action a = action_of(p, node);
    int other = neighbour(p, a);
    if (other < 0)
        return wrong(prover, node, "no message crosses this boundary");
    if (a.peer != p->chunks[other].rank)
        return wrong(prover, node,
                     "the peer does not own the neighbouring chunk");
    return true;
}

/* Notes that the action stands here. */
static bool once(Prover *prover, int node)
{
    Program *p = prover->p;
    Action a = action_of(p, node);
    size_t cells = cell_of(p, 0, p->microbatches);
    if (find_node(p, a.kind, a.chunk, a.micro) >= 0)
        return wrong(prover, node, "a second time");
    if (!p->node_of[a.kind]) {
        p->node_of[a.kind] = arena_take(p->arena, sizeof(int) * cells);
        memset(p->node_of[a.kind], -1, sizeof(int) * cells);
    }
    p->node_of[a.kind][cell_of(p, a.chunk, a.micro)] = node;
    return true;
}

/* What brings an action its x or dy: a message, or the neighbouring chunk's
 * action on this rank. Sets `needed` when there has to be one; a gradient comes
 * only from a chunk that has one. */
static int giver(const Prover *prover, Action a, bool *needed)
{
    const Program *p = prover->p;
    const Chunk *chunk = &p->chunks[a.chunk];
    bool back = is_back(a.kind);
    int from = back ? chunk->next : chunk->previous;
    *needed = from >= 0 && !(back && p->chunks[from].dx < 0);
    if (!*needed)
        return -1;
    if (p->chunks[from].rank != chunk->rank)
        return find_node(p,
                         prover->posts ? (back ? ACT_TAKE_B : ACT_TAKE_F)
                                       : (back ? ACT_RECV_B : ACT_RECV_F),
                         a.chunk, a.micro);
    return back ? find_backward(p, from, a.micro)
                : find_node(p, ACT_F, from, a.micro);
}

static bool is_fed(Prover *prover, int node, const char *missing)
{
    Program *p = prover->p;
    bool needed;
    int from = giver(prover, action_of(p, node), &needed);
    if (needed && from < 0)
        return wrong(prover, node, missing);
    p->nodes[node].data = from;
    return once(prover, node);
}

static bool backward_once(Prover *prover, int node)
{
    Program *p = prover->p;
    Action a = action_of(p, node);
    int forward = find_node(p, ACT_F, a.chunk, a.micro);
    if (find_backward(p, a.chunk, a.micro) >= 0)
        return wrong(prover, node, "a second backward");
    if (forward < 0)
        return wrong(prover, node, "before its forward");
    if (!is_fed(prover, node, "before its gradient is there"))
        return false;
    if (p->nodes[node].data < 0)  // the loss is its own
        p->nodes[node].data = forward;
    return true;
}

static bool compute_once(Prover *prover, int node)
{
    Program *p = prover->p;
    Action a = action_of(p, node);
    if (a.kind == ACT_F)
        return is_fed(prover, node, "before its input is there");
    if (a.kind != ACT_W)
        return backward_once(prover, node);
    int input = find_node(p, ACT_I, a.chunk, a.micro);
    if (input < 0)
        return wrong(prover, node,
                     find_node(p, ACT_B, a.chunk, a.micro) >= 0
                         ? "its whole backward has done that already"
                         : "before the backward for the input");
    p->nodes[node].data = input;
    return once(prover, node);
}

/* What a SEND, a TAKE or a WAIT is about stands before it in the same list. */
static bool message_once(Prover *prover, int node)
{
    Program *p = prover->p;
    Action a = action_of(p, node);
    bool back = is_back(a.kind);
    if (!right_peer(prover, node))
        return false;
    if (is_receive(a.kind))
        return once(prover, node);
    if (is_wait(a.kind)) {
        int sent = find_node(p, back ? ACT_SEND_B : ACT_SEND_F, a.chunk,
                             a.micro);
        p->nodes[node].data = sent;
        return sent >= 0 || wrong(prover, node, "before it is sent");
    }
    if (is_take(a.kind)) {
        int posted = find_node(p, back ? ACT_RECV_B : ACT_RECV_F, a.chunk,
                               a.micro);
        p->nodes[node].post = posted;
        return posted >= 0 && prover->posts
                   ? once(prover, node)
                   : wrong(prover, node, "before its receive");
    }
    int maker = back ? find_backward(p, a.chunk, a.micro)
                     : find_node(p, ACT_F, a.chunk, a.micro);
    p->nodes[node].data = maker;
    return maker >= 0 ? once(prover, node)
                      : wrong(prover, node, "before it is computed");
}

static bool all_done(Prover *prover, int rank)
{
    Program *p = prover->p;
    for (int m = 0; m < p->microbatches; m++) {
        for (int c = 0; c < p->chunk_count; c++) {
            if (p->chunks[c].rank != rank || !goes_through(p, c, m))
                continue;
            bool split = find_node(p, ACT_I, c, m) >= 0;
            const char *missing = find_node(p, ACT_F, c, m) < 0 ? "F"
                                  : find_backward(p, c, m) < 0  ? "B"
                                  : split && find_node(p, ACT_W, c, m) < 0
                                      ? "W"
                                      : NULL;
            if (!missing)
                continue;
            error_plain(p, "rank %d never runs %d%s%d", rank, c, missing, m);
            return false;
        }
    }
    return true;
}

static bool list_is_sound(Prover *prover, int rank)
{
    Program *p = prover->p;
    bool collectives = false;
    for (int i = 0; i < p->lists[rank].count; i++) {
        int node = node_at(p, rank, i);
        ActionKind kind = entry_at(prover, rank, i).kind;
        if (!in_bounds(prover, rank, node))
            return false;
        if (is_collective(kind)) {
            if (!collectives && !all_done(prover, rank))
                return false;
            collectives = true;
        } else if (is_compute(kind) ? !compute_once(prover, node)
                                    : !message_once(prover, node)) {
            return false;
        }
    }
    return all_done(prover, rank);
}

/* ---- all lists together: queues match by position ---- */

static bool has_end(Action a)
{
    return is_send(a.kind) || is_receive(a.kind);
}

/* The messages of a wire lie one behind another: as many as its first end has
 * entries. */
static void count_entries(Prover *prover)
{
    Program *p = prover->p;
    for (int r = 0; r < p->ranks; r++) {
        for (int i = 0; i < p->lists[r].count; i++) {
            int end;
            Action a = entry_at(prover, r, i);
            if (has_end(a))
                prover->wires[wire_of_entry(prover, r, a, &end)].count[end]++;
        }
    }
    p->message_count = 0;
    for (int w = 0; w < p->ranks * p->ranks; w++) {
        prover->wires[w].first = p->message_count;
        prover->wires[w].extra = -1;
        p->message_count += prover->wires[w].count[0];
    }
}

/* The k-th entry of one end meets the k-th of the other. */
static void fill_ends(Prover *prover)
{
    Program *p = prover->p;
    for (int r = 0; r < p->ranks; r++) {
        for (int i = 0; i < p->lists[r].count; i++) {
            int end, node = node_at(p, r, i);
            Action a = entry_at(prover, r, i);
            if (!has_end(a))
                continue;
            Wire *wire = &prover->wires[wire_of_entry(prover, r, a, &end)];
            int k = wire->issued[end]++;
            if (k < wire->count[0])
                prover->ends[wire->first + k][end] = node;
            else if (k == wire->count[0])
                wire->extra = node;
        }
    }
    for (int w = 0; w < p->ranks * p->ranks; w++)
        prover->wires[w].issued[0] = prover->wires[w].issued[1] = 0;
}

static void collect_messages(Prover *prover)
{
    Program *p = prover->p;
    count_entries(prover);
    size_t count = (size_t)p->message_count + 1;
    p->messages = arena_take(p->arena, sizeof *p->messages * count);
    p->carried = arena_take(p->arena, sizeof *p->carried * count);
    prover->ends = arena_take(p->arena, sizeof *prover->ends * count);
    memset(prover->ends, -1, sizeof *prover->ends * count);
    fill_ends(prover);
}

/* "rank 0, action 3: 0SEND_F1 (x.csv:1:20)" */
static const char *end_text(Prover *prover, int node, Origin *from)
{
    Program *p = prover->p;
    Place at = place_of(p, node);
    *from = origin_of(p, at.rank, action_of(p, node));
    return text_format(p->arena, "rank %d, action %d: %s%s", at.rank, at.index,
                       action_text(p, action_of(p, node)), from->text);
}

/* Both are next on their wire, and no message. */
static bool ends_differ(Prover *prover, int ordinal, const int *ends)
{
    Program *p = prover->p;
    static const char *const texts[] = {
        "message %d from rank %d to rank %d: %s meets %s",
        "message %d between ranks %d and %d: their one queue has %s and %s "
        "next, which do not meet"};
    Origin from, other;
    const char *one = end_text(prover, ends[0], &from),
               *two = end_text(prover, ends[1], &other);
    const char *what = text_format(p->arena, texts[prover->both], ordinal,
                                   place_of(p, ends[0]).rank,
                                   place_of(p, ends[1]).rank, one, two);
    wrong_there(p, from.at, what);
    if (prover->both && other.at.source >= 0)
        note_at(p, other.at, "the other end");
    return false;
}

static bool is_one_message(Action sent, Action received)
{
    bool back = is_back(sent.kind);
    return is_send(sent.kind) && is_receive(received.kind) &&
           back == is_back(received.kind) && sent.micro == received.micro &&
           received.chunk == sent.chunk + (back ? -1 : 1);
}

static bool take_message(Prover *prover, const Wire *wire, int ordinal)
{
    Program *p = prover->p;
    int index = wire->first + ordinal, *ends = prover->ends[index];
    int sender = is_receive(action_of(p, ends[0]).kind);
    if (ends[1] < 0)
        return wrong(prover, ends[0],
                     sender ? "nobody sends it" : "nobody receives it");
    int send = ends[sender], receive = ends[!sender];
    Action sent = action_of(p, send);
    if (!is_one_message(sent, action_of(p, receive)))
        return ends_differ(prover, ordinal, ends);
    p->messages[index] = (Message){.send = send,
                                   .receive = receive,
                                   .boundary = sent.chunk + !is_back(sent.kind),
                                   .ordinal = ordinal,
                                   .adapter = -1};
    p->message_index[send] = p->message_index[receive] = index;
    if (ordinal > 0)
        p->nodes[send].wire = p->messages[index - 1].send;
    return true;
}

static bool wire_matches(Prover *prover, const Wire *wire)
{
    for (int k = 0; k < wire->count[0]; k++)
        if (!take_message(prover, wire, k))
            return false;
    if (wire->extra < 0)
        return true;
    bool received = is_receive(action_of(prover->p, wire->extra).kind);
    return wrong(prover, wire->extra,
                 received ? "nobody sends it" : "nobody receives it");
}

/* The edges of messages: to the other end, and to what lets it go on. */
static void join_ends(Prover *prover)
{
    Program *p = prover->p;
    for (int i = 0; i < p->message_count; i++) {
        const Message *message = &p->messages[i];
        p->nodes[message->receive].data = message->send;
        if (prover->posts)
            p->nodes[message->send].post = message->receive;
    }
    for (int node = 0; node < p->first_node[p->ranks]; node++) {
        Node *own = &p->nodes[node];
        ActionKind kind = action_of(p, node).kind;
        if (is_take(kind))
            own->data = message_of(p, own->post)->send;
        else if (is_wait(kind) && !prover->posts)
            own->freed = message_of(p, own->data)->receive;
    }
}

/* Collectives meet in the order in which they stand: it must be one order. */
static bool collectives_match(Prover *prover)
{
    Program *p = prover->p;
    for (int r = 0; r < p->ranks; r++) {
        int last = -1, steps = 0;
        for (int i = 0; i < p->lists[r].count; i++) {
            Action a = entry_at(prover, r, i);
            if (a.kind == ACT_REDUCE && (a.micro <= last || steps))
                return wrong(prover, node_at(p, r, i),
                             "not in the order of the other ranks");
            if (a.kind == ACT_REDUCE)
                prover->arrived[last = a.micro]--;
            steps += a.kind == ACT_STEP;
        }
        if (steps != 1) {
            error_plain(p, "rank %d has %d STEPs, not one", r, steps);
            return false;
        }
        prover->arrived[p->tie_count]--;
    }
    return true;
}

static bool owners_come(Prover *prover)
{
    Program *p = prover->p;
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

/* ---- the pass ---- */

static void open_graph(Program *p)
{
    size_t ranks = (size_t)p->ranks;
    p->first_node = arena_take(p->arena, sizeof(int) * (ranks + 1));
    for (int r = 0; r < p->ranks; r++)
        p->first_node[r + 1] = p->first_node[r] + p->lists[r].count;
    size_t nodes = (size_t)p->first_node[ranks];
    p->nodes = arena_take(p->arena, sizeof *p->nodes * (nodes + 1));
    p->linear = arena_take(p->arena, sizeof *p->linear * (nodes + 1));
    p->message_index = arena_take(p->arena, sizeof(int) * (nodes + 1));
    memset(p->message_index, -1, sizeof(int) * (nodes + 1));
    for (size_t i = 0; i < nodes; i++)
        p->nodes[i] = (Node){-1, -1, -1, -1, 0, 0};
    memset(p->node_of, 0, sizeof p->node_of);
    p->linear_count = 0;
    p->makespan = 0;
}

static Prover start_proof(Program *p)
{
    size_t ranks = (size_t)p->ranks, wires = ranks * ranks,
           queues = ranks + (p->set.adapter_shared ? wires : 0);
    Meeting meet = meeting_of(p);
    Prover prover = {
        .p = p, .posts = meet != MEET_BLOCKING, .both = meet == MEET_PAIR};
    open_graph(p);
    prover.wires = arena_take(p->arena, sizeof *prover.wires * wires);
    prover.next = arena_take(p->arena, sizeof *prover.next * ranks);
    prover.clock = arena_take(p->arena, sizeof *prover.clock * ranks);
    prover.parked = arena_take(p->arena, sizeof *prover.parked * ranks);
    prover.arrived = arena_take(p->arena, sizeof *prover.arrived *
                                              (size_t)(p->tie_count + 1));
    prover.heap = arena_take(p->arena, sizeof *prover.heap * queues);
    prover.key = arena_take(p->arena, sizeof *prover.key * queues);
    prover.adapter = arena_take(p->arena, sizeof *prover.adapter * ranks);
    memset(prover.adapter, -1, sizeof *prover.adapter * ranks);
    return prover;
}

static bool lists_match(Prover *prover)
{
    Program *p = prover->p;
    for (int r = 0; r < p->ranks; r++)
        if (!list_is_sound(prover, r))
            return false;
    collect_messages(prover);
    for (int w = 0; w < p->ranks * p->ranks; w++)
        if (!wire_matches(prover, &prover->wires[w]))
            return false;
    return true;
}

bool prove_messages(Program *p)
{
    Prover prover = start_proof(p);
    return lists_match(&prover);
}

bool prove(Program *p)
{
    choose_cost(p);
    Prover prover = start_proof(p);
    if (!lists_match(&prover))
        return false;
    prove_sums(p);
    join_ends(&prover);
    return collectives_match(&prover) && owners_come(&prover) &&
           runs_to_the_end(&prover);
}

bool prove_quietly(Program *p)
{
    FILE *heard = p->diagnostics;
    char *said = NULL;
    size_t length = 0;
    p->diagnostics = open_memstream(&said, &length);
    bool good = p->diagnostics && prove(p);
    if (p->diagnostics)
        fclose(p->diagnostics);
    free(said);
    p->diagnostics = heard;
    return good;
}
