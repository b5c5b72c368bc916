/* plan.c: how long a schedule takes to plan at 32 ranks and 256 micro-batches:
 * its order alone, and everything up to fixed offsets. Published Python takes up
 * to 43 s for an order of this size (arXiv 2405.15362, its repository). */
#include "plan.h"

#include <time.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(void)
{
    printf("planning 32 ranks, 256 micro-batches, ms on one core, best of 3\n"
           "  %-12s %8s %8s %10s\n",
           "schedule", "actions", "order", "whole plan");
    for (int i = 0; i < schedule_count; i++) {
        const Schedule *s = schedules[i];
        int virtuals = s->least_chunks  ? s->least_chunks
                       : s->most_chunks ? 2
                                        : 1;
        double order = 1e9, whole = 1e9;
        int actions = 0;
        for (int k = 0; k < 3 && strcmp(s->name, "auto") != 0; k++) {
            Program *p;
            bool good = plan_chain(&p, 32, virtuals, 256, s->name);
            double begin = seconds();
            good = good && schedule(p);  // once more, alone
            double ordered = seconds();
            good = good && communicate(p) && prove(p) && memory(p);
            double end = seconds();
            actions = 0;
            for (int r = 0; r < p->ranks; r++)
                actions += p->order[r].count;
            if (!good)
                printf("  %s failed\n%s", s->name, plan_said);
            order = ordered - begin < order ? ordered - begin : order;
            whole = end - begin < whole ? end - begin : whole;
            close_plan(p);
        }
        if (actions)
            printf("  %-12s %8d %8.1f %10.1f\n", s->name, actions, 1e3 * order,
                   1e3 * whole);
    }
    return 0;
}
