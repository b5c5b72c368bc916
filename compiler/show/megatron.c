/* megatron.c: the cut as Megatron-LM takes it: a layout, and the flags that
 * belong to it.
 *
 *     # PP rank 0    embedding,decoder*2 @0    decoder*2 @8
 *     --pipeline-model-parallel-size 4
 *     --pipeline-model-parallel-layout "Et*2|(tt|)*6tL"
 *
 * Reads: layers, chunks, order, set. The text in quotes is written and
 * read by read/layout.c, and makes the same cut. Lines that begin
 * with # say what else there is to know: the table in the form of Megatron's
 * own, and whether its schedule is this one. What is said of that is from
 * megatron/core/pipeline_parallel/schedules.py and training/arguments.py. */
#include "order/schedules/interleaved.h"
#include "picture.h"
#include "read/layout.h"

#include <string.h>

/* ---- chunks as stages ---- */

static int word_of_layer(const Blocks *blocks, int layer)
{
    layer -= blocks->before;
    if (layer < 0)
        return LAYOUT_EMBEDDING;
    if (layer < blocks->count)
        return LAYOUT_BLOCK;
    return layer < blocks->count + blocks->predictions ? LAYOUT_PREDICTION
                                                       : LAYOUT_LOSS;
}

/* [chunk of a copy]. One word stands for all layers of an end in one chunk. */
static LayoutStage *stages_of(Program *p, const Blocks *blocks)
{
    int last = p->copy_chunks - 1;
    LayoutStage *stages = arena_take(p->arena,
                                     sizeof *stages * (size_t)p->copy_chunks);
    for (int c = 0; c <= last; c++) {
        const Chunk *chunk = &p->chunks[c];
        for (int i = 0; i < chunk->layer_count; i++)
            stages[c].of[word_of_layer(blocks, chunk->first_layer + i)]++;
    }
    if (stages[0].of[LAYOUT_EMBEDDING] == blocks->before)
        stages[0].of[LAYOUT_EMBEDDING] = 1;
    if (stages[last].of[LAYOUT_LOSS] == blocks->behind)
        stages[last].of[LAYOUT_LOSS] = 1;
    return stages;
}

/* Has every rank the same number of chunks. */
static bool is_even_placed(const Program *p)
{
    int *chunks = arena_take(p->arena, sizeof *chunks * (size_t)p->ranks);
    for (int c = 0; c < p->copy_chunks; c++)
        chunks[p->chunks[c].rank]++;
    for (int r = 1; r < p->ranks && p->copies == 1; r++)
        if (chunks[r] != chunks[0])
            return false;
    return true;
}

/* Chunk c on rank c mod P, as there. */
static bool is_loop(const Program *p)
{
    for (int c = 0; c < p->copy_chunks; c++)
        if (p->chunks[c].rank != c % p->ranks)
            return false;
    return true;
}

bool has_layout(Program *p)
{
    Blocks blocks;
    int late = -1;
    if (!is_even_placed(p)) {
        error_plain(p,
                    "ranks have %s chunks, but Megatron-LM has the same number "
                    "on each",
                    chunks_text(p));
        help(p, "use a placement with as many chunks on every rank");
        return false;
    }
    if (!count_blocks(p, &blocks)) {
        error_plain(p, "no entry of the model is repeated, so there are no "
                       "blocks to write a layout of");
        help(p, "write them as one entry: h : block * 12");
        return false;
    }
    for (int i = 0; i < blocks.before && late < 0; i++)
        late = chunk_of_layer(p, i) > 0 ? i : late;
    if (late < 0)
        return true;
    error_plain(p,
                "%s is in chunk %d, but the `E` of a layout is all that stands "
                "before the blocks, in the first stage",
                p->layers[late].name, chunk_of_layer(p, late));
    help(p, "split first 1, account embedding, or a layout of your own");
    return false;
}

/* ---- the table ---- */

