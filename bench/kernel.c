/* kernel.c: how fast is each CPU kernel, and what share of the processor does a GPT get?
 *
 * Every kernel runs at the shapes of the demo: n 512, width 256, 8 heads, seq 128, vocabulary 256.
 * The ceiling is what one core reaches in oneDNN's product of two 1024 x 1024 matrices. At the end
 * the measured times are added up as one micro-batch of a 12-layer GPT would spend them, forward
 * and backward, and compared with the time its matrix products would take at the ceiling. */
#include "../runtime/cpu/device.h"
#include "../runtime/fail.h"
#include "../runtime/random.h"
#include "../runtime/pp.h"

#include <dnnl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    N = 512,
    WIDTH = 256,
    WIDE = 4 * WIDTH,
    HEADS = 8,
    SEQ = 128,
    VOCABULARY = 256
};
enum { LAYERS = 12 };

_Noreturn void pp_fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *numbers(size_t count, const char *name)
{
    float *x = aligned_alloc(64, (count * sizeof *x + 63) / 64 * 64);
    if (!x)
        pp_fail("out of memory\n");
    pp_draw_normal(x, count, name, 1);
    return x;
}

/* The operands that all kernels share; each is large enough for the largest shape. */
static float *x, *y, *dx, *dy, *prev, *w, *dw, *bias, *dbias, *stats, *tmp;
static int32_t tokens[N];

/* Best of several runs, in seconds; each run repeats the statement until 5 ms have passed. */
typedef void Kernel(void);

static double best_time(Kernel *kernel)
{
    double best = 1e9;
    for (int run = 0; run < 12; run++) {
        int count = 0;
        double start = now(), passed;
        do {
            kernel();
            count++;
            passed = now() - start;
        } while (passed < 5e-3);
        best = passed / count < best ? passed / count : best;
    }
    return best;
}

static void ceiling(void)
{
    dnnl_sgemm('N', 'N', 1024, 1024, 1024, 1, x, 1024, dx, 1024, 0, y, 1024);
}

static void qkv_f(void)
{
    pp_linear_forward(y, x, w, bias, N, WIDTH, 3 * WIDTH);
}
static void qkv_i(void)
{
    pp_linear_input(dx, dy, w, NULL, N, WIDTH, 3 * WIDTH);
}
static void qkv_w(void)
{
    pp_linear_weight(dw, dbias, x, dy, N, WIDTH, 3 * WIDTH);
}
static void proj_f(void)
{
    pp_linear_forward(y, x, w, bias, N, WIDTH, WIDTH);
}
static void proj_i(void)
{
    pp_linear_input(dx, dy, w, NULL, N, WIDTH, WIDTH);
}
static void proj_w(void)
{
    pp_linear_weight(dw, dbias, x, dy, N, WIDTH, WIDTH);
}
static void up_f(void)
{
    pp_linear_forward(y, x, w, bias, N, WIDTH, WIDE);
}
static void up_i(void)
{
    pp_linear_input(dx, dy, w, NULL, N, WIDTH, WIDE);
}
static void up_w(void)
{
    pp_linear_weight(dw, dbias, x, dy, N, WIDTH, WIDE);
}
static void down_f(void)
{
    pp_linear_forward(y, x, w, bias, N, WIDE, WIDTH);
}
static void down_i(void)
{
    pp_linear_input(dx, dy, w, NULL, N, WIDE, WIDTH);
}
static void down_w(void)
{
    pp_linear_weight(dw, dbias, x, dy, N, WIDE, WIDTH);
}
static void head_f(void)
{
    pp_linear_forward(y, x, w, NULL, N, WIDTH, VOCABULARY);
}
static void head_i(void)
{
    pp_linear_input(dx, dy, w, NULL, N, WIDTH, VOCABULARY);
}
static void head_w(void)
{
    pp_linear_weight(dw, NULL, x, dy, N, WIDTH, VOCABULARY);
}

