/* attention.c: y = softmax(q k^T / sqrt(size)) v for each row of the batch and
 * each head.
 *
 * The idea is that of FlashAttention (Dao et al. 2022): no seq x seq matrix
 * exists. A strip of 32 queries is scored against all keys that it may see,
 * turned into probabilities while the strip is in the cache, multiplied by the
 * values and forgotten. Only the log of each row's sum of exponentials (lse) is
 * kept, from which the backward pass makes the same probabilities again.
 *
 *              keys 0..31  32..63  64..95
 *     strip 0  [ \.......  skipped skipped ]     causal: a strip sees the keys up to its own;
 *     strip 1  [ ........  \...... skipped ]     above the diagonal of its last block the
 *     strip 2  [ ........  ....... \...... ]     probabilities are 0
 *
 * Each head is first copied out of x into tmp, padded with zeros to whole
 * blocks of 32, so that all products are made of equal tiles (see `tile`). Keys
 * and values are also wanted transposed: then they lie in panels of 32
 * positions, panel [size][32]. Queries are copied as q / sqrt(size).
 *
 * Backward, for a strip, with s the scores and o = y:
 *     p = exp(s - lse)    dp = dy v^T    ds = p (dp - sum(dy o))
 *     dq = ds k / sqrt(size)    dk += ds^T (q / sqrt(size))    dv += p^T dy
 */
#include "real.h"

enum { BLOCK = 32, TILE_ROWS = 8, TILE_COLUMNS = 2 * LANES };

typedef struct Head {   // one head of one row of the batch
    int seq, size;      // as given
    int keys, columns;  // the same, padded to whole blocks
    int causal;
    size_t row;              // distance of two positions in x: 3 width
    size_t strip;            // distance of two queries in a strip of scores
    Real hidden[2 * BLOCK];  // 32 zeros, then 32 times -infinity; see hide
} Head;

static int padded(int count)
{
    return (count + BLOCK - 1) / BLOCK * BLOCK;
}

static Head head_of(int seq, int width, int heads, int causal)
{
    Head h = {.seq = seq,
              .size = width / heads,
              .causal = causal,
              .row = 3 * (size_t)width};
    h.keys = padded(seq);
    h.columns = padded(h.size);
    h.strip = (size_t)h.keys +
              16;  // not a multiple of 4096 bytes: rows would share cache sets
    for (int i = BLOCK; i < 2 * BLOCK; i++)
        h.hidden[i] = -INFINITY;
    return h;
}

/* A matrix inside another: the element (i, k) is at[i * row + k * step]. */
typedef struct View {
    const Real *at;
    size_t row, step;
} View;

/* c[8][2 vectors] = a b, or c + a b. The 16 sums stay in registers; each step
 * of `depth` loads two vectors of b and multiplies them by eight single values
 * of a. */
static inline void tile(Real *c, size_t c_row, View a, const Real *b,
                        size_t b_row, int depth, int add)
{
    Lanes sum[TILE_ROWS][2] = {{{0}}};
    for (int k = 0; k < depth; k++) {
        Lanes left = *(const Lanes *)(b + (size_t)k * b_row);
        Lanes right = *(const Lanes *)(b + (size_t)k * b_row + LANES);
        for (int i = 0; i < TILE_ROWS; i++) {
            Real value = a.at[(size_t)i * a.row + (size_t)k * a.step];
            sum[i][0] += value * left;
            sum[i][1] += value * right;
        }
    }
    for (int i = 0; i < TILE_ROWS; i++) {
        Lanes *to = (Lanes *)(c + (size_t)i * c_row);
        if (add) {
            sum[i][0] += to[0];
            sum[i][1] += to[1];
        }
        to[0] = sum[i][0];
        to[1] = sum[i][1];
    }
}

static inline void product(Real *c, size_t c_row, View a, const Real *b,
                           size_t b_row, int rows, int columns, int depth,
                           int add)
{
    for (int i = 0; i < rows; i += TILE_ROWS)
        for (int j = 0; j < columns; j += TILE_COLUMNS)
            tile(c + (size_t)i * c_row + j, c_row,
                 (View){a.at + (size_t)i * a.row, a.row, a.step}, b + j, b_row,
                 depth, add);
}

/* ---- between x and tmp ---- */

