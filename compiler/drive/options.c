/* options.c: the words of the command line, and the text they lead to.
 *
 * getopt_long cuts the words; what an option is, and which command it is an
 * option of, stands in option_table.c. The command may come behind its options,
 * so the options are first collected, then looked up among its rows, then
 * taken, and at last asked whether they have an effect beside one another. */
#include "options.h"
#include "escape.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

int wrong_usage(const char *advice, const char *format, ...)
{
    Arena *arena = arena_open();
    va_list list;
    va_start(list, format);
    const char *text = text_format_list(arena, format, list);
    va_end(list);
    fprintf(stderr, "pipec: %s\n  help: %s\n", shown_text(arena, text),
            shown_text(arena, advice));
    arena_close(arena);
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
        fprintf(stderr, "pipec: error: cannot read %s: %s\n",
                shown_text(p->arena, path), strerror(errno));
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
        fprintf(stderr, "pipec: error: cannot read %s: %s\n",
                shown_text(p->arena, path),
                got > 0 ? "larger than 64 MiB" : strerror(errno));
        return false;
    }
    fclose(in);
    add_source(p, path, text_copy(p->arena, text, length), (int)length);
    free(text);
    return true;
}

/* ---- how an option is stored ---- */

bool take_flag(Program *p, Options *o, const OptionRow *row, char *value)
{
    (void)p, (void)value;
    *(bool *)((char *)o + row->offset) = true;
    return true;
}

bool take_text(Program *p, Options *o, const OptionRow *row, char *value)
{
    (void)p;
    *(const char **)((char *)o + row->offset) = value;
    return true;
}

bool take_plot(Program *p, Options *o, const OptionRow *row, char *value)
{
    size_t length = strlen(value);
    if (length > 4 && strcmp(value + length - 4, ".svg") == 0)
        return take_text(p, o, row, value);
    wrong_usage("-o plot.svg", "-%c takes %s, not `%s`", row->letter,
                row->argument, value);
    return false;
}

bool take_passed(Program *p, Options *o, const OptionRow *row, char *value)
{
    o->runtime[o->runtime_count++] = text_format(p->arena, "--%s", row->name);
    if (value)
        o->runtime[o->runtime_count++] = value;
    return true;
}

bool take_define(Program *p, Options *o, const OptionRow *row, char *value)
{
    (void)o;
    const char *equals = strchr(value, '=');
    if (!equals || equals == value || !equals[1]) {
        wrong_usage("-D stages=8", "-%c takes %s, not `%s`", row->letter,
                    row->argument, value);
        return false;
    }
    add_source(p, "-D", value, (int)strlen(value));
    return true;
}

bool take_target(Program *p, Options *o, const OptionRow *row, char *value)
{
    (void)o, (void)row;
    p->target = strcmp(value, "cuda") == 0 ? TARGET_CUDA : TARGET_CPU;
    return true;
}

bool take_messages(Program *p, Options *o, const OptionRow *row, char *value)
{
    (void)o, (void)row;
    p->meet = strcmp(value, "blocking") == 0 ? MEET_BLOCKING
              : strcmp(value, "posted") == 0 ? MEET_POSTED
                                             : MEET_PAIR;
    return true;
}

bool take_emulate(Program *p, Options *o, const OptionRow *row, char *value)
{
    (void)o, (void)row, (void)value;
    return p->emulate = true;
}

bool take_milliseconds(Program *p, Options *o, const OptionRow *row,
                       char *value)
{
    (void)o;
    char *end;
    p->unit_ms = strtod(value, &end);
    if (end != value && !*end && p->unit_ms > 0 && p->unit_ms <= 1e6)
        return true;
    wrong_usage("--unit-ms 2.5",
                "--%s takes milliseconds, more than 0 and at most 1e6, not "
                "`%s`",
                row->name, value);
    return false;
}

/* ---- words ---- */

enum { FIRST_CODE = 256 };  // of getopt_long: behind all letters

typedef struct Typed {     // an option as it was typed
    const OptionRow *row;  // the first of its name, then the command's
    char *value;
} Typed;

