/* typed.c: what a person gets who types `schedule auto` without an effort: the
 * published tables by `pipec inspect` of a .pipe file. */
#include "typed.h"

static void verdict(bool good, const char *what)
{
    printf("%s %s\n", good ? "ok" : "not ok", what);
}

/* One cell of the table of limits. */
static bool is_best(int row, int cap)
{
    Typed t = typed_row(row);
    char schedule[80];
    Said said;
    snprintf(schedule, sizeof schedule, "auto(activations = %d, span = 1)",
             t.ranks * (8 + cap) / 8);
    bool good = inspect_typed(&t, schedule, &said) && said.best &&
                said.idle < published_rate[row][cap] + 5e-5;
    if (!good)
        printf("# %s %d %d, %s: %.4f, published %.4f; %s\n",
               published[row].name, t.ranks, t.microbatches, schedule,
               said.idle, published_rate[row][cap], said.text);
    return good;
}

static void limits(void)
{
    bool good = true;
    for (int row = 3; row <= 4; row++)
        for (int cap = 0; cap < PUBLISHED_CAPS; cap++)
            good &= is_best(row, cap);
    verdict(good, "schedule auto: nine limits of two rows, each the bound");
    verdict(is_best(9, 1 + 1), "schedule auto: 28.3B at 1.25, the bound");
}

int main(void)
{
    limits();
    return 0;
}
