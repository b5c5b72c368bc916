/* option_table.c: the commands and the options, one row each.
 *
 * All that is said or asked about them is read from here: how words are read
 * and refused (options.c), `pipec --help` (help.c), docs/pipec.1 (manual.c),
 * and the test that tries every option with every command
 * (tests/options/matrix.sh, by `pipec --help options`). */
#include "options.h"

#include <string.h>

// clang-format off
const CommandRow command_rows[COMMAND_COUNT] = {
    [COMMAND_NONE] = {.name = ""},
    [COMMAND_CHECK] = {"check", {"FILE"}, {"a .pipe file"}, false,
        "say what is wrong with a file",
        "Runs the passes up to the finished plan. The first pass that finds errors reports all that it finds, at "
        "most 20, and is the last. Prints nothing when all is well."},
    [COMMAND_INSPECT] = {"inspect", {"FILE"}, {"a .pipe file"}, false,
        "partition, timeline, bubble, memory, messages",
        "Prints the partition, the timeline, the bubble by the textbook's formula and by longest path, the memory "
        "of each rank and the messages. Times are units of one chunk's forward, or seconds if the `cluster` block "
        "gives them."},
    [COMMAND_COMPARE] = {"compare", {"FILE"}, {"a .pipe file"}, false,
        "many schedules and sizes in one table",
        "Plans every combination of the lists and prints bubble, step time, peak memory and messages of each; marks "
        "those that no other beats in both time per micro-batch and memory; says at which link interleaving stops "
        "paying."},
    [COMMAND_EXPLAIN] = {"explain", {"FILE r2@14", "FILE 2F3"},
        {"a .pipe file", "a place: r2@14, or an action such as 2F3"}, false,
        "why a rank is idle, and what would help",
        "Says what rank 2 does at time 14 (in units of the timeline, or `r2@1.5ms`, `r2@30us`), or how the forward "
        "of chunk 2 for micro-batch 3 came to start when it does: what it waited for, the longest path through it, "
        "its slack, and which single change would remove the wait."},
    [COMMAND_DIFF] = {"diff", {"FILE FILE", "FILE --schedule A,B"},
        {"a .pipe file", "a second file, or --schedule A,B"}, true,
        "two schedules, action by action",
        "Two schedules, of two files or of one: their figures, what moved on each rank, and both timelines with the "
        "changed cells marked."},
    [COMMAND_BUILD] = {"build", {"FILE"}, {"a .pipe file"}, false,
        "write and compile one program per rank",
        "Writes FOLDER/rank0.c, rank1.c, ... and compiles them, unless they were made from just the same; for "
        "cuda rank0.cu, ..., and the files mpirun.app and srun.conf for `mpirun --app` and `srun --multi-prog`: a folder "
        "whose name has spaces, quotes or other characters that those read as more than a name is refused there."},
    [COMMAND_RUN] = {"run", {"FILE"}, {"a .pipe file"}, false,
        "build, then train on this machine",
        "Builds, then starts one process per rank on this machine and shows the progress. Ctrl-C ends the job after "
        "the step that runs; a second one kills it."},
};

enum {
    CHECK = FOR(COMMAND_CHECK), INSPECT = FOR(COMMAND_INSPECT), COMPARE = FOR(COMMAND_COMPARE),
    EXPLAIN = FOR(COMMAND_EXPLAIN), DIFF = FOR(COMMAND_DIFF), BUILD = FOR(COMMAND_BUILD), RUN = FOR(COMMAND_RUN),
    EVERY = CHECK | INSPECT | COMPARE | EXPLAIN | DIFF | BUILD | RUN
};

#define IN(field) take_text, offsetof(Options, field)
#define AS_FLAG(field) take_flag, offsetof(Options, field)

