/* ops.c: the table of ops. A new op is one row here and one kernel file per
 * device.
 *
 * The operand words of an entry say what its kernel takes, in order, and so
 * also what backward needs to find again: `memory` keeps exactly the tensors
 * that the words of _input and _weight name. The words are the rows of
 * operands.c; the entry "=" has no kernel, since the input's gradient is dy
 * itself.
 */
#include "compile.h"

#include <string.h>

size_t dtype_floats(const Program *p, size_t values)
{
    return p->set.dtype == DTYPE_BF16 ? (values + 1) / 2 : values;
}

long positions(const Program *p, const Op *op)
{
    return (long)p->set.rows.value * p->tensors[op->input[0]].seq;
}

static double elements(const Program *p, const Op *op)
{
    return (double)p->tensors[op->input[0]].values;
}

static double linear_work(const Program *p, const Op *op, Entry entry)
{
    (void)entry;
    return 2.0 * elements(p, op) * (double)p->tensors[op->output].width;
}

/* Pairs of positions that attend, times two products forward, five backward
 * (scores again, dv, dp, dq, dk). */
static double attention_work(const Program *p, const Op *op, Entry entry)
{
    double seq = (double)p->tensors[op->input[0]].seq,
           width = (double)p->tensors[op->output].width;
    double pairs = op->causal ? seq * (seq + 1) / 2 : seq * seq;
    return (entry == ENTRY_FORWARD ? 4 : 10) * p->set.rows.value * pairs *
           width;
}

/* The rest is counted per element of the input; a tanh or an exp counts as ten
 * operations. */
static double layernorm_work(const Program *p, const Op *op, Entry entry)
{
    return elements(p, op) * (entry == ENTRY_FORWARD ? 7
                              : entry == ENTRY_INPUT ? 11
                                                     : 5);
}

static double gelu_work(const Program *p, const Op *op, Entry entry)
{
    return elements(p, op) * (entry == ENTRY_FORWARD ? 18 : 26);
}

static double loss_work(const Program *p, const Op *op, Entry entry)
{
    return elements(p, op) * (entry == ENTRY_FORWARD ? 12 : 13);
}

static double simple_work(const Program *p, const Op *op, Entry entry)
{
    (void)entry;
    return op->output < 0 ? elements(p, op)
                          : (double)p->tensors[op->output].values;
}

const OpKind op_kinds[] = {
    {.name = "embedding",
     .usage = "embedding(x, width)",
     .tensors = 1,
     .ids = true,
     .result = RESULT_WIDTH,
     .weight = WEIGHT_VOCABULARY,
     .entry = {"y x weight n width", NULL, "dweight x dy n width"},
     .work = simple_work},
    {.name = "position",
     .usage = "position(x)",
     .tensors = 1,
     .result = RESULT_SAME,
     .weight = WEIGHT_POSITION,
     .entry = {"y x weight n seq width", "=", "dweight dy n seq width"},
     .work = simple_work},
    {.name = "linear",
     .usage = "linear(x, width [, nobias])",
     .tensors = 1,
     .result = RESULT_WIDTH,
     .bias = true,
     .weight = WEIGHT_MATRIX,
     .entry = {"y x weight bias n in width", "dx dy weight prev n in width",
               "dweight dbias x dy n in width"},
     .work = linear_work},
    {.name = "layernorm",
     .usage = "layernorm(x)",
     .tensors = 1,
     .result = RESULT_SAME,
     .bias = true,
     .weight = WEIGHT_SCALE,
     .stats = 2,
     .entry = {"y stats x weight bias n width",
               "dx dy x stats weight prev n width",
               "dweight dbias dy x stats n width"},
     .work = layernorm_work},
    {.name = "gelu",
     .usage = "gelu(x)",
     .tensors = 1,
     .result = RESULT_SAME,
     .entry = {"y x count", "dx dy x prev count", NULL},
     .work = gelu_work},
    {.name = "relu",
     .usage = "relu(x)",
     .tensors = 1,
     .result = RESULT_SAME,
     .entry = {"y x count", "dx dy x prev count", NULL},
     .work = simple_work},
    {.name = "add",
     .usage = "a + b",
     .tensors = 2,
     .result = RESULT_SAME,
     .entry = {"y x x2 count", "=", NULL},
     .work = simple_work},
    {.name = "attention",
     .usage = "attention(qkv, heads [, causal])",
     .tensors = 1,
     .result = RESULT_THIRD,
     .heads = true,
     .causal = true,
     .stats = 1,
     .entry = {"y stats x tmp n seq width heads causal",
               "dx dy x y stats tmp prev n seq width heads causal", NULL},
     .work = attention_work},
    {.name = "cross_entropy",
     .usage = "cross_entropy",
     .tensors = 1,
     .result = RESULT_LOSS,
     .loss = true,
     .stats = 1,
     .entry = {"loss stats x targets n in", "dx x stats targets n in scale",
               NULL},
     .work = loss_work},
    {.name = "mse",
     .usage = "mse",
     .tensors = 1,
     .result = RESULT_LOSS,
     .loss = true,
     .entry = {"loss x targets n in", "dx x targets n in scale", NULL},
     .work = simple_work},
};
const int op_kind_count = sizeof op_kinds / sizeof *op_kinds;

const OpKind *find_op(const char *name)
{
    for (int i = 0; i < op_kind_count; i++)
        if (strcmp(op_kinds[i].name, name) == 0)
            return &op_kinds[i];
    return NULL;
}

bool mentions(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; at && (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') &&
            (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

size_t attention_tmp(const Program *p, const Op *op)
{
    size_t seq = ((size_t)p->tensors[op->input[0]].seq + 31) / 32 * 32;
    size_t head = ((size_t)(p->tensors[op->output].width / op->heads) + 31) /
                  32 * 32;
    return 5 * seq * head + 96 * head + 64 * (seq + 16);
}
