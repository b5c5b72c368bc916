/* finite_difference.c: is every gradient the derivative of its forward pass?
 *
 * The kernels are compiled in double. For each op and shape, L = sum(dy * y)
 * with random dy is differentiated by central differences in every element of
 * every input and weight, and compared with what _input and _weight say. The
 * inputs `prev` and the gradients that _weight adds to are random beforehand
 * and subtracted afterwards, so a kernel that forgets them, or overwrites where
 * it should add, fails as well. The error is relative to the length of the
 * whole gradient. */
#include "double.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16 };
static const double tolerance = 1e-7, step = 1e-5;

/* One case: the shape and all that its op touches. Ops name their own use of
 * the shape's fields. */
typedef struct Shape {
    int n, seq, width, out, heads, causal;
    int prev, bias;  // whether they are given
} Shape;

static Shape s;
static int32_t tokens[MOST];
static double x[MOST], b[MOST], weight[MOST], bias[MOST], prev[MOST];
static double y[MOST], dy[MOST], stats[MOST], tmp[MOST];
static double dx[MOST], db[MOST], dweight[MOST], dbias[MOST];

typedef struct Op {
    const char *name;
    void (*forward)(void);
    void (*backward)(void);  // writes dx (and db), adds to dweight and dbias
    int (*outputs)(void);    // length of y
    int (*inputs)(void);     // length of x and dx
    int (*weights)(void);    // length of weight and dweight, or NULL
    int (*biases)(void);
    int (*others)(void);  // length of a second input b
    const Shape *shapes;
    int shape_count;
} Op;

static double random_number(void)  // -1 .. 1
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (double)(state >> 11) * 0x1p-52 - 1;
}

static void randomise(double *to, int count)
{
    for (int i = 0; i < count; i++)
        to[i] = random_number();
}

static const double *given_prev(void)
{
    return s.prev ? prev : NULL;
}

/* ---- lengths ---- */

static int one(void)
{
    return 1;
}
static int n_width(void)
{
    return s.n * s.width;
}
static int n_out(void)
{
    return s.n * s.out;
}
static int n_3width(void)
{
    return s.n * 3 * s.width;
}
static int width(void)
{
    return s.width;
}
static int out_width(void)
{
    return s.out * s.width;
}
static int seq_width(void)
{
    return s.seq * s.width;
}
static int out_if_bias(void)
{
    return s.bias ? s.out : 0;
}

/* ---- ops ---- */

static void sum_f(void)
{
    memcpy(y, x, sizeof(double) * (size_t)n_width());
}
static void sum_b(void)
{
    pp_sum(dx, dy, prev, (size_t)n_width());
}
static void add_f(void)
{
    pp_add_forward(y, x, b, (size_t)n_width());
}
static void
add_b(void)  // the gradient of a sum is dy for both; prev goes into one
{
    pp_sum(dx, dy, prev, (size_t)n_width());
    memcpy(db, dy, sizeof(double) * (size_t)n_width());
}
static void relu_f(void)
{
    pp_relu_forward(y, x, (size_t)n_width());
}
static void relu_b(void)
{
    pp_relu_input(dx, dy, x, given_prev(), (size_t)n_width());
}
static void gelu_f(void)
{
    pp_gelu_forward(y, x, (size_t)n_width());
}
static void gelu_b(void)
{
    pp_gelu_input(dx, dy, x, given_prev(), (size_t)n_width());
}

static void embedding_f(void)
{
    pp_embedding_forward(y, tokens, weight, s.n, s.width);
}
static void embedding_b(void)
{
    pp_embedding_weight(dweight, tokens, dy, s.n, s.width);
}
static void position_f(void)
{
    pp_position_forward(y, x, weight, s.n, s.seq, s.width);
}
static void position_b(void)
{
    pp_sum(dx, dy, prev, (size_t)n_width());
    pp_position_weight(dweight, dy, s.n, s.seq, s.width);
}

static void linear_f(void)
{
    pp_linear_forward(y, x, weight, s.bias ? bias : NULL, s.n, s.width, s.out);
}
static void linear_b(void)
{
    pp_linear_input(dx, dy, weight, given_prev(), s.n, s.width, s.out);
    pp_linear_weight(dweight, s.bias ? dbias : NULL, x, dy, s.n, s.width,
                     s.out);
}

