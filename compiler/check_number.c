/* check_number.c: the value of a constant expression.
 *
 * Lets stand for numbers and are evaluated in the order of the file, so a `let`
 * may use those above it. */
#include "check.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { MAX_LEVELS = 200 };

const char *number_text(Program *p, double number)
{
    return text_format(p->arena, "%.15g", number);
}

const char *kind_text(const Node *at)
{
    switch (at->kind) {
    case NODE_STRING: return "text";
    case NODE_LIST: return "a list";
    case NODE_CALL: return "a call";
    case NODE_LABEL: return "a call with a label";
    case NODE_ARGUMENT: return "an argument with a name";
    default: return "an expression";
    }
}

const Let *find_let(const Program *p, const char *name)
{
    for (int i = p->let_count; i-- > 0;)
        if (strcmp(p->lets[i].name, name) == 0)
            return &p->lets[i];
    return NULL;
}

static const Node *find_let_below(const Program *p, const char *name)
{
    for (const Node *item = p->file->child; item; item = item->next)
        if (item->kind == NODE_LET && strcmp(item->text, name) == 0)
            return item;
    return NULL;
}

bool is_wrong_number(Program *p, const Node *at)
{
    if (!isdigit((unsigned char)at->text[0]))
        return false;
    error_at(p, at->at, "`%s` is no number with a unit", at->text);
    help(p, UNITS);
    return true;
}

static void unknown_number(Program *p, const Node *at)
{
    if (p->errors > MAX_ERRORS || is_wrong_number(p, at))
        return;
    const char **known = arena_take(p->arena,
                                    sizeof *known * (size_t)(p->let_count + 1));
    for (int i = 0; i < p->let_count; i++)
        known[i] = p->lets[i].name;
    error_at(p, at->at, "`%s` is no number that is known here", at->text);
    const Node *below = find_let_below(p, at->text);
    const char *near = nearest(at->text, known, p->let_count);
    if (below) {
        note_at(p, below->name, "it is defined further down");
        help(p, "a `let` may use those above it");
    } else if (near) {
        help(p, "did you mean `%s`", near);
    } else {
        help(p, "define it at the top: let %s = 1", at->text);
    }
}

bool apply_operator(Program *p, const Node *at, double a, double b,
                    double *value)
{
    switch (at->text[0]) {
    case '+': *value = a + b; break;
    case '-': *value = a - b; break;
    case '*': *value = a * b; break;
    default:
        if (b == 0) {
            error_at(p, at->at, "%s is divided by zero", number_text(p, a));
            return false;
        }
        *value = a / b;
    }
    if (isfinite(*value))
        return true;
    error_at(p, at->at, "the result is too large");
    return false;
}

static bool evaluate_at(Program *p, const Node *at, int depth, double *value)
{
    double a, b;
    if (depth > MAX_LEVELS) {
        error_at(p, at->at, "an expression of more than %d levels", MAX_LEVELS);
        help(p, "name parts of it with `let`");
        return false;
    }
    switch (at->kind) {
    case NODE_NUMBER: *value = at->number; return true;
    case NODE_NAME: {
        const Let *let = find_let(p, at->text);
        if (let)
            *value = let->value;
        else
            unknown_number(p, at);
        return let != NULL;
    }
    case NODE_NEGATE:
        if (!evaluate_at(p, at->child, depth + 1, &a))
            return false;
        *value = -a;
        return true;
    case NODE_BINARY:
        return evaluate_at(p, at->child, depth + 1, &a) &&
               evaluate_at(p, at->child->next, depth + 1, &b) &&
               apply_operator(p, at, a, b, value);
    default:
        error_at(p, at->at, "expected a number, not %s", kind_text(at));
        return false;
    }
}

bool constant(Program *p, const Node *at, double *value)
{
    return evaluate_at(p, at, 0, value);
}

/* Does a unit of time stand anywhere in it, also behind a `let`. */
bool is_time(const Program *p, const Node *at, int levels)
{
    if (levels > MAX_LEVELS)
        return false;
    if (at->kind == NODE_NUMBER)
        return at->unit == 's';
    if (at->kind == NODE_NAME) {
        const Node *let = find_let_below(p, at->text);
        return let && is_time(p, let->child, levels + 1);
    }
    for (const Node *child = at->child; child; child = child->next)
        if (is_time(p, child, levels + 1))
            return true;
    return false;
}

bool in_range(Program *p, const Node *at, const char *what, double value,
              long least, long most)
{
    if (value >= (double)least && value <= (double)most &&
        value == floor(value))
        return true;
    error_at(p, at->at, "%s is %s, but must be a whole number from %ld to %ld",
             what, number_text(p, value), least, most);
    return false;
}

bool whole_number(Program *p, const Node *at, const char *what, long least,
                  long most, long *value)
{
    double number;
    if (!constant(p, at, &number) ||
        !in_range(p, at, what, number, least, most))
        return false;
    *value = (long)number;
    return true;
}
