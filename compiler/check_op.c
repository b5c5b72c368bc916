/* check_op.c: calls of ops.
 *
 * Each call sorts its arguments, compares the shapes, and appends one Op with
 * its output tensor and its parameters. */
#include "check.h"

#include <string.h>

enum { MAX_OPS = 1 << 20 };
static const double MAX_FLOATS = 0x1p36;  // of one tensor

typedef struct Arguments {  // of a call, sorted
    Value tensor[2];
    int tensors;
    double number;  // width or heads
    const Node *number_at;
    bool causal, nobias;
} Arguments;

/* ---- tensors and parameters ---- */

int new_tensor(Checker *c, const char *name, TensorKind kind, long seq,
               long width, Span at)
{
    Program *p = c->p;
    double floats = p->set.rows.value * (double)seq *
                    (double)(width ? width : 1);
    if (floats > MAX_FLOATS) {
        error_at(p, at, "`%s` would hold %.3g values per micro-batch", name,
                 floats);
        note_at(p, p->set.rows.at, "%g rows, from here", p->set.rows.value);
        help(p, "at most %.3g are supported", MAX_FLOATS);
        floats = 1;
    }
    p->tensors = array_grow(p->arena, p->tensors, p->tensor_count,
                            sizeof *p->tensors);
    p->tensors[p->tensor_count] = (Tensor){.name = name,
                                           .kind = kind,
                                           .layer = p->layer_count,
                                           .seq = seq,
                                           .width = width,
                                           .at = at,
                                           .floats = (size_t)floats};
    return p->tensor_count++;
}

static int new_parameter(Checker *c, const char *label, const char *role,
                         long rows, long columns)
{
    Program *p = c->p;
    p->parameters = array_grow(p->arena, p->parameters, p->parameter_count,
                               sizeof *p->parameters);
    p->parameters[p->parameter_count] = (Parameter){
        .name = text_format(p->arena, "%s.%s", label, role),
        .op = p->op_count,
        .layer = p->layer_count,
        .rows = rows,
        .columns = columns,
        .decay = columns > 0,
        .tied = -1};
    return p->parameter_count++;
}

static double inverse_root(
    double x)  // 1 / sqrt(x) by Newton, to keep libm out of the compiler
{
    double y = 1;
    while (y * y * x > 1)
        y /= 2;
    for (int i = 0; i < 60; i++)
        y *= 1.5 - 0.5 * x * y * y;
    return y;
}

/* Initial values as in GPT-2 for tables, 1 / sqrt(inputs) for matrices, so that
 * every width starts well. */
static void add_parameters(Checker *c, Op *op, bool bias)
{
    Program *p = c->p;
    const Tensor *x = &p->tensors[op->input[0]];
    long width = op->output >= 0 ? p->tensors[op->output].width : 0;
    switch (op->kind->weight) {
    case WEIGHT_NONE: return;
    case WEIGHT_VOCABULARY:
        op->weight = new_parameter(c, op->label, "weight", p->vocabulary,
                                   width);
        p->parameters[op->weight].deviation = 0.02;
        break;
    case WEIGHT_POSITION:
        op->weight = new_parameter(c, op->label, "weight", x->seq, width);
        p->parameters[op->weight].deviation = 0.02;
        break;
    case WEIGHT_MATRIX:
        op->weight = new_parameter(c, op->label, "weight", width, x->width);
        p->parameters[op->weight].deviation = inverse_root((double)x->width);
        break;
    case WEIGHT_SCALE:
        op->weight = new_parameter(c, op->label, "weight", width, 0);
        p->parameters[op->weight].fill = 1;
    }
    if (bias)
        op->bias = new_parameter(c, op->label, "bias", width, 0);
}

/* ---- calls of ops ---- */

static bool label_taken(const Checker *c, const char *label)
{
    for (int i = c->first_op; i < c->p->op_count; i++)
        if (strcmp(c->p->ops[i].label, label) == 0)
            return true;
    return false;
}

/* h.3.linear, h.3.linear_2, ... unless the user gave one; the entry's own name
 * when it is an op. */
static const char *label_for(Checker *c, const OpKind *kind, const Node *given)
{
    Arena *arena = c->p->arena;
    if (c->alone)
        return c->prefix;
    const char *label = text_format(arena, "%s.%s", c->prefix,
                                    given ? given->text : kind->name);
    if (given && label_taken(c, label))
        error_at(c->p, given->name,
                 "the label `%s` is used twice in this layer", given->text);
    for (int i = 2; !given && label_taken(c, label); i++)
        label = text_format(arena, "%s.%s_%d", c->prefix, kind->name, i);
    return label;
}

static bool fits(Checker *c, const OpKind *kind, const Node *at,
                 const Arguments *a)
{
    Program *p = c->p;
    const Tensor *x = &p->tensors[a->tensor[0].tensor];
    if (kind->ids != (x->kind == TENSOR_IDS)) {
        error_at(p, at->at,
                 kind->ids ? "`%s` takes token ids, but `%s` holds numbers"
                           : "`%s` takes numbers, but `%s` holds token ids",
                 kind->name, x->name);
        if (!kind->ids)
            help(p, "begin the model with an embedding");
        return false;
    }
    if (kind->tensors == 2) {
        const Tensor *y = &p->tensors[a->tensor[1].tensor];
        if (x->seq == y->seq && x->width == y->width)
            return true;
        error_at(p, at->at, "`%s` is [%ld x %ld], but `%s` is [%ld x %ld]",
                 x->name, x->seq, x->width, y->name, y->seq, y->width);
        help(p, "both sides of + need the same shape");
        return false;
    }
    if (kind->result == RESULT_THIRD && x->width % 3 != 0) {
        error_at(p, at->at,
                 "attention needs queries, keys and values side by side, but "
                 "width %ld is no multiple of 3",
                 x->width);
        help(p, "attention(linear(x, 3*width), heads)");
        return false;
    }
    if (kind->heads && x->width / 3 % (long)a->number != 0) {
        error_at(p, a->number_at->at, "%g heads do not divide a width of %ld",
                 a->number, x->width / 3);
        help(p, "the width of a head is width / heads, a whole number");
        return false;
    }
    return true;
}

