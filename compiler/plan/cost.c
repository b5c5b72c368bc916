/* cost.c: how long actions take, and what follows from the times that `prove`
 * has found.
 *
 * Two models. Unit: F = I = W = 1 per chunk, B = 2, messages take no time; the
 * one of textbooks. Cluster: operations over the flops of the rank, or the times
 * that the file gives; a message takes bytes / link on its wire and arrives
 * latency later, by the link of a machine or of the network. */
#include "nodes.h"

Cost empty_cost(Program *p)
{
    Cost cost = {.unit = true};
    for (int kind = 0; kind < 4; kind++)
        cost.compute[kind] = arena_take(p->arena, sizeof(double) *
                                                      (size_t)p->chunk_count);
    cost.wire = arena_take(p->arena, sizeof(double) * (size_t)p->chunk_count);
    cost.delay = arena_take(p->arena, sizeof(double) * (size_t)p->chunk_count);
    return cost;
}

Cost unit_cost(Program *p)
{
    Cost cost = empty_cost(p);
    for (int c = 0; c < p->chunk_count; c++) {
        cost.compute[ACT_F][c] = cost.compute[ACT_I][c] =
            cost.compute[ACT_W][c] = 1;
        cost.compute[ACT_B][c] = 2;
    }
    return cost;
}

static double given_time(const Program *p, ActionKind kind, int c)
{
    const Given *given = &p->set.given[kind];
    return given->count > 1 ? given->value[c % p->copy_chunks]
                            : given->value[0];
}

double input_share(const Chunk *chunk)
{
    double work = chunk->work[ENTRY_INPUT] + chunk->work[ENTRY_WEIGHT];
    return work > 0 ? chunk->work[ENTRY_INPUT] / work : 0.5;
}

/* A whole backward is shared out by the operations of its two parts; the parts
 * together make a whole one. */
static void take_given(Program *p, Cost *cost, int c)
{
    const Given *given = p->set.given;
    const Chunk *chunk = &p->chunks[c];
    bool parts = given[ACT_I].count > 0;
    double whole = given[ACT_B].count ? given_time(p, ACT_B, c) : 0;
    double input = parts ? given_time(p, ACT_I, c) : whole * input_share(chunk);
    double weight = parts ? given_time(p, ACT_W, c) : whole - input;
    cost->compute[ACT_F][c] = given_time(p, ACT_F, c);
    cost->compute[ACT_I][c] = input;
    cost->compute[ACT_W][c] = weight;
    cost->compute[ACT_B][c] = given[ACT_B].count ? whole : input + weight;
}

/* Of a rank: its own number, or the one for all; 0: none is given. */
static double of_rank(const Given *given, int rank)
{
    return !given->count ? 0 : given->value[given->count > 1 ? rank : 0];
}

double rank_memory(const Program *p, int rank)
{
    return of_rank(&p->set.memory, rank);
}

static void count_operations(Program *p, Cost *cost, int c)
{
    const Chunk *chunk = &p->chunks[c];
    double flops = of_rank(&p->set.flops, chunk->rank);
    cost->compute[ACT_F][c] = chunk->work[ENTRY_FORWARD] / flops;
    cost->compute[ACT_I][c] = chunk->work[ENTRY_INPUT] / flops;
    cost->compute[ACT_W][c] = chunk->work[ENTRY_WEIGHT] / flops;
    cost->compute[ACT_B][c] = cost->compute[ACT_I][c] + cost->compute[ACT_W][c];
}

int machine_of(const Program *p, int rank)
{
    int ranks = (int)p->set.node.value;
    return ranks > 0 ? rank / ranks : rank;
}

double message_bytes(const Program *p, int boundary)
{
    return 4.0 * (double)p->tensors[p->chunks[boundary].x].floats;
}

/* A hand-over inside a rank takes no time. */
static void cross(const Program *p, Cost *cost, int c, double outer)
{
    const Settings *set = &p->set;
    int from = p->chunks[c].previous;
    if (from < 0 || p->chunks[from].rank == p->chunks[c].rank)
        return;
    bool inside = machine_of(p, p->chunks[from].rank) ==
                  machine_of(p, p->chunks[c].rank);
    double link = inside && set->node_link.value > 0 ? set->node_link.value
                                                     : outer;
    bool own_latency = inside && set->node_latency.at.source >= 0;
    cost->delay[c] = own_latency ? set->node_latency.value : set->latency.value;
    cost->wire[c] = link > 0 ? message_bytes(p, c) / link : 0;
}

