/* attention.cu: y = softmax(q k^T / sqrt(size)) v for each row of the batch
 * and each head.
 *
 * FlashAttention's idea (Dao et al. 2022): no seq x seq matrix exists. A block
 * of 256 threads owns one tile of rows of one head and walks over the tiles of
 * the other side, which it brings into shared memory one after the other:
 *
 *     forward   owns queries, walks over keys and values: online softmax, y, lse
 *     queries   owns queries, walks over keys and values: dq
 *     keys      owns keys and values, walks over queries: dk, dv
 *
 * Nobody adds to what another block wrote, so the order of all additions is
 * fixed. With causal, tiles without a visible pair are skipped:
 *
 *                  keys 0   1   2   3
 *     queries 0       [ \               ]
 *             1       [ #   \           ]
 *             2       [ #   #   \       ]
 *             3       [ #   #   #   \   ]
 *
 * Backward makes the probabilities again from lse, with s the scores and dot =
 * sum(dy y) of each query:
 *     p = exp(s - lse)    dp = dy v^T    ds = p (dp - dot)
 *     dq = ds k / sqrt(size)    dk = ds^T (q / sqrt(size))    dv = p^T dy
 *
 * All tiles are float, [rows][STRIDE], padded with zeros to SIZE columns.
 * STRIDE = SIZE + 4: reads of 16 bytes down a column meet no bank twice. The
 * threads form a 16 x 16 square; thread (down, across) owns
 *
 *     of a product of two tiles [ROWS][COLUMNS]: rows down * R .. + R - 1 and
 *         columns across, across + 16, across + 32 ..
 *     of a result [ROWS][SIZE]: the same rows, and columns in groups of E = 2
 *         or 4 that lie side by side: across * E, 16 E + across * E, ..
 *
 * so all numbers of a row lie in the 16 lanes of one half of a warp, and the
 * probabilities that a warp writes are read by that warp only. */
#include "device.cuh"

constexpr int THREADS = 256, SIDE = 16;

struct Shape {
    int seq, size;  // of one head
    int heads;
    int causal;
    int packed;   // are rows of a head read and written in packs?
    float scale;  // 1 / sqrt(size)
};

/* Sizes of one kernel: SIZE columns, ROWS of the tile that a block owns,
 * COLUMNS rows of the tile that comes by. */
template <int SIZE_, int ROWS_, int COLUMNS_> struct Tile {
    static constexpr int SIZE = SIZE_, ROWS = ROWS_, COLUMNS = COLUMNS_;
    static constexpr int STRIDE = SIZE + 4;      // floats, of tiles
    static constexpr int WEIGHTS = COLUMNS + 4;  // floats, of probabilities
    static constexpr int R = ROWS / SIDE, C = COLUMNS / SIDE;
    static constexpr int W = SIZE / SIDE;  // columns of a result, a thread
    static constexpr int E = W < 4 ? W : 4;
};

static __device__ int down()
{
    return threadIdx.x / SIDE;
}

static __device__ int across()
{
    return threadIdx.x % SIDE;
}

/* ---- between global and shared memory ---- */

template <int N, class T>
static __device__ void load_rows(float *tile, const Value *from, size_t row,
                                 int rows, int valid, int size, float scale)
{
    constexpr int EACH = T::SIZE / N;  // threads side by side in a row
    for (int i = threadIdx.x; i < rows * EACH; i += THREADS) {
        int at = i / EACH, column = i % EACH * N;
        float a[N] = {};
        if (at < valid && column < size)
            load<N>(a, from + at * row + column);
#pragma unroll
        for (int k = 0; k < N; k++)
            a[k] *= scale;
        store<N>(tile + at * T::STRIDE + column, a);
    }
}

/* tile[rows][STRIDE] = from[valid][size] * scale, padded with zeros; `row`
 * Values from one row to the next */
template <class T>
static __device__ void load_tile(float *tile, const Value *from, size_t row,
                                 int rows, int valid, const Shape &s,
                                 float scale)
{
    if (s.packed)
        load_rows<PACK, T>(tile, from, row, rows, valid, s.size, scale);
    else
        load_rows<1, T>(tile, from, row, rows, valid, s.size, scale);
}

