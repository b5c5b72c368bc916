/* main.c: pipec reads a .pipe file and writes one program per rank.
 *
 * The list of passes below is the architecture: text goes in at the top, rank
 * programs come out. */
#include "compile.h"

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
enum { PASSES = sizeof passes / sizeof *passes, USAGE = 2 };

typedef enum {
    COMMAND_NONE,
    COMMAND_CHECK,
    COMMAND_INSPECT,
    COMMAND_BUILD,
    COMMAND_RUN
} Command;
static const char *const command_names[] = {"", "check", "inspect", "build",
                                            "run"};

typedef struct Options {
    Command command;
    const char *file, *folder, *dump;
    bool all, help;
    const char *topic;  // of --help
    char **runtime;     // options for the rank programs
    int runtime_count;
} Options;

/* ---- help ---- */

static const char usage[] =
    "pipec: compiles .pipe files into one program per rank\n"
    "\n"
    "  pipec check FILE            parse, plan and prove; say what is wrong\n"
    "  pipec inspect FILE          partition, timeline, bubble, memory, "
    "messages\n"
    "  pipec build FILE            write and compile one program per rank\n"
    "  pipec run FILE              build, then train on this machine, one "
    "process per rank\n"
    "\n"
    "  -D NAME=VALUE               set a `let`, or a setting: -D stages=8, -D "
    "data=FILE\n"
    "  --target cpu|cuda           what the programs run on (cpu)\n"
    "  -o FOLDER                   where the programs go (out/FILE without its "
    "ending)\n"
    "  --dump=PASS                 print what a pass has written, and stop\n"
    "  --help TOPIC                commands, ops, schedules, passes or "
    "language\n"
    "  --version\n"
    "\n"
    "exit status: 0 done; 1 the program or the run is wrong; 2 wrong usage\n";

static const char *const command_help[] = {
    "",
    "pipec check FILE [-D NAME=VALUE] [--dump=PASS]\n"
    "\n"
    "Runs every pass up to the finished plan and reports all errors. Prints "
    "nothing when all is well.\n",
    "pipec inspect FILE [-D NAME=VALUE] [--all]\n"
    "\n"
    "Prints the partition, the timeline, the bubble by the textbook's formula "
    "and by longest path, memory\n"
    "and messages. Times are units of one chunk's forward, or seconds if the "
    "file has a `cluster` block.\n"
    "\n"
    "  --all     draw a long timeline whole\n",
    "pipec build FILE [-D NAME=VALUE] [-o FOLDER]\n"
    "\n"
    "Writes FOLDER/rank0.c, rank1.c, ... and compiles them with cc, or with "
    "$CC.\n",
    "pipec run FILE [-D NAME=VALUE] [-o FOLDER] [OPTIONS]\n"
    "\n"
    "Builds, then starts one process per rank and shows the progress. Ctrl-C "
    "ends the job after the step.\n"
    "\n"
    "  --steps N         train for N steps instead of the file's\n"
    "  --save FOLDER     write the parameters as safetensors, one file per "
    "rank and an index\n"
    "  --losses FILE     write `step loss norm` of every step, exact to the "
    "bit\n"
    "  --seed N          other initial values and another order of the data\n"
    "  --delay US        sleep up to US microseconds before every action, to "
    "shake the order\n"
    "  --quiet           no progress\n",
};

static const char language_help[] =
    "let dim = 64                          # numbers; + - * / and units: 4Ki "
    "25G 10us\n"
    "\n"
    "layer block(heads) {                  # x is the input; the last line is "
    "the output\n"
    "    q = layernorm(x)\n"
    "    a = x + linear(attention(linear(q, 3*dim), heads, causal), dim)\n"
    "    a + linear(gelu(linear(layernorm(a), 4*dim)), dim)\n"
    "}\n"
    "\n"
    "model gpt {\n"
    "    input tokens[32] of 256           # or: input points[2], for numbers\n"
    "    wte  : embedding(dim)\n"
    "    h    : block(4) * 6               # six layers, h.0 .. h.5\n"
    "    head : linear(256, nobias) tied wte\n"
    "    loss : cross_entropy              # or mse\n"
    "}\n"
    "\n"
    "pipeline { stages 4  virtual 1  microbatches 8  rows 4  schedule 1f1b  "
    "split even }\n"
    "train    { data bytes \"corpus.txt\"  optimizer adamw(lr = 3e-4, decay = "
    "0.1)  steps 200\n"
    "           clip 1.0  warmup 20  cosine 0.1  seed 1 }\n"
    "cluster  { flops 312T  memory 80G  link 25G  latency 10us }      # only "
    "for predictions\n"
    "\n"
    "docs/language.md is the reference.\n";

