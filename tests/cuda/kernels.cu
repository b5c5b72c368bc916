/* kernels.cu: are the CUDA kernels those of the CPU?
 *
 * Every kernel runs on random numbers beside its CPU version, whose objects are
 * linked with each pp_NAME that they define renamed to cpu_pp_NAME:
 *
 *     nm --defined-only *.o | awk '$3 ~ /^pp_/ { print $3, "cpu_" $3 }' > names
 *     objcopy --redefine-syms=names FILE.o            # activation .. optimizer
 *
 * A Tensor lives on both sides: it starts equal, RUN calls both versions, and
 * `check` compares what they wrote and looks behind the tensor's end. Shapes are
 * mostly odd: one element, rows that are no multiple of a pack, tiles that are
 * not full.
 *
 * Compiled by nvcc it runs on a GPU, compiled by the host's compiler on the
 * simulator. `--bench` then prints the speed at the shapes of GPT-2. */
#include "../../runtime/cuda/bridge.h"
#include "../../runtime/cuda/device.cuh"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Device pp_device;

extern "C" void pp_fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("\nnot ok a call failed\n");
    exit(1);
}

extern "C" void bridge_name_parameter(int parameter, const char *name)
{
    (void)parameter;
    (void)name;
}

#define CPU(name) extern "C" decltype(pp_##name) cpu_pp_##name
CPU(fill);
CPU(zero);
CPU(sum);
CPU(add_forward);
CPU(relu_forward);
CPU(relu_input);
CPU(gelu_forward);
CPU(gelu_input);
CPU(embedding_forward);
CPU(embedding_weight);
CPU(position_forward);
CPU(position_weight);
CPU(linear_forward);
CPU(linear_input);
CPU(linear_weight);
CPU(layernorm_forward);
CPU(layernorm_input);
CPU(layernorm_weight);
CPU(attention_forward);
CPU(attention_input);
CPU(cross_entropy_forward);
CPU(cross_entropy_input);
CPU(mse_forward);
CPU(mse_input);
CPU(sgd);
CPU(adamw);

static const bool bf16 = sizeof(Value) == 2;
static const double tolerance = bf16 ? 2e-2 : 1e-4;
static int passed, failed;

/* ---- tensors ---- */

typedef enum { VALUES, FLOATS, IDS } Kind;

enum {
    MARGIN = 64,
    MARK = 0x5b
};  // bytes behind each tensor that nobody writes

struct Side {  // an address on one side
    void *at;

    operator float *() const
    {
        return (float *)at;
    }
    operator const float *() const
    {
        return (const float *)at;
    }
    operator const int32_t *() const
    {
        return (const int32_t *)at;
    }
};

struct Tensor {
    float *host;  // float or int32_t; NULL: no tensor
    void *device;
    size_t count;
    Kind kind;
};

static const Tensor none = {};
static Tensor made[64];
static int made_count;
static void *staging;  // host memory to copy from and to, for the largest
static size_t staging_bytes;

static size_t bytes_of(const Tensor &t)
{
    return t.count * (t.kind == VALUES ? sizeof(Value) : 4);
}

static void upload(const Tensor &t)
{
    for (size_t i = 0; t.kind == VALUES && i < t.count; i++)
        ((Value *)staging)[i] = rounded<Value>(t.host[i]);
    CHECK(cudaMemcpy(t.device, t.kind == VALUES ? staging : t.host, bytes_of(t),
                     cudaMemcpyHostToDevice));
}

static Tensor tensor(Kind kind, size_t count)
{
    Tensor t = {(float *)aligned_alloc(64, (count * 4 + 63) / 64 * 64), NULL,
                count, kind};
    if (staging_bytes < count * 4 + MARGIN) {
        staging_bytes = count * 4 + MARGIN;
        staging = realloc(staging, staging_bytes);
    }
    CHECK(cudaMalloc(&t.device, bytes_of(t) + MARGIN));
    CHECK(cudaMemset(t.device, MARK, bytes_of(t) + MARGIN));
    if (made_count == 64)
        pp_fail("too many tensors in one test");
    return made[made_count++] = t;
}