/* to[0 .. E - 1] = from + prev, as far as the head is wide */
template <int E>
static __device__ void store_group(Value *to, const Value *prev,
                                   float (&from)[E], int left, bool packed)
{
    if (packed) {
        float add[E] = {};
        if (prev)
            load<E>(add, prev);
#pragma unroll
        for (int k = 0; k < E; k++)
            from[k] += add[k];
        store<E>(to, from);
        return;
    }
#pragma unroll
    for (int k = 0; k < E; k++)
        if (k < left)
            to[k] = rounded<Value>(from[k] + (prev ? widen(prev[k]) : 0));
}

/* to[valid][size] = scale[i] * result + prev, from registers */
template <class T>
static __device__ void
store_tile(Value *to, const Value *prev, size_t row, int valid, const Shape &s,
           const float (&result)[T::R][T::W], const float (&scale)[T::R])
{
#pragma unroll
    for (int i = 0; i < T::R; i++) {
        int at = down() * T::R + i;
#pragma unroll
        for (int w = 0; w < T::W; w += T::E) {
            int column = w * SIDE + across() * T::E;
            size_t place = at * row + column;
            float group[T::E];
            if (at >= valid || column >= s.size)
                continue;
#pragma unroll
            for (int k = 0; k < T::E; k++)
                group[k] = scale[i] * result[i][w + k];
            store_group<T::E>(to + place, prev ? prev + place : NULL, group,
                              s.size - column, s.packed);
        }
    }
}

/* ---- products of tiles ---- */

static __device__ float4 four(const float *at)
{
    return *reinterpret_cast<const float4 *>(at);
}

/* s[i][j] = own[row i] . other[column j], over SIZE */
template <class T>
static __device__ void score(float (&s)[T::R][T::C], const float *own,
                             const float *other)
{
    own += down() * T::R * T::STRIDE, other += across() * T::STRIDE;
#pragma unroll
    for (int i = 0; i < T::R; i++)
#pragma unroll
        for (int j = 0; j < T::C; j++)
            s[i][j] = 0;
#pragma unroll 1
    for (int k = 0; k < T::SIZE; k += 4) {
        float4 a[T::R];
#pragma unroll
        for (int i = 0; i < T::R; i++)
            a[i] = four(own + i * T::STRIDE + k);
#pragma unroll
        for (int j = 0; j < T::C; j++) {
            float4 b = four(other + j * SIDE * T::STRIDE + k);
#pragma unroll
            for (int i = 0; i < T::R; i++) {
                s[i][j] = fmaf(a[i].x, b.x, s[i][j]);
                s[i][j] = fmaf(a[i].y, b.y, s[i][j]);
                s[i][j] = fmaf(a[i].z, b.z, s[i][j]);
                s[i][j] = fmaf(a[i].w, b.w, s[i][j]);
            }
        }
    }
}

/* A thread's columns of one row of a tile. */
template <class T>
static __device__ void load_columns(float (&to)[T::W], const float *row)
{
#pragma unroll
    for (int group = 0; group < T::W / T::E; group++) {
        const float *at = row + (group * SIDE + across()) * T::E;
        if constexpr (T::E == 4) {
            float4 b = four(at);
            to[group * 4] = b.x, to[group * 4 + 1] = b.y;
            to[group * 4 + 2] = b.z, to[group * 4 + 3] = b.w;
        } else {
            float2 b = *reinterpret_cast<const float2 *>(at);
            to[group * 2] = b.x, to[group * 2 + 1] = b.y;
        }
    }
}

/* sum[i][w] += weights[row i][0 .. COLUMNS - 1] times other[COLUMNS][column
 * w] */
template <class T>
static __device__ void add_product(float (&sum)[T::R][T::W],
                                   const float *weights, const float *other)
{
    weights += down() * T::R * T::WEIGHTS;
#pragma unroll 1
    for (int k = 0; k < T::COLUMNS; k += 4) {
        float4 a[T::R];
#pragma unroll
        for (int i = 0; i < T::R; i++)
            a[i] = four(weights + i * T::WEIGHTS + k);
#pragma unroll
        for (int step = 0; step < 4; step++) {
            float b[T::W];
            load_columns<T>(b, other + (k + step) * T::STRIDE);
#pragma unroll
            for (int i = 0; i < T::R; i++) {
                float p = step == 0   ? a[i].x
                          : step == 1 ? a[i].y
                          : step == 2 ? a[i].z
                                      : a[i].w;
#pragma unroll
                for (int w = 0; w < T::W; w++)
                    sum[i][w] = fmaf(p, b[w], sum[i][w]);
            }
        }
    }
}

