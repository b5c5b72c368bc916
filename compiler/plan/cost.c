/* cost.c: how long actions take, and what follows from the times that `prove`
 * has found.
 *
 * Two models. Unit: F = I = W = 1 per chunk, B = 2, messages take no time; the
 * one of textbooks. Cluster: operations over flops, or the times that the file
 * gives; latency + bytes / link for a message; messages are pure latency, they
 * overlap with compute and with each other. */
#include "compile.h"

static Cost empty_cost(Program *p)
{
    Cost cost = {.unit = true};
    for (int kind = 0; kind < 4; kind++)
        cost.compute[kind] = arena_take(p->arena, sizeof(double) *
                                                      (size_t)p->chunk_count);
    cost.message = arena_take(p->arena,
                              sizeof(double) * (size_t)p->chunk_count);
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
    return given->count > 1 ? given->time[c % p->copy_chunks] : given->time[0];
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

static void count_operations(Program *p, Cost *cost, int c)
{
    const Chunk *chunk = &p->chunks[c];
    double flops = p->set.flops.value;
    cost->compute[ACT_F][c] = chunk->work[ENTRY_FORWARD] / flops;
    cost->compute[ACT_I][c] = chunk->work[ENTRY_INPUT] / flops;
    cost->compute[ACT_W][c] = chunk->work[ENTRY_WEIGHT] / flops;
    cost->compute[ACT_B][c] = cost->compute[ACT_I][c] + cost->compute[ACT_W][c];
}

Cost cluster_cost(Program *p)
{
    Cost cost = empty_cost(p);
    cost.unit = false;
    for (int c = 0; c < p->chunk_count; c++) {
        double bytes = 4.0 * (double)p->tensors[p->chunks[c].x].floats;
        if (p->set.given[ACT_F].count)
            take_given(p, &cost, c);
        else
            count_operations(p, &cost, c);
        cost.message[c] = p->set.latency.value +
                          (p->set.link.value > 0 ? bytes / p->set.link.value
                                                 : 0);
    }
    return cost;
}

bool has_seconds(const Program *p)
{
    return p->set.has_cluster &&
           (p->set.flops.value > 0 || p->set.given[ACT_F].count);
}

const char *cost_source(const Program *p)
{
    return p->set.given[ACT_F].count
               ? "by the cluster's times, link and latency"
               : "by the cluster's flops, link and latency";
}

void choose_cost(Program *p)
{
    if (p->cost.message)  // a caller may bring costs of its own
        return;
    p->cost = has_seconds(p) ? cluster_cost(p) : unit_cost(p);
}

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
    double busy = 0;
    for (int i = 0; i < p->lists[rank].count; i++)
        if (p->lists[rank].at[i].kind <= ACT_W)
            busy += p->times[rank].end[i] - p->times[rank].start[i];
    return busy;
}

double span_time(const Program *p, int rank)
{
    double first = -1, last = 0;
    for (int i = 0; i < p->lists[rank].count; i++) {
        if (p->lists[rank].at[i].kind > ACT_W)
            continue;
        if (first < 0)
            first = p->times[rank].start[i];
        last = p->times[rank].end[i];
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