static void free_all()
{
    for (int i = 0; i < made_count; i++) {
        CHECK(cudaFree(made[i].device));
        free(made[i].host);
    }
    made_count = 0;
}

static double uniform()  // in (0, 1)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(state >> 12) + 0.5) * 0x1p-52;
}

static Tensor numbers(Kind kind, size_t count, float deviation = 1)
{
    Tensor t = tensor(kind, count);
    for (size_t i = 0; i < count; i++) {
        double radius = sqrt(-2 * log(uniform()));
        float x = deviation * (float)(radius * cos(6.283185307 * uniform()));
        t.host[i] = kind == VALUES ? widen(rounded<Value>(x)) : x;
    }
    upload(t);
    return t;
}

static Tensor numbers_if(bool wanted, Kind kind, size_t count)
{
    return wanted ? numbers(kind, count) : none;
}

static Tensor ids(size_t count, int below)
{
    Tensor t = tensor(IDS, count);
    for (size_t i = 0; i < count; i++)
        ((int32_t *)t.host)[i] = (int32_t)(uniform() * below);
    upload(t);
    return t;
}

/* What one side wrote becomes the same on both: a later kernel's input. */
static void settle(Tensor &t)
{
    for (size_t i = 0; t.kind == VALUES && i < t.count; i++)
        t.host[i] = widen(rounded<Value>(t.host[i]));
    upload(t);
}

/* ---- running both sides ---- */

static Side on_device(const Tensor &t)
{
    return {t.device};
}

static Side on_host(const Tensor &t)
{
    return {t.host};
}

template <class T> static T on_device(T x)
{
    return x;
}

template <class T> static T on_host(T x)
{
    return x;
}

template <class F, class... A>
static void run_both(F *device, F *host, const A &...arguments)
{
    device(on_device(arguments)...);
    host(on_host(arguments)...);
}

#define RUN(name, ...) run_both(pp_##name, cpu_pp_##name, __VA_ARGS__)

/* ---- judging ---- */

static void report(bool good, const char *name, const char *shape, double error)
{
    printf("%s %s %s: error %.1e\n", good ? "ok" : "not ok", name, shape,
           error);
    fflush(stdout);
    passed += good;
    failed += !good;
}

/* Largest difference relative to the largest element; infinite where one side
 * is not a number or something behind the end was written. */