Cost cluster_cost(Program *p, double own_link)
{
    Cost cost = empty_cost(p);
    cost.unit = false;
    for (int c = 0; c < p->chunk_count; c++) {
        if (p->set.given[ACT_F].count)
            take_given(p, &cost, c);
        else
            count_operations(p, &cost, c);
        cross(p, &cost, c, own_link > 0 ? own_link : p->set.link.value);
    }
    return cost;
}

bool has_seconds(const Program *p)
{
    return p->set.has_cluster &&
           (p->set.flops.count || p->set.given[ACT_F].count);
}

const char *cost_source(const Program *p)
{
    return p->cost.source ? p->cost.source
           : p->set.given[ACT_F].count
               ? "by the cluster's times, link and latency"
               : "by the cluster's flops, link and latency";
}

void choose_cost(Program *p)
{
    if (p->cost.wire)  // a caller may bring costs of its own
        return;
    p->cost = has_seconds(p) ? cluster_cost(p, 0) : unit_cost(p);
}

/* ---- what follows from the times ---- */

int peak_copies(const Program *p, int rank)
{
    int copies = 0, peak = 0;
    for (int i = 0; i < p->lists[rank].count; i++) {
        ActionKind kind = p->lists[rank].at[i].kind;
        copies += kind == ACT_F;
        peak = copies > peak ? copies : peak;
        copies -= kind == ACT_B || kind == ACT_W;
    }
    return peak;
}

double busy_time(const Program *p, int rank)
{
    const Node *nodes = p->nodes + p->first_node[rank];
    double busy = 0;
    for (int i = 0; i < p->lists[rank].count; i++)
        if (is_compute(p->lists[rank].at[i].kind))
            busy += nodes[i].end - nodes[i].start;
    return busy;
}

double span_time(const Program *p, int rank)
{
    const Node *nodes = p->nodes + p->first_node[rank];
    double first = -1, last = 0;
    for (int i = 0; i < p->lists[rank].count; i++) {
        if (!is_compute(p->lists[rank].at[i].kind))
            continue;
        if (first < 0)
            first = nodes[i].start;
        last = nodes[i].end;
    }
    return first < 0 ? 0 : last - first;
}

double bubble_of(const Program *p)
{
    double busy = 0;
    for (int r = 0; r < p->ranks; r++)
        busy += busy_time(p, r);
    return p->makespan > 0 ? 1 - busy / (p->makespan * p->ranks) : 0;
}

double own_bubble(const Program *p)
{
    double own = 0;
    for (int r = 0; r < p->ranks; r++)
        if (span_time(p, r) > 0)
            own += 1 - busy_time(p, r) / span_time(p, r);
    return own / p->ranks;
}

/* An order that a person has written has none, nor a list that was cut, nor a
 * schedule on another placement than its own. */
bool has_formula(const Program *p)
{
    const Schedule *s = p->set.schedule;
    int least = s->least_micros ? s->least_micros(p->ranks) : 1;
    return s->bubble && p->microbatches >= least &&
           p->set.placement == s->placement;
}

double formula_bubble(const Program *p)
{
    return p->set.schedule->bubble(p->ranks, p->microbatches,
                                   (int)p->set.virtuals.value);
}

Traffic traffic_of(const Program *p)
{
    Traffic traffic = {{0, 0}, {0, 0}};
    for (int i = 0; i < p->message_count; i++) {
        bool back = is_back(action_of(p, p->messages[i].send).kind);
        traffic.messages[back]++;
        traffic.bytes[back] += message_bytes(p, p->messages[i].boundary);
    }
    return traffic;
}

double shortest_action(const Program *p)
{
    double shortest = p->makespan;
    for (int c = 0; c < p->chunk_count; c++)
        for (int kind = ACT_F; kind <= ACT_B; kind++)
            if (p->cost.compute[kind][c] > 0 &&
                p->cost.compute[kind][c] < shortest)
                shortest = p->cost.compute[kind][c];
    return shortest;
}