static void help_ops(void)
{
    for (int i = 0; i < op_kind_count; i++)
        printf("  %s\n", op_kinds[i].usage);
}

static void help_schedules(void)
{
    for (int i = 0; i < schedule_count; i++)
        printf("  %-12s %s\n", schedules[i]->name, schedules[i]->summary);
}

static int wrong_usage(const char *format, const char *word)
{
    fputs("pipec: ", stderr);
    fprintf(stderr, format, word);
    fputs("\n  help: `pipec --help` lists what can be typed\n", stderr);
    return USAGE;
}

/* A full disk or a closed pipe must not pass for success. */
static int end_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    fprintf(stderr, "pipec: error: cannot write the output: %s\n",
            strerror(errno));
    return 1;
}

static int print_help(const Options *o)
{
    const char *topic = o->topic ? o->topic : "commands";
    if (o->command != COMMAND_NONE)
        fputs(command_help[o->command], stdout);
    else if (strcmp(topic, "ops") == 0)
        help_ops();
    else if (strcmp(topic, "schedules") == 0)
        help_schedules();
    else if (strcmp(topic, "language") == 0)
        fputs(language_help, stdout);
    else if (strcmp(topic, "passes") == 0)
        for (int i = 0; i < PASSES; i++)
            printf("  %-12s %s\n", passes[i].name, passes[i].what);
    else if (strcmp(topic, "commands") == 0)
        fputs(usage, stdout);
    else
        return wrong_usage("there is no help on `%s`", topic);
    return end_output();
}

/* ---- reading ---- */

static void add_source(Program *p, const char *name, const char *text,
                       int length)
{
    p->sources = array_grow(p->arena, p->sources, p->source_count,
                            sizeof *p->sources);
    p->sources[p->source_count++] = (Source){name, text, length};
}

static bool read_file(Program *p, const char *path)
{
    enum { MOST = 64 << 20 };
    FILE *in = fopen(path, "rb");
    size_t room = 1 << 16, length = 0, got;
    char *text = malloc(room);
    if (!in || !text || (fseek(in, 0, SEEK_END) == 0 && ftell(in) == -1)) {
        fprintf(stderr, "pipec: error: cannot read %s: %s\n", path,
                strerror(errno));
        return false;
    }
    rewind(in);
    while ((got = fread(text + length, 1, room - length, in)) > 0 &&
           length + got <= MOST) {
        length += got;
        if (length == room && !(text = realloc(text, room *= 2))) {
            fputs("pipec: error: out of memory\n", stderr);
            return false;
        }
    }
    if (ferror(in) || got > 0) {
        fprintf(stderr, "pipec: error: cannot read %s: %s\n", path,
                got > 0 ? "larger than 64 MiB" : strerror(errno));
        return false;
    }
    fclose(in);
    add_source(p, path, text_copy(p->arena, text, length), (int)length);
    free(text);
    return true;
}

static bool add_define(Program *p, const char *define)
{
    const char *equals = strchr(define, '=');
    if (!equals || equals == define || !equals[1])
        return false;
    add_source(p, "-D", define, (int)strlen(define));
    return true;
}

/* ---- words of the command line ---- */

static const char *const valued[] = {"--steps", "--save", "--losses", "--seed",
                                     "--delay"};

static bool is_valued(const char *word)
{
    for (size_t i = 0; i < sizeof valued / sizeof *valued; i++)
        if (strcmp(word, valued[i]) == 0)
            return true;
    return false;
}

static void runtime_option(Options *o, char *word)
{
    o->runtime[o->runtime_count++] = word;
}

/* One word, with its value at words[1]; returns how many were used, 0 for an
 * error that was reported. */