static double difference(const Tensor &t)
{
    size_t bytes = bytes_of(t);
    CHECK(cudaDeviceSynchronize());
    CHECK(
        cudaMemcpy(staging, t.device, bytes + MARGIN, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < MARGIN; i++)
        if (((unsigned char *)staging)[bytes + i] != MARK)
            return INFINITY;
    double most = 0, size = 1e-30;
    for (size_t i = 0; i < t.count; i++) {
        double got = t.kind == VALUES ? widen(((Value *)staging)[i])
                                      : ((float *)staging)[i];
        double error = fabs(got - t.host[i]);
        if (!(error < INFINITY))
            return INFINITY;
        most = fmax(most, error);
        size = fmax(size, fabs(t.host[i]));
    }
    return most / size;
}

static void check(const char *name, const char *shape, const Tensor &t)
{
    double error = difference(t);
    report(error <= tolerance, name, shape, error);
}

static const char *text(const char *format, ...)
{
    static char line[128];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    return line;
}

/* ---- elementwise ---- */

static void test_activation(size_t count, bool with_prev)
{
    const char *shape = text("%zu%s", count, with_prev ? " prev" : "");
    Tensor x = numbers(VALUES, count, 3), dy = numbers(VALUES, count);
    Tensor prev = numbers_if(with_prev, VALUES, count);
    Tensor y = tensor(VALUES, count), dx = tensor(VALUES, count);
    RUN(gelu_forward, y, x, count);
    check("gelu_forward", shape, y);
    RUN(gelu_input, dx, dy, x, prev, count);
    check("gelu_input", shape, dx);
    RUN(relu_forward, y, x, count);
    check("relu_forward", shape, y);
    RUN(relu_input, dx, dy, x, prev, count);
    check("relu_input", shape, dx);
    RUN(add_forward, y, x, dy, count);
    check("add_forward", shape, y);
    RUN(sum, dx, dy, x, count);
    check("sum", shape, dx);
    free_all();
}

/* Where exp overflows the gate is 0 or 1. */
static void test_extremes()
{
    const float extremes[] = {-1e18f, -1e4f, -90, -10, 0, 10, 90, 1e4f};
    Tensor x = tensor(VALUES, 8), dx = tensor(VALUES, 8);
    memcpy(x.host, extremes, sizeof extremes);
    settle(x);
    Tensor dy = numbers(VALUES, 8);
    RUN(gelu_forward, dx, x, (size_t)8);
    check("gelu_forward", "extremes", dx);
    RUN(gelu_input, dx, dy, x, none, (size_t)8);
    check("gelu_input", "extremes", dx);
    free_all();
}

static void test_copies(size_t count)
{
    const char *shape = text("%zu", count);
    Tensor w = numbers(FLOATS, count), compute = tensor(VALUES, count);
    pp_narrow((float *)compute.device, (float *)w.device, count);
    for (size_t i = 0; i < count; i++)
        compute.host[i] = widen(rounded<Value>(w.host[i]));
    double error = difference(compute);
    report(error == 0, "narrow", shape, error);
    RUN(fill, w, count, 1.5f);
    check("fill", shape, w);
    RUN(zero, w, count);
    check("zero", shape, w);
    free_all();
}

/* ---- layers ---- */

static void test_layernorm(int n, int width, bool with_prev)
{
    const char *shape = text("[%d x %d]%s", n, width, with_prev ? " prev" : "");
    size_t count = (size_t)n * (size_t)width, row = (size_t)width;
    Tensor x = numbers(VALUES, count), dy = numbers(VALUES, count);
    Tensor prev = numbers_if(with_prev, VALUES, count);
    Tensor weight = numbers(VALUES, row), bias = numbers(VALUES, row);
    Tensor y = tensor(VALUES, count), dx = tensor(VALUES, count);
    Tensor stats = tensor(FLOATS, 2 * (size_t)n);
    Tensor dweight = numbers(FLOATS, row), dbias = numbers(FLOATS, row);
    RUN(layernorm_forward, y, stats, x, weight, bias, n, width);
    check("layernorm_forward", shape, y);
    check("layernorm_forward stats", shape, stats);
    settle(stats);
    RUN(layernorm_input, dx, dy, x, stats, weight, prev, n, width);
    check("layernorm_input", shape, dx);
    RUN(layernorm_weight, dweight, dbias, dy, x, stats, n, width);
    check("layernorm_weight", shape, dweight);
    check("layernorm_weight bias", shape, dbias);
    free_all();
}

static void test_linear(int n, int in, int out, bool with_bias, bool with_prev)
{
    const char *shape = text("[%d x %d] to %d%s%s", n, in, out,
                             with_bias ? " bias" : "",
                             with_prev ? " prev" : "");
    size_t inputs = (size_t)(n * in), outputs = (size_t)(n * out);
    Tensor x = numbers(VALUES, inputs), dy = numbers(VALUES, outputs);
    Tensor weight = numbers(VALUES, (size_t)(in * out));
    Tensor bias = numbers_if(with_bias, VALUES, (size_t)out);
    Tensor prev = numbers_if(with_prev, VALUES, inputs);
    Tensor y = tensor(VALUES, outputs), dx = tensor(VALUES, inputs);
    Tensor dweight = numbers(FLOATS, weight.count);
    Tensor dbias = numbers_if(with_bias, FLOATS, (size_t)out);
    RUN(linear_forward, y, x, weight, bias, n, in, out);
    check("linear_forward", shape, y);
    RUN(linear_input, dx, dy, weight, prev, n, in, out);
    check("linear_input", shape, dx);
    RUN(linear_weight, dweight, dbias, x, dy, n, in, out);
    check("linear_weight", shape, dweight);
    if (with_bias)
        check("linear_weight bias", shape, dbias);
    free_all();
}

struct Heads {
    int rows, seq, heads, size;
};

static size_t attention_tmp(int seq, int size)
{
    size_t s = (size_t)(seq + 31) / 32 * 32, d = (size_t)(size + 31) / 32 * 32;
    return 5 * s * d + 96 * d + 64 * (s + 16);
}

static void test_attention(Heads h, int causal, bool with_prev)
{
    const char *shape = text("[%d x %d] %d heads of %d%s%s", h.rows, h.seq,
                             h.heads, h.size, causal ? " causal" : "",
                             with_prev ? " prev" : "");
    int n = h.rows * h.seq, width = h.heads * h.size;
    size_t count = (size_t)(n * width);
    Tensor x = numbers(VALUES, 3 * count), dy = numbers(VALUES, count);
    Tensor prev = numbers_if(with_prev, VALUES, 3 * count);
    Tensor y = tensor(VALUES, count), dx = tensor(VALUES, 3 * count);
    Tensor lse = tensor(FLOATS, (size_t)(n * h.heads));
    Tensor tmp = tensor(FLOATS, attention_tmp(h.seq, h.size));
    RUN(attention_forward, y, lse, x, tmp, n, h.seq, width, h.heads, causal);
    check("attention_forward", shape, y);
    check("attention_forward lse", shape, lse);
    settle(y);
    settle(lse);
    RUN(attention_input, dx, dy, x, y, lse, tmp, prev, n, h.seq, width, h.heads,
        causal);
    check("attention_input", shape, dx);
    free_all();
}

/* The same token again and again where `vocabulary` is small. */
static void test_embedding(int n, int width, int vocabulary)
{
    const char *shape = text("[%d x %d] of %d", n, width, vocabulary);
    size_t count = (size_t)n * (size_t)width;
    size_t table = (size_t)vocabulary * (size_t)width;
    Tensor tokens = ids((size_t)n, vocabulary), weight = numbers(VALUES, table);
    Tensor y = tensor(VALUES, count), dy = numbers(VALUES, count);
    Tensor dweight = numbers(FLOATS, table);
    RUN(embedding_forward, y, tokens, weight, n, width);
    check("embedding_forward", shape, y);
    RUN(embedding_weight, dweight, tokens, dy, n, width);
    check("embedding_weight", shape, dweight);
    free_all();
}

static void test_position(int rows, int seq, int width)
{
    const char *shape = text("[%d x %d x %d]", rows, seq, width);
    int n = rows * seq;
    size_t count = (size_t)(n * width), table = (size_t)(seq * width);
    Tensor x = numbers(VALUES, count), weight = numbers(VALUES, table);
    Tensor y = tensor(VALUES, count), dweight = numbers(FLOATS, table);
    RUN(position_forward, y, x, weight, n, seq, width);
    check("position_forward", shape, y);
    RUN(position_weight, dweight, x, n, seq, width);
    check("position_weight", shape, dweight);
    free_all();
}

/* ---- losses ---- */

static void test_cross_entropy(int n, int width, float deviation)
{
    const char *shape = text("[%d x %d] of +-%g", n, width, deviation);
    size_t count = (size_t)n * (size_t)width;
    Tensor x = numbers(VALUES, count, deviation);
    Tensor targets = ids((size_t)n, width), dx = tensor(VALUES, count);
    Tensor loss = tensor(FLOATS, 1), lse = tensor(FLOATS, (size_t)n);
    RUN(cross_entropy_forward, loss, lse, x, targets, n, width);
    check("cross_entropy_forward", shape, loss);
    check("cross_entropy_forward lse", shape, lse);
    settle(lse);
    RUN(cross_entropy_input, dx, x, lse, targets, n, width, 1 / (4.0f * n));
    check("cross_entropy_input", shape, dx);
    free_all();
}

static void test_mse(int n, int width)
{
    const char *shape = text("[%d x %d]", n, width);
    size_t count = (size_t)n * (size_t)width;
    Tensor x = numbers(VALUES, count), targets = numbers(FLOATS, count);
    Tensor loss = tensor(FLOATS, 1), dx = tensor(VALUES, count);
    RUN(mse_forward, loss, x, targets, n, width);
    check("mse_forward", shape, loss);
    RUN(mse_input, dx, x, targets, n, width, 1 / (4.0f * n));
    check("mse_input", shape, dx);
    free_all();
}

/* ---- the end of a step; all in float, so always to 1e-4 ---- */

static void check_float(const char *name, const char *shape, const Tensor &t)
{
    double error = difference(t);
    report(error <= 1e-4, name, shape, error);
}

static void set_hyper(float rate, int step, float scale)
{
    Hyper hyper = {rate, step, scale, 0, 0, 0};
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(pp_device.hyper, &hyper, sizeof hyper,
                     cudaMemcpyHostToDevice));
}