static void attention_f(void)
{
    pp_attention_forward(y, stats, x, tmp, N, SEQ, WIDTH, HEADS, 1);
}
static void attention_i(void)
{
    pp_attention_input(dx, dy, x, y, stats, tmp, NULL, N, SEQ, WIDTH, HEADS, 1);
}
static void full_f(void)
{
    pp_attention_forward(y, stats, x, tmp, N, SEQ, WIDTH, HEADS, 0);
}
static void full_i(void)
{
    pp_attention_input(dx, dy, x, y, stats, tmp, NULL, N, SEQ, WIDTH, HEADS, 0);
}
static void long_f(void)
{
    pp_attention_forward(y, stats, x, tmp, 1024, 1024, 128, 2, 1);
}
static void long_i(void)
{
    pp_attention_input(dx, dy, x, y, stats, tmp, NULL, 1024, 1024, 128, 2, 1);
}

static void norm_f(void)
{
    pp_layernorm_forward(y, stats, x, w, bias, N, WIDTH);
}
static void norm_i(void)
{
    pp_layernorm_input(dx, dy, x, stats, w, prev, N, WIDTH);
}
static void norm_w(void)
{
    pp_layernorm_weight(dw, dbias, dy, x, stats, N, WIDTH);
}
static void gelu_f(void)
{
    pp_gelu_forward(y, x, (size_t)N * WIDE);
}
static void gelu_i(void)
{
    pp_gelu_input(dx, dy, x, NULL, (size_t)N * WIDE);
}
static void add_f(void)
{
    pp_add_forward(y, x, prev, (size_t)N * WIDTH);
}
static void embedding_f(void)
{
    pp_embedding_forward(y, tokens, w, N, WIDTH);
}
static void embedding_w(void)
{
    pp_embedding_weight(dw, tokens, dy, N, WIDTH);
}
static void position_f(void)
{
    pp_position_forward(y, x, w, N, SEQ, WIDTH);
}
static void position_w(void)
{
    pp_position_weight(dw, dy, N, SEQ, WIDTH);
}
static void loss_f(void)
{
    pp_cross_entropy_forward(dbias, stats, x, tokens, N, VOCABULARY);
}
static void loss_i(void)
{
    pp_cross_entropy_input(dx, x, stats, tokens, N, VOCABULARY, 1.0f / N);
}
static void adamw(void)
{
    PpAdamw h = {1e-4f, 0.9f, 0.95f, 1e-8f, 1, 10};
    pp_adamw(w, dw, y, dx, (size_t)WIDE * WIDTH, &h, 0.1f);
}

typedef struct Row {
    const char *name;
    Kernel *kernel;
    double flops, floats;  // what one call computes, or else reads and writes
    double uses;           // per micro-batch of the GPT
} Row;

#define PRODUCT(in, out) 2.0 * N *(in) * (out)
#define ATTENTION(n, seq, width)                                               \
    2.0 * (n) * (seq) * (width) /* one product, not causal */

