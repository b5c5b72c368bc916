/* exchange.c: the order of a file that PyTorch's pipelining has written, or that
 * picture_csv.c has: `schedule from "x.csv"`.
 *
 * Reads: set, chunks, ranks. Writes: order, cells. Guarantees: every micro-batch
 * passes every chunk once, on the rank that has it; the rest is for `prove`.
 *
 *     0F0,0F1,,0B0,0B1            row i is rank i; an empty cell is idle time
 *     1F0,1B0,(1F1;1B1)OVERLAP_F_B
 *
 * Columns mean nothing: a rank's order is all that is taken. SENDs and RECVs of
 * the file must match each other, but `communicate` makes our own.
 *
 * Until late in 2024 B was the gradient of the input and BW the full backward.
 * A file that has W but no I is read that way, which is said.
 *
 * The file is read twice by the same few functions: first to count what is in
 * it and to find cells that are none, then to take the order. So a file of
 * another size is refused, by exchange_size.c, before anything is as large as
 * it claims to be. */
#include "exchange.h"
#include "escape.h"
#include "written.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    MOST_BYTES = 256 << 20,
    CELL_SHOWN = 40,         // bytes of a cell that are printed
    MOST_NUMBER = 999999999  // larger ones are all the same
};

static const struct {
    const char *text;
    int kind;
    bool micro;  // is a micro-batch behind it
} words[] = {
    {"F", ACT_F, true},           {"B", ACT_B, true},
    {"I", ACT_I, true},           {"W", ACT_W, true},
    {"BW", FULL, true},           {"SEND_F", ACT_SEND_F, true},
    {"RECV_F", ACT_RECV_F, true}, {"SEND_B", ACT_SEND_B, true},
    {"RECV_B", ACT_RECV_B, true}, {"UNSHARD", SHARD, false},
    {"RESHARD", SHARD, false},    {"REDUCE_GRAD", GRADIENTS, false},
};
enum { WORDS = sizeof words / sizeof *words };

/* ---- words ---- */

/* Whatever is in a file, only this much of it reaches a terminal. */
static const char *shown(Program *p, const char *text, int length)
{
    int most = length < CELL_SHOWN ? length : CELL_SHOWN;
    char *copy = text_copy(p->arena, text, (size_t)most);
    for (char *zero = copy;
         (zero = memchr(zero, 0, (size_t)(copy + most - zero)));)
        *zero = '?';
    return text_format(p->arena, "%s%s", shown_text(p->arena, copy),
                       most < length ? "..." : "");
}

bool wrong_at(Import *x, int rank, int number, const char *why)
{
    const char *cell = text_format(x->p->arena, ", cell %d:", number);
    error_at(x->p, x->p->set.schedule_at, "%s: rank %d (line %d)%s %s", x->name,
             rank, rank + 1, number ? cell : "", why);
    return false;
}

bool wrong_cell(Import *x, Cell cell, const char *why)
{
    return wrong_at(x, cell.rank, cell.number,
                    text_format(x->p->arena, "`%s` %s",
                                shown(x->p, cell.text, cell.length), why));
}

static Slot slot_of(int kind)
{
    switch (kind) {
    case ACT_F: return SLOT_F;
    case ACT_W: return SLOT_W;
    case ACT_SEND_F: return SLOT_SEND_F;
    case ACT_RECV_F: return SLOT_RECV_F;
    case ACT_SEND_B: return SLOT_SEND_B;
    case ACT_RECV_B: return SLOT_RECV_B;
    default: return SLOT_BACKWARD;
    }
}