/* The host's struct carries nonsense where the device must read hyper. */
static void test_optimizer(size_t count)
{
    const char *shape = text("%zu, 3 steps", count);
    Tensor w = numbers(FLOATS, count), v = numbers(FLOATS, count, 0.1f);
    Tensor a = numbers(FLOATS, count), mean = tensor(FLOATS, count);
    Tensor variance = tensor(FLOATS, count);
    RUN(zero, mean, count);
    RUN(zero, variance, count);
    for (int step = 1; step <= 3; step++) {
        Tensor grad = numbers(FLOATS, count);
        float rate = 0.1f / (float)step, scale = 0.5f * (float)step;
        set_hyper(rate, step, scale);
        const PpSgd sgd = {rate, 0.9f, scale}, sgd_device = {-1, 0.9f, -1};
        pp_sgd((float *)w.device, (float *)grad.device, (float *)v.device,
               count, &sgd_device, 0.01f);
        cpu_pp_sgd(w.host, grad.host, v.host, count, &sgd, 0.01f);
        const PpAdamw adamw = {rate, 0.9f, 0.95f, 1e-8f, scale, step};
        const PpAdamw adamw_device = {-1, 0.9f, 0.95f, 1e-8f, -1, -1};
        pp_adamw((float *)a.device, (float *)grad.device, (float *)mean.device,
                 (float *)variance.device, count, &adamw_device, 0.1f);
        cpu_pp_adamw(a.host, grad.host, mean.host, variance.host, count, &adamw,
                     0.1f);
    }
    check_float("sgd", shape, w);
    check_float("sgd velocity", shape, v);
    check_float("adamw", shape, a);
    check_float("adamw mean", shape, mean);
    check_float("adamw variance", shape, variance);
    free_all();
}

