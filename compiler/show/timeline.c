/* timeline.c: the schedule as a grid of ranks x time.
 *
 *     rank 0 | F0  F1  F2  .   .   B0  -   F3 ...
 *
 * One column is one unit of the cost model, or, with modelled seconds, the
 * shortest action, or about a usual one. A dash continues an action, a dot is
 * idle time. Wide grids
 * are cut into bands of columns; which are left out is said. Of actions that are
 * shorter than a column several may begin in one: then it is wider, and has
 * them all, F3,B1. */
#include "show.h"

#include <string.h>

enum {
    BAND = 112,  // characters of a band
    MAX_COLUMNS = 1 << 16
};

typedef struct Grid {
    Program *p;
    const Timeline *look;
    double unit;  // time of one column
    int columns;
    int *width;  // [column] characters, with the gap
    int *
        cells;  // [column] of the row at hand: entry + 1 where one begins, minus that where it goes on
    int *begun;  // [column] entries that begin in it
} Grid;

static int digits(int number)
{
    int count = 1;
    for (; number > 9; number /= 10)
        count++;
    return count;
}

static const char *name_of(const Program *p, Action a)
{
    if (p->chunk_count > p->ranks)
        return text_format(p->arena, "%d%s%d", a.chunk, action_names[a.kind],
                           a.micro);
    return text_format(p->arena, "%s%d", action_names[a.kind], a.micro);
}

static int column_of(const Grid *g, double time)
{
    int column = (int)(time / g->unit + 0.5);
    return column < g->columns ? column : g->columns - 1;
}

static void fill_row(const Grid *g, int rank)
{
    const Program *p = g->p;
    memset(g->cells, 0, sizeof *g->cells * (size_t)g->columns);
    memset(g->begun, 0, sizeof *g->begun * (size_t)g->columns);
    for (int i = 0; i < p->lists[rank].count; i++) {
        const Node *node = &p->nodes[node_at(p, rank, i)];
        if (!is_compute(p->lists[rank].at[i].kind))
            continue;
        int from = column_of(g, node->start);
        if (!g->begun[from]++)
            g->cells[from] = i + 1;
        int end = (int)(node->end / g->unit + 0.5);
        for (int c = from + 1; c < end && c < g->columns; c++)
            g->cells[c] = -(i + 1);
    }
}

/* The actions that begin in the column, which follow each other on the rank. */
static const char *cell_text(const Grid *g, int rank, int column)
{
    const List *list = &g->p->lists[rank];
    int cell = g->cells[column], left = g->begun[column];
    if (cell <= 0)
        return cell ? "-" : ".";
    const char *text = "";
    for (int i = cell - 1; left > 0; i++) {
        if (!is_compute(list->at[i].kind))
            continue;
        text = text_format(g->p->arena, "%s%s%s", text, *text ? "," : "",
                           name_of(g->p, list->at[i]));
        left--;
    }
    return text;
}

static void widen(const Grid *g, int rank)
{
    fill_row(g, rank);
    for (int c = 0; c < g->columns; c++) {
        if (g->begun[c] < 2)
            continue;
        int length = (int)strlen(cell_text(g, rank, c)) + 1;
        g->width[c] = length > g->width[c] ? length : g->width[c];
    }
}

/* The mean: layers of a chunk may cost next to nothing. */
static double mean_action(const Program *p)
{
    double busy = 0;
    int count = 0;
    for (int r = 0; r < p->ranks; r++) {
        busy += busy_time(p, r);
        for (int i = 0; i < p->lists[r].count; i++)
            count += is_compute(p->lists[r].at[i].kind);
    }
    return count ? busy / count : 0;
}

/* The shortest action; where that makes too many columns, longer, but not
 * longer than most actions are. */
static double column_time(const Program *p, int bands, int plain)
{
    double shortest = shortest_action(p), mean = mean_action(p),
           fits = bands ? p->makespan / (bands * (BAND / plain)) : shortest;
    if (p->cost.unit || p->makespan <= 0)
        return 1;
    return fits <= shortest ? shortest : fits < mean ? fits : mean;
}

