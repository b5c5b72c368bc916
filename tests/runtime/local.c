/* local.c: a rank program as pipec would write it, that checks every value the
 * transport brings.
 *
 * Compiled once per rank with -DRANK and -DRANKS. Values depend on (step,
 * micro, sender, index), so a message out of order, too early or overwritten
 * too soon is seen at once. A check that fails is a pp_fail. PP_WORK=US makes
 * each action last so long, without using the processor; PP_HOLD=1 lets rank 1
 * rest for 5 s in its first action of step 3, as a rank that is stuck does;
 * PP_SPIN=US computes instead. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "pp.h"

_Noreturn void pp_fail(const char *format, ...);

enum {
    MICROS = 16,
    LENGTH = 3000,   // floats of a message
    WEIGHTS = 5003,  // of the first tie; not divisible by anything
    NEXT = (RANK + 1) % RANKS,
    LAST = (RANK + RANKS - 1) % RANKS,
};

typedef struct Memory {
    float out
        [2]
        [LENGTH];  // two buffers, reused: the third message waits until the first is taken
    float back[2][LENGTH];
    float in[LENGTH];
    float tie[4][WEIGHTS];
    float pair[1][LENGTH];
    float weight[LENGTH];
    int32_t tokens[2 * 8];
} Memory;

static const PpJob job = {
    .name = "check",
    .schedule = "ring",
    .rank = RANK,
    .ranks = RANKS,
    .microbatches = MICROS,
    .steps = 40,
    .parameters = RANKS,
    .depth = MICROS,
    .arena = sizeof(Memory),
    .seed = 1,
    .bubble = 0.25,
    .data = {.format = RANK == 0 ? PP_BYTES : PP_NO_DATA,
             .path = "corpus.txt",
             .rows = 2,
             .seq = 8,
             .vocabulary = 128},
};

static const PpLink to_next = {NEXT, LENGTH, "SEND_F"},
                    from_last = {LAST, LENGTH, "RECV_F"};
static const PpLink to_last = {LAST, LENGTH, "SEND_B"},
                    from_next = {NEXT, LENGTH, "RECV_B"};

static int step;

static float value(int sender, int micro, int i)
{
    return (float)(step * 1000 + micro * 10 + sender) + (float)i * 0.0001f;
}

static void fill(float *x, int micro)
{
    for (int i = 0; i < LENGTH; i++)
        x[i] = value(RANK, micro, i);
}

static void check(const float *x, int sender, int micro)
{
    for (int i = 0; i < LENGTH; i++)
        if (x[i] != value(sender, micro, i))
            pp_fail("message %d of rank %d: float %d is %g, not %g", micro,
                    sender, i, (double)x[i], (double)value(sender, micro, i));
}

static long setting(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static void work(void)
{
    long us = setting("PP_WORK");
    if (setting("PP_HOLD") && RANK == 1 && step == 3)
        us = 5200000;
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    if (us)
        nanosleep(&time, NULL);
    clock_t end = clock() + setting("PP_SPIN") * (CLOCKS_PER_SEC / 1000000);
    while (setting("PP_SPIN") && clock() < end)
        continue;
}

/* Forward to the next rank, backward to the last, as a pipeline of two messages
 * in flight does. */
static void messages(Memory *m)
{
    if (RANKS == 1)
        return;
    for (int i = 0; i < MICROS; i++) {
        int both = RANKS == 2;  // NEXT is LAST: one queue for both kinds
        if (i >= 2)
            pp_wait(&to_next, i - 2, both ? 2 * i - 3 : i - 1);
        pp_begin("0F", i);
        fill(m->out[i % 2], i);
        work();
        pp_end();
        pp_send(&to_next, i, m->out[i % 2]);
        pp_recv(&from_last, i, m->in);
        check(m->in, LAST, i);
        if (i >= 2)
            pp_wait(&to_last, i - 2, both ? 2 * i - 2 : i - 1);
        pp_begin("0B", i);
        fill(m->back[i % 2], i + 500);
        pp_end();
        pp_send(&to_last, i, m->back[i % 2]);
        pp_recv(&from_next, i, m->in);
        check(m->in, NEXT, i + 500);
    }
    pp_wait(&to_next, MICROS - 1, RANKS == 2 ? 2 * MICROS : MICROS);
    pp_wait(&to_last, MICROS - 1, RANKS == 2 ? 2 * MICROS : MICROS);
}

