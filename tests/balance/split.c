/* split.c: every layer lands in exactly one chunk, on the rank that owns it,
 * for all small numbers of layers, ranks and chunks per rank, by either split
 * (cases 17, 21, 32). */
#include "plan.h"

static int passed, failed;

static bool each_once(const Program *p)
{
    int next = 0;
    for (int c = 0; c < p->chunk_count; c++) {
        const Chunk *chunk = &p->chunks[c];
        if (chunk->first_layer != next || chunk->layer_count < 1 ||
            chunk->rank != c % p->ranks)
            return false;
        next += chunk->layer_count;
    }
    return next == p->layer_count;
}

static void split_is_whole(const char *split, int layers, int P, int v)
{
    char text[512];
    snprintf(text, sizeof text,
             "model m {\n    input points[4]\n    h : linear(4) * %d\n"
             "    loss : mse\n}\n"
             "pipeline { stages %d virtual %d schedule interleaved split %s "
             "}\n",
             layers, P, v, split);
    Program *p = open_plan(text);
    bool good = parse(p) && check(p) && import(p) && graph(p) && partition(p) &&
                p->layer_count == layers && each_once(p);
    passed += good;
    failed += !good;
    fflush(p->diagnostics);
    if (!good)
        printf("not ok split %s, %d layers, P=%d v=%d\n%s", split, layers, P, v,
               plan_said);
    close_plan(p);
}

/* As many chunks as layers: one each. */
static void one_each(int P, int v)
{
    Program *p;
    bool good = plan_chain(&p, P, v, 1, "interleaved") && each_once(p);
    for (int c = 0; good && P * v > 1 && c < p->chunk_count; c++)
        good = p->chunks[c].layer_count == 1;
    passed += good;
    failed += !good;
    if (!good)
        printf("not ok P=%d v=%d, one layer each\n%s", P, v, plan_said);
    close_plan(p);
}

int main(void)
{
    for (int P = 1; P <= 8; P++)
        for (int v = 1; v <= 4; v++)
            one_each(P, v);
    for (int layers = 1; layers <= 64; layers++)
        for (int P = 1; P <= 8; P++)
            for (int v = 1; v <= 4 && P * v <= layers; v++) {
                split_is_whole("even", layers, P, v);
                split_is_whole("balanced", layers, P, v);
            }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