/* ---- text -> cells ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the digits that it used. */
static int read_digits(const char *text, int length, int *value)
{
    int i = 0;
    long number = 0;
    for (; i < length && is_digit(text[i]); i++)
        number = number > MOST_NUMBER ? number : 10 * number + text[i] - '0';
    *value = number > MOST_NUMBER ? MOST_NUMBER : (int)number;
    return i;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void strip(const char **text, int *length)
{
    while (*length && is_blank(**text)) {
        (*text)++;
        (*length)--;
    }
    while (*length && is_blank((*text)[*length - 1]))
        (*length)--;
}

/* STAGE KIND [MICRO-BATCH], and nothing else. */
static bool read_word(const char *text, int length, Found *found)
{
    int stage = read_digits(text, length, &found->stage), i = stage;
    while (i < length && !is_digit(text[i]))
        i++;
    int digits = read_digits(text + i, length - i, &found->micro);
    if (!stage || i + digits != length)
        return false;
    for (int w = 0; w < WORDS; w++) {
        if ((int)strlen(words[w].text) != i - stage ||
            memcmp(words[w].text, text + stage, (size_t)(i - stage)) != 0)
            continue;
        found->kind = words[w].kind;
        return words[w].micro == (digits > 0);
    }
    return false;
}

static bool unknown_cell(Import *x, Cell cell)
{
    wrong_cell(x, cell, "is no action");
    help(x->p, "0F1 is stage, action, micro-batch; also 0B1, 0I1, 0W1, "
               "(0F1;0B0)OVERLAP_F_B, 0SEND_F1, 1RECV_F1, ...; or nothing");
    return false;
}

/* (0F7;7B3)OVERLAP_F_B: computes alone, in their order. */
static bool overlap_cell(Import *x, Cell cell, Use use)
{
    static const char end[] = ")OVERLAP_F_B";
    int length = cell.length - (int)sizeof end + 1, from = 1;
    if (length < 1 || memcmp(cell.text + length, end, sizeof end - 1) != 0)
        return unknown_cell(x, cell);
    for (int i = 1; i <= length; i++) {
        if (i < length && cell.text[i] != ';')
            continue;
        const char *text = cell.text + from;
        int part = i - from;
        Found found;
        strip(&text, &part);
        if (!read_word(text, part, &found) ||
            (found.kind > ACT_W && found.kind != FULL))
            return unknown_cell(x, cell);
        if (!use(x, cell, found))
            return false;
        from = i + 1;
    }
    x->overlaps++;
    return true;
}

static bool read_cell(Import *x, Cell cell, Use use)
{
    Found found;
    strip(&cell.text, &cell.length);
    if (cell.length >= 2 && cell.text[0] == '"' &&
        cell.text[cell.length - 1] == '"') {
        cell.text++;
        cell.length -= 2;
        strip(&cell.text, &cell.length);
    }
    if (!cell.length)
        return true;
    if (cell.text[0] == '(')
        return overlap_cell(x, cell, use);
    if (!read_word(cell.text, cell.length, &found))
        return unknown_cell(x, cell);
    return use(x, cell, found);
}

bool read_rows(Import *x, Use use)
{
    const char *at = x->text, *end = x->text + x->length;
    x->overlaps = 0;
    for (x->rows = 0; at < end; x->rows++) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        const char *last = line ? line : end;
        if (last > at && last[-1] == '\r')
            last--;
        for (int number = 1;; number++) {
            const char *comma = memchr(at, ',', (size_t)(last - at));
            int length = (int)((comma ? comma : last) - at);
            if (!read_cell(x, (Cell){x->rows, number, at, length}, use))
                return false;
            if (!comma)
                break;
            at = comma + 1;
        }
        at = line ? line + 1 : end;
    }
    return true;
}

/* ---- first reading: is it a file for this pipeline ---- */

static bool count(Import *x, Cell cell, Found found)
{
    (void)cell;
    x->seen[found.kind] = true;
    if (found.stage >= x->stages)
        x->stages = found.stage + 1;
    if (found.kind != SHARD && found.kind != GRADIENTS &&
        found.micro >= x->micros)
        x->micros = found.micro + 1;
    return true;
}

