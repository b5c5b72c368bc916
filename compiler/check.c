/* check.c: tree -> names and shapes, or an error that says what to type.
 *
 * Reads: file. Writes: lets, set (check_settings.c), name, tensors, parameters,
 * ops, layers, input, targets, vocabulary. Guarantees: every op's operands
 * exist and fit; between two layers exactly one tensor travels; every result is
 * used; sizes are small enough that later products do not overflow.
 *
 * A layer's body is evaluated once per repetition, as if it were called: each
 * call of an op appends one Op and returns its output tensor. */
#include "compile.h"

#include <string.h>

enum {
    MAX_LAYERS = 65536,
    MAX_OPS = 1 << 20,
    MAX_LEVELS = 64,
    MAX_WIDTH = 1 << 24,
    MAX_SEQ = 1 << 24,
    MAX_ENTRIES = 4096
};
static const double MAX_FLOATS = 0x1p36;  // of one tensor

typedef enum {
    VALUE_NOTHING,
    VALUE_NUMBER,
    VALUE_TENSOR
} ValueKind;  // NOTHING: already reported

typedef struct Value {
    ValueKind kind;
    double number;
    int tensor;
} Value;

typedef struct Named {
    const char *name;
    Value value;
    Span at;
} Named;

typedef struct Scope {  // of one evaluation of one layer body
    Named *names;
    int count;
} Scope;

typedef struct Arguments {  // of a call, sorted
    Value tensor[2];
    int tensors;
    double number;  // width or heads
    const Node *number_at;
    bool causal, nobias;
} Arguments;

typedef struct Checker {
    Program *p;
    const char *prefix;  // "h.3"
    bool alone;  // the entry is an op itself: its parameters are PREFIX.weight
    int first_op;        // of this layer: labels are counted from here
    int levels;          // of layers calling layers
    const Node *inputs;  // NODE_INPUT
} Checker;

static const Value nothing = {VALUE_NOTHING, 0, -1};

static Value eval(Checker *c, Scope *scope, const Node *at);

/* ---- tensors and parameters ---- */

