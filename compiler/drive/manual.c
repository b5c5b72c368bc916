/* manual.c: docs/pipec.1, as `pipec --help man` prints it.
 *
 * Commands and options come from their rows. Text is plain, with `...` for what
 * is typed, and becomes roff here. */
#include "options.h"

#include <string.h>

typedef struct Paragraph {
    const char *tag, *text;  // a tag "" is a paragraph of its own
} Paragraph;

// clang-format off
static const char description[] =
    "`pipec` reads a .pipe file, which describes the layers of a network and how it is trained as a pipeline, and writes "
    "one C program per rank. The whole schedule of a step is decided and proved when the file is compiled: every action "
    "once, every send matched by a receive, no deadlock, every buffer at a fixed place.";

static const Paragraph environment[] = {
    {"CC", "The C compiler of `build` and `run`, with options if need be; cc if it is not set."},
    {"NVCC", "The same for `--target cuda`; nvcc if it is not set."},
    {"NO_COLOR", "If it is set, `inspect` uses no colours. Without a terminal it never does."},
    {"", "`run` sets `PP_FD`, `PP_RANK` and `PP_RANKS` for the rank programs; they are not for users."},
    {0}};

static const Paragraph files[] = {
    {"FOLDER/rankN.c", "The program of rank N."},
    {"FOLDER/rankN", "The same, compiled. A job of one rank may be started by hand: `rank0 --data FILE`."},
    {"PREFIX/lib/pipec/", "What the programs need: libpp.a and pp.h, and pprun, which starts the ranks. It lies beside "
        "the folder of `pipec` itself."},
    {"SAVED/NAME-rankN-of-P.safetensors", "The parameters of one rank, by the names of the file's layers."},
    {"SAVED/model.safetensors.index.json", "Which of these files holds which parameter."},
    {"FOLDER/mpirun.app, FOLDER/srun.conf",
        "With `--target cuda`: one program per rank for `mpirun --app` and `srun --multi-prog`."},
    {0}};

static const Paragraph statuses[] = {
    {"0", "Done; also when one Ctrl-C has ended a run after its step."},
    {"1", "The file is wrong, or the run failed: a rank died, stalled or read bad data."},
    {"2", "Wrong usage."},
    {"130", "A second Ctrl-C has killed the run."},
    {0}};

static const Paragraph examples[] = {  // what is shown, and the lines
    {"Train a small regression on two ranks, in a few seconds:", "pipec run examples/mlp.pipe"},
    {"See what eight micro-batches more would do to the idle time:",
        "pipec inspect examples/gpt.pipe -D microbatches=16"},
    {"Compare the losses of two schedules, to the bit:",
        "pipec run examples/gpt.pipe --steps 5 --losses a\n"
        "pipec run examples/gpt.pipe -D schedule=gpipe --steps 5 --losses b\n"
        "cmp a b"},
    {"Train on other data and keep the result:",
        "pipec run examples/gpt.pipe -D 'data=books/*.txt' --save trained"},
    {"See eight GPUs work on a model of seven billion parameters, before renting them:",
        "pipec run examples/big.pipe --emulate --trace big.trace\n"
        "pipec inspect examples/big.pipe --measured big.trace"},
    {0}};
// clang-format on

/* Hyphens and quotes that stay what is typed; `...` in bold. */
static void put_roff(const char *text)
{
    bool bold = false;
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '`')
            fputs((bold = !bold) ? "\\fB" : "\\fR", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '\'')
            fputs("\\(aq", stdout);
        else
            putchar(*text);
    }
}

/* A line of the source for each sentence, as roff wants it. */
static void put_sentences(Arena *arena, const char *text)
{
    for (const char *end; (end = strstr(text, ". ")); text = end + 2) {
        put_roff(text_copy(arena, text, (size_t)(end + 1 - text)));
        putchar('\n');
    }
    put_roff(text);
    putchar('\n');
}

static void put_paragraphs(Arena *arena, const char *section,
                           const Paragraph *paragraphs)
{
    printf(".SH %s\n", section);
    for (; paragraphs->text; paragraphs++) {
        fputs(*paragraphs->tag ? ".TP\n\\fB" : ".PP\n", stdout);
        put_roff(paragraphs->tag);
        fputs(*paragraphs->tag ? "\\fR\n" : "", stdout);
        put_sentences(arena, paragraphs->text);
    }
}

