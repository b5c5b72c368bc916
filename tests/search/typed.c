/* typed.c: what a person gets who types `schedule zbv`, or `schedule auto` without
 * an effort: the published tables by `pipec inspect` of a .pipe file. */
#include "typed.h"
#include "vee.h"

static void verdict(bool good, const char *what)
{
    printf("%s %s\n", good ? "ok" : "not ok", what);
}

/* Table 8 of arXiv 2401.10241, the column ZB-V: the longest own span. */
static void zbv(void)
{
    static const double ours[] = {.0697, .0533, .0274, .0623, .0476,
                                  .0246, .0582, .0444, .0229};
    bool good = true;
    for (int i = 0; i < 9; i++) {
        const VeeInput *in = &vee_table8[i];
        Typed t = {in->ranks,         2,           in->microbatches,
                   in->f / 1e3,       in->i / 1e3, in->w / 1e3,
                   in->message / 1e3, 1,           1};
        Said said;
        bool same = inspect_typed(&t, "zbv", &said) &&
                    fabs(said.idle - ours[i]) < 1e-9 &&
                    said.idle <= vee_printed[i] + 1e-9;
        if (!same)
            printf("# %s %d %d: %.4f, published %.4f\n", in->model, in->ranks,
                   in->microbatches, said.idle, vee_printed[i]);
        good &= same;
    }
    verdict(good, "schedule zbv: table 8, none above the published rate");
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
    zbv();
    limits();
    return 0;
}