static int take_option(Program *p, Options *o, char **words)
{
    const char *word = words[0];
    if (strncmp(word, "-D", 2) == 0) {
        const char *define = word[2] ? word + 2 : words[1];
        if (define && add_define(p, define))
            return word[2] ? 1 : 2;
        wrong_usage("-D takes NAME=VALUE, not `%s`", define ? define : "");
        return 0;
    }
    if (strcmp(word, "-o") == 0 || is_valued(word)) {
        if (!words[1]) {
            wrong_usage("`%s` needs a value", word);
            return 0;
        }
        if (word[1] == 'o') {
            o->folder = words[1];
        } else {
            runtime_option(o, words[0]);
            runtime_option(o, words[1]);
        }
        return 2;
    }
    if (strncmp(word, "--target", 8) == 0) {
        const char *target = word[8] == '=' ? word + 9 : words[1];
        bool cuda = target && strcmp(target, "cuda") == 0;
        if (!cuda && (!target || strcmp(target, "cpu") != 0)) {
            wrong_usage("--target is `cpu` or `cuda`, not `%s`",
                        target ? target : "");
            return 0;
        }
        p->target = cuda ? TARGET_CUDA : TARGET_CPU;
        return word[8] == '=' ? 1 : 2;
    }
    if (strcmp(word, "--quiet") == 0)
        runtime_option(o, words[0]);
    else if (strcmp(word, "--all") == 0)
        o->all = true;
    else if (strncmp(word, "--dump=", 7) == 0)
        o->dump = word + 7;
    else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        o->help = true;
    else {
        wrong_usage("there is no option `%s`", word);
        return 0;
    }
    return 1;
}

static bool take_word(Options *o, const char *word)
{
    for (int i = COMMAND_CHECK; i <= COMMAND_RUN; i++) {
        if (o->command == COMMAND_NONE && strcmp(word, command_names[i]) == 0) {
            o->command = (Command)i;
            return true;
        }
    }
    if (o->help && !o->topic) {
        o->topic = word;
        return true;
    }
    if (o->command == COMMAND_NONE) {
        wrong_usage("there is no command `%s`", word);
        return false;
    }
    if (o->file) {
        wrong_usage("one file at a time, not also `%s`", word);
        return false;
    }
    o->file = word;
    return true;
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
    const char *folder = o->folder ? o->folder : default_folder(p, o->file);
    switch (o->command) {
    case COMMAND_INSPECT:
        inspect(p, stdout, isatty(STDOUT_FILENO) && !getenv("NO_COLOR"),
                o->all);
        return end_output();
    case COMMAND_BUILD:
        if (!emit(p, folder) || !build(p, folder))
            return 1;
        printf("%d programs in %s\n", p->ranks, folder);
        return 0;
    case COMMAND_RUN:
        return !emit(p, folder) || !build(p, folder) ||
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

static int command_line(Program *p, int argc, char **argv)
{
    Options o = {
        .runtime = arena_take(p->arena, sizeof(char *) * (size_t)(argc + 1))};
    add_source(p, "", "", 0);  // the file comes first; its place is kept
    for (int i = 1; i < argc;) {
        if (strcmp(argv[i], "--version") == 0) {
            puts("pipec " PIPEC_VERSION);
            return 0;
        }
        int used = argv[i][0] == '-' ? take_option(p, &o, argv + i)
                                     : take_word(&o, argv[i]);
        if (used == 0)
            return USAGE;
        i += used;
    }
    if (o.help || argc == 1)
        return print_help(&o);
    if (!o.file)
        return wrong_usage("`%s` needs a .pipe file", command_names[o.command]);
    if (o.runtime_count && o.command != COMMAND_RUN)
        return wrong_usage("`%s` belongs to `pipec run`", o.runtime[0]);
    Source *defines = p->sources + 1;
    int define_count = p->source_count - 1;
    p->sources = NULL;
    p->source_count = 0;
    if (!read_file(p, o.file))
        return 1;
    for (int i = 0; i < define_count; i++)
        add_source(p, defines[i].name, defines[i].text, defines[i].length);
    return compile(p, &o);
}

int main(int argc, char **argv)
{
    Program p = {.arena = arena_open(), .diagnostics = stderr};
    int status = command_line(&p, argc, argv);
    arena_close(p.arena);
    return status;
}