static float term(int use,
                  int i)  // of sizes so different that the order of a sum shows
{
    static const float sizes[4] = {1.0f, 1e-4f, 3e3f, 7e-3f};
    return sizes[use] * (float)((i * 37 + use * 11 + step) % 101 - 50) * 1.37f;
}

/* Uses of rank 0, 1, 0 and the last: rank 0 owns two that are not
 * neighbours. */
static void ties(Memory *m)
{
    static const int ranks[4] = {0, 1 % RANKS, 0, RANKS - 1};
    static const PpTie tie = {"wte.weight", 4, ranks, WEIGHTS};
    float *grads[4];
    int mine = 0;
    for (int u = 0; u < 4; u++) {
        if (ranks[u] != RANK)
            continue;
        grads[mine] = m->tie[mine];
        for (int i = 0; i < WEIGHTS; i++)
            grads[mine][i] = term(u, i);
        mine++;
    }
    if (mine == 0)
        return;
    pp_reduce(&tie, grads);
    for (int i = 0; i < WEIGHTS; i++) {
        float sum = ((term(0, i) + term(1, i)) + term(2, i)) + term(3, i);
        if (grads[0][i] != sum)
            pp_fail("tie: float %d is %.9g, not %.9g", i, (double)grads[0][i],
                    (double)sum);
    }
}

/* A second tie of an overlapping group. */
static void pairs(Memory *m)
{
    static const int ranks[2] = {RANKS - 1, RANKS > 1 ? 1 : 0};
    static const PpTie tie = {"wpe.weight", 2, ranks, LENGTH};
    float *grads[1] = {m->pair[0]};
    if (RANKS < 3 || (RANK != ranks[0] && RANK != ranks[1]))
        return;
    for (int i = 0; i < LENGTH; i++)
        m->pair[0][i] = (float)(RANK + i);
    pp_reduce(&tie, grads);
    for (int i = 0; i < LENGTH; i++)
        if (m->pair[0][i] != (float)(ranks[0] + ranks[1] + 2 * i))
            pp_fail("pair: float %d is %g", i, (double)m->pair[0][i]);
}

/* Weight r is all r + 1 times the step: the norm is a closed formula. */
static void clip(Memory *m)
{
    for (int i = 0; i < LENGTH; i++)
        m->weight[i] = (float)((RANK + 1) * step);
    pp_square("weight", RANK, m->weight, LENGTH);
    double total = 0;
    for (int r = 0; r < RANKS; r++)
        total += (double)LENGTH * (r + 1) * (r + 1) * step * step;
    float factor = pp_clip(1.0f), norm = (float)sqrt(total);
    if (factor != 1.0f / norm)
        pp_fail("clip: the factor is %.9g, not %.9g", (double)factor,
                1.0 / (double)norm);
}

int main(int argc, char **argv)
{
    Memory *m = (Memory *)pp_start(&job, argc, argv);
    float losses[MICROS];
    while (pp_next_step()) {
        step++;
        if (RANK == 0)
            pp_tokens(m->tokens, 3);
        messages(m);
        ties(m);
        pairs(m);
        clip(m);
        for (int i = 0; i < MICROS; i++)
            losses[i] = 1.0f / (float)(step + i);
        if (RANK == RANKS - 1)
            pp_loss(losses, MICROS);
    }
    pp_save(RANK == 0   ? "first.weight"
            : RANK == 1 ? "second.weight"
                        : "last.bias",
            m->weight, RANK == 2 ? LENGTH : LENGTH / 100, RANK == 2 ? 0 : 100);
    return pp_finish();
}