static void put_examples(void)
{
    puts(".SH EXAMPLES");
    for (const Paragraph *at = examples; at->text; at++) {
        if (at != examples)
            puts(".PP");
        put_roff(at->tag);
        fputs("\n.PP\n.RS\n.nf\n\\fB", stdout);
        put_roff(at->text);
        puts("\\fR\n.fi\n.RE");
    }
}

/* "FILE --schedule A,B": what begins with a hyphen is typed as it stands. */
static void put_usage(const char *words)
{
    while (*words) {
        size_t length = strcspn(words, " ");
        fputs(*words == '-' ? " \\fB" : " \\fI", stdout);
        for (size_t i = 0; i < length; i++)
            fputs(words[i] == '-' ? "\\-" : (char[]){words[i], 0}, stdout);
        fputs("\\fR", stdout);
        words += length + strspn(words + length, " ");
    }
}

static void put_synopsis(void)
{
    puts(".SH SYNOPSIS");
    for (int i = COMMAND_CHECK; i < COMMAND_COUNT; i++) {
        for (int k = 0; k < 3 && command_rows[i].usage[k]; k++) {
            printf("\\fBpipec %s\\fR", command_rows[i].name);
            put_usage(command_rows[i].usage[k]);
            puts(" [\\fIOPTIONS\\fR]\n.br");
        }
    }
    puts("\\fBpipec\\fR [\\fICOMMAND\\fR] \\fB\\-\\-help\\fR "
         "[\\fITOPIC\\fR]\n.br\n\\fBpipec \\-\\-version\\fR");
}

static void put_commands(Arena *arena)
{
    puts(".SH COMMANDS");
    for (int i = COMMAND_CHECK; i < COMMAND_COUNT; i++) {
        printf(".TP\n\\fB%s\\fR\n", command_rows[i].name);
        put_sentences(arena, command_rows[i].description);
    }
}

static void put_option(Arena *arena, const OptionRow *row)
{
    fputs(".TP\n\\fB", stdout);
    put_roff(option_text(arena, row));
    fputs("\\fR", stdout);
    if (row->name && row->letter)
        printf(", \\fB\\-%c\\fR", row->letter);
    if (row->argument)
        printf(" \\fI%s\\fR", row->argument);
    putchar('\n');
    printf("(%s)\n", commands_text(arena, row));
    put_sentences(arena, summary_text(arena, row));
    for (int i = 0; i < 3 && row->without[i].option; i++)
        put_sentences(arena,
                      text_format(arena, "Not with `%s`: %s.",
                                  row->without[i].option, row->without[i].why));
}

static void put_topics(Arena *arena)
{
    puts(".SS Topics of \\-\\-help");
    for (int i = 0; i < topic_count; i++) {
        printf(".TP\n\\fB%s\\fR\n", topics[i].name);
        put_sentences(arena, topics[i].summary);
    }
}

void print_manual(Arena *arena)
{
    printf(".\\\" Written by `pipec --help man`.\n"
           ".TH PIPEC 1 \"\" \"pipec %s\" \"User Commands\"\n"
           ".SH NAME\n"
           "pipec \\- compile a neural network into one program per pipeline "
           "rank\n",
           PIPEC_VERSION);
    put_synopsis();
    puts(".SH DESCRIPTION");
    put_sentences(arena, description);
    put_commands(arena);
    puts(".SH OPTIONS\nThe commands that take an option stand in parentheses.\n"
         "Names may be cut short as long as they are clear.");
    for (int i = 0; i < option_row_count; i++)
        put_option(arena, &option_rows[i]);
    put_topics(arena);
    put_paragraphs(arena, "ENVIRONMENT", environment);
    put_paragraphs(arena, "FILES", files);
    put_paragraphs(arena, "EXIT STATUS", statuses);
    put_examples();
    puts(
        ".SH SEE ALSO\n\\fIdocs/language.md\\fR, the reference of the "
        "language;\n\\fIdocs/runtime.md\\fR, the contract of the programs with "
        "their runtime;\nboth in the source tree.");
}
