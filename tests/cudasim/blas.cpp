/* blas.cpp: cuBLASLt's matrix product, on the stream like everything else.
 *
 * D = epilogue(alpha op(A) op(B) + beta C). Operands are read through strides
 * into row-major floats, multiplied by oneDNN, and written through strides; so
 * orders and transposes are strides and nothing more. What the real library
 * refuses, or what its fast kernels need, is refused here too: types that do
 * not match, pointers less aligned than the preference promised, a bias of
 * another type than D.
 */
#include "cublasLt.h"
#include "cuda_bf16.h"
#include "sim.h"
#include <dnnl.h>
#include <stdio.h>
#include <string.h>

struct CudasimMatrixLayout {
    int32_t type, order;
    uint64_t rows, cols;
    int64_t ld;
    int32_t batch;
    int64_t batch_stride;
};

struct CudasimMatmulDesc {
    int32_t compute, scale, pointer_mode, op_a, op_b;
    uint32_t epilogue;
    void *bias;
    int64_t bias_stride;
    int32_t bias_type;  // -1: as D
    void *aux;
    int64_t aux_ld;
    int32_t aux_type;  // -1: as D
};

struct CudasimMatmulPreference {
    uint64_t workspace;
    uint32_t alignment[4];  // of A, B, C, D
};

