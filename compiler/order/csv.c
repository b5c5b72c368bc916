/* csv.c: the schedule format of PyTorch's pipelining: one table of words, the
 * reader of its cells and the writer of plans.
 *
 *     0F0,0F1,,0B0,0B1                          compute_only: row i is rank i
 *     1F0,1B0,(1F1;1B1)OVERLAP_F_B              a pair is one cell
 *     0F0,0SEND_F0,...,0B0,0WAIT_SEND_F0,...    compute_comms
 *
 * A chunk is a stage there. Columns mean nothing: a row's order is all that is
 * read. Lines end in CR LF, and no cell is written empty, which PyTorch refuses
 * beside messages.
 *
 * PyTorch's runtime wants more of a list with messages than that it meets:
 *
 *     WAIT_SEND_F   one behind each SEND; there is none that waits for long
 *                   behind the backward, whose gradient the receiver has sent
 *     WAIT_SEND_B   at the end of the row
 *     REDUCE_GRAD   divides the gradients of a stage by the number of
 *                   micro-batches: once, behind its last B or W
 *
 * (torch 2.15, schedules.py: `_validate_send_waits`, `_add_wait_send`,
 * `_add_reduce_grad`.) */
#include "csv.h"
#include "escape.h"

#include <string.h>

enum {
    CELL_SHOWN = 40,         // bytes of a cell that are printed
    MOST_NUMBER = 999999999  // larger ones are all the same
};

static const struct {
    const char *text;
    int kind;
    bool micro;  // is a micro-batch behind it
} words[] = {
    {"F", ACT_F, true},
    {"B", ACT_B, true},
    {"I", ACT_I, true},
    {"W", ACT_W, true},
    {"BW", CSV_FULL, true},
    {"SEND_F", ACT_SEND_F, true},
    {"RECV_F", ACT_RECV_F, true},
    {"SEND_B", ACT_SEND_B, true},
    {"RECV_B", ACT_RECV_B, true},
    {"WAIT_SEND_F", ACT_WAIT_F, true},
    {"WAIT_SEND_B", ACT_WAIT_B, true},
    {"UNSHARD", CSV_UNSHARD, false},
    {"RESHARD", CSV_RESHARD, false},
    {"REDUCE_GRAD", CSV_REDUCE, false},
    {"WAIT_REDUCE_GRAD", CSV_WAIT_REDUCE, false},
};
enum { WORDS = sizeof words / sizeof *words };
static const char overlap_end[] = ")OVERLAP_F_B";

static int word_of(int kind)
{
    int w = 0;
    while (w < WORDS && words[w].kind != kind)
        w++;
    return w;
}

bool csv_has_micro(int kind)
{
    return words[word_of(kind)].micro;
}

/* ---- places ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void strip(const char *text, int *begin, int *end)
{
    while (*begin < *end && is_blank(text[*begin]))
        (*begin)++;
    while (*begin < *end && is_blank(text[*end - 1]))
        (*end)--;
}

/* Where a cell ends that begins here: at a comma, or with its line. */
static int end_of_cell(const Source *file, int begin)
{
    int end = begin;
    while (end < file->length && file->text[end] != ',' &&
           file->text[end] != '\n')
        end++;
    return end;
}

Span cell_span(Cell cell)
{
    return (Span){SOURCE_SCHEDULE, cell.begin, cell.end};
}

Span cell_at(const Program *p, int begin)
{
    int end = end_of_cell(&p->schedule_source, begin);
    strip(p->schedule_source.text, &begin, &end);
    return (Span){SOURCE_SCHEDULE, begin, end};
}

Span row_at(const Program *p, int rank)
{
    const Source *file = &p->schedule_source;
    int begin = 0, row = 0;
    for (int i = 0; i < file->length && row < rank; i++)
        if (file->text[i] == '\n') {
            begin = i + 1;
            row++;
        }
    const char *line = memchr(file->text + begin, '\n',
                              (size_t)(file->length - begin));
    int end = line ? (int)(line - file->text) : file->length;
    strip(file->text, &begin, &end);
    return (Span){SOURCE_SCHEDULE, begin, end};
}

