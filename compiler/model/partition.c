/* partition.c: layers -> chunks on ranks.
 *
 * Reads: layers, set. Writes: chunks, ranks, copies. Guarantees: every layer of
 * every copy of the model is in exactly one chunk, in order; the first and the
 * last chunk of a copy have layers; chunk c has one input and one output tensor.
 * A chunk without layers has no ops: its output is its input, the same tensor,
 * and so are their gradients.
 *
 * Ranges are half open: chunk c has the layers [first_layer, first_layer +
 * layer_count). */
#include "compile.h"

static bool counts_blocks(const Program *p)
{
    const Settings *set = &p->set;
    return set->account_at.source >= 0 || set->first.value > 0 ||
           set->last.value > 0;
}

static bool enough_layers(Program *p)
{
    if (p->layer_count >= p->copy_chunks || p->set.split == SPLIT_EXPLICIT ||
        counts_blocks(p))
        return true;
    const Settings *set = &p->set;
    Span at = set->stages.at;
    if (set->listed)
        at = set->placement_at.source < 0 ? set->schedule_at
                                          : set->placement_at;
    else if (at.source < 0 ||
             (set->virtuals.value > 1 && set->virtuals.at.source >= 0))
        at = set->virtuals.at;
    error_at(p, at, "%d layers cannot fill %d chunks", p->layer_count,
             p->copy_chunks);
    if (at.begin != set->stages.at.begin && !set->listed)
        note_at(p, set->stages.at, "%g stages, from here", set->stages.value);
    help(p, "use at most %d chunks%s, or more layers", p->layer_count,
         set->listed ? "" : " (stages times virtual)");
    return false;
}

/* The first chunk takes the data, the last one has the loss. */
static bool ends_have_layers(Program *p)
{
    int last = p->set.size_count - 1, first = p->set.sizes[0];
    if (first && p->set.sizes[last])
        return true;
    error_at(p, p->set.split_at, "chunk %d has no layers, but %s",
             first ? last : 0,
             first ? "the loss is there, in the last one"
                   : "the input is there, in the first one");
    help(p, "only chunks between the first and the last may be empty");
    return false;
}

static bool split_fits(Program *p)
{
    long sum = 0;
    for (int i = 0; i < p->set.size_count; i++)
        sum += p->set.sizes[i];
    if (p->set.size_count != p->copy_chunks) {
        error_at(p, p->set.split_at, "%d sizes for %d chunks",
                 p->set.size_count, p->copy_chunks);
        if (p->set.listed)
            note_at(p,
                    p->set.placement_at.source < 0 ? p->set.schedule_at
                                                   : p->set.placement_at,
                    "the chunks are placed here");
        else
            note_at(p, p->set.stages.at, "%g stages, from here",
                    p->set.stages.value);
        help(p, "write one size per chunk, in the order of the model, or "
                "`split even`");
        return false;
    }
    if (sum == p->layer_count)
        return ends_have_layers(p);
    error_at(p, p->set.split_at,
             "the sizes add up to %ld, but the model has %d layers", sum,
             p->layer_count);
    help(p, "`pipec inspect` lists the layers; the loss is not one of them");
    return false;
}

/* Even: sizes differ by at most one, the larger ones at one end. Balanced: by
 * the operations of forward and backward, the loss with its layer. NULL: it was
 * reported. */
static const int *chunk_sizes(Program *p)
{
    if (p->set.split == SPLIT_EXPLICIT)
        return p->set.sizes;
    int *sizes = arena_take(p->arena, sizeof *sizes * (size_t)p->copy_chunks);
    if (p->set.split == SPLIT_BALANCED) {
        double *cost = arena_take(p->arena,
                                  sizeof *cost * (size_t)p->layer_count);
        layer_costs(p, cost);
        balanced_sizes(cost, p->layer_count, p->copy_chunks, p->ranks,
                       placed_ranks(p), sizes);
        return sizes;
    }
    if (counts_blocks(p))
        return even_blocks(p, sizes) ? sizes : NULL;
    int least = p->layer_count / p->copy_chunks,
        more = p->layer_count % p->copy_chunks;
    for (int c = 0; c < p->copy_chunks; c++)
        sizes[p->set.even_back ? p->copy_chunks - 1 - c : c] = least +
                                                               (c < more);
    return sizes;
}

static void count_work(Program *p, Chunk *chunk)
{
    for (int i = chunk->first_op; i < chunk->first_op + chunk->op_count; i++)
        chunk->work[ENTRY_FORWARD] += p->ops[i].kind->work(p, &p->ops[i],
                                                           ENTRY_FORWARD);
    for (int i = chunk->first_gradient;
         i < chunk->first_gradient + chunk->gradient_count; i++) {
        const Gradient *g = &p->gradients[i];
        Entry entry = g->entry == ENTRY_SUM ? ENTRY_INPUT : g->entry;
        chunk->work[entry] += gradient_work(p, g);
    }
    for (int i = 0; i < p->parameter_count; i++) {
        const Parameter *q = &p->parameters[i];
        if (q->layer >= chunk->first_layer &&
            q->layer < chunk->first_layer + chunk->layer_count)
            chunk->parameters += (long)parameter_values(q);
    }
}

