/* crossover.c: the link at which interleaving stops paying is the link at which
 * two whole plans take the same time: just above it the interleaved step is
 * shorter, just below it is not. */
#include "plan.h"
#include "study/whatif.h"

#include <math.h>
#include <stdlib.h>

static int passed, failed;

static void verdict(bool good, const char *what)
{
    passed += good;
    failed += !good;
    if (!good)
        printf("not ok %s\n%s", what, plan_said);
}

static Program *open_model(const char *cluster)
{
    static char text[1024];
    snprintf(text, sizeof text,
             "model chain {\n    input tokens[16] of 8\n    e : embedding(8)\n"
             "    h : linear(8) * 15\n    loss : cross_entropy\n}\n"
             "pipeline { stages 4 microbatches 8 schedule 1f1b }\n%s\n",
             cluster);
    return open_plan(text);
}

/* The step of a whole plan, nothing reused. */
static double step_of(const Program *p, const char *schedule, int virtuals,
                      int microbatches, double link)
{
    char lines[4][64];
    const char *settings[] = {lines[0], lines[1], lines[2], lines[3]};
    snprintf(lines[0], sizeof lines[0], "schedule=%s", schedule);
    snprintf(lines[1], sizeof lines[1], "virtual=%d", virtuals);
    snprintf(lines[2], sizeof lines[2], "microbatches=%d", microbatches);
    snprintf(lines[3], sizeof lines[3], "link=%.17g", link);
    Replan plan = replan(p, settings, 4);
    double step = plan.refused_by ? NAN : plan.p->makespan;
    close_replan(&plan);
    return step;
}

static bool gains(const Program *p, int virtuals, int microbatches, double link)
{
    return step_of(p, "interleaved", virtuals, microbatches, link) <
           step_of(p, "1f1b", 1, microbatches, link);
}

static int check_each(const Program *p, const char *json)
{
    int count = 0;
    for (const char *at = json; (at = strstr(at, "\"link\": ")); count++) {
        const char *begin = at;
        while (strncmp(begin, "\"stages\"", 8) != 0)
            begin--;
        int virtuals = atoi(strstr(begin, "\"virtual\": ") + 11),
            microbatches = atoi(strstr(begin, "\"microbatches\": ") + 16);
        double link = atof(at += 8);
        char what[96];
        snprintf(what, sizeof what, "v=%d M=%d: crossover at %.9g", virtuals,
                 microbatches, link);
        verdict(link > 0 &&
                    gains(p, virtuals, microbatches, link * (1 + 1e-3)) &&
                    !gains(p, virtuals, microbatches, link * (1 - 1e-3)),
                what);
    }
    return count;
}

static char *compare_json(Program *p)
{
    char *json = NULL;
    size_t length;
    FILE *out = open_memstream(&json, &length);
    CompareOptions options = {.microbatches = "4,8,16,32", .json = true};
    int status = compare(p, &options, out);
    fclose(out);
    verdict(status == 0, "compare");
    return json;
}

int main(void)
{
    Program *p = open_model("cluster { flops 1G link 1G latency 100ns }");
    if (!parse(p) || !check(p))
        return printf("not ok the model\n"), 1;
    char *json = compare_json(p);
    verdict(check_each(p, json) == 8, "a crossover for each M and v");
    free(json);
    close_plan(p);
    /* A latency so long that more messages never pay. */
    p = open_model("cluster { flops 1G link 1G latency 1ms }");
    if (!parse(p) || !check(p))
        return printf("not ok the model\n"), 1;
    json = compare_json(p);
    verdict(strstr(json, "never pays, however fast the link") != NULL, json);
    free(json);
    close_plan(p);
    /* Without costs there is none. */
    verdict(plan_chain(&p, 4, 1, 8, "1f1b"), "a chain");
    json = compare_json(p);
    verdict(strstr(json, "\"crossovers\": []") != NULL, json);
    free(json);
    close_plan(p);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
