/* plan.h: a Program from text, for the tests that look inside. */
#ifndef PLAN_H
#define PLAN_H

#include "program/passes.h"

#include <string.h>

static char plan_said[1 << 16];  // what the passes said about the last plan

static Target plan_target;  // of plans opened from now on

static Program *open_plan(const char *text)
{
    Arena *arena = arena_open();
    Program *p = arena_take(arena, sizeof *p);
    memset(plan_said, 0, sizeof plan_said);
    p->arena = arena;
    p->target = plan_target;
    p->diagnostics = fmemopen(plan_said, sizeof plan_said - 1, "w");
    p->sources = arena_take(arena, sizeof *p->sources);
    p->sources[0] = (Source){"test.pipe", text, (int)strlen(text)};
    p->source_count = 1;
    return p;
}

static void close_plan(Program *p)
{
    fclose(p->diagnostics);
    arena_close(p->arena);
}

/* A chain of small layers, one per chunk: enough for any schedule. */
static __attribute__((unused)) bool plan_chain(Program **out, int stages,
                                               int virtuals, int microbatches,
                                               const char *schedule_text)
{
    static char text[1024];
    snprintf(text, sizeof text,
             "model chain {\n"
             "    input tokens[2] of 4\n"
             "    e : embedding(4)\n"
             "    h : linear(4) * %d\n"
             "    loss : cross_entropy\n"
             "}\n"
             "pipeline {\n"
             "    stages %d virtual %d microbatches %d\n"
             "    schedule %s\n"
             "}\n",
             stages * virtuals > 1 ? stages * virtuals - 1 : 1, stages,
             virtuals, microbatches, schedule_text);
    Program *p = *out = open_plan(text);
    for (int i = 0; i < PLAN_PASSES; i++) {
        if (!passes[i].run(p))
            return false;
        if (passes[i].run == communicate)
            return true;
    }
    return false;
}

/* Does the schedule's own definition allow this shape. */
static inline bool plan_allows(const Schedule *s, int stages, int virtuals)
{
    return schedule_takes(s, s->placement, stages, virtuals);
}

#endif