/* to[rows][columns] = from[valid][size] * scale, padded with zeros */
static void pack_rows(const Head *h, Real *to, const Real *from,
                      size_t from_row, int rows, int valid, Real scale)
{
    for (int i = 0; i < rows; i++, to += h->columns) {
        int count = i < valid ? h->size : 0;
        const Real *row = from + (size_t)i * from_row;
#pragma omp simd
        for (int j = 0; j < count; j++)
            to[j] = row[j] * scale;
        for (int j = count; j < h->columns; j++)
            to[j] = 0;
    }
}

/* to [keys / 32][size][32] = the transpose of from[seq][size] */
static void pack_panels(const Head *h, Real *to, const Real *from)
{
    for (int first = 0; first < h->keys;
         first += BLOCK, to += (size_t)h->size * BLOCK) {
        for (int i = 0; i < BLOCK; i++) {
            const Real *row = from + (size_t)(first + i) * h->row;
            for (int j = 0; j < h->size; j++)
                to[j * BLOCK + i] = first + i < h->seq ? row[j] : 0;
        }
    }
}

/* dx[valid][size] = scale * from + prev */
static void unpack_rows(const Head *h, Real *dx, const Real *prev,
                        const Real *from, int valid, Real scale)
{
    for (int i = 0; i < valid; i++, from += h->columns) {
        size_t at = (size_t)i * h->row;
        int size = h->size;
#pragma omp simd
        for (int j = 0; j < size; j++)
            dx[at + j] = scale * from[j] + (prev ? prev[at + j] : 0);
    }
}

/* ---- a strip ---- */

/* How many keys the strip of queries at `first` is multiplied with, a multiple
 * of 32. */
static int strip_keys(const Head *h, int first)
{
    return h->causal ? first + BLOCK : h->keys;
}

/* How many keys a query really sees; those after it, up to strip_keys, count as
 * probability 0. */
static int visible(const Head *h, int query)
{
    return h->causal && query < h->seq ? query + 1 : h->seq;
}

static int strip_rows(const Head *h, int first)
{
    return h->seq - first < BLOCK ? h->seq - first : BLOCK;
}

/* scores[32][keys] = rows[32][columns] times panels */
static void score(const Head *h, Real *scores, const Real *rows,
                  const Real *panels, int keys)
{
    View a = {rows, (size_t)h->columns, 1};
    for (int first = 0; first < keys;
         first += BLOCK, panels += (size_t)h->size * BLOCK)
        product(scores + first, h->strip, a, panels, BLOCK, BLOCK, BLOCK,
                h->size, 0);
}

/* The keys from `count` on, all of them in the last block, get no
 * probability. */
static inline void hide(const Head *h, Real *s, int count, int keys)
{
    const Real *add = h->hidden + (keys - count);
    s += keys - BLOCK;
#pragma omp simd
    for (int j = 0; j < BLOCK; j++)
        s[j] += add[j];
}

/* s[keys] = exp(s - max) where visible, else 0; the sum is returned */
static Real exponentials(const Head *h, Real *s, int count, int keys, Real *max)
{
    hide(h, s, count, keys);
    Real top = real_max(s, keys);
    for (int first = 0; first < keys; first += BLOCK)
        for (int j = first; j < first + BLOCK; j++)
            s[j] = real_exp(s[j] - top);
    *max = top;
    return real_sum(s, keys);
}

/* p[keys]: scores become probabilities; dp[keys] becomes ds */
static void differentiate(const Head *h, Real *p, Real *dp, int count, int keys,
                          Real lse, Real dot)
{
    hide(h, p, count, keys);
    for (int first = 0; first < keys; first += BLOCK) {
#pragma omp simd
        for (int j = first; j < first + BLOCK; j++) {
            p[j] = real_exp(p[j] - lse);
            dp[j] = p[j] * (dp[j] - dot);
        }
    }
}

/* ---- one head ---- */

static void head_forward(const Head *h, Real *y, Real *lse, const Real *x,
                         Real *tmp)
{
    size_t width = h->row / 3, matrix = (size_t)h->keys * h->columns;
    Real *keys = tmp, *values = keys + matrix, *q = values + matrix;
    Real *o = q + BLOCK * h->columns, *scores = o + BLOCK * h->columns;
    Real scale = 1 / real_sqrt((Real)h->size);

    pack_panels(h, keys, x + width);
    pack_rows(h, values, x + 2 * width, h->row, h->keys, h->seq, 1);
    for (int first = 0; first < h->seq; first += BLOCK) {
        int count = strip_keys(h, first), rows = strip_rows(h, first);
        Real sum[BLOCK];
        pack_rows(h, q, x + (size_t)first * h->row, h->row, BLOCK, rows, scale);
        score(h, scores, q, keys, count);
        for (int i = 0; i < rows; i++) {
            Real max;
            sum[i] = exponentials(h, scores + i * h->strip,
                                  visible(h, first + i), count, &max);
            lse[first + i] = max + real_log(sum[i]);
        }
        product(o, (size_t)h->columns, (View){scores, h->strip, 1}, values,
                (size_t)h->columns, BLOCK, h->columns, count, 0);
        for (int i = 0; i < rows; i++) {
            Real *to = y + (size_t)(first + i) * width,
                 *from = o + i * h->columns;
            Real inverse = 1 / sum[i];
#pragma omp simd
            for (int j = 0; j < h->size; j++)
                to[j] = from[j] * inverse;
        }
    }
}

