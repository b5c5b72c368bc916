/* data.c: a rank program that checks which samples the runtime loads, against
 * the formula of data.c written once more. The files hold their own positions:
 * token i is i, number j of record k is 10 k + j. -DNUMBERS reads numbers, else
 * tokens of two bytes. */
#include "pp.h"

_Noreturn void pp_fail(const char *format, ...);

enum {
    MICROS = 3,
    ROWS = 4,
    SEQ = 5,
    INPUTS = 1,
    TARGETS = 2,
    TOKENS = 1000,
    RECORDS = 7
};

static const PpJob job = {
    .name = "data",
    .schedule = "none",
    .rank = 0,
    .ranks = 1,
    .microbatches = MICROS,
    .steps = 50,
    .parameters = 1,
    .depth = 1,
    .arena = 4096,
    .seed = 11,
#ifdef NUMBERS
    .data = {PP_NUMBERS, "numbers.txt", ROWS, 2, INPUTS, TARGETS, 0},
#else
    .data = {PP_UINT16, "tokens?.bin", ROWS, SEQ, 0, 0, TOKENS},
#endif
};

static uint64_t
mix(uint64_t x)  // splitmix64 of Steele, Lea and Flood, as Vigna prints it
{
    uint64_t z = (x += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static uint64_t hash(int step, int micro, int row)
{
    return mix(mix(job.seed) ^
               (uint64_t)((step * MICROS + micro) * ROWS + row));
}

#ifdef NUMBERS
static void check(int step, int micro)
{
    float inputs[ROWS * 2 * INPUTS], targets[ROWS * 2 * TARGETS];
    pp_numbers(inputs, micro);
    pp_number_targets(targets, micro);
    for (int row = 0; row < ROWS; row++) {
        float first = (float)(10 * (hash(step, micro, row) % RECORDS));
        for (int i = 0; i < 2; i++)
            if (inputs[2 * row + i] != first + (float)i)
                pp_fail("input %d of row %d is %g", i, row,
                        (double)inputs[2 * row + i]);
        for (int i = 0; i < 4; i++)
            if (targets[4 * row + i] != first + (float)(2 + i))
                pp_fail("target %d of row %d is %g", i, row,
                        (double)targets[4 * row + i]);
    }
}
#else
static void check(int step, int micro)
{
    int32_t tokens[ROWS * SEQ], targets[ROWS * SEQ];
    pp_tokens(tokens, micro);
    pp_token_targets(targets, micro);
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < SEQ; i++) {
            int expected = (int)(hash(step, micro, row) % (TOKENS - SEQ)) + i;
            if (tokens[row * SEQ + i] != expected ||
                targets[row * SEQ + i] != expected + 1)
                pp_fail("token %d of row %d is %d, not %d", i, row,
                        tokens[row * SEQ + i], expected);
        }
}
#endif

int main(int argc, char **argv)
{
    pp_start(&job, argc, argv);
    for (int step = 0; pp_next_step(); step++)
        for (int micro = MICROS;
             micro-- > 0;)  // any order: samples do not depend on it
            check(step, micro);
    return pp_finish();
}
