/* float.c: are the kernels right in float, at the edges, and the same at any
 * address?
 *
 * Each op is compared with the obvious loops in double, on the same float
 * inputs. The gradients themselves are judged by finite_difference.c; here the
 * forward passes, the extreme values, the optimizers over ten steps, and the
 * two promises that training relies on: _weight adds to what is there, and the
 * same inputs give the same bits wherever they lie. */
#include "../../runtime/cpu/device.h"
#include "../../runtime/cpu/real.h"
#include "../../runtime/fail.h"
#include "../../runtime/random.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 18 };
static int passed, failed;

_Noreturn void pp_fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    exit(1);
}

static void report(const char *name, double error, double tolerance)
{
    int good = error <= tolerance;  // not so when it is not a number
    printf("%-34s error %.1e, allowed %.1e%s\n", name, error, tolerance,
           good ? "" : "  FAILED");
    passed += good;
    failed += !good;
}

static float *numbers(size_t count, const char *name)
{
    float *x = aligned_alloc(64, (count * sizeof *x + 63) / 64 * 64);
    if (!x)
        pp_fail("out of memory\n");
    pp_draw_normal(x, count, name, 1);
    return x;
}

/* Buffers that the checks fill as they like. */
static float *a, *b, *c, *d, *e, *w, *bias, *tmp;
static double wanted[MOST];

/* Largest |got - wanted|, relative to the largest |wanted|. */
static double difference(const float *got, const double *want, size_t count)
{
    double most = 0, size = 1e-30;
    for (size_t i = 0; i < count; i++) {
        double error = fabs(got[i] - want[i]);
        if (!(error <= most))
            most = error;
        size = fmax(size, fabs(want[i]));
    }
    return most / size;
}

/* ---- exp ---- */

static double exp_error(float x)  // in units of the last place
{
    double want = exp((double)x);
    double unit = fmax(ldexp(1, ilogb(want) - 23), 0x1p-149);
    return fabs((double)real_exp(x) - want) / unit;
}

static void check_exp(void)
{
    double most = 0;
    for (float x = -103.9f; x < 88.7f; x += 1e-4f)
        most = fmax(most, exp_error(x));
    report("exp, in units of the last place", most, 1.5);
    int good = real_exp(0) == 1 && real_exp(-INFINITY) == 0 &&
               real_exp(-105) == 0 && real_exp(-3e38f) == 0 &&
               isinf(real_exp(88.8f)) && isinf(real_exp(INFINITY)) &&
               isinf(real_exp(3e38f)) && isnan(real_exp(NAN)) &&
               real_exp(88.7f) < INFINITY;
    report("exp at its ends", !good, 0);

    int same = 1;
    for (int i = 0; i < 1000; i++)
        a[i] = 20 * b[i];
#pragma omp simd
    for (int i = 0; i < 1000; i++)
        c[i] = real_exp(a[i]);
    for (int i = 0; i < 1000; i++) {
        volatile float alone = real_exp(a[i]);
        same &= alone == c[i];
    }
    report("exp in a loop and alone", !same, 0);
}

/* ---- elementwise ---- */

