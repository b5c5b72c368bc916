/* self_blas.cpp: matrix products against three loops. */
#include "cublasLt.h"
#include "cuda_bf16.h"
#include "self.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <vector>

#define BLAS(call) EXPECT((call) == CUBLAS_STATUS_SUCCESS)

struct Shape {
    int m, n, k;
    bool ta, tb, row;  // row: all matrices in row-major order
    cudaDataType in, out;
    float alpha, beta;
    uint32_t epilogue;
    cublasComputeType_t compute;
};

static size_t bytes_of(cudaDataType type)
{
    return type == CUDA_R_16BF ? 2 : 4;
}

static float rounded(float x, cudaDataType type)
{
    return type == CUDA_R_16BF ? (float)__nv_bfloat16(x) : x;
}

static std::vector<float> numbers(size_t count, unsigned seed, cudaDataType type)
{
    std::vector<float> x(count);
    for (float &value : x) {
        seed = seed * 1664525 + 1013904223;
        value = rounded((float)(seed >> 8) / (1 << 23) - 1.0f, type);
    }
    return x;
}

static void *upload(const std::vector<float> &x, cudaDataType type)
{
    std::vector<char> raw(x.size() * bytes_of(type));
    for (size_t i = 0; i < x.size(); i++)
        if (type == CUDA_R_16BF)
            ((__nv_bfloat16 *)raw.data())[i] = __nv_bfloat16(x[i]);
        else
            ((float *)raw.data())[i] = x[i];
    char *to = device<char>(raw.size());
    CUDA(cudaMemcpy(to, raw.data(), raw.size(), cudaMemcpyHostToDevice));
    return to;
}

static std::vector<float> download(const void *from, size_t count, cudaDataType type)
{
    std::vector<char> raw(count * bytes_of(type));
    std::vector<float> x(count);
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemcpy(raw.data(), from, raw.size(), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++)
        x[i] = type == CUDA_R_16BF ? (float)((__nv_bfloat16 *)raw.data())[i]
                                   : ((float *)raw.data())[i];
    return x;
}

static cublasLtMatrixLayout_t layout(cudaDataType type, int rows, int cols, bool row)
{
    cublasLtMatrixLayout_t l;
    int32_t order = row ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
    BLAS(cublasLtMatrixLayoutCreate(&l, type, (uint64_t)rows, (uint64_t)cols, row ? cols : rows));
    BLAS(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order));
    return l;
}

/* element (i, j) of a matrix of rows x cols */
static float at(const std::vector<float> &x, int rows, int cols, bool row, int i, int j)
{
    return x[(size_t)(row ? i * cols + j : j * rows + i)];
}

static cublasLtMatmulDesc_t describe(const Shape *s, void *bias)
{
    cublasLtMatmulDesc_t desc;
    int32_t ta = s->ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb = s->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    int32_t type = s->out;
    BLAS(cublasLtMatmulDescCreate(&desc, s->compute, CUDA_R_32F));
    BLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta));
    BLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb));
    BLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &s->epilogue,
                                        sizeof s->epilogue));
    BLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                        sizeof bias));
    BLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type,
                                        sizeof type));
    return desc;
}

static float gelu(float x)
{
    return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

static void product(Shape s)
{
    int ar = s.ta ? s.k : s.m, ac = s.ta ? s.m : s.k, br = s.tb ? s.n : s.k, bc = s.tb ? s.k : s.n;
    size_t count = (size_t)(s.m * s.n);
    auto a = numbers((size_t)(ar * ac), 1, s.in), b = numbers((size_t)(br * bc), 2, s.in),
         c = numbers(count, 3, s.out), bias = numbers((size_t)s.m, 4, s.out);
    void *pa = upload(a, s.in), *pb = upload(b, s.in), *pc = upload(c, s.out),
         *pbias = upload(bias, s.out);
    char *pd = device<char>(count * bytes_of(s.out));
    char *workspace = device<char>(4 << 20);
    size_t most = 4 << 20;
    cublasLtHandle_t handle;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found;
    int number;
    BLAS(cublasLtCreate(&handle));
    cublasLtMatmulDesc_t desc = describe(&s, pbias);
    auto la = layout(s.in, ar, ac, s.row), lb = layout(s.in, br, bc, s.row),
         lc = layout(s.out, s.m, s.n, s.row), ld = layout(s.out, s.m, s.n, s.row);
    BLAS(cublasLtMatmulPreferenceCreate(&preference));
    BLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                              &most, sizeof most));
    BLAS(cublasLtMatmulAlgoGetHeuristic(handle, desc, la, lb, lc, ld, preference, 1, &found,
                                        &number));
    EXPECT(number == 1 && found.workspaceSize <= most);
    cudaStream_t stream = new_stream();
    BLAS(cublasLtMatmul(handle, desc, &s.alpha, pa, la, pb, lb, &s.beta, pc, lc, pd, ld,
                        &found.algo, workspace, most, stream));
    auto d = download(pd, count, s.out), c_after = download(pc, count, s.out);
    float tolerance = s.out == CUDA_R_16BF ? 8e-3f : 1e-5f;
    if (s.compute == CUBLAS_COMPUTE_32F_FAST_TF32)
        tolerance = 2e-3f;
    for (int i = 0; i < s.m; i++)
        for (int j = 0; j < s.n; j++) {
            double sum = 0;
            for (int l = 0; l < s.k; l++)
                sum += at(a, ar, ac, s.row, s.ta ? l : i, s.ta ? i : l) *
                       at(b, br, bc, s.row, s.tb ? j : l, s.tb ? l : j);
            float x = s.alpha * (float)sum;
            if (s.beta != 0)
                x += s.beta * at(c, s.m, s.n, s.row, i, j);
            if (s.epilogue & CUBLASLT_EPILOGUE_BIAS)
                x += bias[(size_t)i];
            if (s.epilogue & CUBLASLT_EPILOGUE_GELU)
                x = gelu(x);
            float got = at(d, s.m, s.n, s.row, i, j);
            if (!(fabsf(got - x) <= tolerance * (1 + fabsf(x))))
                fail("element %d %d is %g instead of %g", i, j, (double)got, (double)x);
        }
    EXPECT(!memcmp(c.data(), c_after.data(), count * sizeof c[0]));
    EXPECT(isnan(download(workspace, 1, CUDA_R_32F)[0]));
}

