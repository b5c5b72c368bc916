/* costs.c: `schedule auto` with costs by chance: backwards shorter than their parts,
 * as long, and longer; actions that take no time; ranks that differ; a limit of
 * memory, of activations, or none; barriers and none; receives that block and
 * receives that are posted. What it says is what `prove` finds, it fits, it is not
 * below its bound, and no schedule with a name that fits is shorter. */
#include "plan.h"

#include "order/search/search_plan.h"

#include <math.h>
#include <stdlib.h>

typedef struct Wish {
    int ranks, virtuals, microbatches, activations;
    bool span, vee;
    double memory;
    char costs[4000];
} Wish;

static unsigned long state = 99;

static int chance(int limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (unsigned long)limit);
}

static int time_by_chance(void)
{
    return chance(6) == 0 ? 0 : 1 + chance(20);
}

/* NAME [1ms 2ms ...], or one for all chunks. */
static int write_times(char *to, const char *name, const int *times, int count)
{
    int at = sprintf(to, " %s [", name);
    for (int c = 0; c < count; c++)
        at += sprintf(to + at, "%s%dms", c ? " " : "", times[c]);
    return at + sprintf(to + at, "]");
}

static void costs_by_chance(Wish *w)
{
    int chunks = w->ranks * w->virtuals, times[4][32], relation = chance(4),
        equal = chance(3) == 0, at = 0;
    for (int c = 0; c < chunks; c++)
        for (int k = 0; k < 4; k++)
            times[k][c] = c && equal ? times[k][0] : time_by_chance();
    int forward = 0;
    for (int c = 0; c < chunks; c++)
        forward += times[0][c];
    for (int c = 0; c < chunks && forward == 0; c++)  // one must take time
        times[0][c] = 1;
    for (int c = 0; c < chunks; c++) {
        int both = times[2][c] + times[3][c], less = both / 2 + chance(2);
        int kind = relation == 3 ? chance(3) : relation;
        times[1][c] = kind == 0 ? less : kind == 1 ? both : both + chance(9);
    }
    at += write_times(w->costs + at, "forward", times[0], chunks);
    at += write_times(w->costs + at, "backward", times[1], chunks);
    at += write_times(w->costs + at, "input_gradient", times[2], chunks);
    at += write_times(w->costs + at, "weight_gradient", times[3], chunks);
    sprintf(w->costs + at, " latency %dms%s", chance(3) * chance(5),
            chance(2) ? " link 100k" : "");
}

static Wish wish_by_chance(void)
{
    Wish w = {.ranks = 1 + chance(6), .microbatches = 1 + chance(12)};
    w.vee = chance(2);
    w.virtuals = w.vee ? 2 : 1;
    w.span = chance(3) == 0;
    costs_by_chance(&w);
    return w;
}

/* Plans with a schedule; false: it cannot. */
static bool plan(const Wish *w, const char *words, Program **out)
{
    char text[8000];
    snprintf(text, sizeof text,
             "layer a { gelu(position(x)) }\n"
             "model m { input x[16]; h : a * %d; loss : mse }\n"
             "pipeline { stages %d virtual %d microbatches %d schedule %s%s }\n"
             "cluster {%s }\n",
             w->ranks * w->virtuals, w->ranks, w->virtuals, w->microbatches,
             words, w->vee ? " placement vee" : "", w->costs);
    Program *p = *out = open_plan(text);
    for (int i = 0; i < PLAN_PASSES; i++) {
        if (passes[i].run == schedule)
            for (int k = 0; k < MOST_OPTIONS && p->set.schedule->option[k]; k++)
                if (strcmp(p->set.schedule->option[k], "effort") == 0)
                    p->set.option[k].value = 0.01;
        if (!passes[i].run(p))
            return false;
    }
    return true;
}

static double value_of(const Program *p, const Wish *w)
{
    double longest = 0;
    for (int r = 0; r < p->ranks; r++)
        longest = fmax(longest, span_time(p, r));
    return w->span ? longest : p->makespan;
}

static double largest(const Program *p)
{
    double most = 0;
    for (int r = 0; r < p->ranks; r++)
        most = fmax(most, 4.0 * (double)p->arena_floats[r]);
    return most;
}

/* Without the last rank: of its chunk the loss holds a part, which no W needs. */
static int peak(const Program *p)
{
    int most = 1;
    for (int r = 0; r < p->ranks - 1; r++)
        most = peak_copies(p, r) > most ? peak_copies(p, r) : most;
    return most;
}

/* Plans every schedule with a name: the shortest one that fits, or, before there are
 * limits, those of a schedule by chance. */
static double named(Wish *w, bool limits)
{
    double best = INFINITY;
    int chosen = chance(schedule_count);
    for (int k = 0; k < schedule_count; k++) {
        const Schedule *s = schedules[(chosen + k) % schedule_count];
        Program *p;
        bool good = !s->searches &&
                    schedule_takes(s, w->vee ? PLACE_VEE : PLACE_LOOP, w->ranks,
                                   w->virtuals);
        if (!good)
            continue;
        good = plan(w, s->name, &p);
        bool fits = good && (w->memory == 0 || largest(p) <= w->memory) &&
                    (w->activations == 0 || peak(p) <= w->activations);
        if (fits)
            best = fmin(best, value_of(p, w));
        if (good && !limits && chance(2))
            w->memory = largest(p);
        else if (good && !limits && !w->vee)
            w->activations = peak(p);
        close_plan(p);
        if (good && !limits)
            break;
    }
    return best;
}

static bool is_sound(const Wish *w, double best, double *found)
{
    char schedule[200];
    int at = sprintf(schedule, "auto(span = %d", w->span);
    if (w->memory > 0)
        at += sprintf(schedule + at, ", memory = %.0f", w->memory);
    if (w->activations > 0)
        at += sprintf(schedule + at, ", activations = %d", w->activations);
    sprintf(schedule + at, ")");
    Program *p;
    bool good = plan(w, schedule, &p);
    if (good) {
        double value = *found = value_of(p, w), slack = 1e-9 * value;
        good = value <= best + slack &&
               fabs(value - p->search->after) <= slack &&
               p->search->bound <= value + slack &&
               (w->memory == 0 || largest(p) <= w->memory) &&
               (w->activations == 0 || w->vee || peak(p) <= w->activations);
    }
    if (!good)
        printf("# %s\n# %d ranks%s, %d micro-batches,%s\n# found %g, named %g "
               "%s\n",
               schedule, w->ranks, w->vee ? ", vee" : "", w->microbatches,
               w->costs, *found, best, plan_said);
    close_plan(p);
    return good;
}

int main(int count, char **argument)
{
    int cases = count > 1 ? atoi(argument[1]) : 120, bad = 0, shorter = 0;
    for (int i = 0; i < cases; i++) {
        Wish w = wish_by_chance();
        double found = INFINITY;
        plan_target = chance(4) ? TARGET_CPU : TARGET_CUDA;
        if (chance(3))
            named(&w, false);
        double best = named(&w, true);
        bad += !is_sound(&w, best, &found);
        shorter += found < best * (1 - 1e-9);
    }
    printf("%s auto with costs by chance: %d of %d, in %d of them shorter than "
           "every schedule with a name\n",
           bad ? "not ok" : "ok", cases - bad, cases, shorter);
    return 0;
}