const OptionRow option_rows[] = {
    {NULL, 'D', "NAME=VALUE", EVERY, take_define, 0, .summary =
        "Sets the `let` of that name or, if there is none, a setting: `-D stages=8`, `-D data=FILE`. The value is an "
        "expression of the language; that of `data` is a file or a glob pattern, as it stands. May be given several "
        "times; the last one of a name counts."},
    {"target", 0, "cpu|cuda", EVERY, take_target, 0, .summary =
        "What the programs run on; cpu by default."},
    {"messages", 0, "blocking|posted|pair", CHECK | INSPECT | COMPARE | EXPLAIN | DIFF, take_messages, 0,
        .instead = "the programs of a target have its own way: blocking for cpu, posted for cuda", .summary =
        "How the two ends of a message meet in the plan and its proof: a receive holds its rank up (blocking, as the "
        "programs for cpu do), or is posted and waited for later (posted, cuda), or so that a pair of ranks has one "
        "queue for both directions (pair, as PyTorch's point-to-point has). By default as on the target."},
    {"dump", 0, "PASS", CHECK, IN(dump), .summary =
        "Prints what a pass has written, and stops there; `pipec --help passes` lists the passes."},
    {NULL, 'o', "PICTURE", INSPECT, IN(output), .summary =
        "A picture instead, by its ending: .svg, .html (zoom, hover, scrub), .json (Chrome trace), .csv (the "
        "schedule format of PyTorch), .layout (the cut as a layout and flags of Megatron-LM) or .txt."},
    {"schedule", 0, "all|A,B", INSPECT, IN(compare.schedules), "-o FILE.html",
        {{"--measured", "the page switches between what is planned and what is measured"}},
        "`-D schedule=NAME` plans another schedule; `-o FILE.html` makes a page that switches between several",
        "Other schedules of the same file, for a page to switch to; `all` are those that take the file's stages and "
        "chunks, without those that search for seconds."},
    {"all", 0, NULL, INSPECT, AS_FLAG(all), NULL,
        {{"-o FILE.svg|FILE.html|FILE.json|FILE.csv|FILE.layout", "only text is cut where it is long"},
         {"--ops", "the table of ops is always whole"}},
        NULL, "Draws a long timeline whole."},
    {"arrows", 0, NULL, INSPECT, AS_FLAG(arrows), "-o FILE.svg",
        {{"--measured", "the messages of two timelines are not drawn"}}, NULL,
        "Draws the messages."},
    {"comms", 0, NULL, INSPECT, AS_FLAG(comms), "-o FILE.csv", {{0}}, NULL,
        "With sends, receives, and the waits and divisions of gradients that PyTorch's runtime needs. Plans with "
        "`--messages pair`, as PyTorch meets, unless another way is given."},
    {"measured", 0, "FILE.trace", INSPECT, IN(measured), NULL, {{0}}, NULL,
        "What `run --trace` has recorded, beside the plan: both timelines, the measured one of the step of median "
        "length, the bubble of each, and the five actions that differ most. With `-o` both are drawn; an .html "
        "switches between them. The trace has to be of this plan, action by action."},
    {"ops", 0, NULL, INSPECT, AS_FLAG(ops), NULL,
        {{"-o", "the table of ops is printed"}, {"--measured", "ops are not measured"}}, NULL,
        "Operations, bytes, parameters and kept activations of every op instead."},
    {"schedule", 0, "all|A,B", COMPARE, IN(compare.schedules), .instead = "`-D schedule=NAME` plans another schedule",
        .summary = "Schedules by name, those that the file writes too; `all`, as without it, but those that search for "
        "seconds."},
    {"stages", 0, "LIST", COMPARE, IN(compare.stages), .instead = "`-D stages=N` sets them", .summary =
        "Numbers with commas between; without it what the file says."},
    {"virtual", 0, "LIST", COMPARE, IN(compare.virtuals), .instead = "`-D virtual=N` sets it", .summary =
        "The same; without it 1,2,4."},
    {"microbatches", 0, "LIST", COMPARE, IN(compare.microbatches), .instead = "`-D microbatches=N` sets them",
        .summary = "The same; without it what the file says."},
    {"csv", 0, NULL, COMPARE, AS_FLAG(compare.csv), NULL, {{"--json", "the table is one of them, not both"}}, NULL,
        "The table as CSV."},
    {"json", 0, NULL, COMPARE, AS_FLAG(compare.json), NULL, {{0}}, NULL,
        "The table as JSON."},
    {NULL, 'o', "PLOT.svg", COMPARE, take_plot, offsetof(Options, output), .summary =
        "Draws bubble against memory, beside the table."},
    {"all", 0, NULL, EXPLAIN, AS_FLAG(all), NULL, {{0}}, NULL,
        "Long paths whole."},
    {"schedule", 0, "A,B", DIFF, IN(compare.schedules), NULL, {{0}}, NULL,
        "The two schedules of one file."},
    {"all", 0, NULL, DIFF, AS_FLAG(all), NULL, {{0}}, NULL,
        "Every change, and the whole timelines."},
    {NULL, 'o', "FOLDER", BUILD | RUN, IN(output), .summary =
        "Where the programs go. Nobody else can use the folder until the job has ended, and of what lies there only "
        "what pipec wrote itself is replaced. Without it they go to out/NAME/HASH, in the folder that you are in, "
        "where NAME is that of the file without its ending, and HASH stands for all that they are made from; "
        "out/NAME/last is a link to the last one made. The ten that were used last are kept there; an older one is "
        "removed, unless it is in use or holds a file that pipec did not write."},
    {"emulate", 0, NULL, BUILD | RUN, take_emulate, 0, NULL, {{"--target cuda", "an emulation is of the cpu"}}, NULL,
        "Programs whose kernels sleep as long as the plan says, by the `cluster` block if there is one. Messages are "
        "real, but short; they arrive as late as the link of the plan makes them. There are no parameters and no "
        "data, and 5 steps are run, so that a model that is far too big for this machine shows its timeline on it. "
        "Each rank counts its time from when its last action ended by the plan: who wakes late is not late ever "
        "after, and the most that any was late is said at the end. The programs go to out/NAME-emulated/HASH."},
    {"emulate", 0, NULL, CHECK, take_emulate, 0, "--dump lower|emit", {{"--target cuda", "an emulation is of the cpu"}},
        NULL, "The programs of an emulation."},
    {"unit-ms", 0, "X", CHECK | BUILD | RUN, take_milliseconds, 0, "--emulate", {{0}}, NULL,
        "For a plan without seconds: one forward of one chunk takes X milliseconds, 1 by default."},
    {"steps", 0, "N", RUN, take_passed, 0, .instead = "`-D steps=N` sets them", .summary =
        "Trains for N steps instead of the file's."},
    {"save", 0, "FOLDER", RUN, take_passed, 0, NULL, {{"--emulate", "an emulation has no parameters to save"}}, NULL,
        "Writes the parameters after the last step: one safetensors file per rank and an index."},
    {"losses", 0, "FILE", RUN, take_passed, 0, NULL, {{"--emulate", "an emulation computes no losses"}}, NULL,
        "Writes one line `step loss norm` for each step, with all digits of a 32-bit float. The norm is nan if the "
        "file sets no `clip`."},
    {"seed", 0, "N", RUN, take_passed, 0, NULL, {{"--emulate", "an emulation has no parameters and no data"}},
        "`-D seed=N` sets it", "Other initial values and another order of the data."},
    {"delay", 0, "US", RUN, take_passed, 0, .summary =
        "Sleeps for 0 to US microseconds before every action and message, to shake the order: a test."},
    {"quiet", 0, NULL, RUN, take_passed, 0, .summary =
        "Shows no progress."},
    {"trace", 0, "FILE", RUN, take_passed, 0, NULL, {{"--target cuda", "traces are of the cpu"}}, NULL,
        "Writes begin and end of every action, message and wait of the last steps, of all ranks: about half a million "
        "for each rank at most. A .json is a Chrome trace, for Perfetto; a .trace has a line `rank step action "
        "start_ns end_ns` for each, and is read by `inspect --measured`."},
    {"graph", 0, "on|off", RUN, take_passed, 0, "--target cuda", {{0}}, NULL,
        "Replays each step as one CUDA graph; on where the transport can be captured."},
    {"transport", 0, "nccl|local", RUN, take_passed, 0, "--target cuda", {{0}}, NULL,
        "What carries messages; nccl, or local where ranks share a GPU."},
    {"help", 'h', NULL, EVERY | FOR(COMMAND_NONE), AS_FLAG(help), .summary =
        "Explains the command that is given, or a topic."},
    {"version", 0, NULL, EVERY | FOR(COMMAND_NONE), AS_FLAG(version), .summary =
        "Prints the version."},
};
// clang-format on

const int option_row_count = sizeof option_rows / sizeof *option_rows;

const char *option_text(Arena *arena, const OptionRow *row)
{
    return row->name ? text_format(arena, "--%s", row->name)
                     : text_format(arena, "-%c", row->letter);
}

const char *summary_text(Arena *arena, const OptionRow *row)
{
    return row->needs
               ? text_format(arena, "%s Needs `%s`.", row->summary, row->needs)
               : row->summary;
}

bool same_option(const OptionRow *a, const OptionRow *b)
{
    return a->letter == b->letter && !a->name == !b->name &&
           (!a->name || strcmp(a->name, b->name) == 0);
}

const char *commands_text(Arena *arena, const OptionRow *row)
{
    const char *text = "";
    if ((row->commands & EVERY) == EVERY)
        return "every command";
    for (int c = COMMAND_CHECK; c < COMMAND_COUNT; c++)
        if (row->commands & FOR(c))
            text = text_format(arena, "%s%s%s", text, *text ? ", " : "",
                               command_rows[c].name);
    return text;
}