static void layernorm_f(void)
{
    pp_layernorm_forward(y, stats, x, weight, bias, s.n, s.width);
}
static void layernorm_b(void)
{
    pp_layernorm_input(dx, dy, x, stats, weight, given_prev(), s.n, s.width);
    pp_layernorm_weight(dweight, dbias, dy, x, stats, s.n, s.width);
}

static void attention_f(void)
{
    pp_attention_forward(y, stats, x, tmp, s.n, s.seq, s.width, s.heads,
                         s.causal);
}
static void attention_b(void)
{
    pp_attention_input(dx, dy, x, y, stats, tmp, given_prev(), s.n, s.seq,
                       s.width, s.heads, s.causal);
}

static void cross_entropy_f(void)
{
    pp_cross_entropy_forward(y, stats, x, tokens, s.n, s.width);
}
static void cross_entropy_b(void)
{
    pp_cross_entropy_input(dx, x, stats, tokens, s.n, s.width, dy[0] / s.n);
}
static void mse_f(void)
{
    pp_mse_forward(y, x, b, s.n, s.width);
}
static void mse_b(void)  // the targets have no gradient of their own: it is -dx
{
    pp_mse_input(dx, x, b, s.n, s.width, dy[0] / s.n);
    for (int i = 0; i < n_width(); i++)
        db[i] = -dx[i];
}

#define SHAPES(list) list, sizeof list / sizeof *list

static const Shape always_prev[] = {{.n = 1, .width = 1, .prev = 1},
                                    {.n = 5, .width = 7, .prev = 1},
                                    {.n = 3, .width = 37, .prev = 1}};
static const Shape elements[] = {{.n = 1, .width = 1},
                                 {.n = 5, .width = 7, .prev = 1},
                                 {.n = 3, .width = 37},
                                 {.n = 4, .width = 16, .prev = 1}};
static const Shape embeddings[] = {{.n = 1, .width = 1, .out = 5},
                                   {.n = 12, .width = 7, .out = 5},
                                   {.n = 9, .width = 33, .out = 5}};
static const Shape positions[] = {{.n = 1, .seq = 1, .width = 3, .prev = 1},
                                  {.n = 12, .seq = 4, .width = 7, .prev = 1},
                                  {.n = 10, .seq = 5, .width = 17, .prev = 1}};
static const Shape linears[] = {
    {.n = 1, .width = 1, .out = 1, .bias = 1},
    {.n = 3, .width = 5, .out = 7},
    {.n = 6, .width = 17, .out = 3, .prev = 1},
    {.n = 4, .width = 8, .out = 19, .prev = 1, .bias = 1}};
static const Shape norms[] = {{.n = 1, .width = 2},
                              {.n = 5, .width = 7, .prev = 1},
                              {.n = 3, .width = 33},
                              {.n = 2, .width = 16, .prev = 1}};
static const Shape attentions[] = {
    {.n = 1, .seq = 1, .width = 1, .heads = 1},
    {.n = 3, .seq = 1, .width = 6, .heads = 3, .causal = 1, .prev = 1},
    {.n = 10, .seq = 5, .width = 6, .heads = 2, .causal = 1},
    {.n = 10, .seq = 5, .width = 9, .heads = 3, .prev = 1},
    {.n = 33, .seq = 33, .width = 5, .heads = 1, .causal = 1, .prev = 1},
    {.n = 70, .seq = 70, .width = 4, .heads = 2, .causal = 1},
    {.n = 70, .seq = 35, .width = 4, .heads = 2, .prev = 1},
    {.n = 6, .seq = 3, .width = 35, .heads = 1, .causal = 1},
    {.n = 32, .seq = 32, .width = 32, .heads = 1, .causal = 1},
};
static const Shape entropies[] = {
    {.n = 1, .width = 5}, {.n = 7, .width = 19}, {.n = 3, .width = 6}};
static const Shape errors[] = {
    {.n = 1, .width = 1}, {.n = 7, .width = 19}, {.n = 3, .width = 8}};

