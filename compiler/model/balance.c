/* balance.c: `split balanced`: layers -> sizes of chunks so that no rank is
 * slower than it must be.
 *
 * Reads: costs of layers. Writes: sizes. Guarantees: every layer in exactly one
 * chunk, no chunk empty, the same sizes for the same costs. One cut is better
 * than another
 *
 *     1. if its slowest rank is faster, where only one of them is within half a
 *        percent of the fastest there is (costs are no more certain than that,
 *        and the rules below are worth more); then
 *     2. if its slowest chunk is faster: it sets how long the pipeline fills;
 *     3. if its chunks are more even: a smaller sum of the squares of their
 *        costs;      30 equal layers on 4 ranks: 8 8 7 7, not 8 8 8 6
 *     4. if the first chunk that differs has more layers.
 *
 * One chunk per rank: exact. Chunks of at most T each, taken greedily from the
 * front, reach as far as any chunks of at most T do (by induction: a chunk that
 * starts later ends no earlier). So "can it be done in T" is one walk over the
 * layers, and the least T is found by halving. Within T, rules 3 and 4 are the
 * shortest path through (chunk, first layer): a table from the last chunk back.
 *
 * Several chunks per rank, wherever they are placed: the loads of a rank add
 * up over places far apart, and no polynomial method is known to us. The
 * chain's cut above, with slowest chunk C, is where we start: C is at most
 * total / chunks + the heaviest layer, so where each rank has v chunks none is
 * above total / ranks + v x the heaviest layer, and no cut at all is below total /
 * ranks. If the start is that close to the lower bound of the slowest rank it is
 * the best by all four rules, since it is the best by 2 to 4 of all cuts. Otherwise
 * boundaries are moved while that evens the loads out, and a search by depth
 * improves the result or proves it; it is exact whenever each of its parts ends
 * within STEPS. */
#include "compile.h"

#include <math.h>
#include <string.h>

enum {
    STEPS = 100000,    // of each part of the search
    MOVES = 10000,     // the same for each chunk: layers over boundaries
    CHAIN = 12,        // longest chain of them
    DEEPEST = 4096,    // chunks that are searched
    LARGEST = 1 << 23  // cells of the table of squares; without it, no rule 3
};

/* Costs are below 2^52 in sum, so their squares below 2^104. */
typedef unsigned __int128 Squares;
static const Squares NONE = ~(Squares)0;

typedef struct Chain {
    const int64_t *before;  // [layers + 1] cost of all layers before this one
    int layers, chunks, ranks;
    const int *rank;                  // [chunks]
    int *later;                       // [chunks] others of its rank behind it
    int64_t *load;                    // [ranks] of the cut in hand
    int *sizes;                       // [chunks] the same
    int64_t rank_limit, chunk_limit;  // of a search
    int *begin;  // [chunks + 1] first layers, while boundaries move
    long moves;  // left
    long steps;  // left of this part of the search
    long tried;  // sizes and moves so far
    Squares *
        even;  // [chunk][first layer - chunk] least sum of squares from there on
    int width;      // places where a chunk can begin
    Squares best;   // a search wants a smaller sum; 0: any
    bool outwards;  // and tries sizes in that order
} Chain;

static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t share_of(int64_t total, int64_t parts)
{
    return (total + parts - 1) / parts;
}

/* Costs as whole numbers below 2^52 in sum, scaled by a power of two: whole
 * costs and equal layers stay exact, so sums compare without rounding. */
static int64_t *add_up(Arena *arena, const double *cost, int layers,
                       int *exponent)
{
    int64_t *before = arena_take(arena, sizeof *before * (size_t)(layers + 1));
    double total = 0;
    for (int i = 0; i < layers; i++)
        total += cost[i];
    frexp(total, exponent);
    for (int i = 0; i < layers; i++)
        before[i + 1] = before[i] + (int64_t)ldexp(cost[i], 52 - *exponent);
    return before;
}

static int64_t heaviest_layer(const Chain *n, int from)
{
    int64_t heaviest = 0;
    for (int i = from; i < n->layers; i++)
        heaviest = most_of(heaviest, n->before[i + 1] - n->before[i]);
    return heaviest;
}

/* Half a percent more: as good, by rule 1. */
static int64_t nearly(int64_t limit)
{
    return limit + limit / 200;
}

/* ---- one chunk after another: exact ---- */

/* The most layers from `layer` on within `limit` that leave one for each of
 * `later` chunks; 0: not even one fits. */
static int most_layers(const Chain *n, int layer, int later, int64_t limit)
{
    int end = layer, last = n->layers - later;
    while (end < last && n->before[end + 1] - n->before[layer] <= limit)
        end++;
    return end - layer;
}

