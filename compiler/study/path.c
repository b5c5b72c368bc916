/* path.c: the proof's graph once more, with its edges at hand.
 *
 * Reads: lists, linear, cost, chunks. `prove` walks the graph to find times and
 * forgets the edges; here they are kept, so one can ask what an action waited
 * for, how late it could have been, and how long the step would take with other
 * costs, without planning again. The entries and their order are the proof's
 * own, and so are the times: tests/explain/path.c compares them over the grid.
 *
 *     prev    the entry before it on its rank
 *     data    what brings its tensor: a SEND on another rank, then the message;
 *             or the neighbouring chunk's action on this rank
 *     post    where receives are posted: its own RECV, the message leaves then
 *
 * WAITs are left out. `memory` puts each behind the entry that took its
 * message, in the order of the proof, so none ever costs time; with other costs
 * it would put them elsewhere. */
#include "whatif.h"

#include <string.h>

const Action *action_of(const Path *g, int node)
{
    return &g->p->lists[g->nodes[node].rank].at[g->nodes[node].index];
}

static int *index_table(Program *p)
{
    size_t cells = cell_of(p, 0, p->microbatches);
    int *table = arena_take(p->arena, sizeof *table * cells);
    memset(table, -1, sizeof *table * cells);
    return table;
}

/* The entry that gives an action its tensor: what made it, on this rank, or the
 * SEND of it. */
static int giver(const Path *g, int *const *at, Action a, int *boundary)
{
    const Program *p = g->p;
    bool back = a.kind == ACT_B || a.kind == ACT_I || a.kind == ACT_TAKE_B;
    int other = back ? p->chunks[a.chunk].next : p->chunks[a.chunk].previous;
    *boundary = -1;
    if (a.kind == ACT_W || other < 0)
        return -1;
    size_t from = cell_of(p, other, a.micro);
    if (p->chunks[other].rank != p->chunks[a.chunk].rank) {
        *boundary = back ? other : a.chunk;
        return at[back ? ACT_SEND_B : ACT_SEND_F][from];
    }
    if (!back)
        return at[ACT_F][from];
    return at[ACT_B][from] >= 0 ? at[ACT_B][from] : at[ACT_I][from];
}

Path find_path(Program *p)
{
    Path g = {.p = p};
    int *at[ACTION_KIND_COUNT],
        *last = arena_take(p->arena, sizeof *last * (size_t)p->ranks);
    g.nodes = arena_take(p->arena,
                         sizeof *g.nodes * (size_t)(p->linear_count + 1));
    for (int kind = 0; kind < ACTION_KIND_COUNT; kind++)
        at[kind] = kind < ACT_REDUCE ? index_table(p) : NULL;
    memset(last, -1, sizeof *last * (size_t)p->ranks);
    for (int i = 0; i < p->linear_count; i++) {
        Place place = p->linear[i];
        Action a = p->lists[place.rank].at[place.index];
        if (a.kind >= ACT_REDUCE || a.kind == ACT_WAIT_F ||
            a.kind == ACT_WAIT_B)
            continue;
        PathNode *node = &g.nodes[g.count];
        *node = (PathNode){
            place.rank, place.index, last[place.rank], -1, -1, -1, 0, 0, 0};
        if (a.kind <= ACT_W || a.kind == ACT_TAKE_F || a.kind == ACT_TAKE_B)
            node->data = giver(&g, at, a, &node->boundary);
        if (a.kind == ACT_TAKE_F || a.kind == ACT_TAKE_B)
            node->post = at[a.kind == ACT_TAKE_F ? ACT_RECV_F : ACT_RECV_B]
                           [cell_of(p, a.chunk, a.micro)];
        at[a.kind][cell_of(p, a.chunk, a.micro)] = last[place.rank] = g.count++;
    }
    for (int kind = ACT_F; kind <= ACT_W; kind++)
        g.at[kind] = at[kind];
    return g;
}

/* ---- times ---- */

static double arrival_of(const Path *g, const PathNode *node, const Cost *cost)
{
    if (node->data < 0)
        return 0;
    double left = g->nodes[node->data].end;
    if (node->post >= 0 && g->nodes[node->post].end > left)
        left = g->nodes[node->post].end;
    return node->boundary < 0 ? left : left + cost->message[node->boundary];
}

static double duration_of(const Path *g, int node, const Cost *cost, int free)
{
    const Action *a = action_of(g, node);
    return a->kind > ACT_W || node == free ? 0
                                           : cost->compute[a->kind][a->chunk];
}

static void find_late(Path *g, const Cost *cost, int free, double makespan)
{
    for (int i = 0; i < g->count; i++)
        g->nodes[i].late = makespan;
    for (int i = g->count; i-- > 0;) {
        const PathNode *node = &g->nodes[i];
        double start = node->late - duration_of(g, i, cost, free);
        double left = node->boundary < 0
                          ? start
                          : start - cost->message[node->boundary];
        if (node->prev >= 0 && g->nodes[node->prev].late > start)
            g->nodes[node->prev].late = start;
        if (node->data >= 0 && g->nodes[node->data].late > left)
            g->nodes[node->data].late = left;
        if (node->post >= 0 && g->nodes[node->post].late > left)
            g->nodes[node->post].late = left;
    }
}

double run_path(Path *g, const Cost *cost, int free)
{
    double makespan = 0;
    for (int i = 0; i < g->count; i++) {
        PathNode *node = &g->nodes[i];
        double arrival = arrival_of(g, node, cost);
        node->start = node->prev < 0 ? 0 : g->nodes[node->prev].end;
        if (arrival > node->start)
            node->start = arrival;
        node->end = node->start + duration_of(g, i, cost, free);
        if (node->end > makespan)
            makespan = node->end;
    }
    find_late(g, cost, free, makespan);
    return makespan;
}

double slack_of(const Path *g, int node)
{
    double slack = g->nodes[node].late - g->nodes[node].end;
    return slack > 1e-9 * g->nodes[node].late ? slack : 0;
}

/* ---- walking it ---- */

static bool is_compute(const Path *g, int node)
{
    return action_of(g, node)->kind <= ACT_W;
}

int compute_before(const Path *g, int node)
{
    do
        node = g->nodes[node].prev;
    while (node >= 0 && !is_compute(g, node));
    return node;
}

/* Entries between, sends and takes, take no time of their own: they are passed
 * through. */
int binding(const Path *g, int node)
{
    do {
        const PathNode *n = &g->nodes[node];
        double prev = n->prev < 0 ? 0 : g->nodes[n->prev].end;
        if (n->start <= prev)
            node = n->prev;
        else if (n->post >= 0 && g->nodes[n->post].end > g->nodes[n->data].end)
            node = n->post;
        else
            node = n->data;
    } while (node >= 0 && !is_compute(g, node));
    return node;
}

int find_action(const Path *g, ActionKind kind, int chunk, int micro)
{
    const Program *p = g->p;
    if (chunk < 0 || chunk >= p->chunk_count || micro < 0 ||
        micro >= p->microbatches || kind > ACT_W)
        return -1;
    return g->at[kind][cell_of(p, chunk, micro)];
}
