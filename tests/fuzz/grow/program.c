/* program.c: bytes -> a .pipe file that they choose, one choice after another:
 * layers that call each other, names of up to 100 letters, a path of any bytes,
 * every schedule and every setting of a training.
 *
 * Few of the texts that a fuzzer makes of a good one are good as well; of these most
 * are, and so reach lower and emit. Bytes that have run out choose the first. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 4, WORDS = 6, MOST_LAYERS = 3, MOST_CALLS = 4, MOST_NAME = 100 };

typedef struct Choices {
    const unsigned char *next, *end;
    FILE *out;
    int names;  // given so far: no two are the same
} Choices;

static int choose(Choices *c, int below)
{
    return c->next < c->end ? *c->next++ % below : 0;
}

/* Its number and then letters: short ones and those as long as may be. */
static void add_name(Choices *c)
{
    static const char letters[] = "abcXYZ_059";
    int shape = choose(c, 16), letter = choose(c, 10);
    int length = fprintf(c->out, "n%d_", c->names++);
    int wanted = shape < 12   ? length + shape % 8
                 : shape < 14 ? MOST_NAME - choose(c, 3)
                              : choose(c, MOST_NAME);
    for (; length < wanted; length++)
        fputc(letters[letter++ % 10], c->out);
}

/* For a name that is written more than once. */
typedef struct Name {
    char text[MOST_NAME + 16];
} Name;

static Name make_name(Choices *c)
{
    Name name = {0};
    FILE *out = c->out;
    c->out = fmemopen(name.text, sizeof name.text - 1, "w");
    add_name(c);
    fclose(c->out);
    c->out = out;
    return name;
}

/* ---- layers: each keeps the width ---- */

static void add_label(Choices *c)
{
    if (choose(c, 2) == 1) {
        add_name(c);
        fputs(": ", c->out);
    }
}

static void add_call(Choices *c, const char *of, const Name *layers, int below)
{
    switch (choose(c, below > 0 ? 8 : 7)) {
    case 0: add_label(c), fprintf(c->out, "linear(%s, k)", of); break;
    case 1: fprintf(c->out, "gelu(%s)", of); break;
    case 2: fprintf(c->out, "relu(%s)", of); break;
    case 3: add_label(c), fprintf(c->out, "layernorm(%s)", of); break;
    case 4: fprintf(c->out, "%s + x", of); break;
    case 5:
        add_label(c);
        fprintf(c->out, "linear(linear(%s, %d), k, nobias)", of,
                1 + choose(c, 9));
        break;
    case 6:
        fprintf(c->out, "attention(linear(%s, 3 * k), %d%s)", of,
                1 << choose(c, 3), choose(c, 2) ? ", causal" : "");
        break;
    default:
        add_label(c);
        fprintf(c->out, "%s(%s, k)", layers[choose(c, below)].text, of);
    }
}

/* Each line takes the one above; the last has no name. */
static void add_layer(Choices *c, Name *layers, int index)
{
    int lines = choose(c, MOST_CALLS);
    Name line = {"x"};
    layers[index] = make_name(c);
    fprintf(c->out, "layer %s(k) {\n", layers[index].text);
    for (int i = 0; i < lines; i++) {
        Name next = make_name(c);
        fprintf(c->out, "    %s = ", next.text);
        add_call(c, line.text, layers, index);
        fputc('\n', c->out);
        line = next;
    }
    fputs("    ", c->out);
    add_call(c, line.text, layers, index);
    fputs("\n}\n", c->out);
}

/* ---- the model ---- */

static void add_entries(Choices *c, const Name *layers, int count, int chunks)
{
    int entries = 1 + choose(c, 3), each = chunks / entries + choose(c, 2) + 1;
    for (int i = 0; i < entries; i++) {
        fputs("    ", c->out);
        add_name(c);
        fprintf(c->out, " : %s(%d) * %d\n", layers[choose(c, count)].text,
                WIDTH, each);
    }
}

static void add_model(Choices *c, const Name *layers, int count, int chunks,
                      bool tokens)
{
    Name first = make_name(c);
    bool tied = choose(c, 2) == 1;
    fputs("model ", c->out);
    add_name(c);
    if (tokens) {
        fprintf(c->out,
                " {\n    input tokens[%d] of %d\n    %s : embedding(%d)\n",
                1 + choose(c, 3), WORDS, first.text, WIDTH);
        if (choose(c, 2) == 1) {
            fputs("    ", c->out), add_name(c);
            fputs(" : position\n", c->out);
        }
    } else {
        fprintf(c->out, " {\n    input points[%d][%d]\n", 1 + choose(c, 3),
                WIDTH);
    }
    add_entries(c, layers, count, chunks);
    fputs("    ", c->out), add_name(c);
    if (tokens)
        fprintf(c->out, " : linear(%d, nobias) %s%s\n", WORDS,
                tied ? "tied " : "", tied ? first.text : "");
    else
        fprintf(c->out, " : linear(%d)\n", 1 + choose(c, 3));
    fputs("    ", c->out), add_name(c);
    fprintf(c->out, " : %s\n}\n", tokens ? "cross_entropy" : "mse");
}

