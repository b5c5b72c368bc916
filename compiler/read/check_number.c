/* check_number.c: the value of a constant expression.
 *
 * Lets stand for numbers and are evaluated in the order of the file, so a `let`
 * may use those above it. In a schedule block names also stand for numbers that
 * change while it runs: check_schedule.c has given each of them a slot. */
#include "check.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { MAX_LEVELS = 200 };

const char *number_text(Program *p, double number)
{
    return text_format(p->arena, "%.15g", number);
}

const char *kind_text(const Tree *at)
{
    switch (at->kind) {
    case TREE_STRING: return "text";
    case TREE_LIST: return "a list";
    case TREE_CALL: return "a call";
    case TREE_LABEL: return "a call with a label";
    case TREE_ARGUMENT: return "an argument with a name";
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

static const Tree *find_let_below(const Program *p, const char *name)
{
    for (const Tree *item = p->file->child; item; item = item->next)
        if (item->kind == TREE_LET && strcmp(item->text, name) == 0)
            return item;
    return NULL;
}

bool is_wrong_number(Program *p, const Tree *at, const char *const *known,
                     int count)
{
    int digits = (int)strspn(at->text, "0123456789.");
    const char *name = at->text + digits;
    if (!isdigit((unsigned char)at->text[0]))
        return false;
    error_at(p, at->at, "`%s` is no number with a unit", at->text);
    for (int i = 0; i < count; i++)
        if (strcmp(known[i], name) == 0) {
            help(p, "write %.*s*%s", digits, at->text, name);
            return true;
        }
    help(p, UNITS);
    return true;
}

void unknown_number(Program *p, const Tree *at, const char *const *own,
                    int own_count)
{
    if (p->errors > MAX_ERRORS)
        return;
    int count = own_count + p->let_count;
    const char **known = arena_take(p->arena,
                                    sizeof *known * (size_t)(count + 1));
    for (int i = 0; i < count; i++)
        known[i] = i < own_count ? own[i] : p->lets[i - own_count].name;
    if (is_wrong_number(p, at, known, count))
        return;
    error_at(p, at->at, "`%s` is no number that is known here", at->text);
    const Tree *below = find_let_below(p, at->text);
    const char *near = nearest(at->text, known, count);
    if (below) {
        note_at(p, below->name, "it is defined further down");
        help(p, "a `let` may use those above it");
    } else if (near) {
        help(p, "did you mean `%s`", near);
    } else if (own_count) {
        help(p, "a schedule knows r, P, M, v, its own numbers above and every "
                "`let`");
    } else {
        help(p, "define it at the top: let %s = 1", at->text);
    }
}

bool apply_operator(Program *p, const Tree *at, double a, double b,
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
        if (at->text[0] == '%')  // of the sign of b: (r - 1) % P goes round
            *value = a - b * floor(a / b);
    }
    if (isfinite(*value))
        return true;
    error_at(p, at->at, "the result is too large");
    return false;
}

/* ---- functions ---- */

static const struct {
    const char *name;
    int least, most;  // arguments
} functions[] = {{"min", 2, 100}, {"max", 2, 100}, {"floor", 1, 1}};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static int find_function(const char *name)
{
    for (int i = 0; i < FUNCTIONS; i++)
        if (strcmp(functions[i].name, name) == 0)
            return i;
    return -1;
}

bool function_fits(Program *p, const Tree *call)
{
    const char *names[FUNCTIONS];
    int which = find_function(call->text), given = 0;
    for (int i = 0; i < FUNCTIONS; i++)
        names[i] = functions[i].name;
    for (const Tree *at = call->child; at; at = at->next)
        given++;
    if (which >= 0 && given >= functions[which].least &&
        given <= functions[which].most)
        return true;
    if (which < 0) {
        const char *near = nearest(call->text, names, FUNCTIONS);
        error_at(p, call->name, "no function is called `%s`", call->text);
        help(p, near ? "did you mean `%s`" : "there are min, max and floor",
             near);
    } else {
        error_at(p, call->at, "`%s` takes %s, but is given %d", call->text,
                 functions[which].most == 1 ? "one number" : "2 to 100 numbers",
                 given);
    }
    return false;
}

/* ---- expressions ---- */

static bool evaluate_at(Program *p, Numbers *numbers, const Tree *at, int depth,
                        double *value);

static bool evaluate_call(Program *p, Numbers *numbers, const Tree *call,
                          int depth, double *value)
{
    double next;
    if (!function_fits(p, call) ||
        !evaluate_at(p, numbers, call->child, depth + 1, value))
        return false;
    for (const Tree *at = call->child->next; at; at = at->next) {
        if (!evaluate_at(p, numbers, at, depth + 1, &next))
            return false;
        if (call->text[1] == 'i' ? next < *value : next > *value)
            *value = next;
    }
    if (call->text[0] == 'f')
        *value = floor(*value);
    return true;
}

static bool evaluate_name(Program *p, Numbers *numbers, const Tree *at,
                          double *value)
{
    const Let *let = at->slot < 0 ? &p->lets[-1 - at->slot] : NULL;
    if (at->slot > 0) {
        *value = numbers->at[at->slot - 1];
        return true;
    }
    if (!let && !(let = find_let(p, at->text))) {
        unknown_number(p, at, NULL, 0);
        return false;
    }
    *value = let->value;
    return true;
}

static bool evaluate_at(Program *p, Numbers *numbers, const Tree *at, int depth,
                        double *value)
{
    double a, b;
    if (numbers)
        numbers->steps++;
    if (depth > MAX_LEVELS) {
        error_at(p, at->at, "an expression of more than %d levels", MAX_LEVELS);
        help(p, "name parts of it with `let`");
        return false;
    }
    switch (at->kind) {
    case TREE_NUMBER: *value = at->number; return true;
    case TREE_NAME: return evaluate_name(p, numbers, at, value);
    case TREE_CALL: return evaluate_call(p, numbers, at, depth, value);
    case TREE_NEGATE:
        if (!evaluate_at(p, numbers, at->child, depth + 1, &a))
            return false;
        *value = -a;
        return true;
    case TREE_BINARY:
        return evaluate_at(p, numbers, at->child, depth + 1, &a) &&
               evaluate_at(p, numbers, at->child->next, depth + 1, &b) &&
               apply_operator(p, at, a, b, value);
    default:
        error_at(p, at->at, "expected a number, not %s", kind_text(at));
        return false;
    }
}

bool constant(Program *p, const Tree *at, double *value)
{
    return evaluate_at(p, NULL, at, 0, value);
}

bool evaluate(Program *p, Numbers *numbers, const Tree *at, double *value)
{
    return evaluate_at(p, numbers, at, 0, value);
}

/* Does a unit of time stand anywhere in it, also behind a `let`. */
bool is_time(const Program *p, const Tree *at, int levels)
{
    if (levels > MAX_LEVELS)
        return false;
    if (at->kind == TREE_NUMBER)
        return at->unit == 's';
    if (at->kind == TREE_NAME) {
        const Tree *let = find_let_below(p, at->text);
        return let && is_time(p, let->child, levels + 1);
    }
    for (const Tree *child = at->child; child; child = child->next)
        if (is_time(p, child, levels + 1))
            return true;
    return false;
}

bool is_whole(double value, long least, long most)
{
    return value >= (double)least && value <= (double)most &&
           value == floor(value);
}

bool in_range(Program *p, const Tree *at, const char *what, double value,
              long least, long most)
{
    if (is_whole(value, least, most))
        return true;
    error_at(p, at->at, "%s is %s, but must be a whole number from %ld to %ld",
             what, number_text(p, value), least, most);
    return false;
}

bool whole_number(Program *p, const Tree *at, const char *what, long least,
                  long most, long *value)
{
    double number;
    if (!constant(p, at, &number) ||
        !in_range(p, at, what, number, least, most))
        return false;
    *value = (long)number;
    return true;
}
