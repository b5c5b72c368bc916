/* exchange_size.c: is it a file for this pipeline: ranks, stages, micro-batches.
 *
 *     0F0,0F1,0B0,0B1        row 0 has 0 and 1, without a gap: 2 micro-batches
 *     1F0,1F7,1B0,1B1        row 1 has so many, too; 7 is astray
 *
 * The highest number of a file says little: one slip of the pen is as high as
 * it likes. What most rows have without a gap is the size that was meant. */
#include "exchange.h"

enum { MOST_STAGES = 1 << 18, MOST_MICROS = 1 << 15 };  // no pipeline has more

static const char *some(Import *x, int count, const char *one, const char *more)
{
    return text_format(x->p->arena, "%d %s", count, count == 1 ? one : more);
}

static bool wrong_count(Import *x, const char *has, const char *ours, int count,
                        Span from)
{
    error_at(x->p, row_at(x->p, 0), "the file has %s, but %s %d", has, ours,
             count);
    note_at(x->p, from, "from here");
    return false;
}

bool read_again(Import *x, CsvUse use)
{
    int rows, overlaps;
    return csv_read(x->p, use, x, &rows, &overlaps);
}

static int without_gap(const bool *there, int most)
{
    int count = 0;
    while (count < most && there[count])
        count++;
    return count;
}

static bool note_stage(void *context, Cell cell, Found found)
{
    Import *x = context;
    (void)cell;
    if (found.stage < x->most)
        x->there[found.stage] = true;
    return true;
}

/* Stages that the whole file has from 0 on. */
int stages_meant(Import *x)
{
    x->most = x->stages < MOST_STAGES ? x->stages : MOST_STAGES;
    x->there = arena_take(x->p->arena, (size_t)x->most);
    read_again(x, note_stage);
    return without_gap(x->there, x->most);
}

static bool note_micro(void *context, Cell cell, Found found)
{
    Import *x = context;
    if (csv_has_micro(found.kind) && slot_of(found.kind) == x->counted &&
        found.micro < x->most)
        x->there[cell.rank * x->most + found.micro] = true;
    return true;
}

/* Micro-batches of which each row has the forwards, or the backwards, from 0
 * on. */
const int *micros_of_rows(Import *x, Slot counted)
{
    Arena *arena = x->p->arena;
    size_t most = x->micros < MOST_MICROS ? (size_t)x->micros : MOST_MICROS;
    int *counts = arena_take(arena, sizeof *counts * (size_t)x->row_count);
    x->most = (int)most;
    x->counted = counted;
    x->there = arena_take(arena, (size_t)x->row_count * most);
    read_again(x, note_micro);
    for (int r = 0; r < x->row_count; r++)
        counts[r] = without_gap(x->there + (size_t)r * most, x->most);
    return counts;
}

/* What most rows have; of equals what the pipeline has, else the largest. */
int micros_meant(const Import *x, const int *counts)
{
    int *rows = arena_take(x->p->arena, sizeof *rows * ((size_t)x->most + 1));
    int best = 0;
    for (int r = 0; r < x->row_count; r++)
        rows[counts[r]]++;
    for (int count = 1; count <= x->most; count++)
        if (rows[count] > rows[best] ||
            (rows[count] == rows[best] && best != x->p->microbatches))
            best = count;
    return best;
}

static bool stray_stage(void *context, Cell cell, Found found)
{
    Import *x = context;
    int chunks = x->p->chunk_count;
    if (found.stage < chunks)
        return true;
    wrong_cell(x, cell,
               text_format(x->p->arena, "is of stage %d, which there is not",
                           found.stage));
    help(x->p,
         chunks == 1 ? "there is stage 0 alone"
                     : "stages are numbered from 0 to %d",
         chunks - 1);
    return false;
}

static bool stray_micro(void *context, Cell cell, Found found)
{
    Import *x = context;
    int count = x->p->microbatches;
    if (found.micro < count)
        return true;
    wrong_cell(x, cell,
               text_format(x->p->arena,
                           "is of micro-batch %d, which there is not",
                           found.micro));
    help(x->p,
         count == 1 ? "there is micro-batch 0 alone"
                    : "micro-batches are numbered from 0 to %d",
         count - 1);
    return false;
}

bool fits_rows(Import *x)
{
    Program *p = x->p;
    int ranks = (int)p->set.stages.value;
    if (x->row_count == ranks)
        return true;
    wrong_count(x, some(x, x->row_count, "row", "rows"), "`stages` is", ranks,
                p->set.stages.at);
    help(p, "a row of the file is a rank%s",
         p->set.listed ? ": leave `placement` out"
         : x->row_count
             ? text_format(p->arena, ": use `stages %d`", x->row_count)
             : "");
    return false;
}

static bool fits_stages(Import *x)
{
    Program *p = x->p;
    int stages = p->chunk_count;
    while (stages > 1 && !p->chunks[stages - 1].micro_count)
        stages--;  // of a second copy that no micro-batch passes
    if (x->stages >= stages && x->stages <= p->chunk_count)
        return true;
    int meant = stages_meant(x);
    if (x->stages > p->chunk_count && meant <= p->chunk_count)
        return read_again(x, stray_stage);
    const Settings *set = &p->set;
    wrong_count(x, some(x, meant, "stage", "stages"),
                p->copies > 1 ? "the chunks of both copies of the model are"
                : set->listed ? "the chunks of the placement are"
                              : "stages times virtual is",
                p->chunk_count,
                set->listed ? set->placement_at
                : set->stages.at.begin == set->schedule_at.begin
                    ? set->virtuals.at
                    : set->stages.at);
    help(p, "a stage of the file is a chunk%s",
         p->copies > 1 || !meant ? ""
         : set->listed           ? ": leave `placement` out"
         : meant % p->ranks == 0
             ? text_format(p->arena, ": use `virtual %d`", meant / p->ranks)
             : ": leave `virtual` out");
    return false;
}

static void help_count(Import *x, const int *counts)
{
    int other = 1;
    while (other < x->row_count && counts[other] == counts[0])
        other++;
    if (other >= x->row_count)
        help(x->p, "use `microbatches %d`", counts[0]);
    else
        help(x->p, "its rows differ: rank 0 has %d, rank %d has %d", counts[0],
             other, counts[other]);
}

static bool fits_micros(Import *x)
{
    Program *p = x->p;
    int microbatches = p->microbatches;
    if (x->micros == microbatches)
        return true;
    const int *counts = micros_of_rows(x, SLOT_F);
    int meant = micros_meant(x, counts);
    if (x->micros > microbatches && meant <= microbatches)
        return read_again(x, stray_micro);
    wrong_count(x, some(x, meant, "micro-batch", "micro-batches"),
                "`microbatches` is", microbatches, p->set.microbatches.at);
    help_count(x, counts);
    return false;
}

/* Nothing in the file lies outside of the pipeline; that all is there is seen
 * later. */
bool fits_pipeline(Import *x)
{
    return fits_stages(x) && fits_micros(x);
}