/* "embedding,decoder*3 @0": of the first block of the stage, or of the next one. */
static const char *cell_text(Program *p, const LayoutStage *stage, int offset)
{
    const char *text = "";
    for (int i = 0; i < LAYOUT_WORDS; i++) {
        int count = stage->of[i];
        if (!count)
            continue;
        text = text_format(p->arena, "%s%s%s", text, *text ? "," : "",
                           layout_words[i].word);
        if (count > 1)
            text = text_format(p->arena, "%s*%d", text, count);
    }
    return text_format(p->arena, "%s @%d", *text ? text : "(empty stage)",
                       offset);
}

static void table(Program *p, const LayoutStage *stages, const char *margin,
                  FILE *out)
{
    int virtuals = p->copy_chunks / p->ranks, width = 12, offset = 0;
    const char **cells = arena_take(p->arena,
                                    sizeof *cells * (size_t)p->copy_chunks);
    for (int c = 0; c < p->copy_chunks; c++) {
        cells[c] = cell_text(p, &stages[c], offset);
        offset += stages[c].of[LAYOUT_BLOCK];
        width = (int)strlen(cells[c]) > width ? (int)strlen(cells[c]) : width;
    }
    fprintf(out, "%s%-12s", margin, "");
    for (int k = 0; k < virtuals; k++)
        fprintf(out, "  %*s", k + 1 < virtuals ? -width : 0,
                text_format(p->arena, "VPP rank %d", k));
    fputc('\n', out);
    for (int r = 0; r < p->ranks; r++) {
        fprintf(out, "%s%-12s", margin, text_format(p->arena, "PP rank %d", r));
        for (int k = 0; k < virtuals; k++)
            fprintf(out, "  %*s", k + 1 < virtuals ? -width : 0,
                    cells[k * p->ranks + r]);
        fputc('\n', out);
    }
}

void layout_table(Program *p, FILE *out)
{
    Blocks blocks;
    if ((!p->set.layout && !p->set.first.value && !p->set.last.value &&
         p->set.account_at.source < 0) ||
        !is_even_placed(p))
        return;
    count_blocks(p, &blocks);
    fputs("as Megatron-LM has it", out);
    if (!is_loop(p))
        fprintf(out, ", chunk c on rank c mod %d", p->ranks);
    fputs(", with the number of the first block of each stage:\n", out);
    table(p, stages_of(p, &blocks), "", out);
}

/* ---- flags that cut alike ---- */

typedef struct Cut {
    Program *p;
    const LayoutStage *stages;
    int blocks, chunks, ranks;
} Cut;

static int blocks_in(const Cut *cut, int c)
{
    return cut->stages[c].of[LAYOUT_BLOCK];
}

/* Every chunk the same, but for the place that an end takes. */
static bool is_even(const Cut *cut, bool embedding, bool loss)
{
    int all = cut->blocks + embedding + loss;
    for (int c = 0; c < cut->chunks; c++)
        if (blocks_in(cut, c) + (embedding && c == 0) +
                (loss && c == cut->chunks - 1) !=
            all / cut->chunks)
            return false;
    return all % cut->chunks == 0;
}

/* Alike in all chunks of the first rank, of the last, and of those between. */
static bool has_ends(const Cut *cut)
{
    for (int c = cut->ranks; c < cut->chunks; c++)
        if (blocks_in(cut, c) != blocks_in(cut, c - cut->ranks))
            return false;
    for (int c = 2; c < cut->ranks - 1; c++)
        if (blocks_in(cut, c) != blocks_in(cut, 1))
            return false;
    return cut->ranks > 1 && blocks_in(cut, 0) &&
           blocks_in(cut, cut->ranks - 1);
}

/* One is left out where it says what the ranks between have anyway. */
static const char *end_flags(const Cut *cut)
{
    int own = cut->chunks / cut->ranks, last = cut->ranks - 1;
    Arena *arena = cut->p->arena;
    const char *text = "";
    if (last == 1 || blocks_in(cut, 0) != blocks_in(cut, 1))
        text = text_format(arena, " --decoder-first-pipeline-num-layers %d",
                           own * blocks_in(cut, 0));
    if (last == 1 || blocks_in(cut, last) != blocks_in(cut, 1))
        text = text_format(arena, "%s --decoder-last-pipeline-num-layers %d",
                           text, own * blocks_in(cut, last));
    return text;
}

