/* print.c: the op table -> how finite_difference.c calls the kernels of each
 * row. So a new row is differentiated without anyone having to think of it.
 *
 *     static void linear_input(void)
 *     {
 *         pp_linear_input(dx, dy, weight, given_prev(), s.n, in(), width());
 *     }
 *
 * and a table of these, a row for each op in the order of op_kinds. */
#include "compile.h"

#include <stdlib.h>
#include <string.h>

static const char *const suffix[] = {"forward", "input", "weight"};

/* What the words of an entry are in the test. */
static const struct {
    const char *word, *text;
} operands[] = {
    {"y", "y"},
    {"x", "x"},
    {"x2", "x2"},
    {"dx", "dx"},
    {"dy", "dy"},
    {"prev", "given_prev()"},
    {"weight", "weight"},
    {"bias", "given_bias(bias)"},
    {"dweight", "dweight"},
    {"dbias", "given_bias(dbias)"},
    {"stats", "stats"},
    {"tmp", "tmp"},
    {"loss", "y"},
    {"n", "s.n"},
    {"seq", "s.seq"},
    {"in", "in()"},
    {"width", "width()"},
    {"heads", "s.heads"},
    {"causal", "s.causal"},
    {"count", "count()"},
    {"scale", "dy[0] / s.n"},
};

static const char *operand(const OpKind *kind, const char *word)
{
    bool ids = strcmp(kind->name, "cross_entropy") == 0;
    if (kind->ids && strcmp(word, "x") == 0)
        return "tokens";
    if (strcmp(word, "targets") == 0)
        return ids ? "tokens" : "x2";
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
        if (strcmp(operands[i].word, word) == 0)
            return operands[i].text;
    fprintf(stderr,
            "tests/kernel/calls/print.c: op `%s` has the operand `%s`, "
            "which it cannot give\n",
            kind->name, word);
    exit(1);
}

/* Is there a kernel; "=" passes dy on and needs none. */
static bool has_kernel(const OpKind *kind, Entry entry)
{
    return kind->entry[entry] && strcmp(kind->entry[entry], "=") != 0;
}

static void print_call(const OpKind *kind, Entry entry)
{
    const char *words = kind->entry[entry], *comma = "";
    char word[32];
    int used;
    printf("static void %s_%s(void)\n{\n    pp_%s_%s(", kind->name,
           suffix[entry], kind->name, suffix[entry]);
    for (; sscanf(words, "%31s%n", word, &used) == 1; words += used) {
        printf("%s%s", comma, operand(kind, word));
        comma = ", ";
    }
    printf(");\n}\n\n");
}

int main(void)
{
    for (int i = 0; i < op_kind_count; i++)
        for (int e = 0; e < 3; e++)
            if (has_kernel(&op_kinds[i], (Entry)e))
                print_call(&op_kinds[i], (Entry)e);
    printf("static void (*const calls[][3])(void) = {\n");
    for (int i = 0; i < op_kind_count; i++) {
        printf("    {");
        for (int e = 0; e < 3; e++) {
            const OpKind *kind = &op_kinds[i];
            if (has_kernel(kind, (Entry)e))
                printf("%s_%s", kind->name, suffix[e]);
            else
                printf("%s", kind->entry[e] ? "pass_on" : "NULL");
            printf(e < 2 ? ", " : "},\n");
        }
    }
    printf("};\n");
    return 0;
}
