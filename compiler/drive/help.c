/* help.c: what `pipec --help` says, by command and by topic. */
#include "options.h"
#include "read/check.h"

#include <string.h>

enum { WIDTH = 80, OPTION_WIDTH = 24, SETTING_WIDTH = 30 };

/* Words up to the width behind `mark`, the lines after the first behind `indent`
 * spaces and the mark. */
static void print_wrapped(const char *text, int indent, const char *mark)
{
    fputs(mark, stdout);
    int column = indent;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column > indent &&
            column + 1 + length + (int)strlen(mark) > WIDTH) {
            printf("\n%*s%s", indent, "", mark);
            column = indent;
        }
        if (column > indent)
            column += printf(" ");
        column += printf("%.*s", length, text);
        text += length + strspn(text + length, " ");
    }
    putchar('\n');
}

/* ---- commands and options ---- */

static void print_option(Arena *arena, const OptionRow *row)
{
    const char *text = text_format(arena, "%s%s%s", option_text(arena, row),
                                   row->argument ? " " : "",
                                   row->argument ? row->argument : "");
    if (row->name && row->letter)
        text = text_format(arena, "%s, -%c", text, row->letter);
    printf("  %-*s", OPTION_WIDTH - 2, text);
    if ((int)strlen(text) > OPTION_WIDTH - 3)
        printf("\n%*s", OPTION_WIDTH, "");
    print_wrapped(summary_text(arena, row), OPTION_WIDTH, "");
}

/* Those of all commands, which are common, or the others of one. */
static void print_options(Arena *arena, Command command, bool common)
{
    unsigned every = FOR(COMMAND_COUNT) - FOR(COMMAND_CHECK);
    for (int i = 0; i < option_row_count; i++) {
        const OptionRow *row = &option_rows[i];
        if (common == ((row->commands & every) == every) &&
            (common || row->commands & FOR(command)))
            print_option(arena, row);
    }
}

static void help_commands(Arena *arena)
{
    puts("pipec: compiles .pipe files into one program per rank\n");
    for (int i = COMMAND_CHECK; i < COMMAND_COUNT; i++)
        printf("  pipec %-*s%s\n", OPTION_WIDTH - 4,
               text_format(arena, "%s %s", command_rows[i].name,
                           command_rows[i].usage[0]),
               command_rows[i].summary);
    putchar('\n');
    print_options(arena, COMMAND_NONE, true);
    puts("\n`pipec COMMAND --help` lists the other options of a command. "
         "Topics are:\n");
    for (int i = 0; i < topic_count; i++)
        printf("  --help %-*s%s\n", OPTION_WIDTH - 9, topics[i].name,
               topics[i].summary);
    puts("\nexit status: 0 done; 1 the program or the run is wrong; 2 wrong "
         "usage");
}

static void help_command(Arena *arena, Command command)
{
    const CommandRow *row = &command_rows[command];
    for (int i = 0; i < 3 && row->usage[i]; i++)
        printf("pipec %s %s [OPTIONS]\n", row->name, row->usage[i]);
    putchar('\n');
    print_wrapped(row->description, 0, "");
    putchar('\n');
    print_options(arena, command, false);
    print_options(arena, command, true);
}

/* A line for each row, for a person and for tests/options/matrix.sh:
 *
 *     --arrows: inspect: with -o FILE.svg, not with --measured */
static void help_options(Arena *arena)
{
    for (int i = 0; i < option_row_count; i++) {
        const OptionRow *row = &option_rows[i];
        printf("%s%s%s: %s: %s%s", option_text(arena, row),
               row->argument ? " " : "", row->argument ? row->argument : "",
               commands_text(arena, row), row->needs ? "with " : "alone",
               row->needs ? row->needs : "");
        for (int k = 0; k < 3 && row->without[k].option; k++)
            printf(", not with %s", row->without[k].option);
        putchar('\n');
    }
}

/* ---- the language ---- */