static double square_of(const Tensor &t)
{
    double sum = 0;
    for (size_t i = 0; i < t.count; i++)
        sum += (double)t.host[i] * t.host[i];
    return sum;
}

static void test_norm(float limit)
{
    const size_t counts[] = {1, 1027, 40000};
    double total = 0;
    Hyper hyper;
    for (int i = 0; i < 3; i++) {
        Tensor grad = numbers(FLOATS, counts[i]);
        pp_square("w", i, (float *)grad.device, grad.count);
        total += square_of(grad);
    }
    pp_scale_from_squares(3, limit);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&hyper, pp_device.hyper, sizeof hyper,
                     cudaMemcpyDeviceToHost));
    double norm = sqrt(total), scale = fmin(1, limit / norm);
    const char *shape = text("of %g, limit %g", norm, (double)limit);
    double error = fabs(hyper.norm - norm) / norm;
    report(error < 1e-6, "norm", shape, error);
    error = fabs(hyper.scale - scale) / scale;
    report(error < 1e-6, "scale", shape, error);
    free_all();
}

/* A gradient or a loss that is no number: nothing is updated, and it is known by
 * which. */
static void test_left_out(bool gradient, bool loss)
{
    enum { COUNT = 1000, SQUARES = 4 };
    const float infinite = INFINITY;
    const Hyper start = {0.1f, 1, 1, 0, 0, 0};
    const PpSgd sgd = {0.1f, 0, 1};
    float now[COUNT];
    Hyper hyper;
    Tensor grad = numbers(FLOATS, COUNT), w = numbers(FLOATS, COUNT),
           losses = numbers(FLOATS, 2);
    if (gradient)
        CHECK(cudaMemcpy((float *)grad.device + 7, &infinite, sizeof infinite,
                         cudaMemcpyHostToDevice));
    if (loss)
        CHECK(cudaMemcpy((float *)losses.device + 1, &infinite, sizeof infinite,
                         cudaMemcpyHostToDevice));
    CHECK(cudaMemset(pp_device.squares, 0, SQUARES * sizeof(double)));
    CHECK(cudaMemcpy(pp_device.hyper, &start, sizeof start,
                     cudaMemcpyHostToDevice));
    pp_square("w", 1, (float *)grad.device, COUNT);
    pp_note_losses(SQUARES - 1, (float *)losses.device, 2);
    pp_scale_from_squares(SQUARES - 1, 1);
    pp_sgd((float *)w.device, (float *)grad.device, NULL, COUNT, &sgd, 0);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&hyper, pp_device.hyper, sizeof hyper,
                     cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(now, w.device, sizeof now, cudaMemcpyDeviceToHost));
    bool same = memcmp(now, w.host, sizeof now) == 0, none = gradient || loss;
    report(same == none && (isnan(hyper.scale) != 0) == none &&
               hyper.lost == loss && hyper.worst == none,
           "left out", text("gradient %d, loss %d", gradient, loss), 0);
    CHECK(cudaMemset(pp_device.squares, 0, SQUARES * sizeof(double)));
    free_all();
}

