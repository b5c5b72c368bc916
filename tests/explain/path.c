/* path.c: the graph of path.c is the proof's. Over the grid, on both targets,
 * with several costs: the same start and end of every action, the same
 * makespan; slack is what it says. Then case 10: the two warmups of
 * interleaved. */
#include "plan.h"
#include "study/whatif.h"

static int passed, failed;

static void verdict(bool good, const char *what)
{
    passed += good;
    failed += !good;
    if (!good && failed < 20)
        printf("not ok %s\n%s", what, plan_said);
}

static bool times_agree(const Path *g)
{
    for (int i = 0; i < g->count; i++) {
        const PathNode *n = &g->nodes[i];
        const Times *t = &g->p->times[n->rank];
        if (action_of(g, i)->kind <= ACT_W &&
            (n->start != t->start[n->index] || n->end != t->end[n->index]))
            return false;
    }
    return true;
}

/* Slack is never negative, and what lies on the way back from the last end has
 * none. */
static bool slack_holds(const Path *g, double makespan)
{
    int last = 0;
    for (int i = 0; i < g->count; i++) {
        if (slack_of(g, i) < 0)
            return false;
        if (g->nodes[i].end == makespan && action_of(g, i)->kind <= ACT_W)
            last = i;
    }
    for (; last >= 0; last = binding(g, last))
        if (slack_of(g, last) != 0)
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
        cost.message[c] = message * (1 + c % 2);
    }
    return cost;
}

static void same_graph(const char *name, int P, int M, int v)
{
    Program *p;
    char what[96];
    bool good = plan_chain(&p, P, v, M, name) && prove(p) && memory(p);
    snprintf(what, sizeof what, "%s P=%d M=%d v=%d", name, P, M, v);
    Path g = good ? find_path(p) : (Path){0};
    verdict(good && run_path(&g, &p->cost, -1) == p->makespan &&
                times_agree(&g) && slack_holds(&g, p->makespan),
            what);
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
    Path g = good ? find_path(p) : (Path){0};
    if (good) {
        p->cost = odd_cost(p, message);
        double makespan = run_path(&g, &p->cost, -1);
        good = prove(p) && makespan == p->makespan && times_agree(&g) &&
               slack_holds(&g, makespan);
    }
    verdict(good, what);
    close_plan(p);
}

static void grid(void)
{
    static const int stages[] = {1, 2, 3, 4, 8};
    static const int microbatches[] = {1, 2, 3, 7, 8, 16};
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 6; k++) {
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
        p->cost.message[c] = 0.5;
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
