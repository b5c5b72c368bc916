/* exchange.c: the order of a file that PyTorch's pipelining has written, or that
 * csv.c has: `schedule from "x.csv"`.
 *
 * Reads: set, chunks, ranks. Writes: order, rows, schedule_source. Guarantees:
 * every micro-batch passes every chunk once, on the rank that has it; messages
 * of the file, if it has any, meet each other, exchange_messages.c; the rest is
 * for `prove`.
 *
 *     0F0,0F1,,0B0,0B1            row i is rank i; an empty cell is idle time
 *     1F0,1B0,(1F1;1B1)OVERLAP_F_B
 *
 * Columns mean nothing: a rank's order is all that is taken.
 *
 * Until late in 2024 B was the gradient of the input and BW the full backward.
 * A file that has W but no I is read that way, which is said.
 *
 * The file is read twice by csv.c: first, in the pass `import`, to count what is
 * in it and to find cells that are none, then to take the order. So a file of
 * another size is refused, by exchange_size.c, before anything is as large as it
 * claims to be.
 * What is wrong is said at its cell. */
#include "exchange.h"
#include "escape.h"
#include "written.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 256 << 20 };

bool wrong_cell(Import *x, Cell cell, const char *why)
{
    error_at(x->p, cell_span(cell), "%s %s", cell_text(x->p, cell), why);
    return false;
}

Slot slot_of(int kind)
{
    switch (kind) {
    case ACT_F: return SLOT_F;
    case ACT_W: return SLOT_W;
    case ACT_SEND_F: return SLOT_SEND_F;
    case ACT_RECV_F: return SLOT_RECV_F;
    case ACT_SEND_B: return SLOT_SEND_B;
    case ACT_RECV_B: return SLOT_RECV_B;
    case ACT_WAIT_F: return SLOT_WAIT_F;
    case ACT_WAIT_B: return SLOT_WAIT_B;
    default: return SLOT_BACKWARD;
    }
}

/* ---- first reading: is it a file for this pipeline ---- */

static bool count(void *context, Cell cell, Found found)
{
    Import *x = context;
    if (!x->seen[found.kind])
        x->seen[found.kind] = cell.begin + 1;
    if (found.stage >= x->stages)
        x->stages = found.stage + 1;
    if (found.micro >= x->micros)
        x->micros = found.micro + 1;
    return true;
}

static bool one_dialect(Import *x)
{
    Program *p = x->p;
    x->old = (x->seen[ACT_W] || x->seen[CSV_FULL]) && !x->seen[ACT_I];
    if (x->seen[CSV_FULL] && !x->old) {
        error_at(p, cell_at(p, x->seen[CSV_FULL] - 1),
                 "the file has both I and BW");
        help(p, "BW is the full backward of the old dialect, in which I is "
                "called B: write B for it");
        return false;
    }
    if (x->old)
        note_at(p, cell_at(p, x->seen[x->seen[ACT_W] ? ACT_W : CSV_FULL] - 1),
                "the file has W but no I, so it is in the old dialect: B is "
                "the gradient of the input, BW the full backward");
    if (x->overlaps)
        note_at(p, row_at(p, 0),
                "the actions of %d OVERLAP_F_B run one after another",
                x->overlaps);
    return true;
}

/* ---- second reading: the order ---- */

static bool has_one_rank(Import *x, Cell cell, int stage)
{
    Program *p = x->p;
    if (!x->owner[stage]) {
        x->owner[stage] = cell.rank + 1;
        x->owner_cell[stage] = cell.begin;
    }
    if (x->owner[stage] == cell.rank + 1)
        return true;
    wrong_cell(x, cell,
               text_format(p->arena, "is on rank %d, but stage %d on rank %d",
                           cell.rank, stage, x->owner[stage] - 1));
    note_at(p, cell_at(p, x->owner_cell[stage]), "by this cell");
    help(p, "all of a stage runs on one rank, in one row");
    return false;
}

bool second_time(Import *x, Cell cell, int before)
{
    wrong_cell(x, cell, "a second time");
    note_at(x->p, cell_at(x->p, before), "the first time");
    return false;
}

static bool take_action(void *context, Cell cell, Found f)
{
    Import *x = context;
    Program *p = x->p;
    if (!has_one_rank(x, cell, f.stage))
        return false;
    if (!csv_has_micro(f.kind))
        return take_stage_word(x, cell, f);
    int *before = &x->slot[slot_of(f.kind)][cell_of(p, f.stage, f.micro)];
    if (*before)
        return second_time(x, cell, *before - 1);
    *before = cell.begin + 1;
    if (f.kind == ACT_B && x->old)
        f.kind = ACT_I;
    else if (f.kind == CSV_FULL)
        f.kind = ACT_B;
    Action a = {(ActionKind)f.kind, f.stage, f.micro, -1, 0, cell.begin + 1};
    if (is_compute(a.kind)) {
        if (!stage_is_there(x, cell, f))
            return false;
        push_action(p, &p->order[cell.rank], a);
    }
    if (x->rows)
        push_action(p, &x->rows[cell.rank], a);
    return true;
}