/* ---- the same bits again ---- */

static void test_repeat()
{
    enum { N = 600, WIDTH = 96, VOCABULARY = 5 };
    const size_t table = VOCABULARY * WIDTH, bytes = table * sizeof(float);
    float first[table], again[table];
    Tensor tokens = ids(N, VOCABULARY), dy = numbers(VALUES, N * WIDTH);
    Tensor x = numbers(VALUES, N * WIDTH), stats = numbers(FLOATS, 2 * N);
    Tensor dweight = tensor(FLOATS, table);
    float *to = (float *)dweight.device;
    for (int turn = 0; turn < 2; turn++) {
        pp_zero(to, table);
        pp_embedding_weight(to, (int32_t *)tokens.device, (float *)dy.device, N,
                            WIDTH);
        pp_layernorm_weight(to, to + WIDTH, (float *)dy.device,
                            (float *)x.device, (float *)stats.device, N, WIDTH);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(turn ? again : first, to, bytes,
                         cudaMemcpyDeviceToHost));
    }
    report(memcmp(first, again, bytes) == 0, "same bits", "twice", 0);
    free_all();
}

static void test_layers()
{
    const int linear[][3] = {
        {1, 1, 1}, {3, 5, 7}, {16, 32, 24}, {33, 64, 17}, {300, 40, 48}};
    const int embedding[][3] = {
        {1, 3, 5}, {50, 7, 4}, {300, 64, 10}, {1100, 40, 700}, {70, 300, 1}};
    const int layernorm[][2] = {
        {3, 5}, {9, 64}, {5, 100}, {300, 96}, {1, 1030}};
    for (auto &l : linear)
        for (int k = 0; k < 4; k++)
            test_linear(l[0], l[1], l[2], k & 1, k & 2);
    for (auto &l : layernorm)
        for (int k = 0; k < 2; k++)
            test_layernorm(l[0], l[1], k);
    for (auto &e : embedding)
        test_embedding(e[0], e[1], e[2]);
    test_position(1, 1, 3);
    test_position(3, 7, 5);
    test_position(4, 16, 24);
}