static bool one_dialect(Import *x)
{
    Program *p = x->p;
    x->old = (x->seen[ACT_W] || x->seen[FULL]) && !x->seen[ACT_I];
    if (x->seen[FULL] && !x->old) {
        error_at(p, p->set.schedule_at, "%s has both I and BW", x->name);
        help(p, "BW is the full backward of the old dialect, in which I is "
                "called B: write B for it");
        return false;
    }
    if (x->old)
        note_at(p, p->set.schedule_at,
                "%s has W but no I, so it is in the old dialect: B is the "
                "gradient of the input, BW the full backward",
                x->name);
    if (x->overlaps)
        note_at(p, p->set.schedule_at,
                "%s: the actions of %d OVERLAP_F_B run one after another",
                x->name, x->overlaps);
    if (x->seen[SHARD])
        note_at(p, p->set.schedule_at,
                "%s: UNSHARD and RESHARD are ignored; a rank keeps its "
                "parameters whole",
                x->name);
    return true;
}

/* ---- second reading: the order ---- */

static bool has_one_rank(Import *x, Cell cell, int stage)
{
    if (!x->owner[stage]) {
        x->owner[stage] = cell.rank + 1;
        x->owner_cell[stage] = cell.number;
    }
    if (x->owner[stage] == cell.rank + 1)
        return true;
    wrong_at(
        x, cell.rank, cell.number,
        text_format(x->p->arena,
                    "`%s`, but stage %d is on rank %d, by cell %d of that row",
                    shown(x->p, cell.text, cell.length), stage,
                    x->owner[stage] - 1, x->owner_cell[stage]));
    help(x->p, "all of a stage runs on one rank, in one row");
    return false;
}

static void add_entry(Program *p, List *list, int **cells, Cell cell, Found f)
{
    *cells = array_grow(p->arena, *cells, list->count, sizeof(int));
    (*cells)[list->count] = cell.number;
    push_action(p, list, (Action){(ActionKind)f.kind, f.stage, f.micro, -1, 0});
}

static bool take_action(Import *x, Cell cell, Found f)
{
    if (!has_one_rank(x, cell, f.stage))
        return false;
    if (f.kind == SHARD || f.kind == GRADIENTS)
        return true;
    int *before = &x->slot[slot_of(f.kind)][cell_of(x->p, f.stage, f.micro)];
    if (*before) {
        wrong_cell(
            x, cell,
            text_format(x->p->arena, "a second time: it is cell %d", *before));
        return false;
    }
    *before = cell.number;
    if (f.kind == ACT_B && x->old)
        f.kind = ACT_I;
    else if (f.kind == FULL)
        f.kind = ACT_B;
    Program *p = x->p;
    if (is_compute((ActionKind)f.kind))
        add_entry(p, &p->order[cell.rank], &p->cells[cell.rank], cell, f);
    if (x->whole)
        add_entry(p, &x->whole[cell.rank], &x->whole_cells[cell.rank], cell, f);
    return true;
}

/* A placement that has all stages where the file has them, or NULL. */
static const char *fitting_placement(const Import *x)
{
    const Program *p = x->p;
    for (int k = 0; k < PLACEMENT_COUNT; k++) {
        int s = 0;
        while (s < p->chunk_count &&
               (!x->owner[s] ||
                x->owner[s] - 1 == placed_rank((Placement)k, p->ranks, s)))
            s++;
        if (s == p->chunk_count && p->copies == 1 && k != PLACE_TWIN &&
            schedule_takes(p->set.schedule, (Placement)k, p->ranks,
                           (int)p->set.virtuals.value))
            return placement_names[k];
    }
    return NULL;
}

static bool is_placed(Import *x)
{
    Program *p = x->p;
    for (int s = 0; s < p->chunk_count; s++) {
        int rank = p->chunks[s].rank;
        if (!x->owner[s] || x->owner[s] == rank + 1)
            continue;
        wrong_at(x, x->owner[s] - 1, x->owner_cell[s],
                 text_format(
                     p->arena,
                     "stage %d is on rank %d, but the placement `%s` has chunk "
                     "%d on rank %d",
                     s, x->owner[s] - 1, placement_names[p->set.placement], s,
                     rank));
        const char *fits = fitting_placement(x);
        if (fits)
            help(p, "use `placement %s`", fits);
        else
            help(p, "the file's stages are placed as none of loop, vee, wave "
                    "and twin");
        return false;
    }
    return true;
}

