/* diff.c: `pipec diff A.pipe B.pipe`: two plans, action by action.
 *
 * Reads: order, times, cost of both. An action occurs once in a list, so what
 * two lists have in common in the same order is the longest increasing run of
 * places: for each action of B its place in A, then the longest run that grows,
 * in n log n. What is not in the run was moved; what the other rank list does
 * not have was added, or runs on another rank, or is gone.
 *
 *     A   F0 F1 B0 F2 B1           places of B's actions in A:  0 1 3 2 4
 *     B   F0 F1 F2 B0 B1           the longest run 0 1 2 4; F2 was moved
 */
#include "escape.h"
#include "whatif.h"

#include <string.h>

enum { LISTED = 8, BAND = 112, BANDS = 4, MAX_COLUMNS = 1 << 16 };

typedef enum {
    KEPT,       // at the same place among what both have
    MOVED,      // on the same rank, earlier or later
    ELSEWHERE,  // on another rank
    ALONE       // the other plan has no such action
} Change;

typedef struct Side {
    Program *p;
    const char *name;
    int *place;        // [node] of a compute: its place in its rank's order
    Change **changes;  // [rank][place]
    double scale;      // of its times, to those of the drawing
} Side;

static Side open_side(Program *p, const char *name)
{
    Side s = {.p = p, .name = name, .scale = 1};
    s.place = arena_take(p->arena, sizeof *s.place *
                                       (size_t)(p->first_node[p->ranks] + 1));
    s.changes = arena_take(p->arena, sizeof *s.changes * (size_t)p->ranks);
    for (int r = 0; r < p->ranks; r++) {
        s.changes[r] = arena_take(
            p->arena, sizeof(Change) * (size_t)(p->order[r].count + 1));
        for (int i = 0, place = 0; i < p->lists[r].count; i++)
            if (is_compute(p->lists[r].at[i].kind))
                s.place[node_at(p, r, i)] = place++;
    }
    return s;
}

/* Place of the other plan's action in this one, -1: it has none. */
static int place_in(const Side *s, Action a, int *rank)
{
    int node = find_node(s->p, a.kind, a.chunk, a.micro);
    if (node < 0)
        return -1;
    *rank = s->p->chunks[a.chunk].rank;
    return s->place[node];
}

/* ---- what changed ---- */

/* Marks as KEPT one longest increasing run of `place`, where >= 0. `tail[k]` is
 * the entry that ends the best run of length k + 1. */
static void longest_run(Arena *arena, const int *place, int count,
                        Change *change)
{
    int *tail = arena_take(arena, sizeof *tail * (size_t)(count + 1)),
        *before = arena_take(arena, sizeof *before * (size_t)(count + 1)),
        length = 0;
    for (int i = 0; i < count; i++) {
        int low = 0, high = length;
        if (place[i] < 0)
            continue;
        while (low < high) {
            int middle = (low + high) / 2;
            if (place[tail[middle]] < place[i])
                low = middle + 1;
            else
                high = middle;
        }
        before[i] = low > 0 ? tail[low - 1] : -1;
        tail[low] = i;
        length += low == length;
    }
    for (int i = length ? tail[length - 1] : -1; i >= 0; i = before[i])
        change[i] = KEPT;
}

static void compare_rank(Side *a, Side *b, int rank)
{
    const List *from = &a->p->order[rank], *to = &b->p->order[rank];
    int *place = arena_take(b->p->arena,
                            sizeof *place * (size_t)(to->count + 1));
    int other = -1;
    for (int i = 0; i < to->count; i++) {
        int at = place_in(a, to->at[i], &other);
        b->changes[rank][i] = at < 0          ? ALONE
                              : other == rank ? MOVED
                                              : ELSEWHERE;
        place[i] = at >= 0 && other == rank ? at : -1;
    }
    longest_run(b->p->arena, place, to->count, b->changes[rank]);
    for (int i = 0; i < from->count; i++) {
        int at = place_in(b, from->at[i], &other);
        a->changes[rank][i] = at < 0          ? ALONE
                              : other == rank ? b->changes[rank][at]
                                              : ELSEWHERE;
    }
}

static void all_alone(Side *s, int rank, const Side *other)
{
    int where;
    for (int i = 0; i < s->p->order[rank].count; i++)
        s->changes[rank][i] = place_in(other, s->p->order[rank].at[i], &where) <
                                      0
                                  ? ALONE
                                  : ELSEWHERE;
}