static Grid make_grid(Program *p, const Timeline *look)
{
    Grid g = {.p = p, .look = look};
    int plain = 2 + digits(p->microbatches - 1);
    if (p->chunk_count > p->ranks)
        plain += digits(p->chunk_count - 1);
    g.unit = look->column > 0 ? look->column
                              : column_time(p, look->bands, plain);
    if (p->makespan / g.unit > MAX_COLUMNS)
        g.unit = p->makespan / MAX_COLUMNS;
    g.columns = (int)(p->makespan / g.unit + 0.5);
    g.columns += !g.columns;
    size_t columns = (size_t)g.columns;
    g.width = arena_take(p->arena, sizeof *g.width * columns);
    g.cells = arena_take(p->arena, sizeof *g.cells * columns);
    g.begun = arena_take(p->arena, sizeof *g.begun * columns);
    for (int c = 0; c < g.columns; c++)
        g.width[c] = plain;
    for (int r = 0; r < p->ranks; r++)
        widen(&g, r);
    return g;
}

/* Blue for forward, green for backward, brown for weights; the later chunks of
 * a rank are lighter. */
static int shade(const Program *p, Action a)
{
    static const int forward[] = {25, 31, 38, 45},
                     backward[] = {28, 34, 71, 114},
                     weights[] = {94, 130, 136, 178};
    int level = 0;  // of the rank's chunks
    for (int c = 0; c < a.chunk; c++)
        level += p->chunks[c].rank == p->chunks[a.chunk].rank;
    level %= 4;
    return a.kind == ACT_F   ? forward[level]
           : a.kind == ACT_W ? weights[level]
                             : backward[level];
}

static void print_cell(const Grid *g, FILE *out, int rank, int column,
                       int width)
{
    const char *text = cell_text(g, rank, column);
    int cell = g->cells[column];
    if (g->look->colour && cell)
        fprintf(out, "\033[38;5;%dm%-*s\033[0m",
                cell < 0 ? 240 : shade(g->p, g->p->lists[rank].at[cell - 1]),
                width, text);
    else
        fprintf(out, "%-*s", width, text);
}

static void print_band(const Grid *g, FILE *out, int from, int to)
{
    for (int r = 0; r < g->p->ranks; r++) {
        fill_row(g, r);
        fprintf(out, "%s%c rank %-3d|", g->look->margin,
                r == g->look->marked ? '>' : ' ', r);
        int last = to;
        while (last > from && !g->cells[last - 1])
            last--;
        for (int c = from; c < last; c++)
            print_cell(g, out, r, c, c + 1 < last ? g->width[c] : 1);
        fputc('\n', out);
    }
}

/* Where the band that begins at a column ends. */
static int band_end(const Grid *g, int from)
{
    int to = from, width = 0;
    while (to < g->columns && (to == from || width + g->width[to] <= BAND))
        width += g->width[to++];
    return to;
}

static void print_bands(const Grid *g, FILE *out)
{
    const char *margin = g->look->margin;
    int total = 0, last = 0, bands = g->look->bands;
    for (int c = 0; c < g->columns; total++) {
        last = c;
        c = band_end(g, c);
    }
    for (int band = 0, from = 0; from < g->columns; band++) {
        if (bands && total > bands && band == bands - 1) {
            fprintf(out, "%s  (columns %d to %d are not shown)\n", margin, from,
                    last - 1);
            from = last;
        }
        int to = band_end(g, from);
        if (total > 1)
            fprintf(out, "%s  from column %d\n", margin, from);
        print_band(g, out, from, to);
        from = to;
    }
}

void timeline(Program *p, FILE *out, const Timeline *look)
{
    Grid g = make_grid(p, look);
    print_bands(&g, out);
    if (p->cost.unit)
        fprintf(out,
                "%s  one column: one chunk's forward; a backward takes two; "
                "messages take no time\n",
                look->margin);
    else
        fprintf(out, "%s  one column: %s, %s\n", look->margin,
                seconds_text(p->arena, g.unit), cost_source(p));
}