static const Shape plain = {33,
                            20,
                            50,
                            false,
                            false,
                            false,
                            CUDA_R_32F,
                            CUDA_R_32F,
                            1,
                            0,
                            CUBLASLT_EPILOGUE_DEFAULT,
                            CUBLAS_COMPUTE_32F};

static void f32()
{
    product(plain);
}

static void transposes()
{
    for (int i = 0; i < 8; i++) {
        Shape s = plain;
        s.ta = i & 1;
        s.tb = i & 2;
        s.row = i & 4;
        product(s);
    }
}

static void beta()
{
    Shape s = plain;
    s.alpha = 0.5f;
    s.beta = 1;
    product(s);
    s.in = CUDA_R_16BF;  // a weight gradient: bf16 in, added to float
    s.ta = true;
    product(s);
}

static void bf16_bias()
{
    Shape s = plain;
    s.in = s.out = CUDA_R_16BF;
    s.epilogue = CUBLASLT_EPILOGUE_BIAS;
    s.ta = true;
    product(s);
    s.epilogue = CUBLASLT_EPILOGUE_GELU_BIAS;
    product(s);
}

static void tf32()
{
    Shape s = plain;
    s.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    product(s);
}

/* What the real library would refuse. */
static void refusals()
{
    Shape s = plain;
    cublasLtHandle_t handle;
    BLAS(cublasLtCreate(&handle));
    cublasLtMatmulDesc_t desc = describe(&s, nullptr);
    auto la = layout(CUDA_R_32F, 33, 50, false), lb = layout(CUDA_R_32F, 51, 20, false),
         ld = layout(CUDA_R_32F, 33, 20, false), lh = layout(CUDA_R_16BF, 50, 20, false),
         lg = layout(CUDA_R_32F, 50, 20, false);
    float *x = device<float>(5000), one = 1, zero = 0;
    cudaStream_t stream = new_stream();
    EXPECT(cublasLtMatmul(handle, desc, &one, x, la, x + 2000, lb, &zero, x + 4000, ld, x + 4000,
                          ld, nullptr, nullptr, 0, stream) == CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(cublasLtMatmul(handle, desc, &one, x, la, x + 2000, lh, &zero, x + 4000, ld, x + 4000,
                          ld, nullptr, nullptr, 0, stream) == CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT(cublasLtMatmul(handle, desc, &one, x, la, x + 2000, lg, &zero, x + 1000, ld, x + 1000,
                          ld, nullptr, nullptr, 0, stream) == CUBLAS_STATUS_INVALID_VALUE);
}

static void short_buffer()
{
    Shape s = plain;
    cublasLtHandle_t handle;
    BLAS(cublasLtCreate(&handle));
    cublasLtMatmulDesc_t desc = describe(&s, nullptr);
    auto l = layout(CUDA_R_32F, 32, 32, false);
    float *a = device<float>(1024), *b = device<float>(1023), *d = device<float>(1024);
    float one = 1, zero = 0;
    BLAS(cublasLtMatmul(handle, desc, &one, a, l, b, l, &zero, d, l, d, l, nullptr, nullptr, 0,
                        new_stream()));
    CUDA(cudaDeviceSynchronize());
}

static void round_to_even()
{
    EXPECT((float)__float2bfloat16(1.00390625f) == 1.0f);       // tie, down to even
    EXPECT((float)__float2bfloat16(1.01171875f) == 1.015625f);  // tie, up to even
    EXPECT((float)__float2bfloat16(1.004f) == 1.0078125f);      // above the tie
    EXPECT(isnan((float)__float2bfloat16(NAN)));
    EXPECT(isinf((float)__float2bfloat16(3.4e38f)));
}

const Case blas_cases[] = {
    {"matmul-f32", f32},
    {"matmul-transposes", transposes},
    {"matmul-beta-other-c", beta},
    {"matmul-bf16-bias", bf16_bias},
    {"matmul-tf32", tf32},
    {"matmul-refusals", refusals},
    {"matmul-short-buffer", short_buffer, DIES, "B of a matmul: 4096 bytes"},
    {"bf16-rounding", round_to_even},
    {},
};