int gradients_end(const Program *p, int layer)
{
    int per_copy = p->gradient_count / p->copies;
    return layer % p->layer_count ? p->layer_gradient[layer - 1]
                                  : (layer / p->layer_count + 1) * per_copy;
}

static void fill_chunk(Program *p, int c, int rank, int first_layer, int size)
{
    Chunk *chunk = &p->chunks[c];
    int within = c % p->copy_chunks;
    const Layer *first = &p->layers[first_layer];
    bool begins = within == 0, ends = within == p->copy_chunks - 1;
    *chunk = (Chunk){.first_layer = first_layer,
                     .layer_count = size,
                     .rank = rank,
                     .copy = c / p->copy_chunks,
                     .previous = begins ? -1 : c - 1,
                     .next = ends ? -1 : c + 1,
                     .first_op = first->first_op,
                     .x = first->input,
                     .y = first->input,
                     .first_gradient = gradients_end(p, first_layer)};
    for (int l = first_layer; l < first_layer + size; l++) {
        chunk->op_count += p->layers[l].op_count;
        chunk->first_gradient = p->layer_gradient[l];
        chunk->y = p->layers[l].output;
    }
    chunk->gradient_count = gradients_end(p, first_layer) -
                            chunk->first_gradient;
    chunk->y = ends ? -1 : chunk->y;
    chunk->targets = !ends ? -1
                           : p->targets +
                                 chunk->copy * (p->tensor_count / p->copies);
    chunk->dx = begins ? -1 : p->gradient_of[chunk->x];
    chunk->dy = ends ? -1 : p->gradient_of[chunk->y];
    count_work(p, chunk);
}

/* The first half of the micro-batches passes the first copy. */
static void share_micros(Program *p, Chunk *chunk)
{
    int all = p->microbatches, half = p->copies == 1 ? all : (all + 1) / 2;
    chunk->first_micro = chunk->copy ? half : 0;
    chunk->micro_count = chunk->copy ? all - half : half;
}

bool goes_through(const Program *p, int chunk, int micro)
{
    int k = micro - p->chunks[chunk].first_micro;
    return k >= 0 && k < p->chunks[chunk].micro_count;
}

int chunk_of_layer(const Program *p, int layer)
{
    int c = 0;
    while (p->chunks[c].first_layer + p->chunks[c].layer_count <= layer)
        c++;
    return c;
}

int placed_rank(Placement placement, int ranks, int chunk)
{
    int place = chunk % ranks;
    bool back = placement != PLACE_LOOP && chunk / ranks % 2;
    return back ? ranks - 1 - place : place;
}

int *placed_ranks(Program *p)
{
    const Settings *set = &p->set;
    int *rank = arena_take(p->arena, sizeof *rank * (size_t)p->chunk_count);
    for (int c = 0; c < p->chunk_count; c++)
        rank[c] = set->listed ? set->listed[c]
                              : placed_rank(set->placement, p->ranks, c);
    return rank;
}

const char *chunks_text(const Program *p)
{
    int *chunks = arena_take(p->arena, sizeof *chunks * (size_t)p->ranks);
    int least = p->copy_chunks, most = 0;
    for (int c = 0; c < p->chunk_count; c++)
        chunks[p->chunks[c].rank]++;
    for (int r = 0; r < p->ranks; r++) {
        int own = chunks[r] / p->copies;
        least = own < least ? own : least;
        most = own > most ? own : most;
    }
    return least == most ? text_format(p->arena, "%d", most)
                         : text_format(p->arena, "%d to %d", least, most);
}

/* Programs are unrolled. Before all that is made for each chunk. */
static bool few_enough(Program *p)
{
    static const double MAX_ACTIONS = 8e6;
    double actions = 2.0 * p->copy_chunks * p->microbatches;
    if (actions <= MAX_ACTIONS)
        return true;
    error_at(p, p->set.microbatches.at,
             "%d microbatches over %d chunks are %.3g actions", p->microbatches,
             p->chunk_count, actions);
    help(p,
         "at most %g actions are unrolled; use fewer microbatches of more "
         "rows",
         MAX_ACTIONS);
    return false;
}

bool partition(Program *p)
{
    p->ranks = (int)p->set.stages.value;
    p->copies = p->set.placement == PLACE_TWIN ? 2 : 1;
    p->copy_chunks = p->set.listed ? p->set.listed_count
                                   : p->ranks * (int)p->set.virtuals.value;
    p->chunk_count = p->copies * p->copy_chunks;
    if (!enough_layers(p) || !few_enough(p) ||
        (p->set.layout && !fit_layout(p)) ||
        (p->set.split == SPLIT_EXPLICIT && !split_fits(p)))
        return false;
    if (!given_fit(p))
        return false;
    const int *sizes = chunk_sizes(p), *rank = placed_ranks(p);
    if (!sizes)
        return false;
    if (p->copies > 1)
        copy_model(p);
    p->chunks = arena_take(p->arena,
                           sizeof *p->chunks * (size_t)p->chunk_count);
    for (int c = 0, layer = 0; c < p->chunk_count; c++) {
        fill_chunk(p, c, rank[c], layer, sizes[c % p->copy_chunks]);
        share_micros(p, &p->chunks[c]);
        layer += p->chunks[c].layer_count;
    }
    return true;
}