static Value append_op(Checker *c, const OpKind *kind, const Node *at,
                       const Node *given, const Arguments *a)
{
    Program *p = c->p;
    if (!fits(c, kind, at, a))
        return nothing;
    if (p->op_count == MAX_OPS) {
        error_at(p, at->at, "more than %d ops", MAX_OPS);
        return nothing;
    }
    long seq = p->tensors[a->tensor[0].tensor].seq,
         width = p->tensors[a->tensor[0].tensor].width;
    Op op = {.kind = kind,
             .layer = p->layer_count,
             .input = {-1, -1},
             .output = -1,
             .stats = -1,
             .weight = -1,
             .bias = -1,
             .heads = kind->heads ? (long)a->number : 0,
             .causal = a->causal,
             .at = at->at};
    op.label = label_for(c, kind, given);
    for (int i = 0; i < kind->tensors; i++) {
        op.input[i] = a->tensor[i].tensor;
        p->tensors[op.input[i]].uses++;
    }
    if (kind->result != RESULT_LOSS)
        op.output = new_tensor(c, op.label, TENSOR_FLOATS, seq,
                               kind->result == RESULT_WIDTH   ? (long)a->number
                               : kind->result == RESULT_THIRD ? width / 3
                                                              : width,
                               at->at);
    if (kind->stats > 0)
        op.stats = new_tensor(
            c, text_format(p->arena, "%s.stats", op.label), TENSOR_FLOATS, seq,
            (long)kind->stats * (kind->heads ? op.heads : 1), at->at);
    add_parameters(c, &op, kind->bias && !a->nobias);
    if (op.output >= 0) {
        bool differentiable = op.weight >= 0;
        for (int i = 0; i < kind->tensors; i++)
            differentiable |= p->tensors[op.input[i]].differentiable;
        p->tensors[op.output].differentiable = differentiable;
    }
    p->ops = array_grow(p->arena, p->ops, p->op_count, sizeof *p->ops);
    p->ops[p->op_count++] = op;
    return (Value){VALUE_TENSOR, 0, op.output};
}

static bool is_flag(const OpKind *kind, const Node *argument, Arguments *a)
{
    if (argument->kind != NODE_NAME)
        return false;
    if (kind->causal && strcmp(argument->text, "causal") == 0)
        return a->causal = true;
    if (kind->weight == WEIGHT_MATRIX && strcmp(argument->text, "nobias") == 0)
        return a->nobias = true;
    return false;
}

/* Sorts one argument: a tensor, the op's number, or a flag. */
static bool take_argument(Checker *c, Scope *scope, const OpKind *kind,
                          const Node *argument, Arguments *a)
{
    Program *p = c->p;
    bool wants_number = kind->result == RESULT_WIDTH || kind->heads;
    if (is_flag(kind, argument, a))
        return true;
    if (argument->kind == NODE_ARGUMENT) {
        error_at(p, argument->at, "`%s` takes no argument called `%s`",
                 kind->name, argument->text);
        help(p, "%s", kind->usage);
        return false;
    }
    Value value = eval(c, scope, argument);
    if (value.kind == VALUE_NOTHING)
        return false;
    if (value.kind == VALUE_TENSOR && a->tensors < kind->tensors) {
        a->tensor[a->tensors++] = value;
    } else if (value.kind == VALUE_NUMBER && wants_number && !a->number_at) {
        a->number = value.number;
        a->number_at = argument;
    } else {
        error_at(p, argument->at,
                 value.kind == VALUE_TENSOR ? "`%s` takes no further tensor"
                                            : "`%s` takes no such number",
                 kind->name);
        help(p, "%s", kind->usage);
        return false;
    }
    return true;
}

static bool complete(Checker *c, const OpKind *kind, const Node *at,
                     Arguments *a)
{
    Program *p = c->p;
    const char *what = kind->heads ? "heads" : "width";
    if (a->tensors < kind->tensors) {
        error_at(p, at->at, "`%s` needs %d tensor%s", kind->name, kind->tensors,
                 kind->tensors == 1 ? "" : "s");
        help(p, "%s", kind->usage);
        return false;
    }
    if (kind->result != RESULT_WIDTH && !kind->heads)
        return true;
    if (!a->number_at) {
        error_at(p, at->at, "`%s` needs its %s", kind->name, what);
        help(p, "%s", kind->usage);
        return false;
    }
    if (a->number >= 1 && a->number <= MAX_WIDTH &&
        a->number == (double)(long)a->number)
        return true;
    error_at(p, a->number_at->at,
             "the %s is %g, but must be a whole number from 1 to %d", what,
             a->number, MAX_WIDTH);
    return false;
}

Value call_op(Checker *c, Scope *scope, const OpKind *kind, const Node *call,
              const Node *given, const Value *first)
{
    Arguments a = {.tensors = 0};
    if (first)
        a.tensor[a.tensors++] = *first;
    for (const Node *argument = call->child; argument;
         argument = argument->next)
        if (!take_argument(c, scope, kind, argument, &a))
            return nothing;
    return complete(c, kind, call, &a) ? append_op(c, kind, call, given, &a)
                                       : nothing;
}

Value add_op(Checker *c, const Node *at, Value a, Value b)
{
    Arguments both = {.tensor = {a, b}, .tensors = 2};
    return append_op(c, find_op("add"), at, NULL, &both);
}
