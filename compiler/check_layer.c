/* check_layer.c: the bodies of layers.
 *
 * A body is evaluated once per repetition, as if it were called: a name stands
 * for a number or a tensor, and each call of an op appends one Op. A layer that
 * is called in a body is evaluated in place, with names of its own. */
#include "check.h"

#include <string.h>

enum { MAX_LEVELS = 64 };

typedef struct Named {
    const char *name;
    Value value;
    Span at;
} Named;

struct Scope {
    Named *names;
    int count;
};

const Node *find_layer(const Program *p, const char *name)
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

Value call_layer(Checker *c, Scope *scope, const Node *layer, const Node *call,
                 Value x, const Node *arguments)
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

void unknown_call(Checker *c, const Node *at, bool loss)
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
    if (a.kind == VALUE_TENSOR && b.kind == VALUE_TENSOR && at->text[0] == '+')
        return add_op(c, at, a, b);
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

Value eval(Checker *c, Scope *scope, const Node *at)
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
