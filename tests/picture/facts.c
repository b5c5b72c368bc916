/* facts.c: what the pictures say of a plan agrees with the plan: the memory
 * curve reaches the peak that `memory` counted and never the arena's end. */
#include "../plan.h"
#include "show/picture.h"

static int passed, failed;

static void expect(bool good, const char *what, const char *plan)
{
    passed += good;
    failed += !good;
    if (!good)
        printf("not ok %s: %s\n", plan, what);
}

static bool curve_fits(const Picture *k, int rank)
{
    const Curve *c = &k->curves[rank];
    size_t most = 0;
    for (int i = 0; i < c->count; i++) {
        if (i && c->at[i].time < c->at[i - 1].time)
            return false;
        if (c->at[i].floats < c->lasting)
            return false;
        most = c->at[i].floats > most ? c->at[i].floats : most;
    }
    return most == k->p->peak_floats[rank] && most <= k->p->arena_floats[rank];
}

/* A `cluster` block; flops 0: none, unit costs. */
typedef struct Cluster {
    double flops, link, latency;
} Cluster;

static void check_plan(int stages, int virtuals, int microbatches,
                       const char *schedule_name, const Cluster *cluster)
{
    Program *p;
    char name[128];
    snprintf(name, sizeof name, "%s P %d v %d M %d flops %g link %g target %d",
             schedule_name, stages, virtuals, microbatches, cluster->flops,
             cluster->link, plan_target);
    bool planned = plan_chain(&p, stages, virtuals, microbatches,
                              schedule_name);
    double flops = cluster->flops;
    p->set.has_cluster = flops > 0;
    p->set.flops = (Given){&flops, flops > 0, {-1, 0, 0}};
    p->set.link.value = cluster->link;
    p->set.latency.value = cluster->latency;
    planned = planned && prove(p) && memory(p);
    expect(planned, "no plan", name);
    if (planned) {
        Picture k = picture_of(p);
        bool curves = true;
        for (int r = 0; r < p->ranks; r++)
            curves &= curve_fits(&k, r);
        expect(curves, "the memory curve is not that of the plan", name);
    }
    close_plan(p);
}

/* Unit costs, bound by compute, bound by the link. */
static void check_clusters(int stages, int virtuals, int microbatches,
                           const Schedule *s)
{
    static const Cluster clusters[] = {
        {0, 0, 0}, {1e6, 1e7, 5e-6}, {1e6, 3e5, 1e-5}};
    if (!plan_allows(s, stages, virtuals) ||
        (virtuals > 1 && microbatches < stages))
        return;
    for (int c = 0; c < 3; c++)
        check_plan(stages, virtuals, microbatches, s->name, &clusters[c]);
}

int main(void)
{
    static const int stages[] = {1, 2, 3, 4, 8}, micros[] = {1, 2, 5, 8, 16};
    for (int target = TARGET_CPU; target <= TARGET_CUDA; target++) {
        plan_target = (Target)target;
        for (int s = 0; s < 5; s++)
            for (int m = 0; m < 5; m++)
                for (int v = 1; v <= 2; v++)
                    for (int i = 0; i < schedule_count; i++)
                        check_clusters(stages[s], v, micros[m], schedules[i]);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