typedef struct Reader {
    Program *p;
    Options *o;
    Typed *given;
    int given_count;
    char *letters;         // of getopt_long
    struct option *longs;  // the same
    const char **names;    // "--steps", "-o", each once
    int name_count;
} Reader;

static const OptionRow *row_of_code(int code)
{
    if (code >= FIRST_CODE)
        return &option_rows[code - FIRST_CODE];
    for (int i = 0; i < option_row_count; i++)
        if (option_rows[i].letter == code)
            return &option_rows[i];
    return NULL;
}

/* The row of an option for a command; NULL: the command does not take it. */
static const OptionRow *row_of_command(const OptionRow *row, Command command)
{
    for (int i = 0; i < option_row_count; i++)
        if (same_option(&option_rows[i], row) &&
            option_rows[i].commands & FOR(command))
            return &option_rows[i];
    return NULL;
}

static bool is_first(int row)
{
    for (int i = 0; i < row; i++)
        if (same_option(&option_rows[i], &option_rows[row]))
            return false;
    return true;
}

/* "-" keeps the words in their order, ":" tells a missing value apart. */
static void prepare(Reader *r, int argc)
{
    Arena *arena = r->p->arena;
    size_t rows = (size_t)option_row_count;
    r->given = arena_take(arena, sizeof *r->given * (size_t)(argc + 1));
    r->longs = arena_take(arena, sizeof *r->longs * (rows + 1));
    r->names = arena_take(arena, sizeof *r->names * rows);
    r->letters = arena_take(arena, 2 * rows + 3);
    char *letter = stpcpy(r->letters, "-:");
    struct option *next = r->longs;
    for (int i = 0; i < option_row_count; i++) {
        const OptionRow *row = &option_rows[i];
        if (!is_first(i))
            continue;
        r->names[r->name_count++] = option_text(arena, row);
        if (row->letter)
            *letter++ = row->letter;
        if (row->letter && row->argument)
            *letter++ = ':';
        if (row->name)
            *next++ = (struct option){row->name, row->argument != NULL, NULL,
                                      FIRST_CODE + i};
    }
}

/* One of the command's own, or else of any; or NULL. */
static const char *near_option(const Reader *r, const char *name)
{
    const char **own = arena_take(r->p->arena,
                                  sizeof *own * (size_t)r->name_count);
    int count = 0;
    for (int i = 0; i < option_row_count; i++)
        if (is_first(i) && row_of_command(&option_rows[i], r->o->command))
            own[count++] = option_text(r->p->arena, &option_rows[i]);
    const char *near = nearest(name, own, count);
    return near ? near : nearest(name, r->names, r->name_count);
}

/* What is meant by a word that getopt_long does not take: a beginning of
 * several options, a value behind an option that has none, or something else. */
static int unknown_option(const Reader *r, const char *word)
{
    size_t length = strcspn(word, "=");
    const char *name = text_copy(r->p->arena, word, length), *begun = "";
    int count = 0;
    for (int i = 0; i < r->name_count && length > 2; i++)
        if (strncmp(r->names[i], name, length) == 0)
            begun = text_format(r->p->arena, "%s%s`%s`", begun,
                                count++ ? ", " : "", r->names[i]);
    if (count == 1)
        return wrong_usage(text_format(r->p->arena, "type it alone: %s", begun),
                           "`%s` takes no value", name);
    if (count > 1)
        return wrong_usage(text_format(r->p->arena, "did you mean %s", begun),
                           "`%s` is the beginning of %d options", name, count);
    const char *near = near_option(r, name);
    return wrong_usage(near
                           ? text_format(r->p->arena, "did you mean `%s`", near)
                           : "`pipec --help options` lists the options",
                       "there is no option `%s`", name);
}