static void test_heads()
{
    const Heads shapes[] = {{1, 1, 1, 8},    {2, 5, 2, 12},   {2, 33, 3, 32},
                            {2, 65, 1, 7},   {1, 70, 2, 64},  {1, 130, 1, 80},
                            {1, 68, 1, 128}, {1, 40, 1, 160}, {1, 36, 1, 256}};
    for (auto &h : shapes)
        for (int k = 0; k < 4; k++)
            test_attention(h, k & 1, k & 2);
}

static void test_all()
{
    const size_t counts[] = {1, 7, 1024, 4099};
    for (size_t count : counts) {
        for (int prev = 0; prev < 2; prev++)
            test_activation(count, prev);
        test_copies(count);
        test_optimizer(count);
    }
    test_extremes();
    test_layers();
    test_heads();
    test_cross_entropy(3, 5, 1);
    test_cross_entropy(17, 256, 3);
    test_cross_entropy(5, 1031, 30);
    test_cross_entropy(2, 5003, 1);
    test_cross_entropy(5000, 4, 1);
    test_mse(1, 1);
    test_mse(7, 5);
    test_mse(64, 100);
    test_mse(300, 33);
    test_norm(1);
    test_norm(1e6f);
    for (int i = 0; i < 4; i++)
        test_left_out(i & 1, i & 2);
    test_repeat();
}

/* ---- speed ---- */

/* Milliseconds of one call. */
template <class F> static double time_of(F call)
{
    constexpr int WARM = 3, TURNS = 20;
    cudaEvent_t start, end;
    float ms;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    for (int i = 0; i < WARM; i++)
        call();
    CHECK(cudaEventRecord(start, pp_device.compute));
    for (int i = 0; i < TURNS; i++)
        call();
    CHECK(cudaEventRecord(end, pp_device.compute));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&ms, start, end));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    return ms / TURNS;
}

/* bytes: read and written; operations: 0 where memory is the limit. */
template <class F>
static void bench(const char *name, double bytes, double operations, F call)
{
    double ms = time_of(call);
    printf("%-24s %8.3f ms %8.0f GB/s", name, ms, bytes / ms * 1e-6);
    if (operations > 0)
        printf(" %8.1f TFLOP/s", operations / ms * 1e-9);
    printf("\n");
}

constexpr int N = 8192, SEQ = 1024, WIDTH = 768, HEADS = 12;
constexpr int VOCABULARY = 50304;

/* Contents do not matter, but for finite numbers: all 0. */
static float *zeros(size_t bytes)
{
    void *at;
    CHECK(cudaMalloc(&at, bytes));
    CHECK(cudaMemset(at, 0, bytes));
    return (float *)at;
}

static void bench_layers()
{
    const size_t v = sizeof(Value), rows = (size_t)N * WIDTH;
    const double all = (double)(rows * v), table = 4.0 * WIDTH * WIDTH;
    float *x = zeros(4 * rows * v), *y = zeros(4 * rows * v);
    float *dx = zeros(4 * rows * v), *dy = zeros(4 * rows * v);
    float *w = zeros((size_t)table * v), *dw = zeros((size_t)table * 4);
    float *stats = zeros(N * HEADS * 8);
    const double product = 2.0 * N * table, pairs = (double)N * SEQ * WIDTH;

    bench("linear_forward", 5 * all + table * v, product,
          [=] { pp_linear_forward(y, x, w, w, N, WIDTH, 4 * WIDTH); });
    bench("linear_input", 5 * all + table * v, product,
          [=] { pp_linear_input(dx, dy, w, NULL, N, WIDTH, 4 * WIDTH); });
    bench("linear_weight", 9 * all + table * 8, product,
          [=] { pp_linear_weight(dw, dw, x, dy, N, WIDTH, 4 * WIDTH); });
    bench("linear_weight no bias", 5 * all + table * 8, product,
          [=] { pp_linear_weight(dw, NULL, x, dy, N, WIDTH, 4 * WIDTH); });
    bench("attention_forward", 4 * all, 2 * pairs, [=] {
        pp_attention_forward(y, stats, x, NULL, N, SEQ, WIDTH, HEADS, 1);
    });
    bench("attention_input", 8 * all, 5 * pairs, [=] {
        pp_attention_input(dx, dy, x, y, stats, NULL, NULL, N, SEQ, WIDTH,
                           HEADS, 1);
    });
    bench("layernorm_forward", 2 * all, 0,
          [=] { pp_layernorm_forward(y, stats, x, w, w, N, WIDTH); });
    bench("layernorm_input", 4 * all, 0,
          [=] { pp_layernorm_input(dx, dy, x, stats, w, y, N, WIDTH); });
    bench("layernorm_weight", 2 * all, 0,
          [=] { pp_layernorm_weight(dw, dw + WIDTH, dy, x, stats, N, WIDTH); });
    bench("gelu_forward", 8 * all, 0, [=] { pp_gelu_forward(y, x, 4 * rows); });
    bench("gelu_input", 12 * all, 0,
          [=] { pp_gelu_input(dx, dy, x, NULL, 4 * rows); });
    bench("add_forward", 3 * all, 0, [=] { pp_add_forward(y, x, dx, rows); });
    bench("position_forward", 2 * all, 0,
          [=] { pp_position_forward(y, x, w, N, SEQ, WIDTH); });
    bench("position_weight", all, 0,
          [=] { pp_position_weight(dw, dy, N, SEQ, WIDTH); });
}