/* dot product of two heads at one position */
static Real dot(const Real *a, const Real *b, int size)
{
    Real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int j = 0; j < size; j++)
        sum += a[j] * b[j];
    return sum;
}

static void head_input(const Head *h, Real *dx, const Real *dy, const Real *x,
                       const Real *y, const Real *lse, Real *tmp,
                       const Real *prev)
{
    size_t width = h->row / 3, matrix = (size_t)h->keys * h->columns;
    size_t columns = (size_t)h->columns, block = BLOCK * columns;
    Real *keys = tmp, *key_panels = keys + matrix,
         *value_panels = key_panels + matrix;
    Real *dk = value_panels + matrix, *dv = dk + matrix;
    Real *q = dv + matrix, *dq = q + block, *o = dq + block;
    Real *p = o + block, *ds = p + BLOCK * h->strip;
    Real scale = 1 / real_sqrt((Real)h->size);

    pack_rows(h, keys, x + width, h->row, h->keys, h->seq, 1);
    pack_panels(h, key_panels, x + width);
    pack_panels(h, value_panels, x + 2 * width);
    memset(dk, 0, 2 * matrix * sizeof *dk);
    for (int first = 0; first < h->seq; first += BLOCK) {
        int count = strip_keys(h, first), rows = strip_rows(h, first);
        size_t at = (size_t)first * width;
        pack_rows(h, q, x + 3 * at, h->row, BLOCK, rows, scale);
        pack_rows(h, o, dy + at, width, BLOCK, rows, 1);
        score(h, p, q, key_panels, count);
        score(h, ds, o, value_panels, count);
        for (int i = 0; i < rows; i++)
            differentiate(
                h, p + i * h->strip, ds + i * h->strip, visible(h, first + i),
                count, lse[first + i],
                dot(dy + at + i * width, y + at + i * width, h->size));
        product(dq, columns, (View){ds, h->strip, 1}, keys, columns, BLOCK,
                h->columns, count, 0);
        product(dk, columns, (View){ds, 1, h->strip}, q, columns, count,
                h->columns, BLOCK, 1);
        product(dv, columns, (View){p, 1, h->strip}, o, columns, count,
                h->columns, BLOCK, 1);
        unpack_rows(h, dx + 3 * at, prev ? prev + 3 * at : NULL, dq, rows,
                    scale);
    }
    unpack_rows(h, dx + width, prev ? prev + width : NULL, dk, h->seq, 1);
    unpack_rows(h, dx + 2 * width, prev ? prev + 2 * width : NULL, dv, h->seq,
                1);
}

/* ---- all heads ---- */

void pp_attention_forward(Real *y, Real *lse, const Real *x, Real *tmp, int n,
                          int seq, int width, int heads, int causal)
{
    Head h = head_of(seq, width, heads, causal);
    for (int row = 0; row < n / seq; row++) {
        size_t at = (size_t)row * seq * width;
        for (int head = 0; head < heads; head++, lse += seq) {
            size_t offset = (size_t)head * h.size;
            head_forward(&h, y + at + offset, lse, x + 3 * at + offset, tmp);
        }
    }
}

void pp_attention_input(Real *dx, const Real *dy, const Real *x, const Real *y,
                        const Real *lse, Real *tmp, const Real *prev, int n,
                        int seq, int width, int heads, int causal)
{
    Head h = head_of(seq, width, heads, causal);
    for (int row = 0; row < n / seq; row++) {
        size_t at = (size_t)row * seq * width;
        for (int head = 0; head < heads; head++, lse += seq) {
            size_t offset = (size_t)head * h.size, from = 3 * at + offset;
            head_input(&h, dx + from, dy + at + offset, x + from,
                       y + at + offset, lse, tmp, prev ? prev + from : NULL);
        }
    }
}