static double gelu(double x)
{
    return 0.5 * x *
           (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static void check_gelu(void)
{
    enum { COUNT = 20011 };
    for (int i = 0; i < COUNT; i++) {
        a[i] = ((float)i - 10000) * 1e-3f;
        wanted[i] = gelu(a[i]);
    }
    pp_gelu_forward(c, a, COUNT);
    report("gelu", difference(c, wanted, COUNT), 1e-7);

    float x[] = {-1e30f, -1e4f, -31, 31, 1e4f, 1e30f},
          one[] = {1, 1, 1, 1, 1, 1}, y[6], dx[6];
    pp_gelu_forward(y, x, 6);
    pp_gelu_input(dx, one, x, NULL, 6);
    int good = 1;
    for (int i = 0; i < 6; i++)
        good &= y[i] == (i < 3 ? 0 : x[i]) && dx[i] == (i < 3 ? 0 : 1);
    report("gelu far from 0", !good, 0);
}

/* ---- layernorm ---- */

static void check_layernorm(void)
{
    enum { N = 37, WIDTH = 259 };
    float stats[2 * N];
    for (int i = 0; i < N * WIDTH; i++)
        a[i] = 3 * b[i] + 10;
    for (int i = 0; i < N; i++) {
        double mean = 0, variance = 0;
        for (int j = 0; j < WIDTH; j++)
            mean += (double)a[i * WIDTH + j] / WIDTH;
        for (int j = 0; j < WIDTH; j++)
            variance += pow(a[i * WIDTH + j] - mean, 2) / WIDTH;
        for (int j = 0; j < WIDTH; j++)
            wanted[i * WIDTH + j] = (a[i * WIDTH + j] - mean) /
                                        sqrt(variance + 1e-5) * w[j] +
                                    bias[j];
    }
    pp_layernorm_forward(c, stats, a, w, bias, N, WIDTH);
    report("layernorm", difference(c, wanted, N * WIDTH), 2e-6);

    pp_fill(a, WIDTH, 1.7f);  // the mean's last bit counts 316 fold
    pp_layernorm_forward(c, stats, a, w, bias, 1, WIDTH);
    for (int j = 0; j < WIDTH; j++)
        wanted[j] = bias[j];
    report("layernorm of a constant row", difference(c, wanted, WIDTH), 2e-4);
}

/* ---- linear ---- */

static void check_linear(void)
{
    enum { N = 70, IN = 131, OUT = 67 };
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < OUT; j++) {
            wanted[i * OUT + j] = bias[j];
            for (int k = 0; k < IN; k++)
                wanted[i * OUT + j] += (double)b[i * IN + k] * w[j * IN + k];
        }
    }
    pp_linear_forward(c, b, w, bias, N, IN, OUT);
    report("linear forward", difference(c, wanted, N * OUT), 1e-6);

    for (int i = 0; i < N; i++) {
        for (int k = 0; k < IN; k++) {
            wanted[i * IN + k] = e[i * IN + k];
            for (int j = 0; j < OUT; j++)
                wanted[i * IN + k] += (double)d[i * OUT + j] * w[j * IN + k];
        }
    }
    pp_linear_input(c, d, w, e, N, IN, OUT);
    report("linear input, with prev", difference(c, wanted, N * IN), 1e-6);
}

/* The gradients of two micro-batches are added to what was there. */
static void check_linear_weight(void)
{
    enum { N = 70, IN = 131, OUT = 67 };
    static double wanted_bias[OUT];
    float *dbias = tmp;
    pp_fill(c, OUT * IN, 0.5f);
    pp_fill(dbias, OUT, 0.5f);
    for (int j = 0; j < OUT; j++) {
        wanted_bias[j] = 0.5;
        for (int i = 0; i < N; i++)
            wanted_bias[j] += 2.0 * d[i * OUT + j];
        for (int k = 0; k < IN; k++) {
            wanted[j * IN + k] = 0.5;
            for (int i = 0; i < N; i++)
                wanted[j * IN + k] += 2.0 * d[i * OUT + j] * b[i * IN + k];
        }
    }
    pp_linear_weight(c, dbias, b, d, N, IN, OUT);
    pp_linear_weight(c, dbias, b, d, N, IN, OUT);
    report("linear weight, twice, is added", difference(c, wanted, OUT * IN),
           2e-6);
    report("linear bias, twice, is added", difference(dbias, wanted_bias, OUT),
           2e-6);
}

/* ---- attention ---- */

typedef struct Shape {
    int rows, seq, width, heads, causal;
} Shape;

static void naive_attention(const float *x, Shape s)
{
    int size = s.width / s.heads, row = 3 * s.width;
    double *p = calloc((size_t)s.seq, sizeof *p);
    for (int i = 0; i < s.rows * s.seq * s.heads; i++) {
        int position = i / s.heads, head = i % s.heads,
            query = position % s.seq;
        int first = position - query, count = s.causal ? query + 1 : s.seq;
        const float *q = x + (size_t)position * row + head * size;
        double top = -1e300, sum = 0;
        for (int k = 0; k < count; k++) {
            const float *key = x + (size_t)(first + k) * row + s.width +
                               head * size;
            p[k] = 0;
            for (int j = 0; j < size; j++)
                p[k] += (double)q[j] * key[j] / sqrt(size);
            top = fmax(top, p[k]);
        }
        for (int k = 0; k < count; k++)
            sum += p[k] = exp(p[k] - top);
        double *y = wanted + (size_t)position * s.width + head * size;
        for (int j = 0; j < size; j++) {
            y[j] = 0;
            for (int k = 0; k < count; k++)
                y[j] += p[k] / sum *
                        x[(size_t)(first + k) * row + 2 * s.width +
                          head * size + j];
        }
    }
    free(p);
}

/* The formula of pp.h: nothing behind it may be written. */
static size_t attention_tmp(Shape s)
{
    size_t S = (size_t)(s.seq + 31) / 32 * 32,
           D = (size_t)(s.width / s.heads + 31) / 32 * 32;
    return 5 * S * D + 96 * D + 64 * (S + 16);
}

