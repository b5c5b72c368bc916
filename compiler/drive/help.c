/* help.c: what `pipec --help` says, by topic. */
#include "options.h"

#include <string.h>

// clang-format off
static const char usage[] =
    "pipec: compiles .pipe files into one program per rank\n"
    "\n"
    "  pipec check FILE            parse, plan and prove; say what is wrong\n"
    "  pipec inspect FILE          partition, timeline, bubble, memory, messages\n"
    "  pipec compare FILE          many schedules and sizes in one table\n"
    "  pipec explain FILE r2@14    why rank 2 is idle at time 14; or an action: 2F3\n"
    "  pipec diff FILE FILE        two schedules, action by action\n"
    "  pipec build FILE            write and compile one program per rank\n"
    "  pipec run FILE              build, then train on this machine, one process per rank\n"
    "\n"
    "  -D NAME=VALUE               set a `let`, or a setting: -D stages=8, -D data=FILE\n"
    "  --target cpu|cuda           what the programs run on (cpu)\n"
    "  -o FOLDER                   where the programs go (out/FILE without its ending);\n"
    "                              for inspect -o FILE.svg, .html, .json, .csv or .txt\n"
    "  --dump=PASS                 print what a pass has written, and stop\n"
    "  --help TOPIC                commands, ops, schedules, passes or language\n"
    "  --version\n"
    "\n"
    "exit status: 0 done; 1 the program or the run is wrong; 2 wrong usage\n";

static const char *const command_help[COMMAND_COUNT] = {
    [COMMAND_CHECK] =
    "pipec check FILE [-D NAME=VALUE] [--dump=PASS]\n"
    "\n"
    "Runs the passes up to the finished plan. The first pass that finds errors reports all that it finds,\n"
    "at most 20, and is the last. Prints nothing when all is well.\n",
    [COMMAND_INSPECT] =
    "pipec inspect FILE [-D NAME=VALUE] [-o PICTURE] [--measured TRACE] [--all] [--arrows] [--comms]\n"
    "\n"
    "Prints the partition, the timeline, the bubble by the textbook's formula and by longest path, memory\n"
    "and messages. Times are units of one chunk's forward, or ms if the `cluster` block has `flops`.\n"
    "\n"
    "  -o FILE   a picture instead, by its ending: .svg, .html (zoom, hover, scrub), .json (Chrome trace),\n"
    "            .csv (PyTorch's schedule format), .txt\n"
    "  --all     draw a long timeline whole\n"
    "  --ops     operations, bytes, parameters and kept activations of every op instead\n"
    "  --arrows  svg: draw the messages\n"
    "  --comms   csv: with sends and receives\n"
    "  --schedule all|A,B   html: other schedules of the same file to switch to\n"
    "  --measured FILE.trace   what `run --trace` has recorded beside the plan: both timelines, both bubbles\n"
    "            and the largest differences\n",
    [COMMAND_COMPARE] =
    "pipec compare FILE [-D NAME=VALUE] [--schedule all|A,B] [--stages LIST] [--virtual LIST]\n"
    "              [--microbatches LIST] [--csv|--json] [-o PLOT.svg]\n"
    "\n"
    "Plans every combination and prints bubble, step time, peak memory and messages of each; marks those that\n"
    "no other beats in both time per micro-batch and memory; says at which link interleaving stops paying.\n"
    "Without a list: the file's stages and microbatches, virtual 1,2,4, all schedules.\n"
    "\n"
    "  -o PLOT.svg   bubble against memory\n",
    [COMMAND_EXPLAIN] =
    "pipec explain FILE r2@14|2F3 [-D NAME=VALUE] [--all]\n"
    "\n"
    "Says what rank 2 does at time 14 (forwards of a chunk, or ms with a `cluster` block; r2@1.5ms, r2@30us),\n"
    "or how the forward of chunk 2 for micro-batch 3 came to start when it does: what it waited for, the longest\n"
    "path through it, its slack, and which single change would remove the wait.\n"
    "\n"
    "  --all     long paths whole\n",
    [COMMAND_DIFF] =
    "pipec diff FILE FILE [-D NAME=VALUE] [--all]\n"
    "pipec diff FILE --schedule A,B [-D NAME=VALUE] [--all]\n"
    "\n"
    "Two schedules: their figures, what moved on each rank, and both timelines with the changed cells marked.\n"
    "\n"
    "  --all     every change, the whole timeline\n",
    [COMMAND_BUILD] =
    "pipec build FILE [-D NAME=VALUE] [-o FOLDER] [--target cpu|cuda]\n"
    "\n"
    "Writes FOLDER/rank0.c, rank1.c, ... and compiles them with cc, or with $CC; for cuda rank0.cu, ... with\n"
    "nvcc, or with $NVCC, and the files mpirun.app and srun.conf for mpirun and srun.\n"
    "  --emulate, --unit-ms X    as for run\n",
    [COMMAND_RUN] =
    "pipec run FILE [-D NAME=VALUE] [-o FOLDER] [--target cpu|cuda] [OPTIONS]\n"
    "\n"
    "Builds, then starts one process per rank and shows the progress. Ctrl-C ends the job after the step;\n"
    "a second one kills it.\n"
    "\n"
    "  --steps N         train for N steps instead of the file's\n"
    "  --save FOLDER     write the parameters as safetensors, one file per rank and an index\n"
    "  --losses FILE     write `step loss norm` of every step, exact to the bit; norm is nan without `clip`\n"
    "  --seed N          other initial values and another order of the data\n"
    "  --delay US        sleep up to US microseconds before every action and message, to shake the order\n"
    "  --quiet           no progress\n"
    "  --trace FILE      write begin and end of every action of the last steps: a Chrome trace (.json), or\n"
    "                    lines for `pipec inspect --measured` (.trace)\n"
    "  --emulate         programs whose kernels sleep as long as the plan says, 5 steps, without data: the\n"
    "                    timeline of a big model by real processes and messages (out/FILE-emulated)\n"
    "  --unit-ms X       emulate: one unit of a plan without seconds takes X ms (1)\n"
    "  --graph on|off    cuda: replay each step as one CUDA graph (on where it can be)\n"
    "  --transport nccl|local   cuda: what carries messages (local where ranks share a GPU)\n",
};
// clang-format on

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
    "schedule mine {                       # optional: an order of your own, "
    "for rank r\n"
    "    for m in 0 .. M { F(m) }          # of P, with M micro-batches\n"
    "    for m in 0 .. M { B(m) }\n"
    "}\n"
    "\n"
    "pipeline { stages 4  virtual 1  microbatches 8  rows 4  schedule 1f1b  "
    "split even\n"
    "           placement loop }           # vee, wave or twin, where the schedule does not bring its own\n"
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
    printf("\nas an entry of the model, an op takes the entry above as its "
           "first argument\n");
}

static void help_schedules(void)
{
    for (int i = 0; i < schedule_count; i++)
        printf("  %-12s %-5s %s%s\n", schedules[i]->name,
               placement_names[schedules[i]->placement], schedules[i]->summary,
               schedules[i]->even_stages ? "; even P" : "");
    printf("\n`schedule from \"order.csv\"` takes the order from a file; "
           "`schedule NAME { }` beside the model\nwrites one: see "
           "docs/language.md\n");
}

int print_help(const Options *o)
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
    else if (strcmp(topic, "commands") == 0)
        fputs(usage, stdout);
    else
        return wrong_usage("there is no help on `%s`", topic);
    return end_output();
}
