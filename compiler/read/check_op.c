/* check_op.c: calls of ops.
 *
 * Each call sorts its arguments, compares the shapes, and appends one Op with
 * its output tensor and its parameters. */
#include "check.h"

#include <string.h>

enum { MAX_OPS = 1 << 20, MAX_LAYER_OPS = 4096, LABEL_SLOTS = 1 << 13 };
static const double MAX_FLOATS = 0x1p36;  // of one tensor

typedef struct Arguments {  // of a call, sorted
    Value tensor[2];
    int tensors;
    double number;  // width or heads
    const Tree *number_at;
    bool causal, nobias;
    bool wrong;  // something of it is reported
} Arguments;

/* ---- tensors and parameters ---- */

int new_tensor(Checker *c, const char *name, TensorKind kind, long seq,
               long width, Span at)
{
    Program *p = c->p;
    double floats = p->set.rows.value * (double)seq *
                    (double)(width > 0 ? width : 1);
    if (floats > MAX_FLOATS) {
        error_at(p, at, "`%s` would hold %.3g values per micro-batch", name,
                 floats);
        note_at(p, p->set.rows.at, "%s rows, from here",
                number_text(p, p->set.rows.value));
        help(p, "at most %.3g are supported", MAX_FLOATS);
        floats = 1;
        c->over = true;
    }
    p->tensors = array_grow(p->arena, p->tensors, p->tensor_count,
                            sizeof *p->tensors);
    p->tensors[p->tensor_count] = (Tensor){.name = name,
                                           .kind = kind,
                                           .layer = p->layer_count,
                                           .seq = seq,
                                           .width = width,
                                           .at = at,
                                           .values = (size_t)floats};
    Tensor *made = &p->tensors[p->tensor_count];
    made->floats = kind == TENSOR_FLOATS ? dtype_floats(p, made->values)
                                         : made->values;
    return p->tensor_count++;
}

Value unknown_tensor(Checker *c, Span at)
{
    const Program *p = c->p;
    long seq = p->input < 0 ? 1 : p->tensors[p->input].seq;
    c->unknown_tensors++;
    int made = new_tensor(c, "?", TENSOR_FLOATS, seq, UNKNOWN_WIDTH, at);
    return (Value){VALUE_TENSOR, 0, made};
}

static bool is_unknown(const Tensor *x)
{
    return x->width == UNKNOWN_WIDTH;
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

static void check_parameter_size(Checker *c, const Parameter *q, const Op *op)
{
    Program *p = c->p;
    double size = (double)parameter_values(q);
    if (size <= MAX_FLOATS)
        return;
    error_at(p, op->at, "`%s` is [%ld x %ld], %.3g values", q->name, q->rows,
             q->columns, size);
    help(p, "at most %.3g are supported", MAX_FLOATS);
    c->over = true;
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
        p->parameters[op->weight].deviation = inverse_root(
            is_unknown(x) ? 1 : (double)x->width);
        break;
    case WEIGHT_SCALE:
        op->weight = new_parameter(c, op->label, "weight", width, 0);
        p->parameters[op->weight].fill = 1;
    }
    if (op->weight >= 0)
        check_parameter_size(c, &p->parameters[op->weight], op);
    if (bias)
        op->bias = new_parameter(c, op->label, "bias", width, 0);
}

/* ---- calls of ops ---- */

void open_labels(Checker *c)
{
    c->label_op = arena_take(c->p->arena, sizeof(int) * LABEL_SLOTS);
    c->label_next = arena_take(c->p->arena, sizeof(int) * LABEL_SLOTS);
    for (int i = 0; i < LABEL_SLOTS; i++)
        c->label_op[i] = -1;
}

/* Where a label of this layer stands in the table, or would. Entries of earlier
 * layers are as good as empty. */
