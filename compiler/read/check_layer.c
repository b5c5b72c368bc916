/* check_layer.c: the bodies of layers.
 *
 * A body is evaluated once per repetition, as if it were called: a name stands
 * for a number or a tensor, and each call of an op appends one Op. A layer that
 * is called in a body is evaluated in place, with names of its own. */
#include "check.h"

#include <string.h>

enum {
    MAX_LEVELS = 400,  // of expressions inside one another, calls included
    MAX_NAMES = 1024,  // of one body
    MAX_EVALUATIONS = 8 << 20
};

typedef struct Named {
    const char *name;
    Value value;
    Span at;
} Named;

struct Scope {
    Named *names;
    int count;
};

const Tree *find_layer(const Program *p, const char *name)
{
    for (const Tree *item = p->file->child; item; item = item->next)
        if (item->kind == TREE_LAYER && strcmp(item->text, name) == 0)
            return item;
    return NULL;
}

static void bind(Checker *c, Scope *scope, const char *name, Value value,
                 Span at)
{
    if (scope->count == MAX_NAMES) {
        error_at(c->p, at, "more than %d names in one layer", MAX_NAMES);
        c->over = true;
        return;
    }
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

bool is_bound(const Scope *scope, const char *name)
{
    return find_name(scope, name) != NULL;
}

/* ---- calls of layers ---- */

void note_calls(Checker *c)
{
    for (const CallFrame *f = c->frame; f && f->call; f = f->outer)
        note_at(c->p, f->call->at, f->outer ? "`%s` is called here" : "in `%s`",
                f->outer ? f->layer->text : c->prefix);
}

static int count_trees(const Tree *tree)
{
    int count = 0;
    for (; tree; tree = tree->next)
        count++;
    return count;
}

/* block(x, heads), or block(heads) in the model. */
static const char *layer_usage(Checker *c, const Tree *layer)
{
    const Tree *parameter = layer->child->child;
    char *text = text_format(c->p->arena, "%s%s", layer->text,
                             c->frame    ? "(x"
                             : parameter ? "("
                                         : "");
    bool first = !c->frame;
    for (; parameter; parameter = parameter->next, first = false)
        text = text_format(c->p->arena, "%s%s%s", text, first ? "" : ", ",
                           parameter->text);
    return c->frame || layer->child->child
               ? text_format(c->p->arena, "%s)", text)
               : text;
}

/* One number per parameter of the layer. */
static bool arguments_fit(Checker *c, const Tree *layer, const Tree *call,
                          const Tree *arguments)
{
    Program *p = c->p;
    int wanted = count_trees(layer->child->child),
        given = count_trees(arguments);
    if (wanted == given)
        return true;
    error_at(p, call->at, "layer `%s` takes %d number%s, but is given %d",
             layer->text, wanted, wanted == 1 ? "" : "s", given);
    note_at(p, layer->name, "it is defined here");
    help(p, "%s", layer_usage(c, layer));
    return false;
}

static Value layer_number(Checker *c, Scope *scope, const Tree *layer,
                          const Tree *argument)
{
    Program *p = c->p;
    if (argument->kind == TREE_ARGUMENT) {
        error_at(p, argument->at, "numbers of a layer go by their order");
        help(p, "%s", layer_usage(c, layer));
        return nothing;
    }
    Value value = eval(c, scope, argument);
    if (value.kind != VALUE_TENSOR)
        return value;
    error_at(p, argument->at, "a layer takes one tensor, then numbers");
    help(p, "%s", layer_usage(c, layer));
    return nothing;
}

static void bind_arguments(Checker *c, Scope *scope, Scope *inner,
                           const Tree *layer, const Tree *argument)
{
    const Tree *parameter = layer->child->child;
    for (; parameter; parameter = parameter->next, argument = argument->next)
        bind(c, inner, parameter->text, layer_number(c, scope, layer, argument),
             parameter->at);
}

/* The first tensor of an assignment takes the user's name: h.3.q. */
static void assign(Checker *c, Scope *scope, const Tree *line, Value value,
                   int ops_before)
{
    Program *p = c->p;
    const Named *before = find_name(scope, line->text);
    if (before && strcmp(line->text, "x") == 0) {
        error_at(p, line->name, "`x` is the layer's input");
        help(p, "choose another name");
    } else if (before) {
        error_at(p, line->name, "`%s` is already defined", line->text);
        note_at(p, before->at, "first here");
    }
    if (value.kind == VALUE_TENSOR && p->op_count > ops_before &&
        p->ops[p->op_count - 1].output == value.tensor)
        p->tensors[value.tensor].name = text_format(p->arena, "%s.%s",
                                                    c->prefix, line->text);
    bind(c, scope, line->text, value, line->name);
}

static void no_result(Checker *c, const Tree *layer)
{
    error_at(c->p, layer->name,
             "layer `%s` must end with the tensor that it returns",
             layer->text);
    help(c->p, "write the result as the last line, without a name");
}

/* Every line, whatever is wrong with those above: a wrong value is nothing. */
static Value eval_body(Checker *c, Scope *inner, const Tree *layer)
{
    Program *p = c->p;
    Value result = nothing;
    bool ends = layer->last && layer->last->kind == TREE_RESULT;
    if (!ends)
        no_result(c, layer);
    for (const Tree *line = layer->child->next; line; line = line->next) {
        if (line->kind == TREE_RESULT && line->next) {
            error_at(p, line->at,
                     "only the last line of a layer may stand without a name");
            help(p, "give it one: y = ...");
        }
        int ops_before = p->op_count;
        result = eval(c, inner, line->child);
        if (line->kind == TREE_ASSIGN)
            assign(c, inner, line, result, ops_before);
    }
    if (ends && result.kind == VALUE_NUMBER)
        no_result(c, layer);
    return result;
}

static void add_failed(Checker *c, const Tree *layer)
{
    c->failed = array_grow(c->p->arena, c->failed, c->failed_count,
                           sizeof *c->failed);
    c->failed[c->failed_count++] = layer;
}

static void add_meant(Checker *c, const Tree *layer)
{
    for (int i = 0; i < c->meant_count; i++)
        if (c->meant[i] == layer)
            return;
    c->meant = array_grow(c->p->arena, c->meant, c->meant_count,
                          sizeof *c->meant);
    c->meant[c->meant_count++] = layer;
}

static bool has_failed(const Checker *c, const Tree *layer)
{
    for (int i = 0; i < c->failed_count; i++)
        if (c->failed[i] == layer)
            return true;
    return false;
}

/* Arguments that nobody takes. What a bare word means to such a call is not
 * known; the first one in a body is its tensor. */
static void check_arguments(Checker *c, Scope *scope, const Tree *argument)
{
    bool first = scope != NULL;
    for (; argument; argument = argument->next, first = false)
        if (first
                ? argument->kind != TREE_ARGUMENT
                : argument->kind == TREE_CALL || argument->kind == TREE_LABEL ||
                      argument->kind == TREE_BINARY)
            eval(c, scope, argument);
}

static bool calls_itself(Checker *c, const Tree *layer, const Tree *call)
{
    const CallFrame *f = c->frame;
    while (f && f->layer != layer)
        f = f->outer;
    if (!f)
        return false;
    error_at(c->p, call->at, "layer `%s` calls itself", layer->text);
    for (f = c->frame; f->layer != layer; f = f->outer)
        note_at(c->p, f->call->at, "by way of `%s`", f->layer->text);
    help(c->p, "repeat it in the model: h : %s * 12", layer->text);
    add_failed(c, layer);
    return true;
}

static Value evaluated(Checker *c, Scope *inner, const Tree *layer,
                       const Tree *call)
{
    Program *p = c->p;
    int errors = p->errors;
    CallFrame frame = {layer, call, c->frame};
    c->frame = &frame;
    Value result = eval_body(c, inner, layer);
    c->frame = frame.outer;
    if (p->errors > errors)
        add_failed(c, layer);
    return result;
}

Value call_layer(Checker *c, Scope *scope, const Tree *layer, const Tree *call,
                 Value x, const Tree *arguments)
{
    Scope inner = {NULL, 0};
    Value result = nothing;
    bind(c, &inner, "x", x, layer->name);
    if (arguments_fit(c, layer, call, arguments))
        bind_arguments(c, scope, &inner, layer, arguments);
    else
        check_arguments(c, scope, arguments);
    bool fit = inner.count == 1 + count_trees(layer->child->child);
    if (has_failed(c, layer) || calls_itself(c, layer, call))
        return unknown_tensor(c, call->at);
    if (fit && !c->apart)
        result = evaluated(c, &inner, layer, call);
    else
        add_meant(c, layer);
    return result.kind == VALUE_TENSOR ? result : unknown_tensor(c, call->at);
}

void check_meant_layers(Checker *c)
{
    c->apart = true;
    for (int i = 0; i < c->meant_count && !c->over; i++) {
        const Tree *layer = c->meant[i];
        Scope inner = {NULL, 0};
        if (has_failed(c, layer))
            continue;
        c->prefix = layer->text;
        c->alone = false;
        c->first_op = c->p->op_count;
        bind(c, &inner, "x", unknown_tensor(c, layer->name), layer->name);
        for (const Tree *name = layer->child->child; name; name = name->next)
            bind(c, &inner, name->text, nothing, name->at);
        evaluated(c, &inner, layer, NULL);
    }
}

/* ---- calls of what is not there ---- */

/* What people look for that pipec has not, and what it has. */
static const struct {
    const char *words, *advice;
} not_there[] = {
    {"conv2d conv1d conv maxpool max_pool2d avgpool pool batchnorm flatten",
     "there are no ops for images: give the pixels of one as the width, "
     "`input x[784]`, and use linear"},
    {"rmsnorm groupnorm instancenorm", "the norm that is there is layernorm"},
    {"silu swish sigmoid tanh elu leaky_relu mish swiglu geglu glu",
     "of such functions there are gelu and relu"},
    {"mul multiply gate", "tensors can be added, `a + b`; no op multiplies"},
    {"rope rotary alibi",
     "positions are learned: `position`, below the embedding"},
    {"dropout", "leave it out: nothing is dropped"},
    {"softmax log_softmax",
     "attention and cross_entropy have it in them; it is no op of its own"},
    {"concat cat split chunk reshape view transpose permute mean",
     "a tensor keeps its shape but for its width, which linear changes"},
    {"matmul bmm dense fc", "the product with a weight is linear(x, width)"},
    {"masked_cross_entropy bce nll l1 smooth_l1 kl_div hinge",
     "the losses are cross_entropy, of the next token, and mse"},
    {"moe switch_ffn experts", "there are no experts: linear, gelu, linear"},
};

static const char *what_is_there(const char *name)
{
    for (size_t i = 0; i < sizeof not_there / sizeof *not_there; i++)
        if (mentions(not_there[i].words, name))
            return not_there[i].advice;
    return NULL;
}

static void help_unknown(Checker *c, const char *name)
{
    Program *p = c->p;
    enum { MAX_KNOWN = 256 };
    const char *known[MAX_KNOWN], *advice = what_is_there(name);
    int count = 0;
    for (int i = 0; i < op_kind_count && count < MAX_KNOWN; i++)
        if (op_kinds[i].tensors == 1)
            known[count++] = op_kinds[i].name;
    for (const Tree *item = p->file->child; item && count < MAX_KNOWN;
         item = item->next)
        if (item->kind == TREE_LAYER)
            known[count++] = item->text;
    const char *near = nearest(name, known, count);
    if (advice)
        help(p, "%s", advice);
    else if (near)
        help(p, "did you mean `%s`", near);
    if (!advice && near && find_layer(p, near))
        add_meant(c, find_layer(p, near));
    if (!advice && !near)
        help(p, "`pipec --help ops` lists the ops");
}

enum { MOST_OTHERS = 3 };  // of the other calls, so many are shown

/* Counts the calls of the same name below `at`, and notes the first. */
static int other_calls(const Tree *at, const Tree *call, Span *other, int count)
{
    for (; at; at = at->next) {
        if (at->kind == TREE_CALL && at != call &&
            strcmp(at->text, call->text) == 0 && count++ < MOST_OTHERS)
            other[count - 1] = at->name;
        count = other_calls(at->child, call, other, count);
    }
    return count;
}

static void note_others(Checker *c, const Tree *call)
{
    Span other[MOST_OTHERS];
    int count = 0;
    for (const Tree *item = c->p->file->child; item; item = item->next)
        if (item->kind == TREE_LAYER || item->kind == TREE_MODEL)
            count = other_calls(item->child, call, other, count);
    for (int i = 0; i < count && i < MOST_OTHERS; i++)
        if (i == MOST_OTHERS - 1 && count > MOST_OTHERS)
            note_at(c->p, other[i], "and here; %d calls in all", count + 1);
        else
            note_at(c->p, other[i], "and here");
}

bool is_reported(Checker *c, const char *what, const Tree *body)
{
    for (int i = 0; i < c->reported_count; i++)
        if (c->reported[i].body == body &&
            strcmp(c->reported[i].what, what) == 0)
            return true;
    c->reported = array_grow(c->p->arena, c->reported, c->reported_count,
                             sizeof *c->reported);
    c->reported[c->reported_count++] = (Reported){what, body};
    return false;
}

void unknown_call(Checker *c, Scope *scope, const Tree *call)
{
    if (c->p->errors <= MAX_ERRORS && !is_reported(c, call->text, NULL)) {
        error_at(c->p, call->name, "no op or layer is called `%s`", call->text);
        note_others(c, call);
        help_unknown(c, call->text);
    }
    check_arguments(c, scope, call->child);
}

/* Nothing: what is written there can be no input. */
static Value layer_input(Checker *c, Scope *scope, const Tree *layer,
                         const Tree *call)
{
    Program *p = c->p;
    Value x = call->child ? eval(c, scope, call->child) : nothing;
    if (call->child && x.kind == VALUE_NOTHING)
        return unknown_tensor(c, call->child->at);
    if (x.kind == VALUE_TENSOR)
        return x;
    if (call->child)
        error_at(p, call->child->at,
                 "a layer's input is a tensor, not a number");
    else
        error_at(p, call->at, "layer `%s` needs its input", call->text);
    help(p, "%s", layer_usage(c, layer));
    return nothing;
}

static Value called(Checker *c, Scope *scope, const Tree *layer,
                    const Tree *call, const Tree *given)
{
    Value x = layer_input(c, scope, layer, call);
    const char *outer = c->prefix;
    if (x.kind == VALUE_NOTHING) {
        add_meant(c, layer);
        return unknown_tensor(c, call->at);
    }
    if (given)
        c->prefix = text_format(c->p->arena, "%s.%s", outer, given->text);
    Value result = call_layer(c, scope, layer, call, x, call->child->next);
    c->prefix = outer;
    return result;
}

static Value eval_call(Checker *c, Scope *scope, const Tree *call,
                       const Tree *given)
{
    const OpKind *kind = find_op(call->text);
    const Tree *layer = kind ? NULL : find_layer(c->p, call->text);
    if (layer)
        return called(c, scope, layer, call, given);
    if (kind && !kind->loss)
        return call_op(c, scope, kind, call, given, NULL);
    if (kind)
        error_at(c->p, call->name,
                 "`%s` is a loss: it can only be the last entry of the model",
                 call->text);
    else
        unknown_call(c, scope, call);
    return unknown_tensor(c, call->at);
}

/* ---- expressions ---- */

static bool is_entry(const Program *p, const char *name)
{
    for (const Tree *item = p->file->child; item; item = item->next)
        if (item->kind == TREE_MODEL)
            for (const Tree *entry = item->child; entry; entry = entry->next)
                if (strcmp(entry->text, name) == 0)
                    return true;
    return false;
}

static void unknown_name(Checker *c, const Scope *scope, const Tree *at)
{
    Program *p = c->p;
    if (p->errors > MAX_ERRORS ||
        is_reported(c, at->text, c->frame ? c->frame->layer : p->file))
        return;
    int count = 0, room = (scope ? scope->count : 0) + p->let_count + 1;
    const char **known = arena_take(p->arena, sizeof *known * (size_t)room);
    for (int i = 0; scope && i < scope->count; i++)
        known[count++] = scope->names[i].name;
    for (int i = 0; i < p->let_count; i++)
        known[count++] = p->lets[i].name;
    if (is_wrong_number(p, at, known, count))
        return;
    error_at(p, at->at, "`%s` is not known here", at->text);
    const char *near = nearest(at->text, known, count);
    if (!scope && is_entry(p, at->text))
        help(p, "leave it out: an entry takes what the entry above returns");
    else if (is_entry(p, at->text))
        help(p, "an entry gives its result to the next one alone: compute "
                "both in one layer");
    else if (near)
        help(p, "did you mean `%s`", near);
    else if (!scope)
        help(p, "define it at the top: let %s = 1", at->text);
    else
        help(p, "a body knows `x`, its layer's numbers, the lines above, and "
                "every `let`");
}

static Value eval_name(Checker *c, Scope *scope, const Tree *at)
{
    Program *p = c->p;
    const Named *named = find_name(scope, at->text);
    const Let *let = find_let(p, at->text);
    if (named)
        return named->value;
    if (let)
        return (Value){VALUE_NUMBER, let->value, -1};
    unknown_name(c, scope, at);
    return nothing;
}

static Value wrong_operands(Checker *c, const Tree *at, Value a, Value b)
{
    Program *p = c->p;
    bool tensors = a.kind == b.kind, plus = at->text[0] == '+';
    error_at(p, at->at, "`%s` takes %s, not %s", at->text,
             plus ? "two tensors or two numbers" : "two numbers",
             tensors ? "two tensors" : "a tensor and a number");
    if (tensors)
        help(p, "tensors can be added, `a + b`; %s",
             at->text[0] == '*' ? "a gate has no op yet, so a feed-forward "
                                  "layer is linear, gelu, linear"
                                : "no op does this yet");
    else
        help(p, "a tensor meets numbers in ops alone, as in linear(x, width)");
    return unknown_tensor(c, at->at);
}

static Value eval_binary(Checker *c, Scope *scope, const Tree *at)
{
    Program *p = c->p;
    Value a = eval(c, scope, at->child), b = eval(c, scope, at->child->next),
          result = nothing;
    if (a.kind == VALUE_NOTHING || b.kind == VALUE_NOTHING)
        return nothing;
    if (a.kind == VALUE_TENSOR && b.kind == VALUE_TENSOR && at->text[0] == '+')
        return add_op(c, at, a, b);
    if (a.kind == VALUE_TENSOR || b.kind == VALUE_TENSOR)
        return wrong_operands(c, at, a, b);
    if (apply_operator(p, at, a.number, b.number, &result.number))
        result.kind = VALUE_NUMBER;
    else
        note_calls(c);
    return result;
}

static Value eval_inner(Checker *c, Scope *scope, const Tree *at)
{
    switch (at->kind) {
    case TREE_NUMBER: return (Value){VALUE_NUMBER, at->number, -1};
    case TREE_NAME: return eval_name(c, scope, at);
    case TREE_NEGATE: {
        Value value = eval(c, scope, at->child);
        if (value.kind == VALUE_TENSOR)
            error_at(c->p, at->at, "a tensor cannot be negated");
        return value.kind == VALUE_NUMBER
                   ? (Value){VALUE_NUMBER, -value.number, -1}
                   : nothing;
    }
    case TREE_BINARY: return eval_binary(c, scope, at);
    case TREE_CALL: return eval_call(c, scope, at, NULL);
    case TREE_LABEL: return eval_call(c, scope, at->child, at);
    default:
        error_at(c->p, at->at, "expected a tensor or a number, not %s",
                 kind_text(at));
        return nothing;
    }
}

/* Layers that call others twice grow as 2^depth: what is evaluated in all is
 * bounded too. */
Value eval(Checker *c, Scope *scope, const Tree *at)
{
    if (c->over)
        return nothing;
    if (++c->evaluations > MAX_EVALUATIONS) {
        error_at(c->p, at->at, "the model has more than %d expressions",
                 MAX_EVALUATIONS);
        note_calls(c);
        c->over = true;
        return nothing;
    }
    if (c->levels == MAX_LEVELS) {
        error_at(c->p, at->at, "more than %d levels of calls and brackets",
                 MAX_LEVELS);
        help(c->p, "name the inner results");
        c->over = true;
        return nothing;
    }
    c->levels++;
    Value value = eval_inner(c, scope, at);
    c->levels--;
    return value;
}
