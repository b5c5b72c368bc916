/* sums.cuh: sums over many blocks that have the same bits every time.
 *
 * Additions of blocks in the order in which they happen to end would differ
 * from run to run. Here each block leaves its part in the workspace, and a
 * second kernel adds the parts in order. Into how many parts a sum is cut
 * depends on its shape alone, so another GPU adds in the same order.
 *
 * What is summed is a Term, a struct of addresses that is handed to the kernel
 * by value.
 */
#ifndef SUMS_CUH
#define SUMS_CUH

#include "device.cuh"

/* ---- columns: to[j] += the sum over i of term(i, j) ---- */

/*           32 N columns
 *     rows  [warp 0      ]     a block: one slice of the rows, 32 N columns.
 *           [warp 1      ]     Each warp adds every 8th row in registers, then
 *           [  ...       ]     the 8 sums of a column are added in order.
 *           [warp 7      ]
 *           [warp 0      ]     Term::SUMS sums are made of the same rows.
 */
constexpr int COLUMN_WARPS = 8;

struct Columns {         // where the sums go
    float *to, *second;  // [columns] each
    float *partial;      // [slices][SUMS][columns]; NULL: one slice adds itself
    int rows, columns;
    int slice;  // rows of each
};

template <int N, class Term>
__device__ void slice_sum(float (&sum)[Term::SUMS][N], Term term, Columns c,
                          int column)
{
    int first = blockIdx.y * c.slice;
    int end = c.rows - first < c.slice ? c.rows : first + c.slice;
    for (int row = first + threadIdx.x / WARP; row < end; row += COLUMN_WARPS)
        term.add(sum, row, column);
}

template <int N, class Term>
__global__ void __launch_bounds__(WARP *COLUMN_WARPS)
    column_parts(Term term, Columns c)
{
    const int SUMS = Term::SUMS, wide = WARP * N;
    __shared__ float part[SUMS][COLUMN_WARPS][wide];
    int warp = threadIdx.x / WARP, at = threadIdx.x % WARP * N;
    int start = blockIdx.x * wide;
    float sum[SUMS][N] = {};
    if (start + at < c.columns)
        slice_sum(sum, term, c, start + at);
    for (int k = 0; k < SUMS; k++)
        for (int i = 0; i < N; i++)
            part[k][warp][at + i] = sum[k][i];
    __syncthreads();
    for (int i = threadIdx.x; i < SUMS * wide; i += blockDim.x) {
        int k = i / wide, column = start + i % wide;
        float total = 0;
        for (int w = 0; w < COLUMN_WARPS; w++)
            total += part[k][w][i % wide];
        if (column >= c.columns)
            continue;
        if (c.partial)
            c.partial[(size_t)(blockIdx.y * SUMS + k) * c.columns + column] =
                total;
        else
            (k == 0 ? c.to : c.second)[column] += total;
    }
}

template <int SUMS> __global__ void column_totals(Columns c, int slices)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x, k = blockIdx.y;
    if (column >= c.columns)
        return;
    float total = 0;
    for (int slice = 0; slice < slices; slice++)
        total += c.partial[(size_t)(slice * SUMS + k) * c.columns + column];
    (k == 0 ? c.to : c.second)[column] += total;
}

/* Enough slices to fill a GPU, of at least 128 rows, while few floats are
 * left in the workspace. */
inline int slices_of(int rows, int columns)
{
    int most = 65536 / columns, wanted = rows / 128;
    int slices = most < wanted ? most : wanted;
    return slices < 1 ? 1 : slices > 64 ? 64 : slices;
}

/* Second: where the second sum of the term goes, else NULL. */
template <class Term>
void add_columns(Term term, float *to, float *second, int rows, int columns,
                 bool packed)
{
    int slices = slices_of(rows, columns);
    Columns c = {to,   second,  NULL,
                 rows, columns, (int)blocks((size_t)rows, slices)};
    if (slices > 1)
        c.partial = (float *)scratch(sizeof(float) * Term::SUMS *
                                     (size_t)slices * (size_t)columns);
    int wide = packed ? WARP * PACK : WARP;
    dim3 grid(blocks((size_t)columns, wide), (unsigned)slices);
    launch(packed ? column_parts<PACK, Term> : column_parts<1, Term>, grid,
           WARP * COLUMN_WARPS, 0, term, c);
    if (slices > 1)
        launch(column_totals<Term::SUMS>,
               dim3(blocks((size_t)columns, 256), Term::SUMS), 256, 0, c,
               slices);
}

/* ---- all elements: to = scale * the sum over i of term(i) ---- */

constexpr int SUM_THREADS = 512;

/* to[block] = scale * the sum of the block's part */
template <class T, class Term>
__global__ void __launch_bounds__(SUM_THREADS)
    sum_parts(T *to, Term term, size_t count, double scale)
{
    double sum = 0;
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += stride)
        sum += (double)term(i);
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        to[blockIdx.x] = (T)(sum * scale);
}

struct PartTerm {  // what the first kernel left
    const double *part;

    __device__ double operator()(size_t i) const
    {
        return part[i];
    }
};

/* count: calls of the term, each of which may stand for a pack of elements. A
 * small sum is made by one block at once. */
template <class T, class Term>
void total(T *to, Term term, size_t count, double scale)
{
    int parts = (int)blocks(count, SUM_THREADS * 8);
    if (parts <= 1) {
        launch(sum_parts<T, Term>, dim3(1), SUM_THREADS, 0, to, term, count,
               scale);
        return;
    }
    parts = parts > SUM_THREADS ? SUM_THREADS : parts;
    double *part = (double *)scratch((size_t)parts * sizeof(double));
    launch(sum_parts<double, Term>, dim3((unsigned)parts), SUM_THREADS, 0, part,
           term, count, 1.0);
    launch(sum_parts<T, PartTerm>, dim3(1), SUM_THREADS, 0, to, PartTerm{part},
           (size_t)parts, scale);
}

#endif
