/* calls.c WHAT: the table of program/calls.h, and what its checks stop.
 *
 *     prototypes   every row as a prototype in C
 *     names        the functions of all rows
 *     call, argument, function, own, operand       a call or a word that does not fit: ends by abort */
#include "program/calls.h"
#include "read/operands.h"

#include <string.h>

static void print_prototypes(void)
{
    for (int i = 0; i < call_row_count; i++) {
        const ParameterKind *kind = call_rows[i].parameters;
        printf("%s %s(", call_rows[i].result, call_rows[i].function);
        for (int k = 0; k == 0 || kind[k] != NOTHING; k++)
            printf("%s%s", k ? ", " : "", parameter_rows[kind[k]].type);
        puts(");");
    }
}

static void print_names(void)
{
    for (int i = 0; i < call_row_count; i++)
        puts(call_rows[i].function);
}

static void check_one(Call call)
{
    Body body = {.kind = BODY_MAIN,
                 .chunk = -1,
                 .name = "main",
                 .calls = &call,
                 .call_count = 1};
    check_calls(&(RankProgram){.bodies = &body, .body_count = 1});
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "", *words = "x nonsense";
    Call zero = {.function = "pp_zero",
                 .args = 2,
                 .arg = {{ARG_AT, "x", 0}, {ARG_NUMBER, NULL, 4}}};
    check_one(zero);  // it fits
    if (strcmp(what, "prototypes") == 0)
        print_prototypes();
    else if (strcmp(what, "names") == 0)
        print_names();
    else if (strcmp(what, "call") == 0)
        zero.args = 1;
    else if (strcmp(what, "argument") == 0)
        zero.arg[1].kind = ARG_REAL;
    else if (strcmp(what, "function") == 0)
        zero.function = "pp_nought";
    else if (strcmp(what, "own") == 0)
        zero.function = "nought";
    else if (next_operand(&words) && strcmp(words, "nonsense") == 0)
        next_operand(&words);
    check_one(zero);
    return 0;
}