static void compare_all(Side *a, Side *b)
{
    for (int r = 0; r < a->p->ranks || r < b->p->ranks; r++) {
        if (r < a->p->ranks && r < b->p->ranks)
            compare_rank(a, b, r);
        else if (r < a->p->ranks)
            all_alone(a, r, b);
        else
            all_alone(b, r, a);
    }
}

static int count_changes(const Side *s, int rank, Change change)
{
    int count = 0;
    for (int i = 0; rank < s->p->ranks && i < s->p->order[rank].count; i++)
        count += s->changes[rank][i] == change;
    return count;
}

/* ---- the summary ---- */

static void both(FILE *out, const char *what, const char *a, const char *b)
{
    fprintf(out, "  %-34s %16s  %16s%s\n", what, a, b,
            strcmp(a, b) == 0 ? "" : "   *");
}

static const char *percent(Program *p, double share)
{
    return share < 0 ? "none" : share_text(p->arena, share);
}

static const char *peaks(Program *p)
{
    const char *text = "";
    for (int r = 0; r < p->ranks && r < 16; r++)
        text = text_format(p->arena, "%s%s%d", text, r ? " " : "",
                           peak_copies(p, r));
    return p->ranks > 16 ? text_format(p->arena, "%s ...", text) : text;
}

static void print_summary(const Side *a, const Side *b, FILE *out)
{
    Program *p = a->p, *q = b->p;
    Summary x = summary_of(p), y = summary_of(q);
    fprintf(out, "  %-34s %16s  %16s\n", "", a->name, b->name);
    both(out, "schedule", p->set.schedule->name, q->set.schedule->name);
    both(out, "P, v, M",
         text_format(p->arena, "%d, %s, %d", p->ranks, chunks_text(p),
                     p->microbatches),
         text_format(q->arena, "%d, %s, %d", q->ranks, chunks_text(q),
                     q->microbatches));
    both(out,
         p->cost.unit && q->cost.unit ? "makespan, in forwards of one chunk"
                                      : "makespan",
         time_text(p, x.makespan), time_text(q, y.makespan));
    if (p->cost.unit && q->cost.unit && p->copy_chunks != q->copy_chunks)
        both(out, "makespan, in forwards of the model",
             text_format(p->arena, "%.6g", x.step),
             text_format(q->arena, "%.6g", y.step));
    both(out, "bubble, textbook", percent(p, x.formula), percent(q, y.formula));
    both(out, "bubble, makespan", percent(p, x.bubble), percent(q, y.bubble));
    both(out, "bubble, own span", percent(p, x.own), percent(q, y.own));
    both(out, "peak bytes", bytes_text(p->arena, (double)x.bytes),
         bytes_text(q->arena, (double)y.bytes));
    both(out, "peak chunks, by rank", peaks(p), peaks(q));
    both(out, "messages", text_format(p->arena, "%ld", x.messages),
         text_format(q->arena, "%ld", y.messages));
    both(out, "message bytes", bytes_text(p->arena, x.message_bytes),
         bytes_text(q->arena, y.message_bytes));
}

static void list_change(const Side *a, const Side *b, int rank, int i,
                        FILE *out)
{
    Action action = b->p->order[rank].at[i];
    int where = -1, at = place_in(a, action, &where);
    switch (b->changes[rank][i]) {
    case MOVED:
        fprintf(out, "    ~ %-8s place %d in A, %d in B\n",
                action_text(b->p, action), at, i);
        break;
    case ELSEWHERE:
        fprintf(out, "    ~ %-8s on rank %d in A\n", action_text(b->p, action),
                where);
        break;
    default:
        fprintf(out, "    + %-8s place %d in B\n", action_text(b->p, action),
                i);
    }
}

