/* operands.c: the table of operand words: what an op's kernels may take.
 *
 * `lower` makes arguments of them, `work` counts the bytes that they move;
 * whoever writes an entry in ops.c finds its words here. A new word is one
 * row. */
#include "read/operands.h"

#include <stdlib.h>
#include <string.h>

/* ---- which tensor, which parameter ---- */

static int input(const Program *p, const Op *op, const Gradient *g)
{
    (void)p, (void)g;
    return op->input[0];
}

static int second_input(const Program *p, const Op *op, const Gradient *g)
{
    (void)p, (void)g;
    return op->input[1];
}

static int output(const Program *p, const Op *op, const Gradient *g)
{
    (void)p, (void)g;
    return op->output;
}

static int stats(const Program *p, const Op *op, const Gradient *g)
{
    (void)p, (void)g;
    return op->stats;
}

static int targets(const Program *p, const Op *op, const Gradient *g)
{
    (void)op, (void)g;
    return p->targets;
}

static int input_gradient(const Program *p, const Op *op, const Gradient *g)
{
    (void)p, (void)op;
    return g->dx;
}

static int output_gradient(const Program *p, const Op *op, const Gradient *g)
{
    (void)p, (void)op;
    return g->dy;
}

static int contributed(const Program *p, const Op *op, const Gradient *g)
{
    (void)p, (void)op;
    return g->prev;
}

static int weight(const Program *p, const Op *op, const Gradient *g)
{
    (void)p, (void)g;
    return op->weight;
}

static int bias(const Program *p, const Op *op, const Gradient *g)
{
    (void)p, (void)g;
    return op->bias;
}

/* ---- constants ---- */

static double count_of_positions(const Program *p, const Op *op)
{
    return (double)positions(p, op);
}

static double sequence(const Program *p, const Op *op)
{
    return (double)p->tensors[op->input[0]].seq;
}

static double input_width(const Program *p, const Op *op)
{
    return (double)p->tensors[op->input[0]].width;
}

static double output_width(const Program *p, const Op *op)
{
    return op->output >= 0 ? (double)p->tensors[op->output].width
                           : input_width(p, op);
}

static double heads(const Program *p, const Op *op)
{
    (void)p;
    return (double)op->heads;
}

static double causal(const Program *p, const Op *op)
{
    (void)p;
    return op->causal;
}

static double loss_scale(const Program *p, const Op *op)
{
    return 1 / (count_of_positions(p, op) * p->microbatches);
}

/* ---- the table ---- */

// clang-format off
static const Operand operands[] = {
    {"y",       OPERAND_TENSOR,    1, output, NULL},            // output
    {"x",       OPERAND_TENSOR,    1, input, NULL},
    {"x2",      OPERAND_TENSOR,    1, second_input, NULL},
    {"stats",   OPERAND_TENSOR,    1, stats, NULL},             // kept by forward beside the output
    {"targets", OPERAND_TARGETS,   1, targets, NULL},
    {"dx",      OPERAND_TENSOR,    1, input_gradient, NULL},
    {"dy",      OPERAND_TENSOR,    1, output_gradient, NULL},
    {"prev",    OPERAND_TENSOR,    1, contributed, NULL},       // to dx, by other users of x
    {"weight",  OPERAND_PARAMETER, 1, weight, NULL},
    {"bias",    OPERAND_PARAMETER, 1, bias, NULL},
    {"dweight", OPERAND_GRADIENT,  2, weight, NULL},            // added to: read and written
    {"dbias",   OPERAND_GRADIENT,  2, bias, NULL},
    {"loss",    OPERAND_LOSS,      0, NULL, NULL},
    {"tmp",     OPERAND_SCRATCH,   0, NULL, NULL},
    {"n",       OPERAND_NUMBER,    0, NULL, count_of_positions},
    {"seq",     OPERAND_NUMBER,    0, NULL, sequence},
    {"in",      OPERAND_NUMBER,    0, NULL, input_width},
    {"width",   OPERAND_NUMBER,    0, NULL, output_width},      // of the input where the op has no output
    {"heads",   OPERAND_NUMBER,    0, NULL, heads},
    {"causal",  OPERAND_NUMBER,    0, NULL, causal},
    {"count",   OPERAND_COUNT,     0, NULL, output_width},      // n * width
    {"scale",   OPERAND_REAL,      0, NULL, loss_scale},        // of the mean over all micro-batches
};
// clang-format on

const Operand *next_operand(const char **words)
{
    const char *word = *words;
    size_t length = strcspn(word, " ");
    if (!length)
        return NULL;
    *words += length + (word[length] == ' ');
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
        if (strlen(operands[i].word) == length &&
            memcmp(operands[i].word, word, length) == 0)
            return &operands[i];
    fprintf(stderr,
            "pipec: a mistake in the op table: `%.*s` is not an operand "
            "word\n",
            (int)length, word);
    abort();
}