/* weights[ROWS][WEIGHTS] = s; to be read after __syncwarp */
template <class T>
static __device__ void keep_weights(float *weights,
                                    const float (&s)[T::R][T::C])
{
    weights += down() * T::R * T::WEIGHTS + across();
#pragma unroll
    for (int i = 0; i < T::R; i++)
#pragma unroll
        for (int j = 0; j < T::C; j++)
            weights[i * T::WEIGHTS + j * SIDE] = s[i][j];
}

/* ---- one head ---- */

static __device__ int smaller(int a, int b)
{
    return a < b ? a : b;
}

static __device__ bool visible(const Shape &s, int query, int key)
{
    return key < s.seq && (!s.causal || key <= query);
}

/* Where a block works: blockIdx.x is a head of a row of the batch, blockIdx.y a
 * tile. */
struct Place {
    size_t x;      // of the head's first query in x; keys and values follow
    size_t y;      // in y and dy
    size_t lse;    // in lse
    size_t width;  // of y; 3 width of x
};

static __device__ Place place_of(const Shape &s)
{
    int row = blockIdx.x / s.heads, head = blockIdx.x % s.heads;
    size_t width = (size_t)s.heads * s.size;
    size_t first = (size_t)row * s.seq * width;
    return {3 * first + (size_t)head * s.size, first + (size_t)head * s.size,
            (size_t)blockIdx.x * s.seq, width};
}

/* ---- forward ---- */

template <int R> struct Online {  // softmax of R rows, of the keys seen so far
    float top[R], sum[R];
};

/* Largest and sum over the 16 lanes of a row. */
static __device__ float row_max(float x)
{
#pragma unroll
    for (int step = SIDE / 2; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, step));
    return x;
}