/* ---- how it is trained ---- */

/* Any schedule but those that look for an order, which takes too long. */
static const Schedule *choose_schedule(Choices *c)
{
    int first = choose(c, schedule_count);
    while (schedules[first]->searches)
        first = (first + 1) % schedule_count;
    return schedules[first];
}

/* With as many chunks of a rank, and as many micro-batches, as it needs. */
static void add_pipeline(Choices *c, const Schedule *s, int stages,
                         int virtuals)
{
    static const char *const splits[] = {"even", "balanced"};
    int least = s->least_micros ? s->least_micros(stages) : 1;
    int micros = 1 + choose(c, 4);
    fprintf(c->out,
            "pipeline {\n    stages %d virtual %d microbatches %d\n"
            "    rows %d schedule %s split %s\n}\n",
            stages, virtuals, micros > least ? micros : least, 1 + choose(c, 3),
            s->name, splits[choose(c, 2)]);
}

/* Every byte but those that end a text, or cannot stand in one. */
static void add_path(Choices *c)
{
    int length = choose(c, 4) == 3 ? choose(c, 256) : choose(c, 16);
    fputs("\"d", c->out);
    for (int i = 0; i < length; i++) {
        int byte = choose(c, 256);
        if (byte && !strchr("\"\n\r", byte))
            fputc(byte, c->out);
    }
    fputc('"', c->out);
}

static void add_train(Choices *c, bool tokens, bool cuda)
{
    static const char *const data[] = {"bytes", "uint16", "uint32"};
    static const char *const optimizers[] = {"", "optimizer sgd",
                                             "optimizer sgd(momentum = 0)",
                                             "optimizer adamw(decay = 0)"};
    fprintf(c->out, "train {\n    data %s ",
            tokens ? data[choose(c, 3)] : "numbers");
    add_path(c);
    fprintf(c->out, " steps %d\n    %s\n", choose(c, 256),
            optimizers[choose(c, 4)]);
    if (choose(c, 2) == 1)
        fprintf(c->out, "    warmup %d cosine 0.%d\n", choose(c, 256),
                choose(c, 256));
    if (choose(c, 2) == 1)
        fprintf(c->out, "    clip 0.%d%s\n", 1 + choose(c, 256),
                !cuda && choose(c, 2) ? " deferred" : "");
    else if (!cuda && choose(c, 2))
        fputs("    on nonfinite skip\n", c->out);
    if (cuda && choose(c, 2))
        fprintf(c->out, "    dtype %s\n", choose(c, 2) ? "f32" : "bf16");
    fprintf(c->out, "    seed %d\n}\n", choose(c, 256));
}

static void add_cluster(Choices *c)
{
    if (choose(c, 4) != 3)
        return;
    fprintf(c->out, "cluster { flops %dT memory %dG link %dG latency %dus",
            1 + choose(c, 99), 1 + choose(c, 99), 1 + choose(c, 99),
            choose(c, 99));
    if (choose(c, 2) == 1)
        fprintf(c->out, " node %d node_link %dG adapter %s", 1 + choose(c, 4),
                1 + choose(c, 99), choose(c, 2) ? "own" : "shared");
    fputs(" }\n", c->out);
}

static void add_program(Choices *c, Target target)
{
    Name layers[MOST_LAYERS];
    const Schedule *s = choose_schedule(c);
    int count = 1 + choose(c, MOST_LAYERS), stages = 1 + choose(c, 3);
    int virtuals = 1 + choose(c, 3);
    bool tokens = choose(c, 2) == 0;
    stages += s->even_stages && stages % 2;
    for (int i = 0; i < 4; i++)
        if (!schedule_takes(s, s->placement, stages, virtuals))
            virtuals = virtuals % 4 + 1;
    for (int i = 0; i < count; i++)
        add_layer(c, layers, i);
    add_model(c, layers, count, stages * virtuals, tokens);
    add_pipeline(c, s, stages, virtuals);
    add_train(c, tokens, target == TARGET_CUDA);
    add_cluster(c);
}

char *grow_program(const char *bytes, size_t length, Target *target)
{
    char *text = NULL;
    size_t size;
    Choices c = {.next = (const unsigned char *)bytes,
                 .end = (const unsigned char *)bytes + length,
                 .out = open_memstream(&text, &size)};
    if (!c.out)
        exit(1);
    *target = choose(&c, 4) == 3 ? TARGET_CUDA : TARGET_CPU;
    add_program(&c, *target);
    fclose(c.out);
    return text;
}
