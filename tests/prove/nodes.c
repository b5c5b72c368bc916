/* nodes.c: the kept graph says what `prove` found. Over the grid, on both
 * targets, with several costs: the times of its edges are those of the proof, to
 * the bit; so are those of other costs, when `prove` runs with them; causes lead
 * back to the start; the latest ends leave no slack on the way of the longest
 * path, and an action that ends by its slack later makes the step no longer, but
 * by more it does. Then case 10: the two warmups of interleaved. */
#include "plan.h"
#include "study/whatif.h"

#include <stdlib.h>

static int passed, failed;

static void verdict(bool good, const char *what)
{
    passed += good;
    failed += !good;
    if (!good && failed < 20)
        printf("not ok %s\n%s", what, plan_said);
}

static bool times_agree(const Program *p, const Node *nodes)
{
    for (int i = 0; i < p->first_node[p->ranks]; i++)
        if (nodes[i].start != p->nodes[i].start ||
            nodes[i].end != p->nodes[i].end)
            return false;
    return true;
}

/* What an entry waited for has not ended after it, and all begins somewhere. */
static bool causes_lead_back(const Program *p)
{
    for (int node = 0; node < p->first_node[p->ranks]; node++) {
        int steps = 0, from, message;
        for (int i = node; i >= 0; i = cause_of(p, p->nodes, i))
            if (++steps > p->linear_count)
                return false;
        if (!is_compute(action_of(p, node).kind))
            continue;
        Waits waits = why_waits(p, p->nodes, node, &from, &message);
        if (waits <= WAITS_DATA && (from < 0) != (waits == WAITS_START))
            return false;
        if (from >= 0 && p->nodes[from].end > p->nodes[node].start)
            return false;
    }
    return true;
}

static int last_compute(const Program *p)
{
    int last = -1;
    for (int i = 0; i < p->first_node[p->ranks]; i++)
        if (is_compute(action_of(p, i).kind) && p->nodes[i].end == p->makespan)
            last = i;
    return last;
}

/* Of one action, by making it longer: with times that are sums of few powers of
 * two nothing is rounded. */
static bool slack_is_exact(Program *p, int node, double slack, Node *room)
{
    Action a = action_of(p, node);
    double *time = &p->cost.compute[a.kind][a.chunk], was = *time;
    if (p->microbatches > 1)
        return true;  // one chunk's time is that of several actions
    *time = was + slack;
    bool same = retime(p, &p->cost, -1, room) == p->makespan;
    *time = was + slack + 0.125;
    bool longer = retime(p, &p->cost, -1, room) > p->makespan;
    *time = was;
    return same && longer;
}

static bool slack_holds(Program *p)
{
    size_t count = (size_t)p->first_node[p->ranks] + 1;
    double *latest = arena_take(p->arena, sizeof *latest * count);
    int *next = arena_take(p->arena, sizeof *next * count);
    Node *room = arena_take(p->arena, sizeof *room * count);
    latest_ends(p, latest, next);
    for (int i = 0; i < p->first_node[p->ranks]; i++) {
        double slack = latest[i] - p->nodes[i].end;
        if (!is_compute(action_of(p, i).kind))
            continue;
        if (slack < 0 || !slack_is_exact(p, i, slack, room))
            return false;
    }
    for (int i = last_compute(p); i >= 0; i = cause_compute(p, p->nodes, i))
        if (latest[i] != p->nodes[i].end)
            return false;
    return true;
}

/* Uneven on purpose: stages, kinds and messages all differ. */
static Cost odd_cost(Program *p, double message)
{
    Cost cost = unit_cost(p);
    for (int c = 0; c < p->chunk_count; c++) {
        cost.compute[ACT_F][c] = 1 + c % 3 * 0.25;
        cost.compute[ACT_B][c] = 2 - c % 2 * 0.5;
        if (!c || p->chunks[c].rank == p->chunks[c - 1].rank)
            continue;
        cost.wire[c] = message * (1 + c % 2);
        cost.delay[c] = message / 2;
    }
    return cost;
}

static bool graph_holds(Program *p)
{
    Node *nodes = arena_take(
        p->arena, sizeof *nodes * (size_t)(p->first_node[p->ranks] + 1));
    return retime(p, &p->cost, -1, nodes) == p->makespan &&
           times_agree(p, nodes) && causes_lead_back(p) && slack_holds(p);
}

static void same_graph(const char *name, int P, int M, int v)
{
    Program *p;
    char what[96];
    bool good = plan_chain(&p, P, v, M, name) && prove(p) && memory(p);
    snprintf(what, sizeof what, "%s P=%d M=%d v=%d", name, P, M, v);
    verdict(good && graph_holds(p), what);
    close_plan(p);
}

/* The times that planning with other costs gives, from the graph of the plan
 * with unit costs. */
static void other_costs(const char *name, int P, int M, int v, double message)
{
    Program *p;
    char what[96];
    bool good = plan_chain(&p, P, v, M, name) && prove(p);
    snprintf(what, sizeof what, "%s P=%d M=%d v=%d with messages of %g", name,
             P, M, v, message);
    if (good) {
        Cost cost = odd_cost(p, message);
        Node *nodes = arena_take(
            p->arena, sizeof *nodes * (size_t)(p->first_node[p->ranks] + 1));
        double makespan = retime(p, &cost, -1, nodes);
        p->cost = cost;
        good = prove(p) && makespan == p->makespan && times_agree(p, nodes) &&
               memory(p) && graph_holds(p);
    }
    verdict(good, what);
    close_plan(p);
}

static void grid(void)
{
    static const int stages[] = {1, 2, 3, 4, 6};
    static const int microbatches[] = {1, 2, 5, 8};
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 4; k++) {
            for (int s = 0; s < schedule_count; s++) {
                for (int v = 1; v <= 3; v++) {
                    if (!plan_allows(schedules[s], stages[i], v))
                        continue;
                    const char *name = schedules[s]->name;
                    same_graph(name, stages[i], microbatches[k], v);
                    other_costs(name, stages[i], microbatches[k], v, 0);
                    other_costs(name, stages[i], microbatches[k], v, 0.375);
                }
            }
        }
    }
}

static bool says(const char *text, const char *row, const char *step,
                 const char *chunks)
{
    char found_step[32], found_chunks[32];
    const char *at = strstr(text, row);
    return at &&
           sscanf(at + strlen(row), "%*s %*s %31s %31s", found_step,
                  found_chunks) == 2 &&
           strcmp(found_step, step) == 0 && strcmp(found_chunks, chunks) == 0;
}

/* Why the factor 2: with messages of half a forward, factor 1 takes 72 and
 * keeps 8 chunks, factor 2 takes 64 and keeps 11. */
static void case_10(void)
{
    static char text[1 << 16];
    Program *p;
    FILE *out = fmemopen(text, sizeof text, "w");
    bool good = plan_chain(&p, 4, 2, 8, "interleaved");
    p->cost = unit_cost(p);
    for (int c = 0; c < p->chunk_count; c++)
        p->cost.delay[c] = c ? 0.5 : 0;
    good = good && prove(p) && memory(p) &&
           explain(p, "r1@14", out, false) == 0;
    fclose(out);
    verdict(good && says(text, "as it is", "64", "11") &&
                says(text, "schedule=interleaved(warmup = 2)", "64", "11") &&
                says(text, "schedule=interleaved(warmup = 1)", "72", "8"),
            text);
    close_plan(p);
}

int main(void)
{
    grid();
    plan_target = TARGET_CUDA;
    grid();
    plan_target = TARGET_CPU;
    case_10();
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