static void help_language(Arena *arena)
{
    (void)arena;
    fputs(
        "let dim = 64                          # numbers; + - * / and units: "
        "4Ki "
        "25G 10us\n"
        "\n"
        "layer block(heads) {                  # x is the input; the last line "
        "is "
        "the output\n"
        "    q = layernorm(x)\n"
        "    a = x + linear(attention(linear(q, 3*dim), heads, causal), dim)\n"
        "    a + linear(gelu(linear(layernorm(a), 4*dim)), dim)\n"
        "}\n"
        "\n"
        "model gpt {\n"
        "    input tokens[32] of 256           # or: input points[2], for "
        "numbers\n"
        "    wte  : embedding(dim)\n"
        "    h    : block(4) * 6               # six layers, h.0 .. h.5\n"
        "    head : linear(256, nobias) tied wte\n"
        "    loss : cross_entropy              # or mse\n"
        "}\n"
        "\n"
        "schedule mine {                       # optional: an order of your "
        "own, "
        "for rank r\n"
        "    for m in 0 .. M { F(m) }          # of P, with M micro-batches\n"
        "    for m in 0 .. M { B(m) }\n"
        "}\n"
        "\n"
        "pipeline { stages 4  virtual 1  microbatches 8  rows 4  schedule 1f1b "
        " "
        "split even\n"
        "           placement loop }           # vee, wave, twin, or [0 1 1 "
        "0], "
        "where the schedule does not bring its own\n"
        "train    { data bytes \"corpus.txt\"  optimizer adamw(lr = 3e-4, "
        "decay = "
        "0.1)  steps 200\n"
        "           clip 1.0  warmup 20  cosine 0.1  seed 1 }\n"
        "cluster  { flops 312T  memory 80G  link 25G  latency 10us }      # "
        "only "
        "for predictions\n"
        "\n"
        "docs/language.md is the reference.\n",
        stdout);
}

static void print_range(Arena *arena, const SettingRow *row)
{
    const char *unit = row->time ? " s" : "",
               *fallback = row->fallback < row->least
                               ? ""
                               : text_format(arena, ", %.16g%s by default",
                                             row->fallback, unit);
    print_wrapped(text_format(arena, "%.16g%s to %.16g%s%s: %s", row->least,
                              unit, row->most, unit, fallback, row->what),
                  SETTING_WIDTH, "# ");
}

/* By block; a number with its range and, where it has one, its default. */
static void help_settings(Arena *arena)
{
    const char *block = "";
    for (int i = 0; i < setting_count; i++) {
        const SettingRow *row = &setting_rows[i];
        if (strcmp(row->block, block) != 0)
            printf("%s%s\n", i ? "\n" : "", row->block);
        block = row->block;
        printf("  %-*s", SETTING_WIDTH - 2, row->example);
        if ((int)strlen(row->example) > SETTING_WIDTH - 3)
            printf("\n%*s", SETTING_WIDTH, "");
        if (is_number_setting(row))
            print_range(arena, row);
        else
            print_wrapped(row->what, SETTING_WIDTH, "# ");
    }
    puts("\noptimizers, with what is taken for what is left out:\n");
    for (int i = OPTIMIZER_SGD; i <= OPTIMIZER_ADAMW; i++)
        printf("  %s\n", optimizer_usage[i]);
    puts("\ndocs/language.md says what each is for; -D KEY=VALUE sets one from "
         "the command line");
}

static void help_ops(Arena *arena)
{
    (void)arena;
    for (int i = 0; i < op_kind_count; i++)
        printf("  %s\n", op_kinds[i].usage);
    printf("\nas an entry of the model, an op takes the entry above as its "
           "first argument\n");
}

static void help_schedules(Arena *arena)
{
    (void)arena;
    for (int i = 0; i < schedule_count; i++)
        printf("  %-12s %-5s %s%s\n", schedules[i]->name,
               placement_names[schedules[i]->placement], schedules[i]->summary,
               schedules[i]->even_stages ? "; even P" : "");
    printf("\n`schedule from \"order.csv\"` takes the order from a file; "
           "`schedule NAME { }` beside the model\nwrites one: see "
           "docs/language.md\n");
}

const Topic topics[] = {
    {"commands", "this page", help_commands},
    {"options", "every option, the commands that take it, what it needs",
     help_options},
    {"language", "a .pipe file, with all of its parts", help_language},
    {"settings", "what can be set in the blocks of a file", help_settings},
    {"ops", "the ops that a layer is made of", help_ops},
    {"schedules", "the orders in which chunks can run", help_schedules},
    {"passes", "the passes, for --dump", print_passes},
    {"man", "the manual page, as roff", print_manual},
};
const int topic_count = sizeof topics / sizeof *topics;

static int unknown_topic(Program *p, const char *topic)
{
    const char **names = arena_take(p->arena,
                                    sizeof *names * (size_t)topic_count);
    for (int i = 0; i < topic_count; i++)
        names[i] = topics[i].name;
    const char *near = nearest(topic, names, topic_count);
    return wrong_usage(near ? text_format(p->arena, "did you mean `%s`", near)
                            : "`pipec --help` lists the topics",
                       "there is no help on `%s`", topic);
}

int print_help(Program *p, const Options *o)
{
    const char *name = o->topic ? o->topic : "commands";
    if (o->command != COMMAND_NONE) {
        help_command(p->arena, o->command);
        return end_output();
    }
    for (int i = 0; i < topic_count; i++) {
        if (strcmp(topics[i].name, name) != 0)
            continue;
        topics[i].print(p->arena);
        return end_output();
    }
    return unknown_topic(p, name);
}