static int label_slot(const Checker *c, const char *label)
{
    unsigned hash = 2166136261u;
    for (const char *at = label; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    int slot = (int)(hash % LABEL_SLOTS);
    while (c->label_op[slot] >= c->first_op &&
           strcmp(c->p->ops[c->label_op[slot]].label, label) != 0)
        slot = (slot + 1) % LABEL_SLOTS;
    return slot;
}

static void label_twice(Checker *c, const Tree *given, const char *label)
{
    Program *p = c->p;
    const Op *before = &p->ops[c->label_op[label_slot(c, label)]];
    bool same = before->at.begin == given->child->at.begin;
    error_at(p, given->name, "the label `%s` is used twice in `%s`",
             given->text, c->prefix);
    if (same) {
        note_calls(c);
        help(p, "give each call of the layer a label: a: %s(x)",
             c->frame->layer->text);
    } else {
        note_at(p, before->at, "first here");
    }
}

/* h.3.linear, h.3.linear_2, ... unless the user gave one; the entry's own name
 * when it is an op. */
static const char *label_for(Checker *c, const OpKind *kind, const Tree *given)
{
    Arena *arena = c->p->arena;
    if (c->alone)
        return c->prefix;
    const char *base = text_format(arena, "%s.%s", c->prefix,
                                   given ? given->text : kind->name);
    const char *label = base;
    int slot = label_slot(c, base), first = slot;
    bool taken = c->label_op[slot] >= c->first_op;
    if (given && taken)
        label_twice(c, given, base);
    while (!given && c->label_op[slot] >= c->first_op) {
        label = text_format(arena, "%s_%d", base, c->label_next[first]++);
        slot = label_slot(c, label);
    }
    c->label_op[slot] = c->p->op_count;
    c->label_next[slot] = 2;
    return label;
}

static bool shapes_equal(Checker *c, const Tree *at, const Tensor *x,
                         const Tensor *y)
{
    if (is_unknown(x) || is_unknown(y) ||
        (x->seq == y->seq && x->width == y->width))
        return true;
    error_at(c->p, at->at, "`%s` is [%ld x %ld], but `%s` is [%ld x %ld]",
             x->name, x->seq, x->width, y->name, y->seq, y->width);
    note_calls(c);
    help(c->p, "both sides of + need the same shape");
    return false;
}

/* An op of token ids got numbers, or the other way round. */
static void wrong_kind(Checker *c, const OpKind *kind, const Tree *at,
                       const Tensor *x)
{
    Program *p = c->p;
    error_at(p, at->at,
             kind->ids ? "`%s` takes token ids, but `%s` holds numbers"
                       : "`%s` takes numbers, but `%s` holds token ids",
             kind->name, x->name);
    note_calls(c);
    if (!kind->ids)
        help(p, "begin the model with an embedding");
    else if (p->vocabulary)
        help(p, "only the model's input holds ids: one embedding, at the top");
    else
        help(p, "declare ids as `input %s[128] of 256`",
             p->tensors[p->input].name);
}

static bool fits(Checker *c, const OpKind *kind, const Tree *at,
                 const Arguments *a)
{
    Program *p = c->p;
    const Tensor *x = &p->tensors[a->tensor[0].tensor];
    for (int i = 0; i < kind->tensors; i++) {
        const Tensor *t = &p->tensors[a->tensor[i].tensor];
        if (is_unknown(t) || kind->ids == (t->kind == TENSOR_IDS))
            continue;
        wrong_kind(c, kind, at, t);
        return false;
    }
    if (kind->tensors == 2)
        return shapes_equal(c, at, x, &p->tensors[a->tensor[1].tensor]);
    if (is_unknown(x))
        return true;
    if (kind->result == RESULT_THIRD && x->width % 3 != 0) {
        error_at(p, at->at,
                 "attention needs queries, keys and values side by side, but "
                 "a width of %ld is no multiple of 3",
                 x->width);
        note_calls(c);
        help(p, "attention(linear(x, 3*width), heads)");
        return false;
    }
    if (kind->heads && x->width / 3 % (long)a->number != 0) {
        error_at(p, a->number_at->at, "%ld heads do not divide a width of %ld",
                 (long)a->number, x->width / 3);
        note_calls(c);
        help(p, "the width of a head is width / heads, a whole number");
        return false;
    }
    return true;
}

static Value append_op(Checker *c, const OpKind *kind, const Tree *at,
                       const Tree *given, const Arguments *a)
{
    Program *p = c->p;
    if (!fits(c, kind, at, a))
        return unknown_tensor(c, at->at);
    if (p->op_count == MAX_OPS) {
        error_at(p, at->at, "more than %d ops", MAX_OPS);
        c->over = true;
        return nothing;
    }
    if (p->op_count - c->first_op == MAX_LAYER_OPS) {
        error_at(p, at->at, "more than %d ops in one layer", MAX_LAYER_OPS);
        help(p, "a layer is what cannot be cut: make it several entries");
        c->over = true;
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
        op.output = new_tensor(
            c, op.label, TENSOR_FLOATS, seq,
            kind->result == RESULT_WIDTH ? (long)a->number
            : kind->result == RESULT_THIRD && width != UNKNOWN_WIDTH ? width / 3
                                                                     : width,
            at->at);
    if (kind->stats > 0)
        op.stats = new_tensor(
            c, text_format(p->arena, "%s.stats", op.label), TENSOR_EXACT, seq,
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

/* ---- arguments ---- */

/* As printed: in the model, an op's first tensor is left out. */
static const char *usage_of(Checker *c, const OpKind *kind)
{
    const char *open = strchr(kind->usage, '('),
               *comma = strchr(kind->usage, ',');
    if (!c->alone || !open)
        return kind->usage;
    if (comma)
        return text_format(c->p->arena, "%s(%s", kind->name, comma + 2);
    return kind->result == RESULT_WIDTH ? kind->usage : kind->name;
}

static bool is_flag(const OpKind *kind, const Tree *argument, Arguments *a)
{
    if (argument->kind != TREE_NAME)
        return false;
    if (kind->causal && strcmp(argument->text, "causal") == 0)
        return a->causal = true;
    if (kind->weight == WEIGHT_MATRIX && strcmp(argument->text, "nobias") == 0)
        return a->nobias = true;
    return false;
}

/* `causal` where it means nothing; a name of the user's may be called so. */
static bool is_wrong_flag(Checker *c, const Scope *scope, const Tree *argument)
{
    return argument->kind == TREE_NAME && !is_bound(scope, argument->text) &&
           !find_let(c->p, argument->text) &&
           (strcmp(argument->text, "causal") == 0 ||
            strcmp(argument->text, "nobias") == 0);
}

/* Once for each call: its usage says all. */
static void wrong_argument(Checker *c, const OpKind *kind, Span at,
                           Arguments *a, const char *message, const char *word)
{
    if (!a->wrong) {
        error_at(c->p, at, message, kind->name, word);
        help(c->p, "%s", usage_of(c, kind));
    }
    a->wrong = true;
}

static void take_value(Checker *c, const OpKind *kind, const Tree *argument,
                       Value value, Arguments *a)
{
    bool tensor = value.kind == VALUE_TENSOR,
         wants_number = kind->result == RESULT_WIDTH || kind->heads;
    if (value.kind == VALUE_NOTHING) {
        a->wrong = true;
    } else if (tensor && a->tensors < kind->tensors) {
        a->tensor[a->tensors++] = value;
    } else if (!tensor && wants_number && !a->number_at) {
        a->number = value.number;
        a->number_at = argument;
    } else {
        wrong_argument(c, kind, argument->at, a,
                       !tensor && wants_number ? "`%s` takes one %s"
                                               : "`%s` takes no %s",
                       !tensor      ? "number"
                       : a->tensors ? "further tensor"
                                    : "tensor");
    }
}

/* Sorts one argument: a tensor, the op's number, or a flag. */
static void take_argument(Checker *c, Scope *scope, const OpKind *kind,
                          const Tree *argument, Arguments *a)
{
    if (is_flag(kind, argument, a))
        return;
    if (is_wrong_flag(c, scope, argument))
        wrong_argument(c, kind, argument->at, a, "`%s` takes no `%s`",
                       argument->text);
    else if (argument->kind == TREE_ARGUMENT)
        wrong_argument(c, kind, argument->at, a,
                       "`%s` takes no argument called `%s`", argument->text);
    else
        take_value(c, kind, argument, eval(c, scope, argument), a);
}

/* A number that is no literal is the same wherever its name stands. */
static void check_number(Checker *c, const char *what, Arguments *a)
{
    Program *p = c->p;
    if (is_whole(a->number, 1, MAX_WIDTH))
        return;
    const char *said = text_format(p->arena, "%s is %s", what,
                                   number_text(p, a->number));
    a->wrong = true;
    if (a->number_at->kind != TREE_NUMBER && is_reported(c, said, NULL))
        return;
    in_range(p, a->number_at, what, a->number, 1, MAX_WIDTH);
    note_calls(c);
}

static void check_complete(Checker *c, const OpKind *kind, const Tree *at,
                           Arguments *a)
{
    bool wants_number = kind->result == RESULT_WIDTH || kind->heads;
    if (a->tensors < kind->tensors) {
        wrong_argument(c, kind, at->at, a, "`%s` needs %s",
                       kind->tensors == 1 ? "a tensor" : "two tensors");
    } else if (wants_number && !a->number_at) {
        wrong_argument(c, kind, at->at, a, "`%s` needs its %s",
                       kind->heads ? "number of heads" : "width");
    } else if (wants_number) {
        check_number(c, kind->heads ? "the number of heads" : "the width", a);
    }
}

Value call_op(Checker *c, Scope *scope, const OpKind *kind, const Tree *call,
              const Tree *given, const Value *first)
{
    Arguments a = {.tensors = 0};
    if (first)
        a.tensor[a.tensors++] = *first;
    for (const Tree *argument = call->child; argument;
         argument = argument->next)
        take_argument(c, scope, kind, argument, &a);
    check_complete(c, kind, call, &a);
    return a.wrong ? unknown_tensor(c, call->at)
                   : append_op(c, kind, call, given, &a);
}

Value add_op(Checker *c, const Tree *at, Value a, Value b)
{
    Arguments both = {.tensor = {a, b}, .tensors = 2};
    return append_op(c, find_op("add"), at, NULL, &both);
}

size_t parameter_values(const Parameter *q)
{
    long columns = q->columns ? q->columns : 1;
    return q->rows < 0 || columns < 0 ? 0 : (size_t)q->rows * (size_t)columns;
}