namespace sim
{

struct Algorithm {  // what lies in a cublasLtMatmulAlgo_t
    uint64_t magic, workspace;
    uint32_t alignment[4];
};

enum : uint64_t { MAGIC = 0x6375646173696d31, WORKSPACE = 1 << 20 };

struct Product {  // all of one call, copied
    CudasimMatmulDesc desc;
    CudasimMatrixLayout a, b, c, d;
    const char *at_a, *at_b, *at_c;
    char *at_d, *workspace;
    size_t workspace_bytes;
    float alpha, beta;
    size_t m, n, k;
};

/* ---- elements ---- */

static size_t size_of(int32_t type)
{
    return type == CUDA_R_16BF ? 2 : type == CUDA_R_32F ? 4 : 0;
}

static float get(const void *base, int32_t type, size_t i)
{
    if (type == CUDA_R_16BF)
        return (float)((const __nv_bfloat16 *)base)[i];
    return ((const float *)base)[i];
}

static void put(void *base, int32_t type, size_t i, float x)
{
    if (type == CUDA_R_16BF)
        ((__nv_bfloat16 *)base)[i] = __nv_bfloat16(x);
    else
        ((float *)base)[i] = x;
}

struct Strides {
    size_t row, col;
};

static Strides strides(const CudasimMatrixLayout *l, bool transposed)
{
    bool down = (l->order == CUBLASLT_ORDER_COL) != transposed;
    return down ? Strides{1, (size_t)l->ld} : Strides{(size_t)l->ld, 1};
}

/* Bytes from the first to the last element of one matrix of the batch. */
static size_t extent(const CudasimMatrixLayout *l)
{
    Strides s = strides(l, false);
    return ((l->rows - 1) * s.row + (l->cols - 1) * s.col + 1) * size_of(l->type);
}

/* TF32 keeps ten bits of the mantissa. */
static float narrowed(float x, int32_t compute)
{
    if (compute == CUBLAS_COMPUTE_32F_FAST_16BF)
        return (float)__nv_bfloat16(x);
    if (compute != CUBLAS_COMPUTE_32F_FAST_TF32 || x != x)
        return x;
    return __uint_as_float((__float_as_uint(x) + 0x1000) & ~0x1fffu);
}

static std::vector<float> packed(const char *from, const CudasimMatrixLayout *l, bool transposed,
                                 size_t rows, size_t cols, int32_t compute)
{
    std::vector<float> to(rows * cols);
    Strides s = strides(l, transposed);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            to[i * cols + j] = narrowed(get(from, l->type, i * s.row + j * s.col), compute);
    return to;
}

/* ---- epilogues ---- */

static float gelu(float x)
{
    return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

static float gelu_slope(float x)
{
    float t = tanhf(0.7978845608f * (x + 0.044715f * x * x * x));
    float inner = 0.7978845608f * (1.0f + 3.0f * 0.044715f * x * x);
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inner;
}

static float finished_value(const Product *p, float x, size_t i, size_t j, int batch)
{
    uint32_t epilogue = p->desc.epilogue;
    int32_t aux_type = p->desc.aux_type < 0 ? p->d.type : p->desc.aux_type;
    size_t aux_at = i + j * (size_t)p->desc.aux_ld;
    if (epilogue & CUBLASLT_EPILOGUE_BIAS)
        x += get(p->desc.bias, p->d.type, i + (size_t)(batch * p->desc.bias_stride));
    if (epilogue == CUBLASLT_EPILOGUE_DGELU)
        return x * gelu_slope(get(p->desc.aux, aux_type, aux_at));
    if (epilogue & 128)
        put(p->desc.aux, aux_type, aux_at, x);
    return epilogue & CUBLASLT_EPILOGUE_GELU ? gelu(x) : x;
}

/* The sums of op(A) along k, one for each row of D, or of op(B), for each column. */
static void bias_gradient(const Product *p, const std::vector<float> &a,
                          const std::vector<float> &b)
{
    bool of_a = p->desc.epilogue == CUBLASLT_EPILOGUE_BGRADA;
    for (size_t i = 0; i < (of_a ? p->m : p->n); i++) {
        float sum = 0;
        for (size_t l = 0; l < p->k; l++)
            sum += of_a ? a[i * p->k + l] : b[l * p->n + i];
        put(p->desc.bias, p->d.type, i, sum);
    }
}

/* ---- the product ---- */

static const char *at_batch(const char *base, const CudasimMatrixLayout *l, int batch)
{
    return base + (size_t)(batch * l->batch_stride) * size_of(l->type);
}

static void multiply(const Product *p, int batch)
{
    const char *at_c = at_batch(p->at_c, &p->c, batch);
    char *at_d = (char *)at_batch(p->at_d, &p->d, batch);
    auto a = packed(at_batch(p->at_a, &p->a, batch), &p->a, p->desc.op_a, p->m, p->k,
                    p->desc.compute);
    auto b = packed(at_batch(p->at_b, &p->b, batch), &p->b, p->desc.op_b, p->k, p->n,
                    p->desc.compute);
    std::vector<float> sum(p->m * p->n);
    dnnl_dim_t m = (dnnl_dim_t)p->m, n = (dnnl_dim_t)p->n, k = (dnnl_dim_t)p->k;
    if (dnnl_sgemm('N', 'N', m, n, k, 1, a.data(), k, b.data(), n, 0, sum.data(), n))
        die("oneDNN refuses a product of %zu x %zu x %zu", p->m, p->n, p->k);
    Strides c = strides(&p->c, false), d = strides(&p->d, false);
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->n; j++) {
            float x = p->alpha * sum[i * p->n + j];
            if (p->beta != 0)
                x += p->beta * get(at_c, p->c.type, i * c.row + j * c.col);
            put(at_d, p->d.type, i * d.row + j * d.col, finished_value(p, x, i, j, batch));
        }
    if (p->desc.epilogue & (CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB))
        bias_gradient(p, a, b);
}

static void check_operand(const char *what, const char *base, const CudasimMatrixLayout *l)
{
    for (int batch = 0; batch < l->batch; batch++)
        check_range(what, at_batch(base, l, batch), extent(l));
}

static void run_product(const Product *p)
{
    check_operand("A of a matmul", p->at_a, &p->a);
    check_operand("B of a matmul", p->at_b, &p->b);
    check_operand("D of a matmul", p->at_d, &p->d);
    if (p->beta != 0)
        check_operand("C of a matmul", p->at_c, &p->c);
    if (p->desc.epilogue & CUBLASLT_EPILOGUE_BIAS)
        check_range("the bias of a matmul", p->desc.bias, p->m * size_of(p->d.type));
    check_range("the workspace of a matmul", p->workspace, p->workspace_bytes);
    /* Whoever else keeps something in the workspace shall notice. */
    fill_pattern(p->workspace, p->workspace_bytes);
    for (int batch = 0; batch < p->d.batch; batch++)
        multiply(p, batch);
    fill_pattern(p->workspace, p->workspace_bytes);
}

/* ---- what is refused ---- */

static cublasStatus_t refused(cublasStatus_t status, const char *why)
{
    fprintf(stderr, "cudasim: cublasLtMatmul: %s: %s\n", why, cublasLtGetStatusName(status));
    return status;
}

static bool needs_bias(uint32_t epilogue)
{
    return epilogue &
           (CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB);
}

static bool bad_leading(const CudasimMatrixLayout *l)
{
    return l->ld < (int64_t)(l->order == CUBLASLT_ORDER_COL ? l->rows : l->cols);
}

static const char *wrong_shapes(Product *p)
{
    p->m = p->d.rows;
    p->n = p->d.cols;
    p->k = p->desc.op_a ? p->a.rows : p->a.cols;
    if (!p->m || !p->n || !p->k)
        return "an extent is 0";
    if ((p->desc.op_a ? p->a.cols : p->a.rows) != p->m)
        return "op(A) and D differ in rows";
    if ((p->desc.op_b ? p->b.rows : p->b.cols) != p->n)
        return "op(B) and D differ in columns";
    if ((p->desc.op_b ? p->b.cols : p->b.rows) != p->k)
        return "op(A) has not as many columns as op(B) has rows";
    if (p->c.rows != p->m || p->c.cols != p->n || p->c.order != p->d.order)
        return "C and D differ in shape or order";
    if (bad_leading(&p->a) || bad_leading(&p->b) || bad_leading(&p->c) || bad_leading(&p->d))
        return "a leading dimension is too small";
    if (p->a.batch != p->d.batch || p->b.batch != p->d.batch || p->c.batch != p->d.batch)
        return "batch counts differ";
    return nullptr;
}

static const char *wrong_epilogue(const Product *p)
{
    switch (p->desc.epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT: return nullptr;
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB: break;
    default: return "this epilogue is not simulated";
    }
    if (p->d.order != CUBLASLT_ORDER_COL)
        return "epilogues want a column-major D";
    if (needs_bias(p->desc.epilogue) && p->desc.bias_type >= 0 && p->desc.bias_type != p->d.type)
        return "the bias has not the type of D";
    if ((p->desc.epilogue & 128) && p->d.batch > 1)
        return "aux of a batch is not simulated";
    return nullptr;
}

static const char *wrong_types(const Product *p)
{
    const CudasimMatmulDesc *d = &p->desc;
    if (d->compute != CUBLAS_COMPUTE_32F && d->compute != CUBLAS_COMPUTE_32F_PEDANTIC &&
        d->compute != CUBLAS_COMPUTE_32F_FAST_TF32 && d->compute != CUBLAS_COMPUTE_32F_FAST_16BF)
        return "only CUBLAS_COMPUTE_32F and its FAST variants are simulated";
    if (d->scale != CUDA_R_32F || d->pointer_mode != CUBLASLT_POINTER_MODE_HOST)
        return "alpha and beta are floats on the host";
    if (p->a.type != p->b.type || p->c.type != p->d.type || !size_of(p->a.type) ||
        !size_of(p->d.type) || (p->a.type == CUDA_R_32F && p->d.type != CUDA_R_32F))
        return "this combination of types is not supported";
    return nullptr;
}

/* C may be D itself; anything else that overlaps is a mistake. */
static bool overlaps(const char *p, size_t bytes, const char *q, size_t others)
{
    return p < q + others && q < p + bytes;
}

static const char *wrong_pointers(const Product *p, const Algorithm *algorithm)
{
    const void *at[] = {p->at_a, p->at_b, p->at_c, p->at_d};
    for (int i = 0; i < 4; i++)
        if ((i != 2 || p->beta != 0) && (!at[i] || (uintptr_t)at[i] % algorithm->alignment[i]))
            return "a pointer is less aligned than the preference says";
    if (overlaps(p->at_d, extent(&p->d), p->at_a, extent(&p->a)) ||
        overlaps(p->at_d, extent(&p->d), p->at_b, extent(&p->b)))
        return "D overlaps A or B";
    if (p->beta != 0 && p->at_c != p->at_d &&
        overlaps(p->at_d, extent(&p->d), p->at_c, extent(&p->c)))
        return "D overlaps C without being C";
    if (needs_bias(p->desc.epilogue) && !p->desc.bias)
        return "no bias pointer";
    if ((p->desc.epilogue & 128) && (!p->desc.aux || p->desc.aux_ld < (int64_t)p->m))
        return "no aux pointer, or its leading dimension is too small";
    if (p->workspace_bytes < algorithm->workspace)
        return "the workspace is smaller than the algorithm's";
    return nullptr;
}

static cublasStatus_t judge(Product *p)
{
    const char *why;
    if ((why = wrong_shapes(p)))
        return refused(CUBLAS_STATUS_INVALID_VALUE, why);
    if ((why = wrong_types(p)) || (why = wrong_epilogue(p)))
        return refused(CUBLAS_STATUS_NOT_SUPPORTED, why);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- attributes ---- */

static cublasStatus_t set(void *field, size_t bytes, const void *from, size_t given)
{
    if (!from || given != bytes)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(field, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

#define SET(field) set(&(field), sizeof(field), buf, sizeInBytes)

}  // namespace sim

using namespace sim;

extern "C" cublasStatus_t cublasLtCreate(cublasLtHandle_t *lightHandle)
{
    if (!devices())
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *lightHandle = (cublasLtHandle_t) new int(0);
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasLtDestroy(cublasLtHandle_t lightHandle)
{
    delete (int *)lightHandle;
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" size_t cublasLtGetVersion(void)
{
    return 130100;
}

extern "C" const char *cublasLtGetStatusName(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR: return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR: return "CUBLAS_STATUS_LICENSE_ERROR";
    }
    return "unknown status";
}

extern "C" const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return cublasLtGetStatusName(status);
}

extern "C" cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *matLayout,
                                                     cudaDataType type, uint64_t rows,
                                                     uint64_t cols, int64_t ld)
{
    *matLayout = new CudasimMatrixLayout{type, CUBLASLT_ORDER_COL, rows, cols, ld, 1, 0};
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matLayout)
{
    delete matLayout;
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                           cublasLtMatrixLayoutAttribute_t attr,
                                                           const void *buf, size_t sizeInBytes)
{
    switch (attr) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE: return SET(l->type);
    case CUBLASLT_MATRIX_LAYOUT_ORDER: return SET(l->order);
    case CUBLASLT_MATRIX_LAYOUT_ROWS: return SET(l->rows);
    case CUBLASLT_MATRIX_LAYOUT_COLS: return SET(l->cols);
    case CUBLASLT_MATRIX_LAYOUT_LD: return SET(l->ld);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return SET(l->batch);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return SET(l->batch_stride);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

extern "C" cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *matmulDesc,
                                                   cublasComputeType_t computeType,
                                                   cudaDataType_t scaleType)
{
    CudasimMatmulDesc *d = new CudasimMatmulDesc();
    d->compute = computeType;
    d->scale = scaleType;
    d->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    d->bias_type = d->aux_type = -1;
    *matmulDesc = d;
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmulDesc)
{
    delete matmulDesc;
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                                         cublasLtMatmulDescAttributes_t attr,
                                                         const void *buf, size_t sizeInBytes)
{
    switch (attr) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE: return SET(d->compute);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE: return SET(d->scale);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: return SET(d->pointer_mode);
    case CUBLASLT_MATMUL_DESC_TRANSA: return SET(d->op_a);
    case CUBLASLT_MATMUL_DESC_TRANSB: return SET(d->op_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return SET(d->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return SET(d->bias);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE: return SET(d->bias_stride);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return SET(d->aux);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return SET(d->aux_ld);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE: return SET(d->aux_type);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return SET(d->bias_type);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

extern "C" cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref)
{
    *pref = new CudasimMatmulPreference{0, {256, 256, 256, 256}};
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref)
{
    delete pref;
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
                                     cublasLtMatmulPreferenceAttributes_t attr, const void *buf,
                                     size_t sizeInBytes)
{
    uint32_t ignored;
    switch (attr) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return SET(pref->workspace);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return SET(pref->alignment[0]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return SET(pref->alignment[1]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return SET(pref->alignment[2]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return SET(pref->alignment[3]);
    case CUBLASLT_MATMUL_PREF_SEARCH_MODE:
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    case CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT: return SET(ignored);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

extern "C" cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t operationDesc, cublasLtMatrixLayout_t Adesc,
    cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
    cublasLtMatmulPreference_t preference, int requestedAlgoCount,
    cublasLtMatmulHeuristicResult_t heuristicResultsArray[], int *returnAlgoCount)
{
    Product p = {};
    p.desc = *operationDesc;
    p.a = *Adesc;
    p.b = *Bdesc;
    p.c = *Cdesc;
    p.d = *Ddesc;
    *returnAlgoCount = 0;
    if (requestedAlgoCount < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (cublasStatus_t status = judge(&p))
        return status;
    Algorithm algorithm = {};
    algorithm.magic = MAGIC;
    algorithm.workspace = preference->workspace < WORKSPACE ? preference->workspace
                                                            : (uint64_t)WORKSPACE;
    memcpy(algorithm.alignment, preference->alignment, sizeof algorithm.alignment);
    static_assert(sizeof algorithm <= sizeof(cublasLtMatmulAlgo_t));
    heuristicResultsArray[0] = {};
    memcpy(&heuristicResultsArray[0].algo, &algorithm, sizeof algorithm);
    heuristicResultsArray[0].workspaceSize = algorithm.workspace;
    *returnAlgoCount = 1;
    return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t cublasLtMatmul(cublasLtHandle_t lightHandle,
                                         cublasLtMatmulDesc_t computeDesc, const void *alpha,
                                         const void *A, cublasLtMatrixLayout_t Adesc, const void *B,
                                         cublasLtMatrixLayout_t Bdesc, const void *beta,
                                         const void *C, cublasLtMatrixLayout_t Cdesc, void *D,
                                         cublasLtMatrixLayout_t Ddesc,
                                         const cublasLtMatmulAlgo_t *algo, void *workspace,
                                         size_t workspaceSizeInBytes, cudaStream_t stream)
{
    if (!lightHandle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    Algorithm algorithm = {MAGIC, 0, {1, 1, 1, 1}};
    Product p = {*computeDesc,
                 *Adesc,
                 *Bdesc,
                 *Cdesc,
                 *Ddesc,
                 (const char *)A,
                 (const char *)B,
                 (const char *)C,
                 (char *)D,
                 (char *)workspace,
                 workspaceSizeInBytes,
                 *(const float *)alpha,
                 *(const float *)beta,
                 0,
                 0,
                 0};
    if (cublasStatus_t status = judge(&p))
        return status;
    if (algo)
        memcpy(&algorithm, algo, sizeof algorithm);
    if (algorithm.magic != MAGIC)
        return refused(CUBLAS_STATUS_INVALID_VALUE, "no algorithm of the heuristic");
    if (const char *why = wrong_pointers(&p, &algorithm))
        return refused(CUBLAS_STATUS_INVALID_VALUE, why);
    if (p.workspace_bytes > algorithm.workspace)
        p.workspace_bytes = algorithm.workspace;
    char name[96];
    snprintf(name, sizeof name, "%zu x %zu x %zu", p.m, p.n, p.k);
    Work work = {"matmul", name, [p] { run_product(&p); }};
    cudaError_t error = submit("cublasLtMatmul", stream, std::move(work));
    return error ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
