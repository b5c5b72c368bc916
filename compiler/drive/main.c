/* main.c: pipec reads a .pipe file and writes one program per rank: it runs the
 * passes of program/passes.c as far as a command needs them, then the command. */
#include "options.h"
#include "dump.h"
#include "program/job.h"
#include "escape.h"
#include "program/passes.h"
#include "show/picture.h"
#include "study/measured.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Everything but the programs themselves. */
static bool plan(Program *p)
{
    for (int i = 0; i < PLAN_PASSES; i++)
        if (!passes[i].run(p))
            return false;
    return true;
}

void print_passes(Arena *arena)
{
    (void)arena;
    for (int i = 0; i < PASSES; i++)
        printf("  %-12s %s\n", passes[i].name, passes[i].what);
    printf("  %-12s %s\n", "emit", "rank programs -> one readable file each");
}

static const char *default_folder(Program *p, const char *file)
{
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file,
               *dot = strrchr(base, '.');
    size_t length = dot && dot > base ? (size_t)(dot - base) : strlen(base);
    return text_format(p->arena, "out/%.*s%s", (int)length, base,
                       p->emulate ? "-emulated" : "");
}

/* An emulation reads no data; without seconds in the plan a unit takes 1 ms. */
static bool prepare_emulation(Program *p)
{
    if (p->unit_ms > 0 && !p->cost.unit) {
        error_plain(p, "--unit-ms: this plan is in seconds, by its `cluster` "
                       "block");
        return false;
    }
    if (p->unit_ms == 0)
        p->unit_ms = 1;
    p->set.data_path = "/dev/null";
    double ns = p->makespan * (p->cost.unit ? 1e6 * p->unit_ms : 1e9);
    if (ns < 0x1p61)
        return true;
    error_plain(p, "a step of %s is too long for an emulation",
                seconds_text(p->arena, ns / 1e9));
    help(p, p->cost.unit ? "a smaller --unit-ms"
                         : "smaller times in the `cluster` block");
    return false;
}

enum { MOST_OTHERS = 64 };

/* A plan under another schedule, or why there is none. */
static bool add_other(Program *p, const char *schedule, bool all,
                      Program **others, int *count)
{
    const char *setting = text_format(p->arena, "schedule=%s", schedule);
    Replan other = replan(p, &setting, 1);
    if (!other.refused_by) {
        others[(*count)++] = other.p;
        return true;
    }
    if (!all) {
        error_plain(p, "%s cannot be on the page: %s", schedule, other.reason);
        help(p, "leave it out of --schedule; `--schedule all` takes those that "
                "run with this file");
    }
    close_replan(&other);
    return all;
}

/* The same file under other schedules, for a page that switches between them:
 * those named, or all that accept the file's stages and chunks. Returns the
 * exit status. */
static int other_plans(Program *p, const char *list, Program **others,
                       int *count)
{
    const char *names[MOST_OTHERS];
    bool all = list && strcmp(list, "all") == 0;
    *count = 0;
    int wanted = list ? schedule_list(p, list, names, MOST_OTHERS) : 0;
    if (list && wanted == 0)
        return USAGE;
    for (int i = 0; i < wanted; i++)
        if (strcmp(names[i], p->set.schedule->name) != 0 &&
            !add_other(p, names[i], all, others, count))
            return 1;
    if (list && *count == 0)
        return wrong_usage("name others, or leave it out",
                           "--schedule %s adds nothing to a page of %s", list,
                           p->set.schedule->name);
    return 0;
}

static int finish_page(Program *p, const Options *o)
{
    Program *others[MOST_OTHERS];
    int count, status = other_plans(p, o->compare.schedules, others, &count);
    if (status)
        return status;
    return !picture(p, o->output,
                    &(Look){.arrows = o->arrows,
                            .comms = o->comms,
                            .all = o->all,
                            .others = others,
                            .other_count = count});
}

static int finish_inspect(Program *p, const Options *o)
{
    bool colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    if (o->measured && !measured(p, o->measured))
        return 1;
    if (o->measured && o->output)
        return !picture_measured(p, o->output);
    if (o->output)
        return finish_page(p, o);
    if (o->ops)
        op_table(p, stdout);
    else if (o->measured)
        inspect_measured(p, stdout, colour, o->all);
    else
        inspect(p, stdout, colour, o->all);
    return end_output();
}