static bool take_word(Reader *r, const char *word)
{
    Options *o = r->o;
    const char *names[COMMAND_COUNT];
    for (int i = COMMAND_CHECK; i < COMMAND_COUNT; i++) {
        names[i - 1] = command_rows[i].name;
        if (o->command == COMMAND_NONE && strcmp(word, names[i - 1]) == 0) {
            o->command = (Command)i;
            return true;
        }
    }
    if (o->help && !o->topic) {
        o->topic = word;
        return true;
    }
    const CommandRow *row = &command_rows[o->command];
    if (o->command == COMMAND_NONE) {
        const char *near = nearest(word, names, COMMAND_COUNT - 1);
        wrong_usage(near ? text_format(r->p->arena, "did you mean `%s`", near)
                         : "`pipec --help` lists the commands",
                    "there is no command `%s`", word);
        return false;
    }
    if (o->file && row->words[1] && !o->second) {
        o->second = word;
        return true;
    }
    if (o->file) {
        wrong_usage(
            text_format(r->p->arena, "pipec %s %s", row->name, row->usage[0]),
            "one file at a time, not also `%s`", word);
        return false;
    }
    o->file = word;
    return true;
}

/* Is the word one of those of an argument such as "cpu|cuda". */
static bool is_choice(const char *argument, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = argument; *at; at += strspn(at, "|")) {
        size_t own = strcspn(at, "|");
        if (own == length && strncmp(at, word, own) == 0)
            return true;
        at += own;
    }
    return false;
}

static bool has_choices(const char *argument)
{
    return argument &&
           strspn(argument, "abcdefghijklmnopqrstuvwxyz0123456789|") ==
               strlen(argument);
}

/* The value of a letter may be joined to it by a sign: -o=x. */
static bool give(Reader *r, int code, char *value, const char *word)
{
    const OptionRow *row = row_of_code(code);
    if (value && code < FIRST_CODE && value == word + 2 && *value == '=')
        value++;
    if (has_choices(row->argument) && !is_choice(row->argument, value)) {
        wrong_usage(text_format(r->p->arena, "%s %s",
                                option_text(r->p->arena, row), row->argument),
                    "%s cannot be `%s`", option_text(r->p->arena, row), value);
        return false;
    }
    r->o->help |= row->name && strcmp(row->name, "help") == 0;
    r->given[r->given_count++] = (Typed){row, value};
    return true;
}

/* 0, or the exit status. */
static int read_words(Reader *r, int argc, char **argv)
{
    int code;
    optind = 1;
    opterr = 0;
    for (;;) {
        char *word = optind < argc ? argv[optind] : NULL;
        code = getopt_long(argc, argv, r->letters, r->longs, NULL);
        if (code < 0)
            break;
        if (code == '?')
            return unknown_option(r, word);
        if (code == ':')
            return wrong_usage(text_format(r->p->arena, "%s %s", word,
                                           row_of_code(optopt)->argument),
                               "`%s` needs a value", word);
        if (code == 1 ? !take_word(r, optarg) : !give(r, code, optarg, word))
            return USAGE;
    }
    for (; optind < argc; optind++)
        if (!take_word(r, argv[optind]))
            return USAGE;
    return 0;
}

/* ---- what belongs together ---- */

/* Does a value agree with one of "lower|emit" or "FILE.svg|FILE.txt". */
static bool agrees(const char *values, const char *value)
{
    enum { FILE_LENGTH = 4 };
    if (strncmp(values, "FILE.", FILE_LENGTH + 1) != 0)
        return is_choice(values, value);
    for (const char *at = values; *at; at += strspn(at, "|")) {
        size_t own = strcspn(at, "|") - FILE_LENGTH, length = strlen(value);
        if (length > own &&
            strncmp(value + length - own, at + FILE_LENGTH, own) == 0)
            return true;
        at += FILE_LENGTH + own;
    }
    return false;
}

/* See Exclusion in options.h. */
static bool holds(const Reader *r, const char *condition)
{
    size_t length = strcspn(condition, " ");
    bool found = false;
    for (int i = 0; i < r->given_count; i++) {
        const Typed *given = &r->given[i];
        const char *name = option_text(r->p->arena, given->row);
        if (strlen(name) == length && strncmp(name, condition, length) == 0)
            found = !condition[length] ||
                    agrees(condition + length + 1, given->value);
    }
    return found;
}