static bool is_placed(Import *x)
{
    Program *p = x->p;
    for (int s = 0; s < p->chunk_count; s++) {
        int rank = p->chunks[s].rank;
        if (!x->owner[s] || x->owner[s] == rank + 1)
            continue;
        error_at(p, cell_at(p, x->owner_cell[s]),
                 "stage %d is on rank %d, but the placement `%s` has chunk %d "
                 "on rank %d",
                 s, x->owner[s] - 1, placement_text(p), s, rank);
        if (p->set.placement_at.source >= 0)
            note_at(p, p->set.placement_at, "the placement is written here");
        help(p, "leave `placement` out: it follows from the file");
        return false;
    }
    return true;
}

static bool is_missing(Import *x, int stage, int micro, const char *what)
{
    int rank = x->p->chunks[stage].rank;
    error_at(x->p, row_at(x->p, rank), "rank %d has no %d%s%d", rank, stage,
             what, micro);
    return false;
}

static bool is_complete(Import *x)
{
    Program *p = x->p;
    for (int m = 0; m < x->micros; m++)
        for (int s = 0; s < p->chunk_count; s++)
            if (!goes_through(p, s, m))
                continue;
            else if (!x->slot[SLOT_F][cell_of(x->p, s, m)])
                return is_missing(x, s, m, "F");
            else if (!x->slot[SLOT_BACKWARD][cell_of(x->p, s, m)])
                return is_missing(x, s, m, "B");
    for (int r = 0; r < p->ranks; r++) {
        for (int i = 0; i < p->order[r].count; i++) {
            Action a = p->order[r].at[i];
            if (a.kind == ACT_I &&
                !x->slot[SLOT_W][cell_of(x->p, a.chunk, a.micro)])
                return is_missing(x, a.chunk, a.micro, "W");
        }
    }
    return true;
}

static Origin imported_origin(Program *p, int rank, int begin)
{
    (void)rank;
    Span at = cell_at(p, begin);
    return (Origin){at, text_format(p->arena, " (%s)", place_text(p, at))};
}

/* ---- the pass ---- */

static bool take_order(Import *x)
{
    Program *p = x->p;
    size_t chunks = (size_t)p->chunk_count, ranks = (size_t)p->ranks,
           cells = chunks * (size_t)x->micros;
    x->owner = arena_take(p->arena, sizeof(int) * chunks);
    x->owner_cell = arena_take(p->arena, sizeof(int) * chunks);
    x->stage = arena_take(p->arena, sizeof *x->stage * chunks);
    for (int s = 0; s < (has_messages(x) ? SLOTS : SLOT_SEND_F); s++)
        x->slot[s] = arena_take(p->arena, sizeof(int) * cells);
    if (has_messages(x))
        x->rows = arena_take(p->arena, sizeof *x->rows * ranks);
    p->origin = imported_origin;
    if (!csv_read(p, take_action, x, &x->row_count, &x->overlaps) ||
        !is_placed(x) || !is_complete(x) || !messages_bind(x))
        return false;
    for (int r = 0; r < p->ranks; r++)
        find_phases(&p->order[r]);
    return true;
}

const char *schedule_file(Program *p)
{
    const char *path = p->set.schedule_path, *file = p->sources[0].name,
               *slash = strrchr(file, '/');
    if (path[0] == '/' || p->set.schedule_at.source != 0 || !slash)
        return path;
    return text_format(p->arena, "%.*s/%s", (int)(slash - file), file, path);
}

/* NULL, and errno: it cannot be read. Only what has an end is read at all. */
static char *read_all(Arena *arena, const char *path, size_t *length)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return NULL;
    errno = S_ISDIR(status.st_mode)       ? EISDIR
            : !S_ISREG(status.st_mode)    ? EINVAL
            : status.st_size > MOST_BYTES ? EFBIG
                                          : 0;
    FILE *in = errno ? NULL : fopen(path, "rb");
    if (!in)
        return NULL;
    size_t room = (size_t)status.st_size + 1;
    char *text = arena_take(arena, room);
    *length = fread(text, 1, room - 1, in);
    bool failed = ferror(in);
    fclose(in);
    return failed ? NULL : text;
}

static bool is_end_of_line(char c)
{
    return c == '\n' || c == '\r' || c == ' ' || c == '\t';
}

/* The file as a source of its own, for errors to point at. */
static bool open_source(Program *p)
{
    size_t length = 0;
    const char *path = schedule_file(p);
    char *text = read_all(p->arena, path, &length);
    if (!text) {
        error_at(p, p->set.schedule_at, "cannot read the schedule %s: %s",
                 shown_text(p->arena, p->set.schedule_path), strerror(errno));
        return false;
    }
    if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;  // the mark of UTF-8, as spreadsheets write it
        length -= 3;
    }
    while (length && is_end_of_line(text[length - 1]))
        text[--length] = 0;
    p->schedule_source = (Source){path, text, (int)length};
    return true;
}

Import *open_import(Program *p)
{
    Import *x = arena_take(p->arena, sizeof *x);
    x->p = p;
    return open_source(p) && csv_read(p, count, x, &x->row_count, &x->overlaps)
               ? x
               : NULL;
}

bool import_order(Program *p)
{
    Import *x = p->import;
    return fits_pipeline(x) && one_dialect(x) && take_order(x);
}
