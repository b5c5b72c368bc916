/* blocks.c: the second part of partition: the model as Megatron-LM sees it, a row
 * of blocks between two ends, and the splits that count blocks.
 *
 * Reads: layers, set. Writes: set.sizes of a layout. Guarantees: sizes count all
 * layers, and add up to them; the first chunk and the last one have some.
 *
 *     wte wpe | h.0 h.1 h.2 .. h.11 | mtp | ln_f head
 *     before    blocks                m     behind        (with the loss)
 *
 * Blocks are the layers from the first repeated entry to the last one; layers
 * `mtp` follow them. What stands before belongs to the first chunk, what stands
 * behind to the last one. */
#include "compile.h"

#include <string.h>

static bool is_block(const Layer *layer)
{
    return strchr(layer->name, '.') && !layer->predicts;
}

bool count_blocks(const Program *p, Blocks *blocks)
{
    int first = 0, last = p->layer_count - 1, end;
    while (first < p->layer_count && !is_block(&p->layers[first]))
        first++;
    while (last > first && !is_block(&p->layers[last]))
        last--;
    for (end = last + 1; end < p->layer_count && p->layers[end].predicts;)
        end++;
    *blocks = (Blocks){first, last - first + 1, end - last - 1,
                       p->layer_count - end};
    return first < p->layer_count;
}

static bool needs_blocks(Program *p, Span at, Blocks *blocks)
{
    if (count_blocks(p, blocks))
        return true;
    error_at(p, at,
             p->set.layout ? "no entry of the model is repeated, so a layout "
                             "has no `t`"
                           : "no entry of the model is repeated, so it has no "
                             "blocks");
    help(p, "split even, or a list of layers per chunk");
    return false;
}

/* ---- layouts ---- */

static bool has_all_blocks(Program *p, const Blocks *blocks)
{
    const Layer *first = &p->layers[blocks->before],
                *last = first + blocks->count - 1;
    int layers = layout_count(p, LAYOUT_BLOCK);
    if (layers == blocks->count)
        return true;
    error_at(p, p->set.split_at,
             "the layout has %d `t`, but the model has %d layers from %s to %s",
             layers, blocks->count, first->name, last->name);
    note_at(p, first->at, "they are repeated here");
    return false;
}

/* Of the model's own; stand-ins are as many as the layout needs. */
static bool has_all_predictions(Program *p, const Blocks *blocks)
{
    int layers = layout_count(p, LAYOUT_PREDICTION), all = 0;
    const Layer *found = NULL;
    for (int i = 0; i < p->layer_count; i++) {
        found = p->layers[i].predicts && !found ? &p->layers[i] : found;
        all += p->layers[i].predicts;
    }
    if (all != blocks->predictions) {
        error_at(p, found->at,
                 "layers `mtp` follow the blocks, but %s does not",
                 found->name);
        note_at(p, p->layers[blocks->before + blocks->count - 1].at,
                "the last block is here");
        return false;
    }
    if (layers == all)
        return true;
    error_at(p, p->set.split_at,
             "the layout has %d `m`, but the model has %d layer%s `mtp`",
             layers, all, all == 1 ? "" : "s");
    note_at(p, found->at, "here");
    return false;
}

/* One `L` stands for all that is behind. Several stand for one layer each, the
 * last one for the others. */
static bool fits_behind(Program *p, const Blocks *blocks)
{
    int ends = layout_count(p, LAYOUT_LOSS);
    if (ends <= 1 || ends <= blocks->behind)
        return true;
    error_at(p, p->set.split_at,
             "the layout has %d `L`, but the model has %d layer%s behind %s",
             ends, blocks->behind, blocks->behind == 1 ? "" : "s",
             p->layers[p->layer_count - 1 - blocks->behind].name);
    help(p, "write one `L` for all of them");
    return false;
}

/* A stage of the layout is a chunk. */
static void help_count(Program *p)
{
    const Settings *set = &p->set;
    if (set->listed)
        help(p,
             "use a layout of %d stages: one for each chunk of the placement",
             set->listed_count);
    else if (set->stages.at.source < 0)
        help(p, "use `stages %d`", set->size_count);
    else if (set->size_count % p->ranks == 0)
        help(p, "use `virtual %d`, or leave it out",
             set->size_count / p->ranks);
    else
        help(p, "use a layout of %d stages: stages times virtual",
             p->copy_chunks);
}