/* ---- doing it ---- */

/* The other file of a diff, with the same -D. */
static bool read_second(const Program *p, const Options *o, Program *q)
{
    *q = (Program){.arena = p->arena,
                   .diagnostics = p->diagnostics,
                   .target = p->target,
                   .meet = p->meet};
    if (!read_file(q, o->second))
        return false;
    for (int i = 1; i < p->source_count; i++) {
        q->sources = array_grow(q->arena, q->sources, q->source_count,
                                sizeof *q->sources);
        q->sources[q->source_count++] = p->sources[i];
    }
    return true;
}

static bool read_settings(Program *p)
{
    return parse(p) && check(p) && import(p);
}

/* Commands that plan more than the file itself. */
static int study(Program *p, const Options *o)
{
    CompareOptions lists = o->compare;
    Program q;
    int status = 1;
    lists.plot = o->output;
    if (o->command == COMMAND_COMPARE && read_settings(p))
        status = compare(p, &lists, stdout);
    else if (o->command == COMMAND_DIFF && !o->second && read_settings(p))
        status = diff_schedules(p, lists.schedules, stdout, o->all);
    else if (o->second && read_second(p, o, &q) && plan(p) && plan(&q))
        status = diff(p, &q, stdout, o->all);
    return status ? status : end_output();
}

static int finish(Program *p, const Options *o)
{
    const char *base = default_folder(p, o->file);
    Job job;
    switch (o->command) {
    case COMMAND_INSPECT: return finish_inspect(p, o);
    case COMMAND_EXPLAIN: {
        int status = explain(p, o->second, stdout, o->all);
        return status ? status : end_output();
    }
    case COMMAND_BUILD:
        if (!make_job(p, &job, o->output, base))
            return 1;
        printf("%d programs in %s\n", p->ranks,
               shown_text(p->arena, job.folder));
        return end_output();
    case COMMAND_RUN:
        return (!p->emulate && !data_is_readable(p)) ||
               !make_job(p, &job, o->output, base) ||
               !run(p, &job, o->runtime, o->runtime_count);
    default: return 0;
    }
}

/* The programs themselves are only lowered for those who want them. */
static bool wants(const Options *o, int pass)
{
    return pass < PLAN_PASSES || o->dump || o->command >= COMMAND_BUILD;
}

static bool is_pass(const char *name)
{
    for (int i = 0; i < PASSES; i++)
        if (strcmp(name, passes[i].name) == 0)
            return true;
    return strcmp(name, "emit") == 0;
}

static int unknown_pass(Program *p, const char *name)
{
    const char *names[PASSES + 1];
    for (int i = 0; i < PASSES; i++)
        names[i] = passes[i].name;
    names[PASSES] = "emit";
    const char *near = nearest(name, names, PASSES + 1);
    return wrong_usage(near ? text_format(p->arena, "did you mean `%s`", near)
                            : "`pipec --help passes` lists the passes",
                       "there is no pass `%s`", name);
}

static int compile(Program *p, const Options *o)
{
    if (o->dump && !is_pass(o->dump))
        return unknown_pass(p, o->dump);
    if (o->comms && p->meet == MEET_BY_TARGET)
        p->meet = MEET_PAIR;  // the file is for PyTorch
    if (!o->dump &&
        (o->command == COMMAND_COMPARE || o->command == COMMAND_DIFF))
        return study(p, o);
    for (int i = 0; i < PASSES && wants(o, i); i++) {
        if (passes[i].run == lower && p->emulate && !prepare_emulation(p))
            return 1;
        if (!passes[i].run(p))
            return 1;
        if (o->dump && strcmp(o->dump, passes[i].name) == 0)
            break;
    }
    if (!o->dump)
        return finish(p, o);
    dump(p, o->dump, stdout);
    return end_output();
}

int main(int argc, char **argv)
{
    Program p = {.arena = arena_open(), .diagnostics = stderr};
    Options o = {.command = COMMAND_NONE};
    signal(SIGXFSZ, SIG_IGN);  // to be told, as of a full disk
    int status = read_command_line(&p, &o, argc, argv);
    if (status < 0 && o.version)
        status = (puts("pipec " PIPEC_VERSION), end_output());
    else if (status < 0 && o.help)
        status = print_help(&p, &o);
    else if (status < 0)
        status = compile(&p, &o);
    arena_close(p.arena);
    return status;
}
