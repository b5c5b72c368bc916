/* help.c: what `pipec --help` says, by topic. */
#include "options.h"

#include <string.h>

// clang-format off
static const char usage[] =
    "pipec: compiles .pipe files into one program per rank\n"
    "\n"
    "  pipec check FILE            parse, plan and prove; say what is wrong\n"
    "  pipec inspect FILE          partition, timeline, bubble, memory, messages\n"
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
    "pipec inspect FILE [-D NAME=VALUE] [-o PICTURE] [--all] [--arrows] [--comms]\n"
    "\n"
    "Prints the partition, the timeline, the bubble by the textbook's formula and by longest path, memory\n"
    "and messages. Times are units of one chunk's forward, or ms if the `cluster` block has `flops`.\n"
    "\n"
    "  -o FILE   a picture instead, by its ending: .svg, .html (zoom, hover, scrub), .json (Chrome trace),\n"
    "            .csv (PyTorch's schedule format), .txt\n"
    "  --all     draw a long timeline whole\n"
    "  --arrows  svg: draw the messages\n"
    "  --comms   csv: with sends and receives\n",
    [COMMAND_BUILD] =
    "pipec build FILE [-D NAME=VALUE] [-o FOLDER] [--target cpu|cuda]\n"
    "\n"
    "Writes FOLDER/rank0.c, rank1.c, ... and compiles them with cc, or with $CC; for cuda rank0.cu, ... with\n"
    "nvcc, or with $NVCC, and the files mpirun.app and srun.conf for mpirun and srun.\n",
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
    printf("\nas an entry of the model, an op takes the entry above as its "
           "first argument\n");
}

static void help_schedules(void)
{
    for (int i = 0; i < schedule_count; i++)
        printf("  %-12s %s\n", schedules[i]->name, schedules[i]->summary);
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