static void check_scratch(Shape s)
{
    int n = s.rows * s.seq, spoilt = 0;
    float *behind = tmp + attention_tmp(s);
    pp_fill(behind, 4096, 42);
    pp_attention_forward(c, e, b, tmp, n, s.seq, s.width, s.heads, s.causal);
    pp_attention_input(a, d, b, c, e, tmp, NULL, n, s.seq, s.width, s.heads,
                       s.causal);
    for (int i = 0; i < 4096; i++)
        spoilt += behind[i] != 42;
    report("attention stays in its scratch", spoilt, 0);
}

static void check_attention(const char *name, Shape s, const float *x,
                            double tolerance)
{
    int n = s.rows * s.seq;
    naive_attention(x, s);
    pp_attention_forward(c, e, x, tmp, n, s.seq, s.width, s.heads, s.causal);
    report(name, difference(c, wanted, (size_t)n * s.width), tolerance);
}

static void check_attentions(void)
{
    check_attention("attention 1", (Shape){3, 1, 6, 2, 1}, b, 1e-6);
    check_attention("attention 128, causal", (Shape){2, 128, 64, 2, 1}, b,
                    1e-6);
    check_attention("attention 128", (Shape){2, 128, 64, 2, 0}, b, 1e-6);
    check_attention("attention 77 of width 21, causal",
                    (Shape){2, 77, 63, 3, 1}, b, 1e-6);
    check_attention("attention 300 of width 48", (Shape){1, 300, 48, 1, 0}, b,
                    1e-6);
    check_scratch((Shape){2, 77, 63, 3, 0});
    check_scratch((Shape){1, 128, 64, 1, 1});
    memcpy(a, b, 64 * 96 * sizeof *a);
    a[40 * 96] = a[20 * 96 + 32] =
        1e3f;  // query 40 sees key 20 with a score near 1e6
    check_attention("attention with a huge score", (Shape){1, 64, 32, 1, 1}, a,
                    1e-6);
}

/* ---- losses ---- */

static void check_losses(void)
{
    enum { N = 19, WIDTH = 101 };
    int32_t targets[N];
    float lse[N], loss, extreme[3] = {1e4f, -1e4f, 1e4f}, dx[3];
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        double total = 0;
        targets[i] = i * 5;
        for (int j = 0; j < WIDTH; j++) {
            total += exp((double)b[i * WIDTH + j]);
            squares += pow((double)b[i * WIDTH + j] - d[i * WIDTH + j], 2) /
                       (N * WIDTH);
        }
        sum += (log(total) - b[i * WIDTH + targets[i]]) / N;
    }
    pp_cross_entropy_forward(&loss, lse, b, targets, N, WIDTH);
    report("cross entropy", fabs(loss - sum), 1e-6);
    pp_mse_forward(&loss, b, d, N, WIDTH);
    report("mse", fabs(loss - squares), 1e-6);

    int32_t target = 1;
    pp_cross_entropy_forward(&loss, lse, extreme, &target, 1, 3);
    report("cross entropy, logits of 1e4", fabs(loss - (2e4 + log(2))), 1e-2);
    pp_cross_entropy_input(dx, extreme, lse, &target, 1, 3, 1);
    double want[] = {0.5, -1,
                     0.5};  // lse is a float near 1e4: its last bit is 1e-3
    report("its gradient", difference(dx, want, 3), 1e-3);
}

/* ---- optimizers ---- */

enum { STEPS = 10, PARAMETERS = 1003 };

static void check_sgd(void)
{
    static double velocity[PARAMETERS];
    PpSgd h = {.rate = 0.1f, .momentum = 0.9f, .scale = 0.25f};
    for (int i = 0; i < PARAMETERS; i++)
        wanted[i] = a[i] = b[i];
    pp_zero(c, PARAMETERS);
    for (int t = 1; t <= STEPS; t++) {
        const float *grad = d + t * PARAMETERS;
        pp_sgd(a, grad, c, PARAMETERS, &h, 0.01f);
        for (int i = 0; i < PARAMETERS; i++) {
            velocity[i] = 0.9 * velocity[i] + 0.25 * grad[i] + 0.01 * wanted[i];
            wanted[i] -= 0.1 * velocity[i];
        }
    }
    report("sgd, 10 steps", difference(a, wanted, PARAMETERS), 1e-6);
}