static void rank_changes(const Side *a, const Side *b, int rank, bool all,
                         FILE *out)
{
    int moved = count_changes(b, rank, MOVED),
        elsewhere = count_changes(b, rank, ELSEWHERE),
        added = count_changes(b, rank, ALONE),
        gone = count_changes(a, rank, ALONE), listed = 0,
        total = moved + elsewhere + added + gone;
    fprintf(out,
            "  rank %d: %d kept, %d moved, %d from other ranks, %d only "
            "in A, %d only in B\n",
            rank, count_changes(b, rank, KEPT), moved, elsewhere, gone, added);
    for (int i = 0; rank < a->p->ranks && i < a->p->order[rank].count; i++)
        if (a->changes[rank][i] == ALONE && (all || listed < LISTED)) {
            listed++;
            fprintf(out, "    - %-8s place %d in A\n",
                    action_text(a->p, a->p->order[rank].at[i]), i);
        }
    for (int i = 0; rank < b->p->ranks && i < b->p->order[rank].count; i++)
        if (b->changes[rank][i] != KEPT && (all || listed < LISTED)) {
            listed++;
            list_change(a, b, rank, i, out);
        }
    if (listed < total)
        fprintf(out, "    (%d more; --all shows them)\n", total - listed);
}

/* ---- the picture ---- */

typedef struct Drawing {
    Side *a, *b;
    double unit;  // time of one column
    int columns, shown, width;
    FILE *out;
} Drawing;

static int longest_name(const Side *s)
{
    int longest = 0;
    for (int r = 0; r < s->p->ranks; r++)
        for (int i = 0; i < s->p->order[r].count; i++) {
            Action a = s->p->order[r].at[i];
            int length = snprintf(NULL, 0, "%d%s%d", a.chunk,
                                  action_names[a.kind], a.micro);
            longest = length > longest ? length : longest;
        }
    return longest;
}

static Drawing plan_drawing(Side *a, Side *b, bool all, FILE *out)
{
    Drawing d = {.a = a, .b = b, .out = out};
    if (a->p->cost.unit && b->p->cost.unit) {  // one forward of the whole model
        a->scale = 1.0 / a->p->copy_chunks;
        b->scale = 1.0 / b->p->copy_chunks;
    }
    double one = shortest_action(a->p) * a->scale,
           other = shortest_action(b->p) * b->scale,
           end = a->p->makespan * a->scale;
    d.width = longest_name(a) > longest_name(b) ? longest_name(a)
                                                : longest_name(b);
    d.width += 2;  // the mark and a gap
    d.unit = one < other ? one : other;
    if (b->p->makespan * b->scale > end)
        end = b->p->makespan * b->scale;
    if (end / d.unit > MAX_COLUMNS)
        d.unit = end / MAX_COLUMNS;
    d.columns = (int)(end / d.unit + 0.5);
    d.shown = all ? d.columns : BANDS * (BAND / d.width);
    d.shown = d.shown < d.columns ? d.shown : d.columns;
    return d;
}

static void draw_row(const Drawing *d, const Side *s, int rank, int from,
                     int to, int *cells)
{
    static const char marks[] = {' ', '~', '~', '!'};
    const Program *p = s->p;
    int place = 0, last = from;
    memset(cells, 0, sizeof *cells * (size_t)(d->columns + 1));
    for (int i = 0; i < p->lists[rank].count; i++) {
        const Node *node = &p->nodes[node_at(p, rank, i)];
        if (!is_compute(p->lists[rank].at[i].kind))
            continue;
        int begin = (int)(node->start * s->scale / d->unit + 0.5),
            end = (int)(node->end * s->scale / d->unit + 0.5);
        place++;
        for (int c = begin; c < end || c == begin; c++)
            if (c < d->columns)
                cells[c] = c == begin ? place : -place;
    }
    for (int c = from; c < to; c++)
        last = cells[c] ? c + 1 : last;
    for (int c = from; c < last; c++) {
        int at = cells[c] - 1;
        char mark = cells[c] > 0 ? marks[s->changes[rank][at]] : ' ';
        if (mark == '!')
            mark = s == d->a ? '-' : '+';
        fprintf(d->out, "%c%-*s", mark, c + 1 < last ? d->width - 1 : 0,
                cells[c] > 0   ? action_text(s->p, p->order[rank].at[at])
                : cells[c] < 0 ? "-"
                               : ".");
    }
    fputc('\n', d->out);
}

