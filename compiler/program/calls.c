/* calls.c: the rows of calls.h as arrays, and the check of a rank program
 * against them.
 *
 * Reads: a rank program. Writes: nothing. Guarantees: every call in it has as
 * many arguments as the function has parameters, each of a kind that the
 * parameter takes. */
#include "calls.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const ParameterRow parameter_rows[PARAMETER_KIND_COUNT] = {
#define AS_ROW(name, type, role, takes) {type, role, takes},
    PARAMETERS(AS_ROW)
#undef AS_ROW
};

const CallRow call_rows[] = {
#define AS_ROW(result, function, ...) {result, #function, {__VA_ARGS__}},
    CALLS(AS_ROW)
#undef AS_ROW
};
const int call_row_count = sizeof call_rows / sizeof *call_rows;

static const char *const arg_words[] = {
    [ARG_AT] = "an address",
    [ARG_KEEP] = "an address in the keep block",
    [ARG_HOLD] = "an address in the hold block",
    [ARG_DHOLD] = "an address in the dhold block",
    [ARG_LOSS] = "the address of a loss",
    [ARG_IDS] = "an address of token ids",
    [ARG_ARENA] = "the arena",
    [ARG_OFFSET] = "an offset",
    [ARG_MICRO] = "the micro-batch",
    [ARG_NUMBER] = "a whole number",
    [ARG_TIMES] = "a product of sizes",
    [ARG_REAL] = "a float",
    [ARG_DOUBLE] = "a double",
    [ARG_NULL] = "NULL",
    [ARG_TEXT] = "a text",
    [ARG_NAME] = "a name",
    [ARG_LINK] = "a link",
    [ARG_TIE] = "a tie",
    [ARG_RECORD] = "a record",
    [ARG_PARTS] = "a list of addresses",
};

static _Noreturn void mistake(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

static _Noreturn void mistake(const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    fputs("pipec: a mistake of pipec: ", stderr);
    vfprintf(stderr, format, rest);
    fputc('\n', stderr);
    va_end(rest);
    abort();
}

static const CallRow *find_row(const char *function)
{
    for (int i = 0; i < call_row_count; i++)
        if (strcmp(call_rows[i].function, function) == 0)
            return &call_rows[i];
    mistake("the runtime has no function %s", function);
}

static void expect_count(const Call *call, int count)
{
    if (call->args != count)
        mistake("%s takes %d arguments, not %d", call->function, count,
                call->args);
}

static void expect(const Call *call, int k, unsigned takes, const char *what)
{
    if (!(takes >> call->arg[k].kind & 1))
        mistake("argument %d of %s is %s, which is no %s", k + 1,
                call->function, arg_words[call->arg[k].kind], what);
}

static void check_runtime_call(const Call *call)
{
    const CallRow *row = find_row(call->function);
    int count = 0;
    while (row->parameters[count] != NOTHING)
        count++;
    expect_count(call, count);
    for (int k = 0; k < count; k++) {
        const ParameterRow *parameter = &parameter_rows[row->parameters[k]];
        expect(call, k, parameter->takes, parameter->type);
    }
}

/* That of a chunk takes the arena, the micro-batch and the offsets that it
 * uses; any other one the arena alone. */
static void check_own_call(const Call *call, const Body *body)
{
    int count = body->chunk >= 0 ? 2 : 1;
    for (int i = 0; i < MICRO_KINDS; i++)
        count += body->takes[i];
    expect_count(call, count);
    expect(call, 0, TAKES(ARENA), "arena");
    for (int k = 1; k < count; k++)
        expect(call, k, k == 1 ? TAKES(NUMBER) : TAKES(OFFSET),
               k == 1 ? "micro-batch" : "offset");
}

static void check_call(const RankProgram *program, const Call *call)
{
    if (strncmp(call->function, "pp_", 3) == 0) {
        check_runtime_call(call);
        return;
    }
    for (int i = 0; i < program->body_count; i++)
        if (strcmp(program->bodies[i].name, call->function) == 0) {
            check_own_call(call, &program->bodies[i]);
            return;
        }
    mistake("the program has no function %s", call->function);
}

void check_calls(const RankProgram *program)
{
    for (int b = 0; b < program->body_count; b++)
        for (int i = 0; i < program->bodies[b].call_count; i++) {
            const Call *call = &program->bodies[b].calls[i];
            if (call->function)
                check_call(program, call);
            const Record *record = call->record;
            for (int f = 0; record && f < record->field_count; f++)
                if (record->fields[f].call)
                    check_call(program, record->fields[f].call);
        }
}