static void check_adamw(void)
{
    static double mean[PARAMETERS], variance[PARAMETERS];
    PpAdamw h = {.rate = 0.01f,
                 .beta1 = 0.9f,
                 .beta2 = 0.95f,
                 .epsilon = 1e-8f,
                 .scale = 0.25f};
    for (int i = 0; i < PARAMETERS; i++)
        wanted[i] = a[i] = b[i];
    pp_zero(c, PARAMETERS);
    pp_zero(e, PARAMETERS);
    for (int t = 1; t <= STEPS; t++) {
        const float *grad = d + t * PARAMETERS;
        h.step = t;
        pp_adamw(a, grad, c, e, PARAMETERS, &h, 0.1f);
        for (int i = 0; i < PARAMETERS; i++) {
            double g = 0.25 * grad[i];
            mean[i] = 0.9 * mean[i] + 0.1 * g;
            variance[i] = 0.95 * variance[i] + 0.05 * g * g;
            double root = sqrt(variance[i] / (1 - pow(0.95, t)));
            wanted[i] -= 0.01 * 0.1 * wanted[i];
            wanted[i] -= 0.01 * mean[i] / (1 - pow(0.9, t)) / (root + 1e-8);
        }
    }
    report("adamw, 10 steps", difference(a, wanted, PARAMETERS), 1e-6);
}

static void check_normal(void)
{
    enum { COUNT = 100000 };
    double mean = 0, square = 0;
    pp_draw_normal(a, COUNT, "h.0.weight", 0.02f);
    pp_draw_normal(c, 7, "h.0.weight", 0.02f);
    pp_draw_normal(e, COUNT, "h.1.weight", 0.02f);
    for (int i = 0; i < COUNT; i++) {
        mean += a[i] / COUNT;
        square += a[i] / 0.02 * a[i] / 0.02 / COUNT;
    }
    report("normal: mean", fabs(mean) / 0.02, 0.01);
    report("normal: variance", fabs(square - 1), 0.02);
    report("normal: a value is its index alone",
           memcmp(a, c, 7 * sizeof *a) != 0, 0);
    report("normal: names differ", memcmp(a, e, COUNT * sizeof *a) == 0, 0);
}

/* ---- the same bits at any address ---- */

enum { SEQ = 33, WIDTH = 48, N = 2 * SEQ, OUT = 3 * WIDTH, SLOT = N * OUT };

/* Runs a small layer with all buffers `shift` floats into their slots of
 * memory; returns a hash of every output byte. */
static uint64_t run_at(float *memory, int shift)
{
    float *slot[12];
    for (int i = 0; i < 12; i++) {
        slot[i] = memory + (size_t)i * (SLOT + 1024) + shift * (i % 3 + 1);
        memcpy(slot[i], b + i * 1000, SLOT * sizeof *b);
    }
    float *x = slot[0], *weight = slot[1], *y = slot[2], *z = slot[3],
          *lse = slot[4];
    pp_linear_forward(y, x, weight, slot[5], N, WIDTH, OUT);
    pp_attention_forward(z, lse, y, tmp, N, SEQ, WIDTH, 3, 1);
    pp_attention_input(slot[6], x, y, z, lse, tmp, slot[7], N, SEQ, WIDTH, 3,
                       1);
    pp_layernorm_forward(slot[8], slot[9], z, weight, weight + WIDTH, N, WIDTH);
    pp_layernorm_weight(slot[10], slot[10] + WIDTH, z, x, slot[9], N, WIDTH);
    pp_linear_weight(weight, slot[5], x, slot[6], N, WIDTH, OUT);
    pp_gelu_forward(slot[11], y, SLOT);

    uint64_t hash = 0xcbf29ce484222325;
    for (int i = 0; i < 12; i++)
        for (size_t j = 0; j < SLOT * sizeof(float); j++)
            hash = (hash ^ ((unsigned char *)slot[i])[j]) * 0x100000001b3;
    return hash;
}

static void check_addresses(void)
{
    float *memory = numbers(12 * (SLOT + 1024), "memory");
    uint64_t first = run_at(memory, 0);
    int different = 0;
    for (int shift = 16; shift <= 320; shift += 16)
        different += run_at(memory, shift) != first;
    report("the same bits at other addresses", different, 0);
    free(memory);
}

int main(void)
{
    a = numbers(MOST, "a"), b = numbers(MOST, "b"), c = numbers(MOST, "c"),
    d = numbers(MOST, "d");
    e = numbers(MOST, "e"), w = numbers(MOST, "w"),
    bias = numbers(MOST, "bias");
    tmp = numbers(MOST, "tmp");
    check_exp();  // before denormal numbers are turned off
    pp_device_start();
    check_gelu();
    check_layernorm();
    check_linear();
    check_linear_weight();
    check_attentions();
    check_losses();
    check_sgd();
    check_adamw();
    check_normal();
    check_addresses();
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