static bool chain_fits(const Chain *n, int layer, int chunks, int64_t limit)
{
    for (int later = chunks - 1; later >= 0; later--) {
        int size = most_layers(n, layer, later, limit);
        if (size == 0)
            return false;
        layer += size;
    }
    return layer == n->layers;
}

/* The slowest chunk of the best cut of the layers from `layer` on. */
static int64_t best_limit(const Chain *n, int layer, int chunks, int64_t high)
{
    int64_t low = most_of(
        share_of(n->before[n->layers] - n->before[layer], chunks),
        heaviest_layer(n, layer));
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (chain_fits(n, layer, chunks, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

static int64_t chunk_cost(const Chain *n, int layer, int size)
{
    return n->before[layer + size] - n->before[layer];
}

static Squares square(int64_t cost)
{
    return (Squares)cost * (Squares)cost;
}

static Squares *even_from(const Chain *n, int chunk, int layer)
{
    return &n->even[(size_t)chunk * (size_t)n->width + (size_t)(layer - chunk)];
}

/* The least sum of squares of chunks c, c + 1, ... that begin at `layer`, each
 * within the limit; and the largest first chunk that has it. */
static Squares evenest(Chain *n, int c, int layer, int *size)
{
    int later = n->chunks - c - 1,
        most = most_layers(n, layer, later, n->chunk_limit);
    Squares best = NONE;
    *size = 0;
    n->tried += most;
    for (int s = most; s > 0; s--) {
        Squares rest = later ? *even_from(n, c + 1, layer + s)
                       : layer + s == n->layers ? 0
                                                : NONE,
                own = square(chunk_cost(n, layer, s));
        if (rest == NONE || own + rest >= best)
            continue;
        best = own + rest;
        *size = s;
    }
    return best;
}

static void fill_even(Chain *n)
{
    int size;
    for (int c = n->chunks; c-- > 0;)
        for (int layer = c; layer < c + n->width; layer++)
            *even_from(n, c, layer) = evenest(n, c, layer, &size);
}

/* Best by rules 2 to 4. */
static void cut_chain(Chain *n)
{
    n->chunk_limit = best_limit(n, 0, n->chunks, n->before[n->layers]);
    if (n->even)
        fill_even(n);
    for (int c = 0, layer = 0; c < n->chunks; layer += n->sizes[c++]) {
        if (n->even)
            evenest(n, c, layer, &n->sizes[c]);
        else
            n->sizes[c] = most_layers(n, layer, n->chunks - c - 1,
                                      n->chunk_limit);
    }
}

/* ---- several chunks per rank ---- */

static void count_later(Chain *n, Arena *arena)
{
    int *seen = arena_take(arena, sizeof *seen * (size_t)n->ranks);
    n->later = arena_take(arena, sizeof *n->later * (size_t)n->chunks);
    for (int c = n->chunks; c-- > 0;)
        n->later[c] = seen[n->rank[c]]++;
}

/* Of the rank with the fewest. */
static int fewest_chunks(const Chain *n)
{
    int fewest = n->chunks;
    for (int r = 0; r < n->ranks; r++) {
        int c = 0;
        while (n->rank[c] != r)
            c++;  // its first chunk
        fewest = n->later[c] + 1 < fewest ? n->later[c] + 1 : fewest;
    }
    return fewest;
}

/* Fills the loads with those of the first `chunks` chunks; returns where the
 * next one begins. */
static int fill_loads(Chain *n, int chunks)
{
    int layer = 0;
    memset(n->load, 0, sizeof *n->load * (size_t)n->ranks);
    for (int c = 0; c < chunks; c++) {
        n->load[n->rank[c]] += chunk_cost(n, layer, n->sizes[c]);
        layer += n->sizes[c];
    }
    return layer;
}

static int64_t slowest_rank(Chain *n)
{
    int64_t slowest = 0;
    fill_loads(n, n->chunks);
    for (int r = 0; r < n->ranks; r++)
        slowest = most_of(slowest, n->load[r]);
    return slowest;
}

static int64_t slowest_chunk(const Chain *n)
{
    int64_t slowest = 0;
    for (int c = 0, layer = 0; c < n->chunks; layer += n->sizes[c++])
        slowest = most_of(slowest, chunk_cost(n, layer, n->sizes[c]));
    return slowest;
}

static Squares sum_of_squares(const Chain *n)
{
    Squares sum = 0;
    for (int c = 0, layer = 0; c < n->chunks; layer += n->sizes[c++])
        sum += square(chunk_cost(n, layer, n->sizes[c]));
    return sum;
}

/* No cut has its slowest rank below this: an equal share, in the unit that all
 * costs are multiples of; the heaviest layer and the rank's other chunks. */
static int64_t rank_bound(const Chain *n)
{
    int64_t unit = 0, lightest = n->before[n->layers];
    for (int i = 0; i < n->layers; i++) {
        int64_t a = n->before[i + 1] - n->before[i], b = unit;
        lightest = a < lightest ? a : lightest;
        while (b) {
            int64_t rest = a % b;
            a = b;
            b = rest;
        }
        unit = a;
    }
    int64_t share = share_of(n->before[n->layers], n->ranks);
    return most_of(unit ? share_of(share, unit) * unit : 0,
                   heaviest_layer(n, 0) + (fewest_chunks(n) - 1) * lightest);
}

/* Is what chunks c and on may still do, after sizes up to `layer`, enough. */
static bool hopeless(const Chain *n, int c, int layer, int64_t spare,
                     Squares sum)
{
    int left = n->chunks - c;
    int64_t rest = n->before[n->layers] - n->before[layer];
    if (spare < 0 || (left ? share_of(rest, left) > n->chunk_limit : rest > 0))
        return true;
    if (!n->best)
        return false;
    Squares least = left ? *even_from(n, c, layer) : 0;
    return least == NONE || sum + least >= n->best;
}

/* Chunks c, c + 1, ... by depth. `spare` is what the ranks may still leave
 * unused of their limits together: a rank that has got its last chunk wastes
 * the rest. Sizes are tried from the largest down, by rule 4; when a smaller
 * sum of squares is wanted, from the one that would be best for the chain
 * outwards. */
static bool place_from(Chain *n, int c, int layer, int64_t spare, Squares sum)
{
    if (c == n->chunks)
        return layer == n->layers;
    int64_t *load = &n->load[n->rank[c]], room = n->rank_limit - *load;
    room = room < n->chunk_limit ? room : n->chunk_limit;
    int most = most_layers(n, layer, n->chunks - c - 1, room), first = most;
    bool last = !n->later[c];
    if (n->outwards)
        evenest(n, c, layer, &first);
    for (int k = 0; k <= 2 * n->layers; k++) {
        int size = first + (k % 2 ? -(k + 1) / 2 : k / 2);
        if (first - k / 2 < 1 && first + k / 2 > most)
            return false;
        if (size < 1 || size > most)
            continue;
        if (n->steps-- <= 0)
            return false;
        n->tried++;
        int64_t cost = chunk_cost(n, layer, size),
                waste = last ? n->rank_limit - *load - cost : 0;
        Squares now = sum + square(cost);
        if (hopeless(n, c + 1, layer + size, spare - waste, now))
            continue;
        *load += cost;
        n->sizes[c] = size;
        if (place_from(n, c + 1, layer + size, spare - waste, now))
            return true;
        *load -= cost;
    }
    return false;
}

/* A cut within the limits; false leaves the sizes alone. */
static bool search(Chain *n, int *kept)
{
    int64_t spare = n->ranks * n->rank_limit - n->before[n->layers];
    memcpy(kept, n->sizes, sizeof *kept * (size_t)n->chunks);
    memset(n->load, 0, sizeof *n->load * (size_t)n->ranks);
    if (spare >= 0 && place_from(n, 0, 0, spare, 0))
        return true;
    memcpy(n->sizes, kept, sizeof *kept * (size_t)n->chunks);
    return false;
}

/* Boundary b, before chunk b, moves by one layer: to the right (step 1) chunk
 * b - 1 gets the first layer of chunk b. */
static void move_boundary(Chain *n, int b, int step)
{
    int layer = step > 0 ? n->begin[b] : n->begin[b] - 1;
    int64_t cost = step * chunk_cost(n, layer, 1);
    n->load[n->rank[b - 1]] += cost;
    n->load[n->rank[b]] -= cost;
    n->begin[b] += step;
}

/* Brings the rank to the limit at most: it gives a layer to a neighbour, which
 * if it is now above the limit gives another one on, to the left or to the
 * right, at any of its chunks:
 *
 *     rank 1 2 3 | 1 2 3        2 is too slow: 2 gives to 3, 3 gives to 1
 */
static bool eject(Chain *n, int rank, int64_t limit, int depth)
{
    for (int c = 0; c < n->chunks; c++) {
        for (int side = 0; side < 2 && n->rank[c] == rank; side++) {
            int b = c + side, step = side ? -1 : 1;
            if (b == 0 || b == n->chunks || n->begin[c + 1] - n->begin[c] == 1)
                continue;
            int other = n->rank[side ? c + 1 : c - 1];
            if (other == rank || n->moves-- <= 0)
                continue;
            n->tried++;
            move_boundary(n, b, step);
            int next = n->load[other] > limit  ? other
                       : n->load[rank] > limit ? rank
                                               : -1;
            if (next < 0 || (depth > 1 && eject(n, next, limit, depth - 1)))
                return true;
            move_boundary(n, b, -step);
        }
    }
    return false;
}

static int slowest_of(const Chain *n)
{
    int slowest = 0;
    for (int r = 1; r < n->ranks; r++)
        if (n->load[r] > n->load[slowest])
            slowest = r;
    return slowest;
}

/* Every success leaves the slowest rank faster, or one rank less as slow; so it
 * ends. Short chains first. */
static void even_out(Chain *n)
{
    fill_loads(n, n->chunks);
    n->moves = (long)MOVES * n->chunks;
    for (int c = 0; c < n->chunks; c++)
        n->begin[c + 1] = n->begin[c] + n->sizes[c];
    for (int depth = 1; depth <= CHAIN && n->moves > 0;) {
        int slowest = slowest_of(n);
        if (eject(n, slowest, n->load[slowest] - 1, depth))
            depth = 1;
        else
            depth++;
    }
    for (int c = 0; c < n->chunks; c++)
        n->sizes[c] = n->begin[c + 1] - n->begin[c];
}

/* Rules 1, 2 and 3, each within what those before it have reached. The first
 * two halve between a bound and what we have; a search that was cut short
 * counts as a failure. Each search for rule 3 finds less than the one before;
 * the last one asks for no more than that again, and takes the first in rule
 * 4's order. */
static void refine(Chain *n, int64_t bound, int *kept)
{
    int64_t low = bound, high = slowest_rank(n), least = n->chunk_limit;
    n->chunk_limit = n->before[n->layers];
    n->steps = STEPS;
    while (low < high && n->steps > 0) {
        n->rank_limit = low + (high - low) / 2;
        if (search(n, kept))
            high = slowest_rank(n);
        else
            low = n->rank_limit + 1;
    }
    n->rank_limit = nearly(high);
    n->steps = STEPS;
    for (low = least, high = slowest_chunk(n); low < high && n->steps > 0;) {
        n->chunk_limit = low + (high - low) / 2;
        if (search(n, kept))
            high = slowest_chunk(n);
        else
            low = n->chunk_limit + 1;
    }
    n->chunk_limit = high;
    if (!n->even)
        return;
    fill_even(n);
    n->steps = STEPS;
    n->outwards = true;
    do
        n->best = sum_of_squares(n);
    while (search(n, kept));
    n->outwards = false;
    n->steps = STEPS;
    n->best++;
    search(n, kept);
}

long balanced_sizes(const double *cost, int layers, int chunks, int ranks,
                    const int *rank, int *sizes)
{
    Arena *arena = arena_open();
    int exponent;
    Chain n = {
        .layers = layers, .chunks = chunks, .ranks = ranks, .rank = rank};
    count_later(&n, arena);
    n.before = add_up(arena, cost, layers, &exponent);
    n.load = arena_take(arena, sizeof *n.load * (size_t)ranks);
    n.sizes = sizes;
    n.width = layers - chunks + 1;
    if ((double)n.width * chunks <= LARGEST)
        n.even = arena_take(arena,
                            sizeof *n.even * (size_t)n.width * (size_t)chunks);
    cut_chain(&n);
    int64_t bound = rank_bound(&n), first = slowest_rank(&n);
    if (chunks > ranks && first > nearly(bound)) {
        int *kept = arena_take(arena, sizeof *kept * (size_t)chunks);
        memcpy(kept, sizes, sizeof *kept * (size_t)chunks);
        n.begin = arena_take(arena, sizeof *n.begin * (size_t)(chunks + 1));
        even_out(&n);
        if (slowest_rank(&n) >= first)
            memcpy(sizes, kept, sizeof *kept * (size_t)chunks);
        if (chunks <= DEEPEST)
            refine(&n, bound, kept);
    }
    arena_close(arena);
    return n.tried;
}

double slowest_rank_bound(const double *cost, int layers, int chunks, int ranks,
                          const int *rank)
{
    Arena *arena = arena_open();
    int exponent;
    Chain n = {
        .layers = layers, .chunks = chunks, .ranks = ranks, .rank = rank};
    count_later(&n, arena);
    n.before = add_up(arena, cost, layers, &exponent);
    int64_t bound = chunks == ranks
                        ? best_limit(&n, 0, chunks, n.before[layers])
                        : rank_bound(&n);
    arena_close(arena);
    return ldexp((double)bound, exponent - 52);
}
