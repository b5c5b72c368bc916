/* grid.c: all schedules over a grid of P, v and M pass the proof, and their
 * makespans, idle times and peaks are those of the closed formulas and of the
 * published vectors, of PyTorch, Megatron-LM and the zero-bubble papers. */
#include "plan.h"

#include <stdlib.h>

static int passed, failed;

static void verdict(bool good, const char *what)
{
    passed += good;
    failed += !good;
    if (!good)
        printf("not ok %s\n%s", what, plan_said);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* The schedule's own group size: see schedules/interleaved.c. */
static int group_of(int stages, int microbatches)
{
    for (int n = stages; n < microbatches; n++)
        if (microbatches % n == 0 || microbatches % n >= stages)
            return n;
    return microbatches;
}

/* A new schedule is in the grid by itself; its formulas are one line each here. */
static bool is_closed_form(const char *name)
{
    static const char *const names[] = {"naive",       "gpipe", "1f1b",
                                        "interleaved", "eager", "bfs"};
    for (int i = 0; i < 6; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static double formula(const char *name, int P, int M, int v)
{
    if (strcmp(name, "naive") == 0)
        return 3.0 * M * P * v;
    if (strcmp(name, "interleaved") != 0 && strcmp(name, "bfs") != 0)
        return 3.0 * (M + P - 1);
    return M >= P ? 3.0 * (M * v + P - 1) : 3.0 * (P * v + M - 1);
}

static int peak(const char *name, int P, int M, int v, int r)
{
    if (strcmp(name, "naive") == 0)
        return v;
    if (strcmp(name, "gpipe") == 0 || strcmp(name, "bfs") == 0)
        return M * v;
    if (strcmp(name, "eager") == 0)
        return least(2 * (P - r) - 1, M);
    if (strcmp(name, "1f1b") == 0 || v == 1)
        return least(P - r, M);
    return least(M * v, 2 * (P - 1 - r) + (v - 1) * group_of(P, M) + 1);
}

static bool equals_formula(Program *p, const char *name, int P, int M, int v)
{
    if (!is_closed_form(name))
        return true;
    double makespan = formula(name, P, M, v);
    if (p->makespan != makespan)
        return printf("makespan %g, not %g\n", p->makespan, makespan), false;
    for (int r = 0; r < P; r++) {
        double idle = p->makespan - busy_time(p, r);
        if (idle != makespan - 3.0 * M * v)
            return printf("rank %d idle %g\n", r, idle), false;
        if (peak_copies(p, r) != peak(name, P, M, v, r))
            return printf("rank %d peak %d, not %d\n", r, peak_copies(p, r),
                          peak(name, P, M, v, r)),
                   false;
    }
    return true;
}

/* Proved as it stands, then with the waits that memory has added: the waits
 * must not cost time. */
static void case_of_grid(const char *name, int P, int M, int v)
{
    Program *p;
    char what[96];
    snprintf(what, sizeof what, "%s%s P=%d M=%d v=%d",
             plan_target == TARGET_CUDA ? "cuda " : "", name, P, M, v);
    bool good = plan_chain(&p, P, v, M, name) && prove(p) &&
                equals_formula(p, name, P, M, v);
    double makespan = p->makespan;
    verdict(good, what);
    snprintf(what, sizeof what, "%s P=%d M=%d v=%d with waits", name, P, M, v);
    verdict(good && memory(p) && p->makespan == makespan &&
                equals_formula(p, name, P, M, v),
            what);
    close_plan(p);
}

static void grid(void)
{
    static const int stages[] = {1, 2, 3, 4, 6, 8, 16};
    static const int microbatches[] = {1, 2, 3, 4, 5, 7, 8, 16, 32};
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < 9; k++)
            for (int n = 0; n < schedule_count; n++)
                for (int v = 1; v <= 4; v++)
                    if (plan_allows(schedules[n], stages[i], v))
                        case_of_grid(schedules[n]->name, stages[i],
                                     microbatches[k], v);
}

/* The formulas over all P up to 16, M up to 64, v up to 4; one line for each
 * schedule and P. */
static void wide_grid(void)
{
    for (int n = 0; n < schedule_count; n++) {
        const char *name = schedules[n]->name;
        for (int P = 1; P <= 16 && is_closed_form(name); P++) {
            bool good = true;
            for (int v = 1; v <= 4; v++) {
                if (!plan_allows(schedules[n], P, v))
                    continue;
                for (int M = 1; good && M <= 64; M++) {
                    Program *p;
                    good = plan_chain(&p, P, v, M, name) && prove(p) &&
                           equals_formula(p, name, P, M, v);
                    close_plan(p);
                }
            }
            verdict(good, name);
        }
    }
}

/* ---- published values ---- */

static void makespan_is(const char *schedule_text, int P, int M, int v,
                        double latency, double makespan, const char *peaks)
{
    Program *p;
    char what[128], found[128] = "";
    bool good = plan_chain(&p, P, v, M, schedule_text);
    if (good) {
        p->cost = unit_cost(p);
        for (int c = 0; c < p->chunk_count; c++)
            p->cost.delay[c] = latency;
        good = prove(p);
    }
    for (int r = 0; good && r < P; r++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%d",
                 r ? "," : "", peak_copies(p, r));
    snprintf(what, sizeof what, "%s P=%d M=%d v=%d c=%g: %g [%s]",
             schedule_text, P, M, v, latency, p->makespan, found);
    verdict(good && p->makespan == makespan &&
                (!peaks || strcmp(peaks, found) == 0),
            what);
    close_plan(p);
}

static void published(void)
{
    makespan_is("gpipe", 4, 8, 1, 0, 33, "8,8,8,8");
    makespan_is("1f1b", 4, 1, 1, 0, 12, "1,1,1,1");
    makespan_is("1f1b", 4, 2, 1, 0, 15, "2,2,2,1");
    makespan_is("1f1b", 4, 3, 1, 0, 18, "3,3,2,1");
    makespan_is("1f1b", 4, 8, 1, 0, 33, "4,3,2,1");
    makespan_is("1f1b", 8, 32, 1, 0, 117, "8,7,6,5,4,3,2,1");
    makespan_is("1f1b", 4, 8, 1, 0.5, 41, NULL);
    makespan_is("1f1b", 4, 8, 1, 1, 49, NULL);
    makespan_is("interleaved", 2, 4, 2, 0, 27, "5,3");
    makespan_is("interleaved", 4, 4, 2, 0, 33, "8,8,7,5");
    makespan_is("interleaved", 4, 8, 2, 0, 57, "11,9,7,5");
    makespan_is("interleaved", 4, 8, 4, 0, 105, "19,17,15,13");
    makespan_is("interleaved", 8, 32, 4, 0, 405, "39,37,35,33,31,29,27,25");
    makespan_is("interleaved", 4, 1, 2, 0, 24, NULL);
    makespan_is("interleaved", 4, 2, 2, 0, 27, NULL);
    makespan_is("interleaved", 4, 3, 2, 0, 30, NULL);
    makespan_is("interleaved(group = 8)", 4, 8, 2, 0, 57, "15,13,11,9");
    makespan_is("interleaved(group = 5)", 4, 10, 2, 0, 69, "12,10,8,6");
    makespan_is("interleaved(group = 4)", 4, 6, 2, 0, 55, NULL);
    makespan_is("interleaved(group = 4)", 4, 5, 2, 0, 48, NULL);
    makespan_is("interleaved(group = 4)", 4, 9, 2, 0, 74, NULL);
    makespan_is("interleaved(warmup = 1)", 4, 8, 2, 0, 57, NULL);
    makespan_is("interleaved(warmup = 1)", 4, 8, 2, 0.5, 72, "8,7,6,5");
    makespan_is("interleaved(warmup = 2)", 4, 8, 2, 0.5, 64, "11,9,7,5");
    makespan_is("interleaved(warmup = 1)", 8, 16, 2, 0.5, 152, NULL);
    makespan_is("interleaved(warmup = 2)", 8, 16, 2, 0.5, 132, NULL);
    makespan_is("eager", 4, 8, 1, 0, 33, "7,5,3,1");
    makespan_is("bfs", 4, 8, 2, 0, 57, "16,16,16,16");
    makespan_is("bfs", 4, 2, 2, 0, 27, NULL);
    makespan_is("zbh1", 4, 8, 1, 0, 27, "4,4,4,4");
    makespan_is("zbh1", 8, 24, 1, 0, 79, "8,8,8,8,8,8,8,8");
    makespan_is("zbh1", 4, 8, 2, 0, 51, "8,8,8,8");
    makespan_is("zbh2", 4, 8, 1, 0, 27, NULL);
    makespan_is("zbv", 4, 7, 2, 0, 45, "8,8,8,8");
    makespan_is("zbv", 4, 8, 2, 0, 51, "8,8,8,8");
    makespan_is("zbv", 8, 24, 2, 0, 151, "16,16,16,16,16,16,16,16");
    makespan_is("zbv", 4, 4, 2, 0, 27, NULL);
    makespan_is("zbv", 4, 2, 2, 0, 19, NULL);
    makespan_is("zbv", 4, 1, 2, 0, 17, NULL);
    makespan_is("vhalf", 4, 8, 2, 0, 53, NULL);
    makespan_is("vmin", 4, 8, 2, 0, 59, NULL);
    makespan_is("dualpipev(atomic = 1)", 4, 8, 2, 0, 54, "9,9,9,9");
    makespan_is("dualpipe(atomic = 1)", 8, 20, 1, 0, 66, "9,9,9,9,9,9,9,9");
    makespan_is("dualpipe", 8, 20, 1, 0, 63, "9,9,9,9,9,9,9,9");
}

/* The longest of the ranks' own spans, and a place on which every rank agrees. */
static void span_is(const char *schedule_text, int P, int M, int v, double span,
                    double makespan, int most)
{
    Program *p;
    char what[128];
    bool good = plan_chain(&p, P, v, M, schedule_text) && prove(p);
    double longest = 0;
    int peak = 0;
    for (int r = 0; good && r < P; r++) {
        longest = span_time(p, r) > longest ? span_time(p, r) : longest;
        peak = peak_copies(p, r) > peak ? peak_copies(p, r) : peak;
    }
    snprintf(what, sizeof what,
             "%s P=%d M=%d v=%d: span %g, makespan %g, peak %d", schedule_text,
             P, M, v, longest, p->makespan, peak);
    verdict(good && longest == span && p->makespan == makespan && peak == most,
            what);
    close_plan(p);
}

/* No worse than published: a makespan and a peak, in chunks. */
static void within(const char *name, int P, int M, double makespan, int most)
{
    Program *p;
    char what[64];
    bool good = plan_chain(&p, P, 2, M, name) && prove(p) &&
                p->makespan <= makespan;
    for (int r = 0; good && r < P; r++)
        good = peak_copies(p, r) <= most;
    snprintf(what, sizeof what, "%s P=%d M=%d: %g", name, P, M, p->makespan);
    verdict(good, what);
    close_plan(p);
}

/* The makespan where a backward takes as long as a forward. */
static void slots_are(const char *name, int P, int v, int M, double slots)
{
    Program *p;
    char what[64];
    bool good = plan_chain(&p, P, v, M, name);
    p->cost = unit_cost(p);
    for (int c = 0; c < p->chunk_count; c++)
        p->cost.compute[ACT_B][c] = 1;
    snprintf(what, sizeof what, "%s of F = B, P=%d v=%d M=%d", name, P, v, M);
    verdict(good && prove(p) && p->makespan == slots, what);
    close_plan(p);
}

/* ZB-H1 over a range: M v (F + I + W) + (P - 1)(F + I - W), peak P where v is
 * 1 (schedules.md 1.6); ZB-H2: no idle time within a rank's own span (1.7);
 * DualPipe and DualPipeV: (P / 2 - 1) and (P - 1) times F&B + B - 3 W (1.10,
 * 1.11); Chimera in its own unit, F = B: 2 M + P - 2 (1.12), Hanayo in the same;
 * both with B = 2 F, where each further block leaves a gap. */
static void split_formulas(void)
{
    for (int P = 2; P <= 16; P++) {
        for (int M = 2 * P; M <= 4 * P; M++) {
            span_is("zbh1", P, M, 1, 3 * M + P - 1, 3 * M + P - 1, P);
            span_is("zbh2", P, M, 1, 3 * M, 3 * M + P - 1, 2 * P - 1);
            span_is("dualpipev(atomic = 1)", P, M, 2, 6 * M + 2 * (P - 1),
                    6 * M + 2 * (P - 1), 2 * P + 1);
            if (P % 2 == 0 && M % 2 == 0)
                span_is("dualpipe(atomic = 1)", P, M, 1, 3 * M + P - 2,
                        3 * M + P - 2, P + 1);
        }
        for (int M = 3 * P; M <= 4 * P; M++) {
            span_is("zbv", P, M, 2, 6 * M, 6 * M + P - 1, 2 * P);
            if (P >= 4 && P % 2 == 0)
                within("vhalf", P, M, 6 * M + 3 * P - 7, P + 2);
            if (P % 2 && P < 10)
                within("vhalf", P, M, 6 * M + 3 * P - 4, P + 1);
            if (P >= 4)
                within("vmin", P, M, 6 * M + 4 * P - (P % 3 ? 5 : 7),
                       (P + 4) / 3 * 2);
        }
        for (int v = 2; v <= 4; v++)
            makespan_is("zbh1", P, 2 * P, v, 0, 6 * P * v + P - 1, NULL);
        for (int M = P; M <= 4 * P; M += P) {
            if (P % 2 == 0) {
                slots_are("chimera", P, 1, M, 2 * M + P - 2);
                makespan_is("chimera", P, M, 1, 0,
                            3 * M + (P - 2) * (M / P + 1), NULL);
            }
            for (int v = 2; v <= 6; v += 2) {
                slots_are("hanayo", P, v, M, 2 * v * M + 2 * (P - 1));
                makespan_is("hanayo", P, M, v, 0,
                            3 * v * M + 2 * (P - 1) * (M / P + 1), NULL);
            }
        }
        for (int M = 1; M < P; M++)
            makespan_is("zbh1", P, M, 1, 0, 2 * (M + P - 1) + 1, NULL);
    }
}

static void order_is(const char *schedule_text, int P, int M, int v, int rank,
                     const char *order)
{
    Program *p;
    char found[1024] = "";
    plan_chain(&p, P, v, M, schedule_text);
    for (int i = 0; i < p->order[rank].count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s",
                 i ? " " : "", action_text(p, p->order[rank].at[i]));
    verdict(strcmp(found, order) == 0, found);
    close_plan(p);
}

static void golden_orders(void)
{
    order_is("1f1b", 2, 4, 1, 0, "0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3");
    order_is("1f1b", 2, 4, 1, 1, "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3");
    order_is("1f1b", 3, 2, 1, 0, "0F0 0F1 0B0 0B1");
    order_is("1f1b", 3, 2, 1, 1, "1F0 1F1 1B0 1B1");
    order_is("1f1b", 3, 2, 1, 2, "2F0 2B0 2F1 2B1");
    order_is("interleaved", 2, 4, 2, 0,
             "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3");
    order_is("interleaved", 2, 4, 2, 1,
             "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3");
}

/* With micro-batches missing the list is cut, and still proved; it costs no more
 * than the whole list. */
static void few_micros(void)
{
    static const char *const names[] = {"dualpipe", "dualpipev"};
    for (int k = 0; k < 2; k++) {
        for (int M = 1; M <= 14; M++) {
            Program *few, *more;
            bool good = plan_chain(&few, 4, 1 + k, M, names[k]) && prove(few) &&
                        plan_chain(&more, 4, 1 + k, M + 1, names[k]) &&
                        prove(more) && few->makespan <= more->makespan;
            verdict(good, names[k]);
            close_plan(few);
            close_plan(more);
        }
    }
}

/* With one chunk per rank, interleaved is 1f1b, action by action. */
static void one_chunk(void)
{
    for (int P = 1; P <= 8; P++) {
        for (int M = 1; M <= 10; M++) {
            Program *a = NULL, *b = NULL;
            bool good = plan_chain(&a, P, 1, M, "interleaved") &&
                        plan_chain(&b, P, 1, M, "1f1b");
            for (int r = 0; good && r < P; r++)
                good = a->lists[r].count == b->lists[r].count &&
                       memcmp(a->lists[r].at, b->lists[r].at,
                              sizeof(Action) * (size_t)a->lists[r].count) == 0;
            verdict(good, "interleaved with v = 1 is 1f1b");
            close_plan(a);
            close_plan(b);
        }
    }
}

/* A group smaller than the pipeline waits for itself; the circle is shown. */
static void circle(void)
{
    for (int group = 1; group <= 2; group++) {
        Program *p;
        char text[64];
        snprintf(text, sizeof text, "interleaved(group = %d)", group);
        bool proved = plan_chain(&p, 4, 2, 8, text) && prove(p);
        fflush(p->diagnostics);
        verdict(!proved && strstr(plan_said, "would wait for itself") &&
                    strstr(plan_said, "rank 0 cannot run 4F"),
                text);
        close_plan(p);
    }
}

int main(void)
{
    grid();
    plan_target = TARGET_CUDA;
    grid();
    plan_target = TARGET_CPU;
    wide_grid();
    published();
    split_formulas();
    few_micros();
    golden_orders();
    one_chunk();
    circle();
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
