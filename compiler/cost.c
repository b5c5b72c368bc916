/* cost.c: how long actions take, and what follows from the times that `prove`
 * has found.
 *
 * Two models. Unit: F = I = W = 1 per chunk, B = 2, messages take no time; the
 * one of textbooks. Cluster: operations over flops, latency + bytes / link for
 * a message; messages are pure latency, they overlap with compute and with each
 * other. */
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

Cost cluster_cost(Program *p)
{
    Cost cost = empty_cost(p);
    double flops = p->set.flops.value;
    cost.unit = false;
    for (int c = 0; c < p->chunk_count; c++) {
        const Chunk *chunk = &p->chunks[c];
        cost.compute[ACT_F][c] = chunk->work[ENTRY_FORWARD] / flops;
        cost.compute[ACT_I][c] = chunk->work[ENTRY_INPUT] / flops;
        cost.compute[ACT_W][c] = chunk->work[ENTRY_WEIGHT] / flops;
        cost.compute[ACT_B][c] = cost.compute[ACT_I][c] +
                                 cost.compute[ACT_W][c];
        double bytes = 4.0 * (double)p->tensors[chunk->x].floats;
        cost.message[c] = p->set.latency.value +
                          (p->set.link.value > 0 ? bytes / p->set.link.value
                                                 : 0);
    }
    return cost;
}

void choose_cost(Program *p)
{
    if (p->cost.message)  // a caller may bring costs of its own
        return;
    p->cost = p->set.has_cluster && p->set.flops.value > 0 ? cluster_cost(p)
                                                           : unit_cost(p);
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