/* NULL: only a layout makes this cut. */
static const char *other_flags(const Cut *cut)
{
    static const char *const account[] = {
        "", " --account-for-embedding-in-pipeline-split",
        " --account-for-loss-in-pipeline-split",
        " --account-for-embedding-in-pipeline-split "
        "--account-for-loss-in-pipeline-split"};
    for (int i = 0; i < 4; i++)
        if (is_even(cut, i & 1, i & 2))
            return account[i];
    return has_ends(cut) ? end_flags(cut) : NULL;
}

static bool is_plain(const Program *p, const Blocks *blocks,
                     const LayoutStage *stages)
{
    return !blocks->predictions &&
           stages[p->copy_chunks - 1].of[LAYOUT_LOSS] == 1 && p->ranks > 1;
}

static void write_other_flags(const Cut *cut, FILE *out)
{
    const char *flags = other_flags(cut);
    int own = cut->chunks / cut->ranks;
    if (flags && (*flags || own > 1)) {
        fprintf(out, "# the same cut without a layout:");
        if (own > 1)
            fprintf(out, " --num-virtual-stages-per-pipeline-rank %d", own);
        fprintf(out, "%s\n", flags);
    } else if (flags)
        fprintf(out, "# without a layout Megatron-LM cuts alike\n");
}

/* ---- Megatron's schedule beside this one ---- */

/* Entry k of its table: groups of micro-batches, in each chunk after chunk. */
static void megatron_entry(const Program *p, int group, int k, int *chunk,
                           int *micro)
{
    int own = p->copy_chunks / p->ranks, first = k / (group * own) * group;
    int left = p->microbatches - first, size = left < group ? left : group;
    *chunk = (k - first * own) / size;
    *micro = first + (k - first * own) % size;
}

static bool is_action(const Program *p, int rank, int index, ActionKind kind,
                      int group, int k)
{
    int chunk, micro, own = p->copy_chunks / p->ranks;
    const List *order = &p->order[rank];
    megatron_entry(p, group, k, &chunk, &micro);
    chunk = kind == ACT_F ? chunk : own - 1 - chunk;
    Action a = index < order->count ? order->at[index]
                                    : (Action){.kind = ACT_STEP};
    return a.kind == kind && a.micro == micro &&
           a.chunk == chunk * p->ranks + rank;
}

/* Warm up, one forward and one backward in turn, the rest: is that the order. */
static bool is_megatrons(const Program *p, int group)
{
    int own = p->copy_chunks / p->ranks, all = p->microbatches * own;
    for (int r = 0; r < p->ranks; r++) {
        int ahead = p->ranks - 1 - r, index = 0, back = 0;
        int warmup = own > 1 ? 2 * ahead + (own - 1) * group : ahead;
        for (int k = 0; k < all; k++) {
            if (!is_action(p, r, index++, ACT_F, group, k))
                return false;
            if (k >= warmup && !is_action(p, r, index++, ACT_B, group, back++))
                return false;
        }
        for (; back < all; back++)
            if (!is_action(p, r, index++, ACT_B, group, back))
                return false;
        if (index != p->order[r].count)
            return false;
    }
    return true;
}

static int group_of(const Program *p)
{
    bool own = strcmp(p->set.schedule->name, "interleaved") == 0;
    return own && p->copy_chunks > p->ranks ? interleaved_group(p) : p->ranks;
}

/* Each thing that Megatron-LM stops at, in a line. */
static void write_refused_groups(const Program *p, int group, FILE *out)
{
    int rest = p->microbatches % group;
    if (p->copy_chunks == p->ranks)
        return;
    if (p->ranks == 1)
        fputs("# Megatron-LM refuses more than one chunk on a single rank\n",
              out);
    else if (p->microbatches < p->ranks)
        fprintf(out,
                "# Megatron-LM refuses %d micro-batches: with more than one "
                "chunk on a rank it wants as many as ranks, %d\n",
                p->microbatches, p->ranks);
    else if (group > p->microbatches || group < p->ranks)
        fprintf(out,
                "# Megatron-LM refuses groups of %d micro-batches: it wants "
                "from %d, the ranks, to %d, all of them\n",
                group, p->ranks, p->microbatches);
    else if (rest && rest < p->ranks)
        fprintf(out,
                "# Megatron-LM refuses a last group of %d micro-batches: it "
                "wants %d at least, the ranks\n",
                rest, p->ranks);
}

