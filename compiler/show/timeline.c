/* timeline.c: the schedule as a grid of ranks x time.
 *
 *     rank 0 | F0  F1  F2  .   .   B0  -   F3 ...
 *
 * One column is one unit of the cost model, or, with modelled seconds, the
 * shortest action, or as long as it takes to fit. A dash continues an action, a
 * dot is idle time. Wide grids are cut into bands of columns. */
#include "compile.h"

#include <string.h>

enum {
    BAND = 112,
    MAX_COLUMNS = 1 << 16
};  // characters of a band; columns of a grid

typedef struct Grid {
    Program *p;
    double unit;        // time of one column
    int columns, cell;  // cell: characters, with the gap
} Grid;

double shortest_action(const Program *p)
{
    double shortest = p->makespan;
    for (int c = 0; c < p->chunk_count; c++)
        for (int kind = ACT_F; kind <= ACT_B; kind++)
            if (p->cost.compute[kind][c] > 0 &&
                p->cost.compute[kind][c] < shortest)
                shortest = p->cost.compute[kind][c];
    return shortest;
}

static int digits(int number)
{
    int count = 1;
    for (; number > 9; number /= 10)
        count++;
    return count;
}

static Grid make_grid(Program *p, int bands)
{
    Grid g = {.p = p};
    g.cell = 2 + digits(p->microbatches - 1);
    if (p->chunk_count > p->ranks)
        g.cell += digits(p->chunk_count - 1);
    double most = bands ? bands * (BAND / g.cell) : MAX_COLUMNS;
    g.unit = p->cost.unit || p->makespan <= 0 ? 1 : shortest_action(p);
    if (!p->cost.unit && p->makespan / g.unit > most)
        g.unit = p->makespan / most;
    g.columns = (int)(p->makespan / g.unit + 0.5);
    return g;
}

/* Fills `cells` (columns + 1 of them) with entry + 1 where an action begins,
 * minus that where it goes on. */
static void fill_row(const Grid *g, int rank, int *cells)
{
    const Program *p = g->p;
    memset(cells, 0, sizeof *cells * (size_t)(g->columns + 1));
    for (int i = 0; i < p->lists[rank].count; i++) {
        if (p->lists[rank].at[i].kind > ACT_W)
            continue;
        int from = (int)(p->times[rank].start[i] / g->unit + 0.5),
            to = (int)(p->times[rank].end[i] / g->unit + 0.5);
        for (int c = from; c < to || c == from; c++)
            if (c < g->columns)
                cells[c] = c == from ? i + 1 : -(i + 1);
    }
}

/* Blue for forward, green for backward, brown for weights; the later chunks of
 * a rank are lighter. */
static int shade(const Program *p, Action a)
{
    static const int forward[] = {25, 31, 38, 45},
                     backward[] = {28, 34, 71, 114},
                     weights[] = {94, 130, 136, 178};
    int level = a.chunk / p->ranks % 4;
    return a.kind == ACT_F   ? forward[level]
           : a.kind == ACT_W ? weights[level]
                             : backward[level];
}

static const char *cell_text(const Grid *g, int rank, int cell)
{
    Program *p = g->p;
    if (cell <= 0)
        return cell ? "-" : ".";
    Action a = p->lists[rank].at[cell - 1];
    if (p->chunk_count > p->ranks)
        return text_format(p->arena, "%d%s%d", a.chunk, action_names[a.kind],
                           a.micro);
    return text_format(p->arena, "%s%d", action_names[a.kind], a.micro);
}

static void print_cell(const Grid *g, FILE *out, int rank, int cell, int width,
                       bool colour)
{
    const char *text = cell_text(g, rank, cell);
    if (colour && cell)
        fprintf(out, "\033[38;5;%dm%-*s\033[0m",
                cell < 0 ? 240 : shade(g->p, g->p->lists[rank].at[cell - 1]),
                width, text);
    else
        fprintf(out, "%-*s", width, text);
}

static void print_band(const Grid *g, FILE *out, const char *margin, int marked,
                       bool colour, int from, int to, int *cells)
{
    const Program *p = g->p;
    for (int r = 0; r < p->ranks; r++) {
        fill_row(g, r, cells);
        fprintf(out, "%s%c rank %-3d|", margin, r == marked ? '>' : ' ', r);
        int last = to;
        while (last > from && !cells[last - 1])
            last--;
        for (int c = from; c < last; c++)
            print_cell(g, out, r, cells[c], c + 1 < last ? g->cell : 1, colour);
        fputc('\n', out);
    }
}

void timeline(Program *p, FILE *out, const char *margin, int marked,
              bool colour, int bands)
{
    Grid g = make_grid(p, bands);
    int *cells = arena_take(p->arena, sizeof *cells * (size_t)(g.columns + 1));
    int per_band = BAND / g.cell > 0 ? BAND / g.cell : 1,
        total = (g.columns + per_band - 1) / per_band;
    for (int band = 0; band < total; band++) {
        if (bands && total > bands && band == bands - 1 && band < total - 1) {
            fprintf(out, "%s  (columns %d to %d are not shown)\n", margin,
                    band * per_band, (total - 1) * per_band - 1);
            band = total - 1;
        }
        int to = (band + 1) * per_band < g.columns ? (band + 1) * per_band
                                                   : g.columns;
        if (total > 1)
            fprintf(out, "%s  from column %d\n", margin, band * per_band);
        print_band(&g, out, margin, marked, colour, band * per_band, to, cells);
    }
    if (p->cost.unit)
        fprintf(out,
                "%s  one column: one chunk's forward; a backward takes two; "
                "messages take no time\n",
                margin);
    else
        fprintf(out,
                "%s  one column: %.4g ms by the cluster's %s and link\n",
                margin, 1e3 * g.unit,
                p->set.given[ACT_F].count ? "times" : "flops");
}