static bool is_missing(Import *x, int stage, int micro, const char *what)
{
    return wrong_at(
        x, x->p->chunks[stage].rank, 0,
        text_format(x->p->arena, "has no %d%s%d", stage, what, micro));
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

static Origin imported_origin(Program *p, int rank, int entry)
{
    int length = (int)strlen(p->set.schedule_path);
    return (Origin){p->set.schedule_at,
                    text_format(p->arena, " (%s, line %d, cell %d)",
                                shown(p, p->set.schedule_path, length),
                                rank + 1, p->cells[rank][entry])};
}

/* ---- the messages of the file ---- */

/* A cell does not say with whom a message is exchanged: the boundary does. */
static void name_peers(const Import *x, int rank)
{
    const Program *p = x->p;
    for (int i = 0; i < x->whole[rank].count; i++) {
        Action *a = &x->whole[rank].at[i];
        int other = is_send(a->kind) != is_back(a->kind)
                        ? p->chunks[a->chunk].next
                        : p->chunks[a->chunk].previous;
        if (is_message(a->kind) && other >= 0)
            a->peer = p->chunks[other].rank;
    }
}

/* Whether each SEND meets its RECV, after what makes it and before what reads
 * it: as of any lists, so it is `prove` that says it, of the rows as they
 * stand. */
static bool messages_match(Import *x)
{
    Program *p = x->p, rows = *p;
    if (!x->whole)
        return true;
    rows.order = rows.lists = x->whole;
    rows.cells = x->whole_cells;
    rows.target = TARGET_CPU;
    for (int r = 0; r < p->ranks; r++)
        name_peers(x, r);
    bool match = prove_messages(&rows);
    p->errors = rows.errors;
    return match;
}

/* ---- the pass ---- */

static bool take_order(Import *x)
{
    Program *p = x->p;
    size_t chunks = (size_t)p->chunk_count, ranks = (size_t)p->ranks,
           cells = chunks * (size_t)x->micros;
    bool messages = x->seen[ACT_SEND_F] || x->seen[ACT_RECV_F] ||
                    x->seen[ACT_SEND_B] || x->seen[ACT_RECV_B];
    x->owner = arena_take(p->arena, sizeof(int) * chunks);
    x->owner_cell = arena_take(p->arena, sizeof(int) * chunks);
    for (int s = 0; s < (messages ? SLOTS : SLOT_SEND_F); s++)
        x->slot[s] = arena_take(p->arena, sizeof(int) * cells);
    if (messages) {
        x->whole = arena_take(p->arena, sizeof *x->whole * ranks);
        x->whole_cells = arena_take(p->arena, sizeof *x->whole_cells * ranks);
    }
    p->cells = arena_take(p->arena, sizeof *p->cells * ranks);
    p->origin = imported_origin;
    if (!read_rows(x, take_action) || !is_placed(x) || !is_complete(x) ||
        !messages_match(x))
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
static char *read_all(const char *path, size_t *length)
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
    char *text = malloc(room);
    if (text)
        *length = fread(text, 1, room, in);
    if (text && ferror(in)) {
        free(text);
        text = NULL;
    }
    fclose(in);
    return text;
}

static bool is_end_of_line(char c)
{
    return c == '\n' || c == '\r' || is_blank(c);
}

bool import_order(Program *p)
{
    size_t length = 0;
    char *text = read_all(schedule_file(p), &length);
    Import x = {.p = p,
                .name = shown(p, p->set.schedule_path,
                              (int)strlen(p->set.schedule_path)),
                .text = text,
                .length = length};
    if (!text) {
        error_at(p, p->set.schedule_at, "cannot read the schedule %s: %s",
                 x.name, strerror(errno));
        return false;
    }
    if (x.length >= 3 && memcmp(x.text, "\xEF\xBB\xBF", 3) == 0) {
        x.text += 3;  // the mark of UTF-8, as spreadsheets write it
        x.length -= 3;
    }
    while (x.length && is_end_of_line(x.text[x.length - 1]))
        x.length--;
    bool good = read_rows(&x, count) && fits_pipeline(&x) && one_dialect(&x) &&
                take_order(&x);
    free(text);
    return good;
}
