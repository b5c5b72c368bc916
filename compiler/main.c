/* main.c: pipec reads a .pipe file and writes one program per rank.
 *
 * The list of passes below is the architecture: text goes in at the top, rank
 * programs come out. */
#include "options.h"
#include "picture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    bool (*pass)(Program *p);
    const char *what;
} passes[] = {
    {"parse", parse, "text -> tree"},
    {"check", check,
     "tree -> names and shapes, or an error that says what to type"},
    {"graph", graph,
     "forward ops -> their gradient, split in input and weights"},
    {"partition", partition, "layers -> chunks on ranks"},
    {"schedule", schedule, "chunks -> compute order per rank"},
    {"communicate", communicate, "order -> plus sends, receives, reductions"},
    {"prove", prove,
     "actions -> exactly once, matched, acyclic; times by longest path"},
    {"memory", memory,
     "tensors -> fixed offsets in one arena per rank; waits; proved once more"},
    {"lower", lower, "actions -> rank programs: calls with constant operands"},
};
enum { PASSES = sizeof passes / sizeof *passes };

static int print_passes(void)
{
    for (int i = 0; i < PASSES; i++)
        printf("  %-12s %s\n", passes[i].name, passes[i].what);
    printf("  %-12s %s\n", "emit", "rank programs -> one readable file each");
    return end_output();
}

static const char *default_folder(Program *p, const char *file)
{
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file,
               *dot = strrchr(base, '.');
    size_t length = dot && dot > base ? (size_t)(dot - base) : strlen(base);
    return text_format(p->arena, "out/%.*s", (int)length, base);
}

/* ---- doing it ---- */

static int finish(Program *p, const Options *o)
{
    const char *folder = o->output ? o->output : default_folder(p, o->file);
    switch (o->command) {
    case COMMAND_INSPECT:
        if (o->output)
            return !picture(
                p, o->output,
                &(Look){.arrows = o->arrows, .comms = o->comms, .all = o->all});
        inspect(p, stdout, isatty(STDOUT_FILENO) && !getenv("NO_COLOR"),
                o->all);
        return end_output();
    case COMMAND_BUILD:
        if (!emit(p, folder) || !build(p, folder))
            return 1;
        printf("%d programs in %s\n", p->ranks, folder);
        return 0;
    case COMMAND_RUN:
        return !data_is_readable(p) || !emit(p, folder) || !build(p, folder) ||
               !run(p, folder, o->runtime, o->runtime_count);
    default: return 0;
    }
}

/* The programs themselves are only lowered for those who want them. */
static bool wants(const Options *o, int pass)
{
    return pass < PASSES - 1 || o->dump || o->command >= COMMAND_BUILD;
}

static bool is_pass(const char *name)
{
    for (int i = 0; i < PASSES; i++)
        if (strcmp(name, passes[i].name) == 0)
            return true;
    return strcmp(name, "emit") == 0;
}

static int compile(Program *p, const Options *o)
{
    if (o->dump && !is_pass(o->dump))
        return wrong_usage(
            "there is no pass `%s`; `pipec --help passes` lists them", o->dump);
    for (int i = 0; i < PASSES && wants(o, i); i++) {
        if (!passes[i].pass(p))
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
    int status = read_command_line(&p, &o, argc, argv);
    if (status < 0 && o.version)
        status = (puts("pipec " PIPEC_VERSION), end_output());
    else if (status < 0 && o.help)
        status = o.topic && strcmp(o.topic, "passes") == 0 ? print_passes()
                                                           : print_help(&o);
    else if (status < 0)
        status = compile(&p, &o);
    arena_close(p.arena);
    return status;
}