static bool has_all_stages(Program *p)
{
    const Settings *set = &p->set;
    if (set->size_count == p->copy_chunks)
        return true;
    error_at(p, set->split_at, "the layout has %d stages for %d chunk%s",
             set->size_count, p->copy_chunks, p->copy_chunks == 1 ? "" : "s");
    if (set->listed)
        note_at(p,
                set->placement_at.source < 0 ? set->schedule_at
                                             : set->placement_at,
                "the chunks are placed here");
    else
        note_at(p, set->stages.at, "%g stages, from here", set->stages.value);
    help_count(p);
    return false;
}

static void add_stages(Program *p, const Blocks *blocks)
{
    Settings *set = &p->set;
    int ends = layout_count(p, LAYOUT_LOSS);
    set->sizes = arena_take(p->arena,
                            sizeof *set->sizes * (size_t)set->size_count);
    for (int c = 0; c < set->size_count; c++) {
        const int *of = set->layout[c].of;
        set->sizes[c] = of[LAYOUT_BLOCK] + of[LAYOUT_PREDICTION] +
                        (ends > 1 ? of[LAYOUT_LOSS] : 0);
    }
    set->sizes[0] += blocks->before;
    set->sizes[set->size_count - 1] += blocks->behind - (ends > 1 ? ends : 0);
}

static bool ends_have_layers(Program *p, const Blocks *blocks)
{
    const Settings *set = &p->set;
    int last = set->size_count - 1, empty = !set->sizes[0] ? 0 : last;
    if (set->sizes[empty])
        return true;
    error_at(p, set->split_at,
             empty ? "stage %d has `L` alone, but no layer stands behind %s"
                   : "stage %d has `E` alone, but no layer stands before %s",
             empty,
             p->layers[empty ? p->layer_count - 1 : blocks->before].name);
    help(p, "give it a `t`: the first stage and the last one have layers; the "
            "loss is not one of them");
    return false;
}

/* Where Megatron-LM itself would stop. */
static void megatron_rules(Program *p)
{
    const Settings *set = &p->set;
    int stages = 0, late = 0;
    for (int c = 0; c < set->size_count; c++) {
        bool has = set->layout[c].of[LAYOUT_PREDICTION] > 0;
        stages += has;
        late += has && c >= set->size_count - p->ranks;
    }
    if (stages > 1)
        warning_at(p, set->split_at,
                   "Megatron-LM wants all `m` in one stage, not in %d", stages);
    else if (late < stages)
        warning_at(p, set->split_at,
                   "Megatron-LM wants `m` in the last stage of its rank: in "
                   "one of the last %d",
                   p->ranks);
    if (layout_count(p, LAYOUT_LOSS) > 1)
        warning_at(p, set->split_at, "Megatron-LM takes one `L` alone");
}

bool fit_layout(Program *p)
{
    Blocks blocks;
    if (!needs_blocks(p, p->set.split_at, &blocks) || !has_all_stages(p) ||
        !has_all_blocks(p, &blocks) || !has_all_predictions(p, &blocks) ||
        !fits_behind(p, &blocks))
        return false;
    add_stages(p, &blocks);
    if (!ends_have_layers(p, &blocks))
        return false;
    megatron_rules(p);
    return true;
}

/* ---- first, last, account ---- */

typedef struct Even {
    Program *p;
    Blocks blocks;
    const int *rank;  // [chunk]
    int own[2];       // chunks of the first rank and of the last
    int others;  // chunks of the other ranks, or of all without `first` and `last`
} Even;

static bool is_first(const Even *even, int c)
{
    return even->p->set.first.value > 0 && even->rank[c] == 0;
}

static bool is_last(const Even *even, int c)
{
    return even->p->set.last.value > 0 && even->rank[c] == even->p->ranks - 1;
}