static void bench_ends()
{
    const size_t v = sizeof(Value), rows = (size_t)N * WIDTH;
    const size_t logits = (size_t)N * VOCABULARY;
    const size_t table = (size_t)VOCABULARY * WIDTH;
    float *x = zeros(logits * v), *dx = zeros(logits * v);
    float *lse = zeros(N * 4), *loss = zeros(64), *w = zeros(table * 4);
    float *grad = zeros(table * 4), *m = zeros(table * 4),
          *n = zeros(table * 4);
    const double all = (double)logits * (double)v, master = 4.0 * (double)table;
    const PpAdamw h = {0, 0.9f, 0.95f, 1e-8f, 0, 1};
    Tensor t = ids(N, VOCABULARY);
    int32_t *tokens = (int32_t *)t.device;

    set_hyper(1e-3f, 1, 1);
    bench("cross_entropy_forward", all, 0, [=] {
        pp_cross_entropy_forward(loss, lse, x, tokens, N, VOCABULARY);
    });
    bench("cross_entropy_input", 2 * all, 0, [=] {
        pp_cross_entropy_input(dx, x, lse, tokens, N, VOCABULARY, 1);
    });
    bench("embedding_forward", 2.0 * (double)(rows * v), 0,
          [=] { pp_embedding_forward(x, tokens, w, N, WIDTH); });
    bench("embedding_weight", (double)(rows * (v + 8)), 0,
          [=] { pp_embedding_weight(grad, tokens, x, N, WIDTH); });
    bench("adamw", 7 * master, 0,
          [=] { pp_adamw(w, grad, m, n, table, &h, 0.1f); });
    bench("square", master, 0, [=] { pp_square("w", 0, grad, table); });
    bench("narrow", master + (double)(table * v), 0,
          [=] { pp_narrow(x, w, table); });
}

int main(int argc, char **argv)
{
    pp_device.workspace_bytes = 32 << 20;
    CHECK(cudaStreamCreateWithFlags(&pp_device.compute, cudaStreamDefault));
    CHECK_BLAS(cublasLtCreate(&pp_device.blas));
    CHECK(cudaMalloc(&pp_device.workspace, pp_device.workspace_bytes));
    CHECK(cudaMalloc((void **)&pp_device.hyper, sizeof *pp_device.hyper));
    CHECK(cudaMalloc((void **)&pp_device.squares, 64 * sizeof(double)));
    CHECK(cudaMemset(pp_device.squares, 0, 64 * sizeof(double)));
    CHECK(cudaDeviceGetAttribute(&pp_device.multiprocessors,
                                 cudaDevAttrMultiProcessorCount, 0));
    test_all();
    printf("%d passed, %d failed\n", passed, failed);
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        bench_layers();
        bench_ends();
    }
    return failed != 0;
}