const char *cell_text(Program *p, Cell cell)
{
    int length = cell.end - cell.begin;
    int most = length < CELL_SHOWN ? length : CELL_SHOWN;
    char *copy = text_copy(p->arena, p->schedule_source.text + cell.begin,
                           (size_t)most);
    for (char *zero = copy;
         (zero = memchr(zero, 0, (size_t)(copy + most - zero)));)
        *zero = '?';
    return text_format(p->arena, "`%s%s`", shown_text(p->arena, copy),
                       most < length ? "..." : "");
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
        found->micro = words[w].micro ? found->micro : -1;
        return words[w].micro == (digits > 0);
    }
    return false;
}

static bool unknown_cell(Program *p, Cell cell)
{
    error_at(p, cell_span(cell), "%s is no action", cell_text(p, cell));
    help(p, "0F1 is stage, action, micro-batch; also 0B1, 0I1, 0W1, "
            "(0F1;0B0)OVERLAP_F_B, 0SEND_F1, 1RECV_F1, 0WAIT_SEND_F1, "
            "0REDUCE_GRAD, ...; or nothing");
    return false;
}

typedef struct Reading {
    Program *p;
    CsvUse use;
    void *context;
    int overlaps;
} Reading;

/* (0F7;7B3)OVERLAP_F_B: computes alone, in their order. */
static bool overlap_cell(Reading *reading, Cell cell)
{
    Program *p = reading->p;
    const char *text = p->schedule_source.text;
    int last = cell.end - (int)sizeof overlap_end + 1, from = cell.begin + 1;
    if (last < from ||
        memcmp(text + last, overlap_end, sizeof overlap_end - 1) != 0)
        return unknown_cell(p, cell);
    for (int i = from; i <= last; i++) {
        if (i < last && text[i] != ';')
            continue;
        Found found;
        int begin = from, end = i;
        strip(text, &begin, &end);
        if (!read_word(text + begin, end - begin, &found) ||
            (found.kind > ACT_W && found.kind != CSV_FULL))
            return unknown_cell(p, cell);
        if (!reading->use(reading->context, cell, found))
            return false;
        from = i + 1;
    }
    reading->overlaps++;
    return true;
}

static bool read_cell(Reading *reading, Cell cell)
{
    const char *text = reading->p->schedule_source.text;
    Found found;
    strip(text, &cell.begin, &cell.end);
    if (cell.end - cell.begin >= 2 && text[cell.begin] == '"' &&
        text[cell.end - 1] == '"') {
        cell.begin++;
        cell.end--;
        strip(text, &cell.begin, &cell.end);
    }
    if (cell.begin == cell.end)
        return true;
    if (text[cell.begin] == '(')
        return overlap_cell(reading, cell);
    if (!read_word(text + cell.begin, cell.end - cell.begin, &found))
        return unknown_cell(reading->p, cell);
    return reading->use(reading->context, cell, found);
}

bool csv_read(Program *p, CsvUse use, void *context, int *rows, int *overlaps)
{
    const Source *file = &p->schedule_source;
    Reading reading = {p, use, context, 0};
    *rows = 0;
    for (int at = 0; at < file->length; (*rows)++) {
        for (;; at++) {
            int end = end_of_cell(file, at);
            if (!read_cell(&reading, (Cell){*rows, at, end}))
                return false;
            at = end;
            if (at == file->length || file->text[at] == '\n')
                break;
        }
        at++;  // the end of the line
    }
    *overlaps = reading.overlaps;
    return true;
}

/* ---- plans -> text ---- */

typedef struct Row {
    Program *p;
    FILE *out;
    const List *list;
    const char *gap;
    int *left;  // [chunk] computes that add to its gradients
} Row;

static void put(Row *row, Action a, int kind)
{
    fprintf(row->out, "%s%d%s", row->gap, a.chunk, words[word_of(kind)].text);
    if (csv_has_micro(kind))
        fprintf(row->out, "%d", a.micro);
    row->gap = ",";
}