static void write_refused_stages(const Program *p, const LayoutStage *stages,
                                 FILE *out)
{
    int predicting = 0, late = 0, ends = 0;
    for (int c = 0; c < p->copy_chunks; c++) {
        bool predicts = stages[c].of[LAYOUT_PREDICTION] > 0;
        predicting += predicts;
        late += predicts && c >= p->copy_chunks - p->ranks;
        ends += stages[c].of[LAYOUT_LOSS];
    }
    if (predicting > 1 || late < predicting)
        fputs("# Megatron-LM refuses `m` but in one stage, the last of its "
              "rank\n",
              out);
    if (ends > 1)
        fputs("# Megatron-LM refuses more than one `L`: what stands behind the "
              "blocks is in several stages here\n",
              out);
}

static void write_schedule(Program *p, int group, FILE *out)
{
    const char *own = p->copy_chunks > p->ranks ? "interleaved 1F1B" : "1F1B";
    fprintf(out, "# schedule: ");
    if (p->copies > 1)
        fprintf(out,
                "Megatron-LM has no second copy of the model, as `%s` has; it "
                "runs %s over one copy\n",
                p->set.schedule->name, own);
    else if (is_megatrons(p, group))
        fprintf(out, "Megatron-LM's %s runs these actions in this order\n",
                own);
    else if (!is_loop(p))
        fprintf(
            out,
            "Megatron-LM runs %s, and chunk c lies on rank c mod %d there, "
            "not as `%s` has it, placed %s%s: only the sizes are the same\n",
            own, p->ranks, p->set.schedule->name, p->set.listed ? "" : "as a ",
            placement_text(p));
    else
        fprintf(
            out,
            "Megatron-LM does not run the order of `%s`; with these flags "
            "it runs %s over the same chunks on the same ranks: `pipec diff "
            "%s --schedule %s,%s` shows both\n",
            p->set.schedule->name, own, file_name(p), p->set.schedule->name,
            p->copy_chunks > p->ranks ? "interleaved" : "1f1b");
    write_refused_groups(p, group, out);
}

/* ---- the file ---- */

static void write_flags(Program *p, const Blocks *blocks, int group,
                        const char *text, FILE *out)
{
    int rows = (int)p->set.rows.value;
    fprintf(out, "--num-layers %d\n--pipeline-model-parallel-size %d\n",
            blocks->count, p->ranks);
    fprintf(out, "--pipeline-model-parallel-layout \"%s\"\n", text);
    if (blocks->predictions)
        fprintf(out, "--mtp-num-layers %d\n", blocks->predictions);
    if (p->copy_chunks > p->ranks && group != p->ranks)
        fprintf(out, "--microbatch-group-size-per-virtual-pipeline-stage %d\n",
                group);
    fprintf(out, "--micro-batch-size %d\n--global-batch-size %ld\n", rows,
            (long)rows * p->microbatches);
}

void layout_file(Program *p, FILE *out)
{
    Blocks blocks;
    int group = group_of(p);
    count_blocks(p, &blocks);
    const LayoutStage *stages = stages_of(p, &blocks);
    Cut cut = {p, stages, blocks.count, p->copy_chunks, p->ranks};
    fprintf(out,
            "# %s for Megatron-LM, on one data-parallel rank. All lines but "
            "these are flags: grep -v '^#' FILE | xargs ...\n#\n",
            file_name(p));
    table(p, stages, "# ", out);
    fprintf(out, "# @n: the first block of the stage, from 0\n#\n");
    write_schedule(p, group, out);
    write_refused_stages(p, stages, out);
    if (is_plain(p, &blocks, stages))
        write_other_flags(&cut, out);
    write_flags(p, &blocks, group,
                layout_text(p->arena, stages, p->copy_chunks), out);
}
