/* linear.cu: y = x weight^T + bias and its two gradients, as products by
 * cuBLASLt.
 *
 * cuBLASLt's matrices are column-major. Our row-major x[n][in] is, byte for
 * byte, its column-major in x n matrix, so every operand arrives transposed and
 * the products are taken in that world:
 *
 *     forward   y^T  [out x n]  = weight' [out x in]  x^T  [in x n]   + bias
 *     input     dx^T [in x n]   = weight^T [in x out] dy^T [out x n]  + prev
 *     weight    dW^T [in x out] = x^T [in x n]        dy'  [n x out]  + dW^T
 *
 *     ' : stored as the transpose of what the product needs, so transposed
 *
 * A bias of length out runs down the rows of y^T, as cuBLASLt's epilogue adds
 * it. Operands are Values, sums float; dW is float. Descriptors and the chosen
 * algorithm of a product are made when it is first run and kept, so that a
 * captured step makes none. */
#include "sums.cuh"

constexpr int PRODUCTS = 512;       // different shapes in one program
constexpr uint32_t ALIGNMENT = 64;  // of every block in the arena

typedef enum { FORWARD, FORWARD_BIAS, INPUT, INPUT_PREV, WEIGHT } Kind;

struct Product {
    Kind kind;
    int n, in, out;
    cublasLtMatmulDesc_t how;
    cublasLtMatrixLayout_t a, b, c;  // c: of the result too
    cublasLtMatmulAlgo_t algorithm;
};

static Product products[PRODUCTS];
static int product_count;

#ifdef PP_BF16
constexpr cudaDataType_t VALUE = CUDA_R_16BF;
#else
constexpr cudaDataType_t VALUE = CUDA_R_32F;
#endif

#ifdef PP_TF32
constexpr cublasComputeType_t COMPUTE = CUBLAS_COMPUTE_32F_FAST_TF32;
#else
constexpr cublasComputeType_t COMPUTE = CUBLAS_COMPUTE_32F;
#endif

/* ---- making a product ---- */

static cublasLtMatrixLayout_t layout(cudaDataType_t type, int rows, int columns)
{
    cublasLtMatrixLayout_t made;
    CHECK_BLAS(cublasLtMatrixLayoutCreate(&made, type, (uint64_t)rows,
                                          (uint64_t)columns, rows));
    return made;
}

template <class T>
static void set(Product *p, cublasLtMatmulDescAttributes_t name, T value)
{
    CHECK_BLAS(
        cublasLtMatmulDescSetAttribute(p->how, name, &value, sizeof value));
}

static void describe(Product *p)
{
    int n = p->n, in = p->in, out = p->out;
    CHECK_BLAS(cublasLtMatmulDescCreate(&p->how, COMPUTE, CUDA_R_32F));
    if (p->kind == FORWARD || p->kind == FORWARD_BIAS) {
        set(p, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
        p->a = layout(VALUE, in, out);
        p->b = layout(VALUE, in, n);
        p->c = layout(VALUE, out, n);
    } else if (p->kind == WEIGHT) {
        set(p, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T);
        p->a = layout(VALUE, in, n);
        p->b = layout(VALUE, out, n);
        p->c = layout(CUDA_R_32F, in, out);
    } else {
        p->a = layout(VALUE, in, out);
        p->b = layout(VALUE, out, n);
        p->c = layout(VALUE, in, n);
    }
    if (p->kind == FORWARD_BIAS)
        set(p, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
}

template <class T>
static void prefer(cublasLtMatmulPreference_t preference,
                   cublasLtMatmulPreferenceAttributes_t name, T value)
{
    CHECK_BLAS(cublasLtMatmulPreferenceSetAttribute(preference, name, &value,
                                                    sizeof value));
}

/* The first that cuBLASLt proposes for this shape. */
static void choose(Product *p)
{
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    CHECK_BLAS(cublasLtMatmulPreferenceCreate(&preference));
    prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
           (uint64_t)pp_device.workspace_bytes);
    // parts of a sum are added as floats, never as bf16
    prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           (uint32_t)CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, ALIGNMENT);
    prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, ALIGNMENT);
    prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, ALIGNMENT);
    prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, ALIGNMENT);
    CHECK_BLAS(cublasLtMatmulAlgoGetHeuristic(pp_device.blas, p->how, p->a,
                                              p->b, p->c, p->c, preference, 1,
                                              &result, &found));
    CHECK_BLAS(cublasLtMatmulPreferenceDestroy(preference));
    if (found < 1)
        pp_fail("cuBLASLt has no algorithm for a linear layer of %d positions, "
                "%d inputs, %d outputs",
                p->n, p->in, p->out);
    p->algorithm = result.algo;
}

/* ---- running it ---- */

static Product *product_of(Kind kind, int n, int in, int out, const float *bias)
{
    for (int i = 0; i < product_count; i++) {
        Product *p = &products[i];
        if (p->kind == kind && p->n == n && p->in == in && p->out == out)
            return p;
    }
    if (product_count == PRODUCTS)
        pp_fail("more than %d different linear layers", PRODUCTS);
    Product *p = &products[product_count++];
    *p = {};
    p->kind = kind, p->n = n, p->in = in, p->out = out;
    describe(p);
    if (bias)  // before choosing: its address counts
        set(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    choose(p);
    return p;
}

/* d = a b + beta c */
static void multiply(Product *p, const float *a, const float *b, float beta,
                     const float *c, float *d)
{
    const float alpha = 1;
    CHECK_BLAS(cublasLtMatmul(pp_device.blas, p->how, &alpha, a, p->a, b, p->b,
                              &beta, c, p->c, d, p->c, &p->algorithm,
                              pp_device.workspace, pp_device.workspace_bytes,
                              pp_device.compute));
}

struct BiasTerm {  // the column sums of dy
    static constexpr int SUMS = 1;
    const Value *dy;
    int width;

    template <int N>
    __device__ void add(float (&sum)[SUMS][N], int row, int column) const
    {
        float g[N];
        load<N>(g, dy + (size_t)row * width + column);
#pragma unroll
        for (int i = 0; i < N; i++)
            sum[0][i] += g[i];
    }
};

/* ---- pp.h ---- */

extern "C" {

void pp_linear_forward(float *y, const float *x, const float *weight,
                       const float *bias, int n, int in, int out)
{
    Product *p = product_of(bias ? FORWARD_BIAS : FORWARD, n, in, out, bias);
    if (bias)
        set(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    multiply(p, weight, x, 0, y, y);
}

void pp_linear_input(float *dx, const float *dy, const float *weight,
                     const float *prev, int n, int in, int out)
{
    Product *p = product_of(prev ? INPUT_PREV : INPUT, n, in, out, NULL);
    multiply(p, weight, dy, prev ? 1 : 0, prev ? prev : dx, dx);
}

/* cuBLASLt's epilogue for the bias gradient overwrites; ours adds. */
void pp_linear_weight(float *dweight, float *dbias, const float *x,
                      const float *dy, int n, int in, int out)
{
    multiply(product_of(WEIGHT, n, in, out, NULL), x, dy, 1, dweight, dweight);
    if (dbias)
        add_columns(BiasTerm{(const Value *)dy, out}, dbias, NULL, n, out,
                    packed(PACK, (size_t)out, dy));
}

}  // extern "C"