static __device__ float row_sum(float x)
{
#pragma unroll
    for (int step = SIDE / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
}

/* Scores become exponentials relative to the largest so far; what was summed
 * before is scaled to it. Key 0 is visible to all queries, so from the first
 * tile on the largest is finite. */
template <class T>
static __device__ void exponentials(float (&p)[T::R][T::C],
                                    Online<T::R> &online,
                                    float (&result)[T::R][T::W])
{
#pragma unroll
    for (int i = 0; i < T::R; i++) {
        float top = online.top[i], sum = 0;
#pragma unroll
        for (int j = 0; j < T::C; j++)
            top = fmaxf(top, p[i][j]);
        top = row_max(top);
#pragma unroll
        for (int j = 0; j < T::C; j++)
            sum += p[i][j] = __expf(p[i][j] - top);
        float keep = __expf(online.top[i] - top);
        online.sum[i] = online.sum[i] * keep + row_sum(sum);
        online.top[i] = top;
#pragma unroll
        for (int w = 0; w < T::W; w++)
            result[i][w] *= keep;
    }
}

template <class T>
static __device__ void hide(float (&p)[T::R][T::C], const Shape &s, int query,
                            int key)
{
#pragma unroll
    for (int i = 0; i < T::R; i++)
#pragma unroll
        for (int j = 0; j < T::C; j++)
            if (!visible(s, query + down() * T::R + i,
                         key + across() + j * SIDE))
                p[i][j] = -INFINITY;
}

/* The last tiles see the most keys, so they start first. */
template <class T> static __device__ int first_query()
{
    return (int)(gridDim.y - 1 - blockIdx.y) * T::ROWS;
}

template <class T> static __device__ int keys_of(const Shape &s, int query)
{
    return s.causal ? smaller(s.seq, query + T::ROWS) : s.seq;
}

template <class T>
static __global__ void __launch_bounds__(THREADS, T::SIZE > 128 ? 1 : 2)
    attention_forward(Value *__restrict__ y, float *__restrict__ lse,
                      const Value *__restrict__ x, Shape s)
{
    extern __shared__ float tiles[];
    float *q = tiles, *k = q + T::ROWS * T::STRIDE;
    float *v = k + T::COLUMNS * T::STRIDE,
          *weights = v + T::COLUMNS * T::STRIDE;
    Place at = place_of(s);
    int query = first_query<T>(), valid = smaller(T::ROWS, s.seq - query);
    float result[T::R][T::W] = {}, p[T::R][T::C];
    Online<T::R> online;
    for (int i = 0; i < T::R; i++)
        online.top[i] = -INFINITY, online.sum[i] = 0;

    load_tile<T>(q, x + at.x + query * 3 * at.width, 3 * at.width, T::ROWS,
                 valid, s, s.scale);
    for (int key = 0; key < keys_of<T>(s, query); key += T::COLUMNS) {
        const Value *from = x + at.x + (key * 3 + 1) * at.width;
        int keys = smaller(T::COLUMNS, s.seq - key);
        __syncthreads();  // the last tile has been used
        load_tile<T>(k, from, 3 * at.width, T::COLUMNS, keys, s, 1);
        load_tile<T>(v, from + at.width, 3 * at.width, T::COLUMNS, keys, s, 1);
        __syncthreads();
        score<T>(p, q, k);
        hide<T>(p, s, query, key);
        exponentials<T>(p, online, result);
        keep_weights<T>(weights, p);
        __syncwarp();
        add_product<T>(result, weights, v);
        __syncwarp();
    }

    float inverse[T::R];
    for (int i = 0; i < T::R; i++) {
        int row = down() * T::R + i;
        inverse[i] = 1 / online.sum[i];
        if (row < valid && across() == 0)
            lse[at.lse + query + row] = online.top[i] + __logf(online.sum[i]);
    }
    store_tile<T>(y + at.y + query * at.width, NULL, at.width, valid, s, result,
                  inverse);
}

/* ---- backward ---- */

/* dots[rows] = sum(dy y) of each query of a tile of dy */
template <class T>
static __device__ void row_dots(float *dots, const float *dy, const Value *y,
                                size_t width, int rows, int valid, int size)
{
    for (int row = threadIdx.x / WARP; row < rows; row += THREADS / WARP) {
        float sum = 0;
        for (int j = threadIdx.x % WARP; j < size && row < valid; j += WARP)
            sum += dy[row * T::STRIDE + j] * widen(y[row * width + j]);
        sum = warp_sum(sum);
        if (threadIdx.x % WARP == 0)
            dots[row] = sum;
    }
}

/* p: scores become probabilities; dp becomes ds. One pair. */
static __device__ void differentiate(float &p, float &dp, float lse, float dot,
                                     bool seen)
{
    p = seen ? __expf(p - lse) : 0;
    dp = p * (dp - dot);
}

struct Backward {
    const Value *dy, *x, *y;
    const float *lse;
    Value *dx;
    const Value *prev;  // may be NULL
};

template <class T>
static __device__ void
differentiate_queries(float (&p)[T::R][T::C], float (&dp)[T::R][T::C],
                      const Shape &s, const float *lse, const float *dots,
                      int query, int key)
{
#pragma unroll
    for (int i = 0; i < T::R; i++) {
        int row = down() * T::R + i;
#pragma unroll
        for (int j = 0; j < T::C; j++)
            differentiate(p[i][j], dp[i][j], lse[row], dots[row],
                          visible(s, query + row, key + across() + j * SIDE));
    }
}

/* dq of one tile of queries */
template <class T>
static __global__ void __launch_bounds__(THREADS, T::SIZE > 128 ? 1 : 2)
    attention_queries(Backward b, Shape s)
{
    extern __shared__ float tiles[];
    float *q = tiles, *dy = q + T::ROWS * T::STRIDE;
    float *k = dy + T::ROWS * T::STRIDE, *v = k + T::COLUMNS * T::STRIDE;
    float *weights = v + T::COLUMNS * T::STRIDE;
    float *dots = weights + T::ROWS * T::WEIGHTS, *lse = dots + T::ROWS;
    Place at = place_of(s);
    int query = first_query<T>(), valid = smaller(T::ROWS, s.seq - query);
    float dq[T::R][T::W] = {}, p[T::R][T::C], dp[T::R][T::C];

    load_tile<T>(q, b.x + at.x + query * 3 * at.width, 3 * at.width, T::ROWS,
                 valid, s, s.scale);
    load_tile<T>(dy, b.dy + at.y + query * at.width, at.width, T::ROWS, valid,
                 s, 1);
    for (int i = threadIdx.x; i < T::ROWS; i += THREADS)
        lse[i] = i < valid ? b.lse[at.lse + query + i] : 0;
    __syncthreads();
    row_dots<T>(dots, dy, b.y + at.y + query * at.width, at.width, T::ROWS,
                valid, s.size);
    for (int key = 0; key < keys_of<T>(s, query); key += T::COLUMNS) {
        const Value *from = b.x + at.x + (key * 3 + 1) * at.width;
        int keys = smaller(T::COLUMNS, s.seq - key);
        __syncthreads();
        load_tile<T>(k, from, 3 * at.width, T::COLUMNS, keys, s, 1);
        load_tile<T>(v, from + at.width, 3 * at.width, T::COLUMNS, keys, s, 1);
        __syncthreads();
        score<T>(p, q, k);
        score<T>(dp, dy, v);
        differentiate_queries<T>(p, dp, s, lse, dots, query, key);
        keep_weights<T>(weights, dp);
        __syncwarp();
        add_product<T>(dq, weights, k);
        __syncwarp();
    }
    float scale[T::R];
    for (int i = 0; i < T::R; i++)
        scale[i] = s.scale;
    size_t to = at.x + query * 3 * at.width;
    store_tile<T>(b.dx + to, b.prev ? b.prev + to : NULL, 3 * at.width, valid,
                  s, dq, scale);
}

template <class T>
static __device__ void differentiate_keys(float (&p)[T::R][T::C],
                                          float (&dp)[T::R][T::C],
                                          const Shape &s, const float *lse,
                                          const float *dots, int key, int query)
{
#pragma unroll
    for (int j = 0; j < T::C; j++) {
        int column = across() + j * SIDE;
        float log_sum = lse[column], dot = dots[column];
        bool real = query + column < s.seq;
#pragma unroll
        for (int i = 0; i < T::R; i++)
            differentiate(
                p[i][j], dp[i][j], log_sum, dot,
                real && visible(s, query + column, key + down() * T::R + i));
    }
}

/* dk and dv of one tile of keys */
template <class T>
static __global__ void __launch_bounds__(THREADS, T::SIZE > 128 ? 1 : 2)
    attention_keys(Backward b, Shape s)
{
    extern __shared__ float tiles[];
    float *k = tiles, *v = k + T::ROWS * T::STRIDE;
    float *q = v + T::ROWS * T::STRIDE, *dy = q + T::COLUMNS * T::STRIDE;
    float *weights = dy + T::COLUMNS * T::STRIDE;
    float *dots = weights + T::ROWS * T::WEIGHTS, *lse = dots + T::COLUMNS;
    Place at = place_of(s);
    int key = blockIdx.y * T::ROWS, valid = smaller(T::ROWS, s.seq - key);
    size_t own = at.x + (key * 3 + 1) * at.width;
    float dk[T::R][T::W] = {}, dv[T::R][T::W] = {};
    float p[T::R][T::C], dp[T::R][T::C];

    load_tile<T>(k, b.x + own, 3 * at.width, T::ROWS, valid, s, 1);
    load_tile<T>(v, b.x + own + at.width, 3 * at.width, T::ROWS, valid, s, 1);
    // key is a multiple of COLUMNS, as ROWS is: no query before it sees it
    for (int query = s.causal ? key : 0; query < s.seq; query += T::COLUMNS) {
        int queries = smaller(T::COLUMNS, s.seq - query);
        size_t from = at.y + query * at.width;
        __syncthreads();
        load_tile<T>(q, b.x + at.x + query * 3 * at.width, 3 * at.width,
                     T::COLUMNS, queries, s, s.scale);
        load_tile<T>(dy, b.dy + from, at.width, T::COLUMNS, queries, s, 1);
        for (int i = threadIdx.x; i < T::COLUMNS; i += THREADS)
            lse[i] = i < queries ? b.lse[at.lse + query + i] : 0;
        __syncthreads();
        row_dots<T>(dots, dy, b.y + from, at.width, T::COLUMNS, queries,
                    s.size);
        score<T>(p, k, q);
        score<T>(dp, v, dy);
        __syncthreads();
        differentiate_keys<T>(p, dp, s, lse, dots, key, query);
        keep_weights<T>(weights, p);
        __syncwarp();
        add_product<T>(dv, weights, dy);
        __syncwarp();
        keep_weights<T>(weights, dp);
        __syncwarp();
        add_product<T>(dk, weights, q);
        __syncwarp();
    }
    float scale[T::R];
    for (int i = 0; i < T::R; i++)
        scale[i] = 1;  // q was scaled
    store_tile<T>(b.dx + own, b.prev ? b.prev + own : NULL, 3 * at.width, valid,
                  s, dk, scale);
    own += at.width;
    store_tile<T>(b.dx + own, b.prev ? b.prev + own : NULL, 3 * at.width, valid,
                  s, dv, scale);
}

/* ---- launching ---- */

/* Shared memory of a kernel that owns `own` tiles and sees two come by. */
template <class T> constexpr size_t shared_bytes(int own)
{
    return sizeof(float) *
           (size_t)((own * T::ROWS + 2 * T::COLUMNS) * T::STRIDE +
                    T::ROWS * T::WEIGHTS + T::ROWS + T::COLUMNS + 64);
}

template <class T, class... P>
static void launch_heads(void (*kernel)(P...), int own, int rows,
                         const Shape &s, std::type_identity_t<P>... arguments)
{
    size_t bytes = shared_bytes<T>(own);
    CHECK(cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    dim3 grid((unsigned)(rows * s.heads), blocks((size_t)s.seq, T::ROWS));
    launch(kernel, grid, THREADS, bytes, arguments...);
}

template <class T>
static void forward(float *y, float *lse, const float *x, int rows,
                    const Shape &s)
{
    launch_heads<T>(attention_forward<T>, 1, rows, s, (Value *)y, lse,
                    (const Value *)x, s);
}

template <class T>
static void backward(const Backward &b, int rows, const Shape &s)
{
    launch_heads<T>(attention_queries<T>, 2, rows, s, b, s);
    launch_heads<T>(attention_keys<T>, 2, rows, s, b, s);
}

static Shape shape_of(int seq, int width, int heads, int causal, bool packed)
{
    int size = width / heads;
    if (size > 256)
        pp_fail("attention: heads are %d wide, the cuda device allows 256",
                size);
    return {seq,
            size,
            heads,
            causal,
            packed && size % PACK == 0,
            1 / sqrtf((float)size)};
}

/* ---- pp.h; tmp is not needed ---- */

extern "C" {

void pp_attention_forward(float *y, float *lse, const float *x, float *, int n,
                          int seq, int width, int heads, int causal)
{
    Shape s = shape_of(seq, width, heads, causal, packed(PACK, 0, x, y));
    int rows = n / seq;
    if (s.size <= 32)
        forward<Tile<32, 64, 64>>(y, lse, x, rows, s);
    else if (s.size <= 64)
        forward<Tile<64, 64, 64>>(y, lse, x, rows, s);
    else if (s.size <= 128)
        forward<Tile<128, 64, 32>>(y, lse, x, rows, s);
    else
        forward<Tile<256, 32, 16>>(y, lse, x, rows, s);
}

void pp_attention_input(float *dx, const float *dy, const float *x,
                        const float *y, const float *lse, float *,
                        const float *prev, int n, int seq, int width, int heads,
                        int causal)
{
    Shape s = shape_of(seq, width, heads, causal,
                       packed(PACK, 0, x, dy, dx, prev));
    Backward b = {(const Value *)dy, (const Value *)x,   (const Value *)y, lse,
                  (Value *)dx,       (const Value *)prev};
    int rows = n / seq;
    if (s.size <= 32)
        backward<Tile<32, 64, 32>>(b, rows, s);
    else if (s.size <= 64)
        backward<Tile<64, 64, 32>>(b, rows, s);
    else if (s.size <= 128)
        backward<Tile<128, 64, 32>>(b, rows, s);
    else
        backward<Tile<256, 32, 16>>(b, rows, s);
}

}  // extern "C"