static int new_tensor(Checker *c, const char *name, TensorKind kind, long seq,
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

static Value call_op(Checker *c, Scope *scope, const OpKind *kind,
                     const Node *call, const Node *given, const Value *first)
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

/* ---- bodies of layers ---- */

static const Node *find_layer(const Program *p, const char *name)
{
    for (const Node *item = p->file->child; item; item = item->next)
        if (item->kind == NODE_LAYER && strcmp(item->text, name) == 0)
            return item;
    return NULL;
}

static void bind(Checker *c, Scope *scope, const char *name, Value value,
                 Span at)
{
    scope->names = array_grow(c->p->arena, scope->names, scope->count,
                              sizeof *scope->names);
    scope->names[scope->count++] = (Named){name, value, at};
}

static const Named *find_name(const Scope *scope, const char *name)
{
    for (int i = scope ? scope->count : 0; i-- > 0;)
        if (strcmp(scope->names[i].name, name) == 0)
            return &scope->names[i];
    return NULL;
}

static void bind_parameters(Checker *c, Scope *scope, Scope *inner,
                            const Node *layer, const Node *call,
                            const Node *argument)
{
    const Node *parameter = layer->child->child;
    for (; parameter && argument;
         parameter = parameter->next, argument = argument->next) {
        Value value = eval(c, scope, argument);
        if (value.kind == VALUE_TENSOR)
            error_at(c->p, argument->at,
                     "a layer takes one tensor, then numbers");
        bind(c, inner, parameter->text,
             value.kind == VALUE_TENSOR ? nothing : value, argument->at);
    }
    if (!parameter && !argument)
        return;
    if (parameter)
        error_at(c->p, call->at, "layer `%s` needs `%s`", layer->text,
                 parameter->text);
    else
        error_at(c->p, argument->at, "layer `%s` takes fewer arguments",
                 layer->text);
    note_at(c->p, layer->name, "it is defined here");
    for (; parameter; parameter = parameter->next)
        bind(c, inner, parameter->text, nothing, parameter->at);
}

/* The first tensor of an assignment takes the user's name: h.3.q. */
static void assign(Checker *c, Scope *scope, const Node *line, Value value,
                   int ops_before)
{
    Program *p = c->p;
    const Named *before = find_name(scope, line->text);
    if (before) {
        error_at(p, line->name, "`%s` is already defined", line->text);
        note_at(p, before->at, "here");
    }
    if (value.kind == VALUE_TENSOR && p->op_count > ops_before &&
        p->ops[p->op_count - 1].output == value.tensor)
        p->tensors[value.tensor].name = text_format(p->arena, "%s.%s",
                                                    c->prefix, line->text);
    bind(c, scope, line->text, value, line->name);
}

static Value call_layer(Checker *c, Scope *scope, const Node *layer,
                        const Node *call, Value x, const Node *arguments)
{
    Program *p = c->p;
    Scope inner = {NULL, 0};
    Value result = nothing;
    if (++c->levels > MAX_LEVELS) {
        error_at(p, call->at,
                 "layer `%s` calls itself, or %d layers call one another",
                 layer->text, MAX_LEVELS);
        c->levels--;
        return nothing;
    }
    bind(c, &inner, "x", x, layer->name);
    bind_parameters(c, scope, &inner, layer, call, arguments);
    const Node *line = layer->child->next;
    for (; line; line = line->next) {
        int ops_before = p->op_count, errors_before = p->errors;
        Value value = eval(c, &inner, line->child);
        if (value.kind == VALUE_NOTHING && p->errors > errors_before &&
            line->kind == NODE_RESULT)
            break;
        if (line->kind == NODE_ASSIGN)
            assign(c, &inner, line, value, ops_before);
        else if (line->next)
            error_at(p, line->at,
                     "only the last line of a layer may stand without a name");
        else
            result = value;
    }
    c->levels--;
    if (result.kind == VALUE_NUMBER ||
        (!layer->last || layer->last->kind != NODE_RESULT)) {
        error_at(p, layer->name,
                 "layer `%s` must end with the tensor that it returns",
                 layer->text);
        help(p, "write the result as the last line, without a name");
        return nothing;
    }
    return result;
}

static void unknown_call(Checker *c, const Node *at, bool loss)
{
    Program *p = c->p;
    enum { MAX_KNOWN = 256 };
    const char *known[MAX_KNOWN];
    int count = 0;
    for (int i = 0; i < op_kind_count; i++)
        known[count++] = op_kinds[i].name;
    for (const Node *item = p->file->child; item && count < MAX_KNOWN;
         item = item->next)
        if (item->kind == NODE_LAYER)
            known[count++] = item->text;
    if (loss) {
        error_at(p, at->name,
                 "`%s` is a loss: it can only be the last entry of the model",
                 at->text);
        return;
    }
    error_at(p, at->name, "no op or layer is called `%s`", at->text);
    const char *near = nearest(at->text, known, count);
    if (near)
        help(p, "did you mean `%s`", near);
    else
        help(p, "`pipec --help ops` lists the ops");
}

static Value eval_call(Checker *c, Scope *scope, const Node *call,
                       const Node *given)
{
    const OpKind *kind = find_op(call->text);
    const Node *layer = find_layer(c->p, call->text);
    if (kind && !kind->loss)
        return call_op(c, scope, kind, call, given, NULL);
    if (!layer || kind) {
        unknown_call(c, call, kind != NULL);
        return nothing;
    }
    if (!call->child) {
        error_at(c->p, call->at, "layer `%s` needs its input", call->text);
        help(c->p, "%s(x)", call->text);
        return nothing;
    }
    Value x = eval(c, scope, call->child);
    if (x.kind == VALUE_NUMBER) {
        error_at(c->p, call->child->at,
                 "a layer's input is a tensor, not a number");
        return nothing;
    }
    if (x.kind == VALUE_NOTHING)
        return nothing;
    const char *outer = c->prefix;
    if (given)
        c->prefix = text_format(c->p->arena, "%s.%s", outer, given->text);
    Value result = call_layer(c, scope, layer, call, x, call->child->next);
    c->prefix = outer;
    return result;
}

static Value eval_name(Checker *c, Scope *scope, const Node *at)
{
    Program *p = c->p;
    const Named *named = find_name(scope, at->text);
    const Let *let = find_let(p, at->text);
    if (named)
        return named->value;
    if (let)
        return (Value){VALUE_NUMBER, let->value, -1};
    int count = 0, room = (scope ? scope->count : 0) + p->let_count + 1;
    const char **known = arena_take(p->arena, sizeof *known * (size_t)room);
    for (int i = 0; scope && i < scope->count; i++)
        known[count++] = scope->names[i].name;
    for (int i = 0; i < p->let_count; i++)
        known[count++] = p->lets[i].name;
    error_at(p, at->at, "`%s` is not known here", at->text);
    const char *near = nearest(at->text, known, count);
    if (near)
        help(p, "did you mean `%s`", near);
    return nothing;
}

static Value eval_binary(Checker *c, Scope *scope, const Node *at)
{
    Program *p = c->p;
    Value a = eval(c, scope, at->child);
    if (a.kind == VALUE_NOTHING)
        return nothing;
    Value b = eval(c, scope, at->child->next);
    if (b.kind == VALUE_NOTHING)
        return nothing;
    if (a.kind == VALUE_TENSOR && b.kind == VALUE_TENSOR &&
        at->text[0] == '+') {
        Arguments both = {.tensor = {a, b}, .tensors = 2};
        return append_op(c, find_op("add"), at, NULL, &both);
    }
    if (a.kind == VALUE_NUMBER && b.kind == VALUE_NUMBER) {
        double x = a.number, y = b.number, r = 0;
        switch (at->text[0]) {
        case '+': r = x + y; break;
        case '-': r = x - y; break;
        case '*': r = x * y; break;
        default: r = y == 0 ? 0 : x / y;
        }
        if (at->text[0] != '/' || y != 0)
            return (Value){VALUE_NUMBER, r, -1};
        error_at(p, at->at, "division by zero");
        return nothing;
    }
    error_at(p, at->at, "`%s` does not work on these", at->text);
    help(p, "tensors can be added to tensors; numbers take + - * /");
    return nothing;
}

static Value eval_inner(Checker *c, Scope *scope, const Node *at)
{
    switch (at->kind) {
    case NODE_NUMBER: return (Value){VALUE_NUMBER, at->number, -1};
    case NODE_NAME: return eval_name(c, scope, at);
    case NODE_NEGATE: {
        Value value = eval(c, scope, at->child);
        if (value.kind == VALUE_TENSOR)
            error_at(c->p, at->at, "a tensor cannot be negated");
        return value.kind == VALUE_NUMBER
                   ? (Value){VALUE_NUMBER, -value.number, -1}
                   : nothing;
    }
    case NODE_BINARY: return eval_binary(c, scope, at);
    case NODE_CALL: return eval_call(c, scope, at, NULL);
    case NODE_LABEL: return eval_call(c, scope, at->child, at);
    default:
        error_at(c->p, at->at, "expected a tensor or a number");
        return nothing;
    }
}

static Value eval(Checker *c, Scope *scope, const Node *at)
{
    enum { MAX_NESTING = 400 };
    if (++c->levels > MAX_NESTING) {
        error_at(c->p, at->at, "nested too deeply");
        help(c->p, "name the inner results");
        c->levels--;
        return nothing;
    }
    Value value = eval_inner(c, scope, at);
    c->levels--;
    return value;
}

/* ---- the model ---- */

static void check_used(Checker *c, int first_tensor, int result)
{
    Program *p = c->p;
    for (int i = first_tensor; i < p->tensor_count; i++) {
        const Tensor *t = &p->tensors[i];
        bool stats = false;
        for (int k = c->first_op; k < p->op_count; k++)
            stats |= p->ops[k].stats == i;
        if (t->uses || i == result || stats)
            continue;
        error_at(p, t->at, "`%s` is computed but never used", t->name);
        help(p, "remove it, or use it in the layer's result");
    }
}

/* One repetition of an entry: a layer, or an op that is a layer by itself. */
static bool add_layer(Checker *c, const Node *entry, const char *name)
{
    Program *p = c->p;
    const Node *call = entry->child;
    const OpKind *kind = find_op(call->text);
    const Node *layer = find_layer(p, call->text);
    int errors = p->errors, tensors = p->tensor_count;
    int input = p->layer_count ? p->layers[p->layer_count - 1].output
                               : p->input;
    Value x = {VALUE_TENSOR, 0, input};
    c->prefix = name;
    c->alone = kind != NULL;
    c->first_op = p->op_count;
    c->levels = 0;
    Value result = kind ? call_op(c, NULL, kind, call, NULL, &x)
                        : call_layer(c, NULL, layer, call, x, call->child);
    if (result.kind != VALUE_TENSOR || p->errors > errors)
        return false;
    if (p->op_count == c->first_op) {
        error_at(p, entry->at, "layer `%s` computes nothing", call->text);
        return false;
    }
    check_used(c, tensors, result.tensor);
    p->layers = array_grow(p->arena, p->layers, p->layer_count,
                           sizeof *p->layers);
    p->layers[p->layer_count++] = (Layer){name,
                                          call->text,
                                          entry->at,
                                          input,
                                          result.tensor,
                                          c->first_op,
                                          p->op_count - c->first_op};
    return p->errors == errors;
}

static int find_parameter(const Program *p, const char *name)
{
    for (int i = 0; i < p->parameter_count; i++)
        if (strcmp(p->parameters[i].name, name) == 0)
            return i;
    return -1;
}

static void shape_note(Program *p, const Parameter *a, const Parameter *b,
                       Span at)
{
    error_at(p, at, "`%s` is [%ld x %ld], but `%s` is [%ld x %ld]", b->name,
             b->rows, b->columns, a->name, a->rows, a->columns);
    help(p, "tied weights need the same shape: linear(vocabulary) of an "
            "embedding's width");
}

static void tie(Checker *c, const Node *entry, const Node *tied)
{
    Program *p = c->p;
    int root = find_parameter(p,
                              text_format(p->arena, "%s.weight", tied->text));
    int own = find_parameter(p,
                             text_format(p->arena, "%s.weight", entry->text));
    if (own < 0) {
        error_at(p, tied->at,
                 "`%s` has no weight of its own that could be tied",
                 entry->text);
        help(p, "only an entry that is a single op can be tied");
    } else if (root < 0 || root == own) {
        error_at(p, tied->at, "no earlier entry `%s` has a weight", tied->text);
        help(p, "name an embedding or a linear that stands above");
    } else if (p->parameters[root].rows != p->parameters[own].rows ||
               p->parameters[root].columns != p->parameters[own].columns) {
        shape_note(p, &p->parameters[root], &p->parameters[own], tied->at);
    } else {
        p->parameters[own].tied = p->parameters[root].tied >= 0
                                      ? p->parameters[root].tied
                                      : root;
    }
}

static bool check_loss(Checker *c, const Node *entry)
{
    Program *p = c->p;
    const Node *call = entry->child;
    const OpKind *kind = find_op(call->text);
    int logits = p->layer_count ? p->layers[p->layer_count - 1].output
                                : p->input;
    Value x = {VALUE_TENSOR, 0, logits};
    const Tensor *t = &p->tensors[logits];
    bool ids = strcmp(call->text, "cross_entropy") == 0;
    if (entry->next) {
        error_at(p, entry->next->at, "an entry after the loss");
        note_at(p, entry->at, "the loss ends the model");
        return false;
    }
    if (p->layer_count == 0) {
        error_at(p, entry->at,
                 "a model needs at least one layer before its loss");
        return false;
    }
    if (ids && t->kind == TENSOR_FLOATS && t->width != p->vocabulary) {
        error_at(p, entry->at,
                 "cross_entropy compares %ld values per position with a "
                 "vocabulary of %ld",
                 t->width, p->vocabulary);
        help(p,
             p->vocabulary ? "end the model with linear(%ld)"
                           : "numbers are compared by `mse`",
             p->vocabulary);
        return false;
    }
    if (!ids && p->vocabulary) {
        error_at(p, entry->at,
                 "mse compares numbers, but the model's input is tokens");
        help(p, "use cross_entropy");
        return false;
    }
    c->prefix = entry->text;
    c->alone = true;
    c->first_op = p->op_count;
    int last = --p->layer_count;  // the loss belongs to the last layer
    Value done = call_op(c, NULL, kind, call, NULL, &x);
    p->targets = new_tensor(c, "targets", ids ? TENSOR_IDS : TENSOR_FLOATS,
                            t->seq, ids ? 0 : t->width, entry->at);
    p->layer_count = last + 1;
    p->layers[last].op_count++;
    return done.kind == VALUE_TENSOR;
}

static void check_data_kind(Program *p, Span input_at)
{
    bool numbers = p->set.data == DATA_NUMBERS;
    if (p->set.data == DATA_NONE || numbers == (p->vocabulary == 0))
        return;
    error_at(p, p->set.data_at.source < 0 ? input_at : p->set.data_at,
             numbers ? "the data is numbers, but the model's input is tokens"
                     : "the data is tokens, but the model's input is numbers");
    note_at(p, input_at, "the input is declared here");
    help(p, numbers ? "data bytes \"FILE\"" : "data numbers \"FILE\"");
}

static void check_input(Checker *c, const Node *input)
{
    Program *p = c->p;
    const Node *dimension = input->child->child,
               *vocabulary = input->child->next;
    long size[2] = {1, 1};
    int count = 0;
    for (; dimension; dimension = dimension->next, count++) {
        if (count == 2 || (vocabulary && count == 1)) {
            error_at(p, dimension->at,
                     "an input has one dimension for tokens, one or two for "
                     "numbers");
            break;
        }
        whole_number(p, dimension, "dimension", 1, MAX_SEQ, &size[count]);
    }
    if (vocabulary)
        whole_number(p, vocabulary, "vocabulary", 2, MAX_WIDTH, &p->vocabulary);
    long seq = vocabulary || count == 2 ? size[0] : 1,
         width = vocabulary ? 0 : size[count == 2];
    p->input = new_tensor(c, input->text,
                          vocabulary ? TENSOR_IDS : TENSOR_FLOATS, seq, width,
                          input->at);
    check_data_kind(p, input->at);
}

/* An entry's repetitions: h -> h.0, h.1, ...; without a count just h. */
static bool check_entry(Checker *c, const Node *entry)
{
    Program *p = c->p;
    const Node *call = entry->child, *next = call->next, *tied = NULL,
               *count_at = NULL;
    long count = 1;
    if (next && next->kind != NODE_TIED) {
        count_at = next;
        if (!whole_number(p, next, "repetition", 1, MAX_LAYERS, &count))
            return false;
        next = next->next;
    }
    tied = next;
    if (!find_op(call->text) && !find_layer(p, call->text)) {
        unknown_call(c, call, false);
        return false;
    }
    for (long i = 0; i < count; i++) {
        if (p->layer_count == MAX_LAYERS) {
            error_at(p, entry->at, "more than %d layers", MAX_LAYERS);
            return false;
        }
        if (!add_layer(c, entry,
                       count_at
                           ? text_format(p->arena, "%s.%ld", entry->text, i)
                           : entry->text))
            return false;
    }
    if (tied)
        tie(c, entry, tied);
    return true;
}

static bool name_is_free(Program *p, const Node *model, const Node *entry)
{
    for (const Node *before = model->child; before != entry;
         before = before->next) {
        if (strcmp(before->text, entry->text) == 0) {
            error_at(p, entry->name, "`%s` is used twice", entry->text);
            note_at(p, before->name, "first here");
            return false;
        }
    }
    return true;
}

static void check_model(Checker *c, const Node *model)
{
    Program *p = c->p;
    bool loss = false;
    int entries = 0;
    p->name = model->text;
    for (const Node *entry = model->child; entry; entry = entry->next) {
        const OpKind *kind = entry->kind == NODE_ENTRY
                                 ? find_op(entry->child->text)
                                 : NULL;
        if (++entries > MAX_ENTRIES) {
            error_at(p, entry->at, "more than %d entries", MAX_ENTRIES);
            return;
        }
        if (!name_is_free(p, model, entry))
            return;
        if (entry->kind == NODE_INPUT &&
            (p->input >= 0 || entry != model->child)) {
            error_at(p, entry->at, "a model has one input, at its top");
            return;
        }
        if (entry->kind == NODE_INPUT) {
            check_input(c, entry);
            continue;
        }
        if (p->input < 0) {
            error_at(p, entry->at, "the model's first line must be its input");
            help(p, "input tokens[128] of 256");
            return;
        }
        loss = kind && kind->loss;
        if (loss ? !check_loss(c, entry) : !check_entry(c, entry))
            return;
    }
    if (loss)
        return;
    error_at(p, model->name, "model `%s` has no loss", model->text);
    help(p, "end it with `loss : cross_entropy` or `loss : mse`");
}

static void check_definitions(Program *p)
{
    int count = 0;
    for (const Node *item = p->file->child; item; item = item->next) {
        if (item->kind != NODE_LAYER)
            continue;
        const Node *before = find_layer(p, item->text);
        if (find_op(item->text)) {
            error_at(p, item->name, "`%s` is an op already", item->text);
            help(p, "choose another name for the layer");
        } else if (before != item) {
            error_at(p, item->name, "layer `%s` is defined twice", item->text);
            note_at(p, before->name, "first here");
        }
        if (++count > MAX_ENTRIES) {
            error_at(p, item->name, "more than %d layers are defined",
                     MAX_ENTRIES);
            return;
        }
    }
}

bool check(Program *p)
{
    Checker c = {.p = p};
    const Node *model = NULL;
    p->input = p->targets = -1;
    check_settings(p);
    check_definitions(p);
    for (const Node *item = p->file->child; item; item = item->next) {
        if (item->kind == NODE_MODEL && model) {
            error_at(p, item->name, "a second model");
            note_at(p, model->name, "the first is here");
            return false;
        }
        if (item->kind == NODE_MODEL)
            model = item;
    }
    if (model)
        check_model(&c, model);
    else if (!p->errors)
        error_plain(p, "%s defines no model", p->sources[0].name);
    return p->errors == 0;
}
