/* finite_difference.c: is every gradient the derivative of its forward pass?
 *
 * The kernels are compiled in double. For each row of the op table and each
 * shape that it can have, L = sum(dy * y) with random dy is differentiated by
 * central differences in every element of every input and weight, and compared
 * with what _input and _weight say. The inputs `prev` and the gradients that
 * _weight adds to are random beforehand and subtracted afterwards, so a kernel
 * that forgets them, or overwrites where it should add, fails as well. The
 * error is relative to the length of the whole gradient.
 *
 * How a kernel is called follows from its row: calls/print.c writes calls.h. */
#include <stddef.h>
#include <stdint.h>

#define float double  // pp.h as it is when kernels are compiled with PP_DOUBLE
#include "../../runtime/pp.h"
#undef float

#include "compile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16, FILLED = 4096, VOCABULARY = 5 };
static const double tolerance = 1e-7, step = 1e-5;

typedef struct Shape {
    int n, seq;
    int width;  // of the input; of attention, which takes three of it, the output
    int out;    // of the output, where the op chooses it
    int heads, causal;
    int prev, bias;  // whether they are given
} Shape;

static const OpKind *kind;  // the row that is looked at
static Shape s;
static int32_t tokens[MOST];
static double x[MOST], x2[MOST], weight[MOST], bias[MOST], prev[MOST];
static double y[MOST], dy[MOST], stats[MOST], tmp[MOST];
static double dx[MOST], dx2[MOST], dweight[MOST], dbias[MOST];

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

static int in(void)
{
    return kind->result == RESULT_THIRD ? 3 * s.width : s.width;
}

static int width(void)
{
    return kind->result == RESULT_WIDTH ? s.out : s.width;
}

static int count(void)
{
    return s.n * width();
}

static int outputs(void)
{
    return kind->loss ? 1 : count();
}

static int inputs(void)  // of each of the op's tensors
{
    return kind->ids ? 0 : s.n * in();
}

static int weights(void)
{
    switch (kind->weight) {
    case WEIGHT_VOCABULARY: return VOCABULARY * width();
    case WEIGHT_POSITION: return s.seq * width();
    case WEIGHT_MATRIX: return width() * in();
    case WEIGHT_SCALE: return width();
    default: return 0;
    }
}

static int biases(void)  // `nobias` is for matrices alone
{
    bool given = s.bias || kind->weight != WEIGHT_MATRIX;
    return kind->bias && given ? width() : 0;
}

/* ---- calls ---- */

static double *given_bias(double *of)
{
    return biases() ? of : NULL;
}

/* The gradient of a sum is dy for both; prev goes into the first. */
static void pass_on(void)
{
    if (s.prev)
        pp_sum(dx, dy, prev, (size_t)count());
    else
        memcpy(dx, dy, sizeof *dx * (size_t)count());
    memcpy(dx2, dy, sizeof *dx2 * (size_t)count());
}

#include "calls.h"

static void call(Entry entry)
{
    void (*kernel)(void) = calls[kind - op_kinds][entry];
    if (kernel)
        kernel();
}

/* Ops with heads take those with heads, the others the rest. */
static const Shape shapes[] = {
    {.n = 1, .seq = 1, .width = 1, .out = 1, .bias = 1},
    {.n = 1, .seq = 1, .width = 2, .out = 3, .prev = 1},
    {.n = 3, .seq = 3, .width = 5, .out = 7},
    {.n = 7, .seq = 7, .width = 19, .out = 5, .prev = 1, .bias = 1},
    {.n = 12, .seq = 4, .width = 7, .out = 33, .prev = 1},
    {.n = 10, .seq = 5, .width = 17, .out = 3, .bias = 1},
    {.n = 4, .seq = 2, .width = 8, .out = 19, .prev = 1, .bias = 1},
    {.n = 4, .seq = 1, .width = 16, .out = 16, .prev = 1},
    {.n = 3, .seq = 1, .width = 37, .out = 2},
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
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* ---- the check ---- */

static double functional(void)
{
    call(ENTRY_FORWARD);
    double sum = 0;
    for (int i = 0; i < outputs(); i++)
        sum += dy[i] * y[i];
    return sum;
}

/* |gradient - before - numeric| / |numeric| */
static double error_of(double *at, const double *gradient, const double *before,
                       int length)
{
    double difference = 0, size = 0;
    for (int i = 0; i < length; i++) {
        double keep = at[i];
        at[i] = keep + step;
        double above = functional();
        at[i] = keep - step;
        double numeric = (above - functional()) / (2 * step);
        at[i] = keep;
        double mine = gradient[i] - (before ? before[i] : 0);
        difference += (mine - numeric) * (mine - numeric);
        size += numeric * numeric;
    }
    return sqrt(difference) / (sqrt(size) + 1e-3);
}

static void prepare(void)
{
    double *all[] = {x, x2, weight, bias, prev, dy, dx, dx2, dweight, dbias};
    int ids = kind->loss && s.width < VOCABULARY ? s.width : VOCABULARY;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        randomise(all[i], FILLED);
    for (int i = 0; i < inputs(); i++)  // away from the bend of relu
        x[i] = 2 * x[i] + (x[i] < 0 ? -0.01 : 0.01);
    for (int i = 0; i < s.n; i++)  // few different ones, so some are repeated
        tokens[i] = (i * i + 3) % ids;
}

/* The largest error over all of an op's inputs and weights. */
static double check_shape(void)
{
    static double weight_before[MOST], bias_before[MOST];
    prepare();
    memcpy(weight_before, dweight, sizeof dweight);
    memcpy(bias_before, dbias, sizeof dbias);
    call(ENTRY_FORWARD);
    call(ENTRY_INPUT);
    call(ENTRY_WEIGHT);
    double errors_of[] = {
        error_of(x, dx, s.prev ? prev : NULL, inputs()),
        error_of(x2, dx2, NULL, kind->tensors == 2 ? inputs() : 0),
        error_of(weight, dweight, weight_before, weights()),
        error_of(bias, dbias, bias_before, biases()),
    };
    double worst = 0;
    for (int i = 0; i < 4; i++)
        if (!(errors_of[i] <= worst))  // also when it is not a number
            worst = errors_of[i];
    return worst;
}

static bool check_row(void)
{
    double worst = 0;
    int shape_count = 0, elements = 0;
    for (int i = 0; i < SHAPES; i++) {
        s = shapes[i];
        s.prev &= !kind->loss;  // nobody else uses what a loss takes
        if (kind->heads != (s.heads > 0))
            continue;
        double error = check_shape();
        if (!(error <= worst))
            worst = error;
        shape_count++;
        elements += inputs() + weights();
    }
    bool good = elements && worst < tolerance;
    printf("%-14s %d shapes, largest error %.1e%s\n", kind->name, shape_count,
           worst, good ? "" : "  FAILED");
    return good;
}

int main(void)
{
    int passed = 0;
    for (int i = 0; i < op_kind_count; i++) {
        kind = &op_kinds[i];
        passed += check_row();
    }
    printf("%d passed, %d failed\n", passed, op_kind_count - passed);
    return passed < op_kind_count;
}