static void compute_row(Row *row)
{
    bool second = false;  // of a pair
    for (int i = 0; i < row->list->count; i++) {
        Action a = row->list->at[i];
        if (!is_compute(a.kind))
            continue;
        if (a.pair) {
            fprintf(row->out, "%s(", row->gap);
            row->gap = "";
        }
        put(row, a, a.kind);
        if (second)
            fputs(overlap_end, row->out);
        row->gap = a.pair ? ";" : ",";
        second = a.pair;
    }
}

static void count_gradients(Row *row)
{
    for (int i = 0; i < row->list->count; i++) {
        Action a = row->list->at[i];
        if (a.kind == ACT_B || a.kind == ACT_W)
            row->left[a.chunk]++;
    }
}

/* What stands behind a compute and its message: the wait for what its forward
 * has sent, and after the last of a stage the division of its gradients. */
static void put_behind(Row *row, int entry)
{
    const List *list = row->list;
    Action a = list->at[entry];
    int peer;
    if (is_send(a.kind) && entry > 0)
        a = list->at[entry - 1];  // its compute, if it stands there
    else if (entry + 1 < list->count && is_send(list->at[entry + 1].kind))
        return;  // the message goes first
    if (!is_compute(a.kind))
        return;
    Action forward = {ACT_F, a.chunk, a.micro, -1, 0, 0};
    if (is_back(a.kind) && what_goes(row->p, forward, &peer))
        put(row, a, ACT_WAIT_F);
    if ((a.kind == ACT_B || a.kind == ACT_W) && --row->left[a.chunk] == 0) {
        put(row, a, CSV_REDUCE);
        put(row, a, CSV_WAIT_REDUCE);
    }
}

static void message_row(Row *row)
{
    const List *list = row->list;
    count_gradients(row);
    for (int i = 0; i < list->count; i++) {
        Action a = list->at[i];
        if (is_compute(a.kind) || is_send(a.kind) || is_receive(a.kind))
            put(row, a, a.kind);
        put_behind(row, i);
    }
    for (int i = 0; i < list->count; i++)
        if (list->at[i].kind == ACT_SEND_B)
            put(row, list->at[i], ACT_WAIT_B);
}

/* The last stage of PyTorch's runtime keeps its losses in the order in which it
 * has computed them (schedules.py, `_maybe_get_loss`). */
static bool losses_in_order(const Program *p)
{
    const List *list = &p->lists[p->chunks[p->copy_chunks - 1].rank];
    for (int i = 0, micro = 0; i < list->count; i++)
        if (list->at[i].kind == ACT_F &&
            list->at[i].chunk == p->copy_chunks - 1 &&
            list->at[i].micro != micro++)
            return false;
    return true;
}

/* What PyTorch would not say. */
static void warn_of_runtime(Program *p, bool comms)
{
    const Settings *set = &p->set;
    if (p->copies > 1) {
        note_at(p,
                set->schedule_at.source < 0 ? set->placement_at
                                            : set->schedule_at,
                "the file has two copies of the model, stages 0 .. %d and %d "
                ".. %d, so PyTorch cannot load it; `schedule from` takes it "
                "back",
                p->copy_chunks - 1, p->copy_chunks, p->chunk_count - 1);
        return;
    }
    if (!losses_in_order(p))
        warning_at(p, p->set.schedule_at,
                   "PyTorch numbers losses in the order of the last stage's "
                   "forwards, which is not 0, 1, 2, ... here: its backwards "
                   "would take the losses of others");
    if (comms && meeting_of(p) != MEET_PAIR)
        warning_at(p, p->set.schedule_at,
                   "the messages are in the order of --messages; PyTorch has "
                   "one queue for both directions of a pair of ranks, where "
                   "they may wait for each other");
}

void csv_write(Program *p, FILE *out, bool comms)
{
    warn_of_runtime(p, comms);
    int *left = arena_take(p->arena, sizeof *left * (size_t)p->chunk_count);
    for (int r = 0; r < p->ranks; r++) {
        Row row = {p, out, &p->lists[r], "", left};
        if (comms)
            message_row(&row);
        else
            compute_row(&row);
        fputs("\r\n", out);
    }
}