/* Which commands take it: "`pipec build`, `pipec run`". */
static const char *owners(const Reader *r, const OptionRow *row)
{
    const char *text = "";
    for (int c = COMMAND_CHECK; c < COMMAND_COUNT; c++)
        if (row_of_command(row, (Command)c))
            text = text_format(r->p->arena, "%s%s`pipec %s`", text,
                               *text ? ", " : "", command_rows[c].name);
    return text;
}

static int misplaced(const Reader *r, const OptionRow *row)
{
    Arena *arena = r->p->arena;
    const char *command = command_rows[r->o->command].name, *instead = NULL;
    for (int i = 0; i < option_row_count && !instead; i++)
        if (same_option(&option_rows[i], row))
            instead = option_rows[i].instead;
    return wrong_usage(
        instead ? instead
                : text_format(arena, "`pipec %s --help` lists its options",
                              command),
        "`%s` belongs to %s, not to `pipec %s`", option_text(arena, row),
        owners(r, row), command);
}

/* Has the option an effect beside the others. 0, or USAGE. */
static int complain(const Reader *r, const OptionRow *row)
{
    Arena *arena = r->p->arena;
    const char *name = option_text(arena, row),
               *command = command_rows[r->o->command].name;
    if (row->needs && !holds(r, row->needs))
        return wrong_usage(row->instead
                               ? row->instead
                               : text_format(arena, "add %s", row->needs),
                           "`%s %s` needs `%s`", command, name, row->needs);
    for (int i = 0; i < 3 && row->without[i].option; i++)
        if (holds(r, row->without[i].option))
            return wrong_usage(text_format(arena, "leave one of the two out"),
                               "`%s %s` does not go with `%s`: %s", command,
                               name, row->without[i].option,
                               row->without[i].why);
    return 0;
}

static int check_words(const Reader *r)
{
    const Options *o = r->o;
    const CommandRow *row = &command_rows[o->command];
    const char *usage = text_format(r->p->arena, "pipec %s %s", row->name,
                                    row->usage[0]);
    if (o->command == COMMAND_NONE)
        return wrong_usage("`pipec --help` lists the commands",
                           "a command is missing");
    if (!o->file)
        return wrong_usage(usage, "`%s` needs %s", row->name, row->words[0]);
    if (o->command == COMMAND_DIFF ? !o->second == !o->compare.schedules
                                   : row->words[1] && !o->second)
        return wrong_usage(usage, "`%s` needs %s", row->name, row->words[1]);
    return 0;
}

static int place_options(Reader *r)
{
    for (int i = 0; i < r->given_count; i++) {
        const OptionRow *first = r->given[i].row,
                        *own = row_of_command(first, r->o->command);
        if (!own && !r->o->help)
            return r->o->command ? misplaced(r, first) : check_words(r);
        r->given[i].row = own ? own : first;
        if (!r->given[i].row->take(r->p, r->o, r->given[i].row,
                                   r->given[i].value))
            return USAGE;
    }
    return 0;
}

/* The file's text comes first, whenever it is read. */
static bool read_sources(Program *p, const char *path)
{
    Source *defines = p->sources;
    int define_count = p->source_count;
    p->sources = NULL;
    p->source_count = 0;
    if (!read_file(p, path))
        return false;
    for (int i = 0; i < define_count; i++)
        add_source(p, defines[i].name, defines[i].text, defines[i].length);
    return true;
}

int read_command_line(Program *p, Options *o, int argc, char **argv)
{
    Reader *r = arena_take(p->arena, sizeof *r);
    r->p = p;
    r->o = o;
    o->runtime = arena_take(p->arena, sizeof(char *) * (size_t)(2 * argc + 1));
    prepare(r, argc);
    int status = read_words(r, argc, argv);
    if (status == 0)
        status = place_options(r);
    o->help |= argc == 1;
    if (status || o->help || o->version)
        return status ? status : -1;
    status = check_words(r);
    for (int i = 0; i < r->given_count && status == 0; i++)
        status = complain(r, r->given[i].row);
    if (status)
        return status;
    return read_sources(p, o->file) ? -1 : 1;
}
