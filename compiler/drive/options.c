/* options.c: the words of the command line, and the text they lead to. */
#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const command_names[COMMAND_COUNT] = {
    "", "check", "inspect", "compare", "explain", "diff", "build", "run"};

int wrong_usage(const char *format, const char *word)
{
    fputs("pipec: ", stderr);
    fprintf(stderr, format, word);
    fputs("\n  help: `pipec --help` lists what can be typed\n", stderr);
    return USAGE;
}

/* A full disk or a closed pipe must not pass for success. */
int end_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    fprintf(stderr, "pipec: error: cannot write the output: %s\n",
            strerror(errno));
    return 1;
}

/* ---- reading ---- */

static void add_source(Program *p, const char *name, const char *text,
                       int length)
{
    p->sources = array_grow(p->arena, p->sources, p->source_count,
                            sizeof *p->sources);
    p->sources[p->source_count++] = (Source){name, text, length};
}

bool read_file(Program *p, const char *path)
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

static const char *const valued[] = {"--steps",     "--save",  "--losses",
                                     "--seed",      "--delay", "--graph",
                                     "--transport", "--trace"};

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

static bool is_runtime_option(const Options *o, const char *word)
{
    for (int i = 0; i < o->runtime_count; i++)
        if (strcmp(o->runtime[i], word) == 0)
            return true;
    return false;
}

/* --emulate, --unit-ms and --measured, as below; -1: none of them. */
static int take_time_option(Program *p, Options *o, char **words)
{
    if (strcmp(words[0], "--emulate") == 0)
        return p->emulate = true;
    bool unit = strcmp(words[0], "--unit-ms") == 0;
    if (!unit && strcmp(words[0], "--measured") != 0)
        return -1;
    char *end = words[1];
    if (unit && words[1])
        p->unit_ms = strtod(words[1], &end);
    if (!words[1] || (unit && (end == words[1] || *end ||
                               !(p->unit_ms > 0 && p->unit_ms <= 1e6)))) {
        wrong_usage(unit ? "`%s` takes milliseconds, more than 0 and at most "
                           "1e6"
                         : "`%s` needs a value",
                    words[0]);
        return 0;
    }
    if (!unit)
        o->measured = words[1];
    return 2;
}

/* Lists of `compare`; --schedule also of `diff`. */
static const char **list_option(Options *o, const char *word)
{
    return strcmp(word, "--schedule") == 0       ? &o->compare.schedules
           : strcmp(word, "--stages") == 0       ? &o->compare.stages
           : strcmp(word, "--virtual") == 0      ? &o->compare.virtuals
           : strcmp(word, "--microbatches") == 0 ? &o->compare.microbatches
                                                 : NULL;
}

/* One word, with its value at words[1]; returns how many were used, 0 for an
 * error that was reported. */