static const Row rows[] = {
    {"linear 256 -> 768  F", qkv_f, PRODUCT(WIDTH, 3 * WIDTH), 0, LAYERS},
    {"linear 256 -> 768  I", qkv_i, PRODUCT(WIDTH, 3 * WIDTH), 0, LAYERS},
    {"linear 256 -> 768  W", qkv_w, PRODUCT(WIDTH, 3 * WIDTH), 0, LAYERS},
    {"linear 256 -> 256  F", proj_f, PRODUCT(WIDTH, WIDTH), 0, LAYERS},
    {"linear 256 -> 256  I", proj_i, PRODUCT(WIDTH, WIDTH), 0, LAYERS},
    {"linear 256 -> 256  W", proj_w, PRODUCT(WIDTH, WIDTH), 0, LAYERS},
    {"linear 256 -> 1024 F", up_f, PRODUCT(WIDTH, WIDE), 0, LAYERS},
    {"linear 256 -> 1024 I", up_i, PRODUCT(WIDTH, WIDE), 0, LAYERS},
    {"linear 256 -> 1024 W", up_w, PRODUCT(WIDTH, WIDE), 0, LAYERS},
    {"linear 1024 -> 256 F", down_f, PRODUCT(WIDTH, WIDE), 0, LAYERS},
    {"linear 1024 -> 256 I", down_i, PRODUCT(WIDTH, WIDE), 0, LAYERS},
    {"linear 1024 -> 256 W", down_w, PRODUCT(WIDTH, WIDE), 0, LAYERS},
    {"head 256 -> 256    F", head_f, PRODUCT(WIDTH, VOCABULARY), 0, 1},
    {"head 256 -> 256    I", head_i, PRODUCT(WIDTH, VOCABULARY), 0, 1},
    {"head 256 -> 256    W", head_w, PRODUCT(WIDTH, VOCABULARY), 0, 1},
    {"attention causal   F", attention_f, 1 * ATTENTION(N, SEQ, WIDTH), 0,
     LAYERS},
    {"attention causal   I", attention_i, 2.5 * ATTENTION(N, SEQ, WIDTH), 0,
     LAYERS},
    {"attention full     F", full_f, 2 * ATTENTION(N, SEQ, WIDTH), 0, 0},
    {"attention full     I", full_i, 5 * ATTENTION(N, SEQ, WIDTH), 0, 0},
    {"attention 1024/64c F", long_f, 1 * ATTENTION(1024, 1024, 128), 0, 0},
    {"attention 1024/64c I", long_i, 2.5 * ATTENTION(1024, 1024, 128), 0, 0},
    {"layernorm          F", norm_f, 0, 2.0 * N *WIDTH, 2 * LAYERS + 1},
    {"layernorm          I", norm_i, 0, 4.0 * N *WIDTH, 2 * LAYERS + 1},
    {"layernorm          W", norm_w, 0, 2.0 * N *WIDTH, 2 * LAYERS + 1},
    {"gelu               F", gelu_f, 0, 2.0 * N *WIDE, LAYERS},
    {"gelu               I", gelu_i, 0, 3.0 * N *WIDE, LAYERS},
    {"add                F", add_f, 0, 3.0 * N *WIDTH, 2 * LAYERS},
    {"embedding          F", embedding_f, 0, 2.0 * N *WIDTH, 1},
    {"embedding          W", embedding_w, 0, 3.0 * N *WIDTH, 1},
    {"position           F", position_f, 0, 3.0 * N *WIDTH, 1},
    {"position           W", position_w, 0, 3.0 * N *WIDTH, 1},
    {"cross entropy      F", loss_f, 0, 1.0 * N *VOCABULARY, 1},
    {"cross entropy      I", loss_i, 0, 2.0 * N *VOCABULARY, 1},
    {"adamw 1024 x 256    ", adamw, 0, 7.0 * WIDE *WIDTH, 0},
};

static void allocate(void)
{
    size_t most = 1 << 20;
    x = numbers(most, "x"), y = numbers(most, "y"), dx = numbers(most, "dx");
    dy = numbers(most, "dy"), prev = numbers(most, "prev"),
    w = numbers(most, "w");
    dw = numbers(most, "dw"), bias = numbers(most, "bias"),
    dbias = numbers(most, "dbias");
    stats = numbers(most, "stats"), tmp = numbers(most, "tmp");
    for (int i = 0; i < N; i++)
        tokens[i] = (i * 37) % VOCABULARY;
}

int main(void)
{
    pp_device_start();
    allocate();
    double fastest = best_time(ceiling);
    printf("%-22s %10s %10s %8s %10s\n", "kernel", "us", "GFLOP/s", "GB/s",
           "ms/micro");

    double total = 0, flops = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Row *r = &rows[i];
        double seconds = best_time(r->kernel);
        printf("%-22s %10.1f", r->name, seconds * 1e6);
        if (r->flops > 0)
            printf(" %10.1f %8s", r->flops / seconds / 1e9, "");
        else
            printf(" %10s %8.1f", "", r->floats * 4 / seconds / 1e9);
        printf(" %10.3f\n", r->uses * seconds * 1e3);
        total += r->uses * seconds;
        flops += r->uses * r->flops;
    }
    double again = best_time(
        ceiling);  // the machine may have been busy the first time
    double top = 2.0 * 1024 * 1024 * 1024 / (again < fastest ? again : fastest);
    printf("\none core, oneDNN, 1024^3: %.1f GFLOP/s\n", top / 1e9);
    printf("12-layer GPT, one micro-batch, F + I + W: %.1f ms for %.1f GFLOP: "
           "%.1f GFLOP/s, "
           "%.0f %% of the ceiling\n",
           total * 1e3, flops / 1e9, flops / total / 1e9,
           100 * flops / total / top);
    return 0;
}