static Even take_even(Program *p)
{
    Even even = {.p = p, .rank = placed_ranks(p)};
    for (int c = 0; c < p->copy_chunks; c++) {
        even.own[0] += even.rank[c] == 0;
        even.own[1] += even.rank[c] == p->ranks - 1;
        even.others += !is_first(&even, c) && !is_last(&even, c);
    }
    return even;
}

/* A rank's blocks are the same number in each of its chunks. */
static bool divides(Program *p, const char *word, Number blocks, int chunks)
{
    if ((int)blocks.value % chunks == 0)
        return true;
    error_at(p, blocks.at, "`%s` %g is no multiple of %d, the rank's chunks",
             word, blocks.value, chunks);
    help(p, "use `%s %d`", word, ((int)blocks.value / chunks + 1) * chunks);
    return false;
}

static bool enough_ranks(Program *p)
{
    const Settings *set = &p->set;
    Number of = set->first.value > 0 ? set->first : set->last;
    if (of.value <= 0 || p->ranks > 1)
        return true;
    error_at(p, of.at, "`first` and `last` need two ranks at least");
    note_at(p, set->stages.at, "their number, from here");
    help(p, "use `split even`");
    return false;
}

/* What `first` and `last` leave to the other ranks: nothing, or at least one
 * block for each of their chunks; -1: too little. */
static int left_blocks(const Even *even)
{
    Program *p = even->p;
    const Blocks *blocks = &even->blocks;
    const Settings *set = &p->set;
    int chunks = even->others;
    int taken = (int)(set->first.value + set->last.value),
        left = blocks->count - taken + set->account_embedding +
               set->account_loss;
    if (left == 0 || (chunks && left >= chunks))
        return left;
    if (left < 0 || !chunks)
        error_at(p, set->split_at,
                 "`first` and `last` are %d block%s together, but the model "
                 "has %d%s",
                 taken, taken == 1 ? "" : "s", blocks->count,
                 chunks ? "" : ", and there is no other rank");
    else
        error_at(
            p, set->split_at.source >= 0 ? set->split_at : set->account_at,
            "%d block%s%s cannot fill %d chunks", left, left == 1 ? "" : "s",
            set->account_embedding || set->account_loss ? ", the ends counted,"
                                                        : "",
            chunks);
    note_at(p, p->layers[blocks->before].at, "the blocks are here");
    if (chunks)
        help(p, "use fewer chunks (stages times virtual), or more blocks");
    else
        help(p, "use `first %d`, or leave one of the two out",
             blocks->count - (int)set->last.value);
    return -1;
}

/* What does not divide goes to chunks at one end, one block each. */
static void share_left(const Even *even, int left, int *sizes)
{
    const Settings *set = &even->p->set;
    int chunks = even->others, more = chunks ? left % chunks : 0, seen = 0;
    for (int c = 0; c < even->p->copy_chunks; c++) {
        if (is_first(even, c)) {
            sizes[c] = (int)set->first.value / even->own[0];
        } else if (is_last(even, c)) {
            sizes[c] = (int)set->last.value / even->own[1];
        } else {
            int place = set->even_back ? chunks - 1 - seen : seen;
            sizes[c] = left / chunks + (place < more);
            seen++;
        }
    }
}

/* As Megatron-LM's --decoder-first-pipeline-num-layers, -last- and
 * --account-for-embedding-in-pipeline-split, -loss-. */
bool even_blocks(Program *p, int *sizes)
{
    const Settings *set = &p->set;
    Even even = take_even(p);
    Span at = set->account_at.source >= 0 ? set->account_at : set->split_at;
    if (!needs_blocks(p, at, &even.blocks) || !enough_ranks(p) ||
        !divides(p, "first", set->first, even.own[0]) ||
        !divides(p, "last", set->last, even.own[1]))
        return false;
    int left = left_blocks(&even), last = p->copy_chunks - 1;
    if (left < 0)
        return false;
    share_left(&even, left, sizes);
    sizes[0] += even.blocks.before - set->account_embedding;
    sizes[last] += even.blocks.predictions + even.blocks.behind -
                   set->account_loss;
    if (sizes[0] > 0 && sizes[last] > 0)
        return true;
    error_at(p, at, "chunk %d would have no layers", sizes[0] > 0 ? last : 0);
    help(p, "only chunks between the first and the last may be empty");
    return false;
}