static int take_option(Program *p, Options *o, char **words)
{
    const char *word = words[0];
    int used = take_time_option(p, o, words);
    if (used >= 0)
        return used;
    if (strncmp(word, "-D", 2) == 0) {
        const char *define = word[2] ? word + 2 : words[1];
        if (define && add_define(p, define))
            return word[2] ? 1 : 2;
        wrong_usage("-D takes NAME=VALUE, not `%s`", define ? define : "");
        return 0;
    }
    if (strcmp(word, "-o") == 0 || is_valued(word) || list_option(o, word)) {
        if (!words[1]) {
            wrong_usage("`%s` needs a value", word);
            return 0;
        }
        if (word[1] == 'o') {
            o->output = words[1];
        } else if (list_option(o, word)) {
            *list_option(o, word) = words[1];
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
    else if (strcmp(word, "--arrows") == 0)
        o->arrows = true;
    else if (strcmp(word, "--comms") == 0)
        o->comms = true;
    else if (strcmp(word, "--ops") == 0)
        o->ops = true;
    else if (strcmp(word, "--csv") == 0)
        o->compare.csv = true;
    else if (strcmp(word, "--json") == 0)
        o->compare.json = true;
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
    for (int i = COMMAND_CHECK; i < COMMAND_COUNT; i++) {
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
    bool two = o->command == COMMAND_EXPLAIN || o->command == COMMAND_DIFF;
    if (o->file && two && !o->second) {
        o->second = word;
        return true;
    }
    if (o->file) {
        wrong_usage("one file at a time, not also `%s`", word);
        return false;
    }
    o->file = word;
    return true;
}

/* Of inspect --ops, compare, explain and diff. */
static const char *study_complaint(const Options *o)
{
    const CompareOptions *c = &o->compare;
    if (o->ops && o->command != COMMAND_INSPECT)
        return "--ops belongs to `pipec inspect`, not to `%s`";
    if ((c->stages || c->virtuals || c->microbatches || c->csv || c->json) &&
        o->command != COMMAND_COMPARE)
        return "--stages, --virtual, --microbatches, --csv and --json belong "
               "to `pipec compare`, not to `%s`";
    if (c->schedules && o->command != COMMAND_COMPARE &&
        o->command != COMMAND_DIFF && o->command != COMMAND_INSPECT)
        return "--schedule belongs to compare, diff and inspect, not to `%s`; "
               "-D schedule=NAME sets one";
    if (c->csv && c->json)
        return "`%s` writes --csv or --json, not both";
    if (o->command == COMMAND_EXPLAIN && !o->second)
        return "`%s` needs a place: r2@14, or an action such as 2F3";
    if (o->command == COMMAND_DIFF && !o->second == !c->schedules)
        return "`%s` needs a second file, or --schedule A,B";
    return NULL;
}

static const char *complaint(const Options *o)
{
    if (!o->file)
        return o->command ? "`%s` needs a .pipe file"
                          : "a command is missing; `pipec --help` lists them";
    bool drawn = o->command == COMMAND_EXPLAIN || o->command == COMMAND_DIFF;
    if (study_complaint(o))
        return study_complaint(o);
    if (o->arrows + o->comms + (o->all && !drawn) &&
        o->command != COMMAND_INSPECT)
        return "--all, --arrows and --comms belong to `pipec inspect`, not to "
               "`%s`";
    if (o->output && (o->command == COMMAND_CHECK || drawn))
        return "`%s` writes no files: -o has no meaning";
    if (o->measured && o->command != COMMAND_INSPECT)
        return "--measured belongs to `pipec inspect`, not to `%s`";
    return NULL;
}

/* What does not go together with --emulate and --trace. */
static const char *time_complaint(const Program *p, const Options *o)
{
    bool traces = is_runtime_option(o, "--trace"),
         makes = o->command == COMMAND_BUILD || o->command == COMMAND_RUN;
    if (p->emulate && !makes && !o->dump)
        return "--emulate belongs to `pipec build` and `pipec run`, not to "
               "`%s`";
    if (p->unit_ms > 0 && !p->emulate)
        return "`%s` takes --unit-ms together with --emulate";
    if (p->target == TARGET_CUDA && (p->emulate || traces))
        return "`%s` --target cuda has neither --emulate nor --trace: they "
               "are of the cpu";
    return p->emulate && is_runtime_option(o, "--save")
               ? "`%s` --emulate has no parameters to save"
               : NULL;
}

int read_command_line(Program *p, Options *o, int argc, char **argv)
{
    o->runtime = arena_take(p->arena, sizeof(char *) * (size_t)(argc + 1));
    add_source(p, "", "", 0);  // the file comes first; its place is kept
    for (int i = 1; i < argc;) {
        if (strcmp(argv[i], "--version") == 0) {
            o->version = true;
            return -1;
        }
        int used = argv[i][0] == '-' ? take_option(p, o, argv + i)
                                     : take_word(o, argv[i]);
        if (used == 0)
            return USAGE;
        i += used;
    }
    o->help |= argc == 1;
    if (o->help)
        return -1;
    if (complaint(o))
        return wrong_usage(complaint(o), command_names[o->command]);
    if (time_complaint(p, o))
        return wrong_usage(time_complaint(p, o), command_names[o->command]);
    if (o->runtime_count && o->command != COMMAND_RUN)
        return wrong_usage("`%s` belongs to `pipec run`", o->runtime[0]);
    Source *defines = p->sources + 1;
    int define_count = p->source_count - 1;
    p->sources = NULL;
    p->source_count = 0;
    if (!read_file(p, o->file))
        return 1;
    for (int i = 0; i < define_count; i++)
        add_source(p, defines[i].name, defines[i].text, defines[i].length);
    return -1;
}