static const Op ops[] = {
    {"sum", sum_f, sum_b, n_width, n_width, NULL, NULL, NULL,
     SHAPES(always_prev)},
    {"add", add_f, add_b, n_width, n_width, NULL, NULL, n_width,
     SHAPES(always_prev)},
    {"relu", relu_f, relu_b, n_width, n_width, NULL, NULL, NULL,
     SHAPES(elements)},
    {"gelu", gelu_f, gelu_b, n_width, n_width, NULL, NULL, NULL,
     SHAPES(elements)},
    {"embedding", embedding_f, embedding_b, n_width, NULL, out_width, NULL,
     NULL, SHAPES(embeddings)},
    {"position", position_f, position_b, n_width, n_width, seq_width, NULL,
     NULL, SHAPES(positions)},
    {"linear", linear_f, linear_b, n_out, n_width, out_width, out_if_bias, NULL,
     SHAPES(linears)},
    {"layernorm", layernorm_f, layernorm_b, n_width, n_width, width, width,
     NULL, SHAPES(norms)},
    {"attention", attention_f, attention_b, n_width, n_3width, NULL, NULL, NULL,
     SHAPES(attentions)},
    {"cross_entropy", cross_entropy_f, cross_entropy_b, one, n_width, NULL,
     NULL, NULL, SHAPES(entropies)},
    {"mse", mse_f, mse_b, one, n_width, NULL, NULL, n_width, SHAPES(errors)},
};

/* ---- the check ---- */

static double functional(const Op *op)
{
    op->forward();
    double sum = 0;
    for (int i = 0; i < op->outputs(); i++)
        sum += dy[i] * y[i];
    return sum;
}

/* |gradient - before - numeric| / |numeric| */
static double error_of(const Op *op, double *at, const double *gradient,
                       const double *before, int count)
{
    double difference = 0, length = 0;
    for (int i = 0; i < count; i++) {
        double keep = at[i];
        at[i] = keep + step;
        double above = functional(op);
        at[i] = keep - step;
        double numeric = (above - functional(op)) / (2 * step);
        at[i] = keep;
        double mine = gradient[i] - (before ? before[i] : 0);
        difference += (mine - numeric) * (mine - numeric);
        length += numeric * numeric;
    }
    return sqrt(difference) / (sqrt(length) + 1e-3);
}

static int length_of(int (*length)(void))
{
    return length ? length() : 0;
}

static void prepare(const Op *op)
{
    double *all[] = {x, b, weight, bias, prev, dy, dx, db, dweight, dbias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        randomise(all[i], 4096);
    for (int i = 0; i < length_of(op->inputs);
         i++)  // away from the bend of relu
        x[i] = 2 * x[i] + (x[i] < 0 ? -0.01 : 0.01);
    for (int i = 0; i < s.n; i++)  // of 5 tokens, so some are repeated
        tokens[i] = (i * i + 3) % 5;
}

/* The largest error over all of an op's inputs and weights. */
static double check(const Op *op)
{
    static double weight_before[MOST], bias_before[MOST];
    prepare(op);
    memcpy(weight_before, dweight, sizeof dweight);
    memcpy(bias_before, dbias, sizeof dbias);
    op->forward();
    op->backward();
    double errors_of[] = {
        error_of(op, x, dx, s.prev ? prev : NULL, length_of(op->inputs)),
        error_of(op, b, db, NULL, length_of(op->others)),
        error_of(op, weight, dweight, weight_before, length_of(op->weights)),
        error_of(op, bias, dbias, bias_before, length_of(op->biases)),
    };
    double worst = 0;
    for (int i = 0; i < 4; i++)
        if (!(errors_of[i] <= worst))  // also when it is not a number
            worst = errors_of[i];
    return worst;
}

int main(void)
{
    int passed = 0, failed = 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        double worst = 0;
        for (int j = 0; j < ops[i].shape_count; j++) {
            s = ops[i].shapes[j];
            double error = check(&ops[i]);
            if (!(error <= worst))
                worst = error;
        }
        int good = worst < tolerance;
        printf("%-14s %d shapes, largest error %.1e%s\n", ops[i].name,
               ops[i].shape_count, worst, good ? "" : "  FAILED");
        passed += good;
        failed += !good;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