static void draw_band(const Drawing *d, int from, int to, int *cells)
{
    int ranks = d->a->p->ranks > d->b->p->ranks ? d->a->p->ranks
                                                : d->b->p->ranks;
    if (from > 0 || to < d->shown)
        fprintf(d->out, "  from column %d\n", from);
    for (int r = 0; r < ranks; r++) {
        for (int side = 0; side < 2; side++) {
            const Side *s = side ? d->b : d->a;
            if (side == 0)
                fprintf(d->out, "  rank %-3d A |", r);
            else
                fputs("           B |", d->out);
            if (r < s->p->ranks)
                draw_row(d, s, r, from, to, cells);
            else
                fputc('\n', d->out);
        }
    }
}

static void draw(Side *a, Side *b, bool all, FILE *out)
{
    Drawing d = plan_drawing(a, b, all, out);
    int *cells = arena_take(b->p->arena,
                            sizeof *cells * (size_t)(d.columns + 1));
    int per_band = BAND / d.width > 0 ? BAND / d.width : 1;
    for (int from = 0; from < d.shown; from += per_band)
        draw_band(&d, from,
                  from + per_band < d.shown ? from + per_band : d.shown, cells);
    if (d.shown < d.columns)
        fprintf(out, "  (columns %d to %d are not shown; --all shows them)\n",
                d.shown, d.columns - 1);
    fputs("  ~ moved, - only in A, + only in B; ", out);
    if (!a->p->cost.unit || !b->p->cost.unit)
        fprintf(out, "one column: %s\n", seconds_text(b->p->arena, d.unit));
    else if (a->p->copy_chunks == b->p->copy_chunks)
        fprintf(out, "one column: %.4g of one chunk's forward\n",
                d.unit * a->p->copy_chunks);
    else
        fprintf(out, "one column: 1/%.4g of the model's forward\n", 1 / d.unit);
}

/* ---- the command ---- */

static void note_chunks(const Side *a, const Side *b, FILE *out)
{
    int x = a->p->copy_chunks, y = b->p->copy_chunks;
    if (x != y)
        fprintf(out,
                "\nA cuts the model into %d chunks and B into %d: chunk 1 is "
                "not the same layers in both\n",
                x, y);
    if (a->p->cost.unit != b->p->cost.unit)
        fputs("\nonly one of them has a `cluster` block: their times do not "
              "compare\n",
              out);
}

int diff(Program *p, Program *q, FILE *out, bool all)
{
    Side a = open_side(p, "A"), b = open_side(q, "B");
    int ranks = p->ranks > q->ranks ? p->ranks : q->ranks, changed = 0;
    compare_all(&a, &b);
    for (int r = 0; r < ranks; r++)
        for (Change c = MOVED; c <= ALONE; c++)
            changed += count_changes(&b, r, c) +
                       (c == ALONE ? count_changes(&a, r, c) : 0);
    fprintf(out, "A: %s, %s\nB: %s, %s\n\n", shown_text(p->arena, file_name(p)),
            p->set.schedule->name, shown_text(q->arena, file_name(q)),
            q->set.schedule->name);
    print_summary(&a, &b, out);
    note_chunks(&a, &b, out);
    fputc('\n', out);
    if (!changed)
        fputs("the same actions in the same order on every rank\n", out);
    for (int r = 0; r < ranks && changed; r++)
        rank_changes(&a, &b, r, all, out);
    if (changed) {
        fputc('\n', out);
        draw(&a, &b, all, out);
    }
    return 0;
}

enum { MOST_NAMES = 64 };

int diff_schedules(Program *p, const char *list, FILE *out, bool all)
{
    const char *names[MOST_NAMES];
    int count = schedule_list(p, list, names, MOST_NAMES);
    if (count == 0)
        return 2;
    if (count != 2) {
        fprintf(stderr,
                "pipec: `--schedule` cannot be `%s`\n  help: diff takes two "
                "schedules with a comma between: 1f1b,gpipe\n",
                shown_text(p->arena, list));
        return 2;
    }
    const char *settings[] = {text_format(p->arena, "schedule=%s", names[0]),
                              text_format(p->arena, "schedule=%s", names[1])};
    Replan a = replan(p, &settings[0], 1), b = replan(p, &settings[1], 1);
    const Replan *wrong = a.refused_by ? &a : b.refused_by ? &b : NULL;
    int status = 1;
    if (wrong)
        fprintf(stderr, "pipec: error: -D %s: %s\n",
                shown_text(p->arena, settings[wrong == &b]), wrong->reason);
    else
        status = diff(a.p, b.p, out, all);
    close_replan(&a);
    close_replan(&b);
    return status;
}
