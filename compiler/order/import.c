/* import.c: what of the pipeline follows from the file of `schedule from`.
 *
 * Reads: set, the file. Writes: import; of set what the .pipe file does not say:
 * stages, virtual, microbatches, placement. Guarantees: the file has as many rows
 * as there are stages; the placement is one that the schedule takes.
 *
 *     0F0,0F1,1F0,1F1,...        2 rows: stages 2
 *     2F0,2B0,2F1,2B1            stage 2 is here: placement [0 0 1]
 *
 * What is written is law. Whatever in the file does not fit it is named later, by
 * its cell, where the order is taken. */
#include "exchange.h"
#include "read/check.h"

enum { MOST_VIRTUALS = 256, MOST_MICROS = 16384 };  // of the settings

static void take_stages(Import *x)
{
    Settings *set = &x->p->set;
    if (!is_written(set->stages) && x->row_count >= 1 &&
        x->row_count <= MAX_RANKS)
        set->stages = (Number){x->row_count, set->schedule_at};
}

static void take_micros(Import *x)
{
    Program *p = x->p;
    if (is_written(p->set.microbatches))
        return;
    p->microbatches = -1;  // of equal numbers of rows the larger count is meant
    int meant = micros_meant(x, micros_of_rows(x, SLOT_F));
    if (!meant)  // no row has the first forward
        meant = micros_meant(x, micros_of_rows(x, SLOT_BACKWARD));
    if (meant >= 1 && meant <= MOST_MICROS)
        p->set.microbatches = (Number){meant, p->set.schedule_at};
    p->microbatches = (int)p->set.microbatches.value;
}

static bool note_any(void *context, Cell cell, Found found)
{
    Import *x = context;
    (void)found;
    x->there[cell.rank] = true;
    return true;
}

/* Lines behind the last row are no rows, but one between them is. */
static bool has_no_gap(Import *x)
{
    int rows = x->row_count;
    x->there = arena_take(x->p->arena, (size_t)rows);
    read_again(x, note_any);
    for (int r = 0; r < rows; r++) {
        if (x->there[r])
            continue;
        error_at(x->p, row_at(x->p, r), "rank %d has no action", r);
        help(x->p, "every rank has a chunk: leave the row out");
        return false;
    }
    return true;
}

/* ---- which rank has a stage ---- */

/* The row of a stage is that of the first cell that names it. */
static bool note_row(void *context, Cell cell, Found found)
{
    Import *x = context;
    if (found.stage < x->most && !x->owner[found.stage])
        x->owner[found.stage] = cell.rank + 1;
    return true;
}

/* NULL: a row has none of the stages, so something is missing. */
static int *rows_of_stages(Import *x, int count)
{
    int *rank = arena_take(x->p->arena, sizeof *rank * (size_t)count);
    bool *there = arena_take(x->p->arena, (size_t)x->row_count);
    x->owner = arena_take(x->p->arena, sizeof *x->owner * (size_t)count);
    x->most = count;
    read_again(x, note_row);
    for (int s = 0; s < count; s++) {
        rank[s] = x->owner[s] - 1;
        there[rank[s]] = true;
    }
    for (int r = 0; r < x->row_count; r++)
        if (!there[r])
            return NULL;
    return rank;
}

static bool note_halves(void *context, Cell cell, Found found)
{
    Import *x = context;
    (void)cell;
    if (found.kind == ACT_F && found.stage == 0 && found.micro > x->last_down)
        x->last_down = found.micro;
    if (found.kind == ACT_F && found.stage == x->row_count &&
        found.micro < x->first_up)
        x->first_up = found.micro;
    return true;
}

/* Two copies of the model lie as the chunks of a vee do, but no micro-batch comes
 * to stage 0, the first of one, and to stage P, the first of the other. */
static bool are_copies(Import *x)
{
    x->last_down = -1;
    x->first_up = x->micros;
    read_again(x, note_halves);
    return x->last_down < x->first_up && x->first_up < x->micros;
}

/* A placement with a name that has all stages where the file has them, else
 * PLACE_OWN. */
static Placement fitting_placement(Import *x, const int *rank, int count)
{
    int legs = count / x->row_count;
    bool copies = legs == 2 && are_copies(x);
    for (int k = 0; k < PLACEMENT_COUNT && count % x->row_count == 0; k++) {
        int s = 0;
        while (s < count &&
               rank[s] == placed_rank((Placement)k, x->row_count, s))
            s++;
        if (s == count && (k == PLACE_TWIN) == copies &&
            (k != PLACE_VEE || legs == 2) && (k != PLACE_WAVE || legs % 2 == 0))
            return (Placement)k;
    }
    return PLACE_OWN;
}

static void take_placement(Import *x)
{
    Settings *set = &x->p->set;
    int count = stages_meant(x), legs = count / x->row_count;
    if (is_written(set->virtuals) && legs != (int)set->virtuals.value)
        return;
    int *rank = count ? rows_of_stages(x, count) : NULL;
    if (!rank)
        return;
    Placement fits = fitting_placement(x, rank, count);
    if (fits == PLACE_OWN) {
        set->listed = rank;
        set->listed_count = count;
        return;
    }
    if (fits != PLACE_LOOP) {
        set->placement = fits;
        set->placement_at = set->schedule_at;
    }
    if (!is_written(set->virtuals) && legs <= MOST_VIRTUALS)
        set->virtuals = (Number){fits == PLACE_TWIN ? 1 : legs,
                                 set->schedule_at};
}

static void take_virtual_of(Import *x)
{
    Settings *set = &x->p->set;
    int count = stages_meant(x), legs = count / x->row_count;
    bool any = set->placement == PLACE_LOOP || set->placement == PLACE_WAVE;
    if (any && !set->listed && !is_written(set->virtuals) &&
        count % x->row_count == 0 && legs >= 1 && legs <= MOST_VIRTUALS)
        set->virtuals = (Number){legs, set->schedule_at};
}

/* ---- the pass ---- */

bool import(Program *p)
{
    int errors = p->errors;
    if (!p->set.schedule_path)
        return true;
    Import *x = p->import = open_import(p);
    if (!x)
        return false;
    take_stages(x);
    take_micros(x);
    if (!fits_rows(x) || !has_no_gap(x))
        return false;
    if (p->set.placement_at.source < 0)
        take_placement(x);
    else
        take_virtual_of(x);
    check_list(p);
    check_placement(p);
    return p->errors == errors;
}
