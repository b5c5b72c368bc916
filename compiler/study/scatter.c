/* scatter.c: bubble against peak bytes, as SVG.
 *
 * One marker per plan, one line per schedule, stages and virtual, along which
 * only the number of micro-batches M grows; the number at a marker is M.
 * Colours and shapes both tell the lines apart, so it survives a black and
 * white printer; text and axes follow the reader's light or dark mode. */
#include "escape.h"
#include "whatif.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 860,
    HEIGHT = 480,
    LEFT = 70,
    TOP = 40,
    PLOT_WIDTH = 560,
    PLOT_HEIGHT = 370,
    LEGEND = LEFT + PLOT_WIDTH + 30,
    LETTER = 7,  // width of a character of a label
    LINE = 12    // its height
};

typedef struct Box {
    double x, y, width, height;
} Box;

typedef struct Plot {
    Arena *arena;
    const Trial *trials;
    int count;
    double least, most;  // bytes at the ends of the x axis
    double top;          // bubble at the top of the y axis
    bool doublings;      // x is logarithmic
    Box *taken;          // markers and labels drawn so far
    int taken_count;
    FILE *out;
} Plot;

/* Safe for the colour-blind (Okabe and Ito), and visible on white and black. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73",
                                      "#cc79a7", "#b8860b", "#56b4e9",
                                      "#8a8a8a"};
enum { COLOURS = sizeof colours / sizeof *colours, SHAPES = 4 };

static bool same_line(const Trial *a, const Trial *b)
{
    return strcmp(a->schedule, b->schedule) == 0 && a->stages == b->stages &&
           a->virtuals == b->virtuals;
}

static bool starts_line(const Plot *s, int trial)
{
    if (s->trials[trial].refused_by)
        return false;
    for (int i = 0; i < trial; i++)
        if (!s->trials[i].refused_by &&
            same_line(&s->trials[i], &s->trials[trial]))
            return false;
    return true;
}

/* ---- axes ---- */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double distance(double a, double b)
{
    return a > b ? a - b : b - a;
}

/* The logarithm to base 2, exact at powers of two and straight between. */
static double doublings_of(double x)
{
    int exponent;
    double mantissa = frexp(x, &exponent);
    return exponent - 2 + 2 * mantissa;
}

/* The largest power of `base` that is not above x. */
static double power_below(double base, double x)
{
    double power = 1;
    while (power > x)
        power /= base;
    while (power * base <= x)
        power *= base;
    return power;
}

static double multiple_above(double step, double x)
{
    double whole = step * (double)(long)(x / step);
    return whole < x ? whole + step : whole;
}

static double x_of(const Plot *s, double bytes)
{
    double share = (bytes - s->least) / (s->most - s->least);
    if (s->doublings)
        share = (doublings_of(bytes) - doublings_of(s->least)) /
                (doublings_of(s->most) - doublings_of(s->least));
    return LEFT + share * PLOT_WIDTH;
}

static double y_of(const Plot *s, double bubble)
{
    return TOP + PLOT_HEIGHT * (1 - bubble / s->top);
}

/* 1, 2 or 5 times a power of ten, so that about `parts` fit. */
static double nice_step(double range, int parts)
{
    double step = power_below(10, range / parts);
    while (range / step > parts)
        step *= range / (2 * step) <= parts   ? 2
                : range / (5 * step) <= parts ? 5
                                              : 10;
    return step;
}

static void set_axes(Plot *s)
{
    s->least = 1e300;
    for (int i = 0; i < s->count; i++) {
        const Trial *t = &s->trials[i];
        if (t->refused_by)
            continue;
        s->least = -larger(-s->least, -(double)t->sum.bytes);
        s->most = larger(s->most, (double)t->sum.bytes);
        s->top = larger(s->top, t->sum.bubble);
    }
    s->doublings = s->most > 4 * s->least;
    double margin = s->doublings ? 1.2 : 0;
    s->least = margin > 0 ? s->least / margin
                          : s->least - 0.08 * (s->most - s->least) - 1;
    s->most = margin > 0 ? s->most * margin
                         : s->most + 0.08 * (s->most - s->least) + 1;
    double step = nice_step(larger(s->top, 0.01), 6);
    s->top = multiple_above(step, larger(s->top, 0.01) * 1.02);
}

static void x_tick(const Plot *s, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    double shown = bytes;
    for (; shown >= 1024 && unit < 4; unit++)
        shown /= 1024;
    fprintf(s->out,
            "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" "
            "y2=\"%d\"/>\n<text x=\"%.1f\" y=\"%d\" "
            "text-anchor=\"middle\">%.4g %s</text>\n",
            x_of(s, bytes), TOP, x_of(s, bytes), TOP + PLOT_HEIGHT,
            x_of(s, bytes), TOP + PLOT_HEIGHT + 18, shown, units[unit]);
}

static void draw_axes(const Plot *s)
{
    double step = nice_step(s->top, 6);
    for (int i = 0; i * step <= s->top * 1.001; i++)
        fprintf(s->out,
                "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" "
                "y2=\"%.1f\"/>\n<text x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%.4g %%</text>\n",
                LEFT, y_of(s, i * step), LEFT + PLOT_WIDTH, y_of(s, i * step),
                LEFT - 8, y_of(s, i * step) + 4, 100 * i * step);
    if (s->doublings) {
        double factor = s->most > 256 * s->least ? 4 : 2;
        for (double at = 2 * power_below(2, s->least); at <= s->most;
             at *= factor)
            x_tick(s, at);
    } else {
        double unit = power_below(1024, s->most);
        double gap = unit * nice_step((s->most - s->least) / unit, 6);
        for (double at = multiple_above(gap, s->least); at <= s->most;
             at += gap)
            x_tick(s, at);
    }
    fprintf(s->out,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">peak memory of "
            "the fullest rank</text>\n<text x=\"%d\" y=\"%d\">bubble of the "
            "makespan</text>\n",
            LEFT + PLOT_WIDTH / 2, HEIGHT - 22, LEFT - 50, TOP - 16);
}

/* ---- markers and labels ---- */

static void draw_marker(FILE *out, int line, double x, double y, bool best)
{
    const char *colour = colours[line % COLOURS];
    double r = best ? 6.5 : 4.5;
    fprintf(out, "<path fill=\"%s\" stroke=\"%s\" stroke-width=\"1.5\" d=\"",
            best ? colour : "none", colour);
    switch (line % SHAPES) {
    case 0:
        fprintf(out, "M%.1f %.1fa%g %g 0 1 0 %g 0a%g %g 0 1 0 %g 0z", x - r, y,
                r, r, 2 * r, r, r, -2 * r);
        break;
    case 1:
        fprintf(out, "M%.1f %.1fh%gv%gh%gz", x - r, y - r, 2 * r, 2 * r,
                -2 * r);
        break;
    case 2:
        fprintf(out, "M%.1f %.1fl%g %gh%gz", x, y - r, r, 1.8 * r, -2 * r);
        break;
    default:
        fprintf(out, "M%.1f %.1fl%g %gl%g %gl%g %gz", x, y - 1.2 * r, 1.2 * r,
                1.2 * r, -1.2 * r, 1.2 * r, -1.2 * r, -1.2 * r);
    }
    fputs("\"/>\n", out);
}

static bool is_free(const Plot *s, Box box)
{
    if (box.x < LEFT || box.x + box.width > LEFT + PLOT_WIDTH || box.y < TOP ||
        box.y + box.height > TOP + PLOT_HEIGHT)
        return false;
    for (int i = 0; i < s->taken_count; i++) {
        const Box *t = &s->taken[i];
        if (box.x < t->x + t->width && t->x < box.x + box.width &&
            box.y < t->y + t->height && t->y < box.y + box.height)
            return false;
    }
    return true;
}

/* Is there an earlier marker at this place with the same M. */
static bool says_the_same(const Plot *s, const Trial *t)
{
    for (const Trial *o = s->trials; o < t; o++)
        if (!o->refused_by && o->microbatches == t->microbatches &&
            distance(x_of(s, (double)o->sum.bytes),
                     x_of(s, (double)t->sum.bytes)) < 3 &&
            distance(y_of(s, o->sum.bubble), y_of(s, t->sum.bubble)) < 3)
            return true;
    return false;
}

/* M beside its marker, at the first of these places that is free; without one
 * it is left out, the table has it. */
static void draw_label(Plot *s, const Trial *t)
{
    static const double places[][2] = {
        {9, -6},  {9, -1},    {9, -16}, {-1, -20}, {9, 6},
        {-1, 9},  {-12, -20}, {-12, 9}, {16, -6},  {-2, -32},
        {-2, 20}, {22, -18},  {22, 8}};
    double x = x_of(s, (double)t->sum.bytes), y = y_of(s, t->sum.bubble);
    const char *text = text_format(s->arena, "%d", t->microbatches);
    double width = LETTER * (double)strlen(text);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        Box box = {x + places[i][0] -
                       (places[i][0] < 0 && places[i][0] > -3 ? width / 2 : 0) -
                       (places[i][0] <= -3 ? width : 0),
                   y + places[i][1], width, LINE};
        if (!is_free(s, box))
            continue;
        s->taken[s->taken_count++] = box;
        fprintf(s->out, "<text class=\"m\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                box.x, box.y + LINE - 2, text);
        return;
    }
}

static void draw_line(Plot *s, int first, int line)
{
    const Trial *t = &s->trials[first];
    const char *begin = "<polyline fill=\"none\" stroke-opacity=\"0.55\" "
                        "stroke-width=\"1.3\" stroke=\"";
    fprintf(s->out, "%s%s\" points=\"", begin, colours[line % COLOURS]);
    for (int i = first; i < s->count; i++)
        if (!s->trials[i].refused_by && same_line(&s->trials[i], t))
            fprintf(s->out, "%.1f,%.1f ",
                    x_of(s, (double)s->trials[i].sum.bytes),
                    y_of(s, s->trials[i].sum.bubble));
    fputs("\"/>\n", s->out);
    for (int i = first; i < s->count; i++)
        if (!s->trials[i].refused_by && same_line(&s->trials[i], t))
            draw_marker(s->out, line, x_of(s, (double)s->trials[i].sum.bytes),
                        y_of(s, s->trials[i].sum.bubble), s->trials[i].best);
    double y = TOP + 8 + 22 * line;
    draw_marker(s->out, line, LEGEND, y, false);
    fprintf(s->out, "<text x=\"%d\" y=\"%.1f\">%s  P=%d v=%s</text>\n",
            LEGEND + 14, y + 4, xml_text(s->arena, t->schedule), t->stages,
            virtual_text(s->arena, t->virtuals, "-"));
}

static void draw_frame(FILE *out, int height)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"system-ui, sans-serif\" font-size=\"12\">\n"
            "<title>bubble against memory</title>\n<style>\n"
            "svg { color: #1b1b1b; background: #fff }\n"
            "text { fill: currentColor }  .m { font-size: 11px }\n"
            ".grid { stroke: currentColor; stroke-opacity: 0.15 }\n"
            "@media screen and (prefers-color-scheme: dark) { svg { color: "
            "#e8e8e8; background: #15171a } }\n</style>\n",
            WIDTH, height);
}

void scatter(Arena *arena, const Trial *trials, int count, FILE *out)
{
    Plot s = {.arena = arena, .trials = trials, .count = count, .out = out};
    int lines = 0, line = 0;
    s.taken = arena_take(arena, sizeof *s.taken * (size_t)(2 * count + 1));
    for (int i = 0; i < count; i++)
        lines += starts_line(&s, i);
    int legend = TOP + 22 * (lines + 4);
    draw_frame(out, legend > HEIGHT ? legend : HEIGHT);
    if (lines == 0) {
        fprintf(out, "<text x=\"%d\" y=\"%d\">no plan</text>\n</svg>\n", LEFT,
                TOP);
        return;
    }
    set_axes(&s);
    draw_axes(&s);
    for (int i = 0; i < count; i++)
        if (!trials[i].refused_by)
            s.taken[s.taken_count++] = (Box){
                x_of(&s, (double)trials[i].sum.bytes) - 6,
                y_of(&s, trials[i].sum.bubble) - 6, 12, 12};
    for (int i = 0; i < count; i++)
        if (starts_line(&s, i))
            draw_line(&s, i, line++);
    for (int i = 0; i < count; i++)
        if (!trials[i].refused_by && !says_the_same(&s, &trials[i]))
            draw_label(&s, &trials[i]);
    fprintf(out,
            "<text x=\"%d\" y=\"%d\">numbers: micro-batches M</text>\n"
            "<text x=\"%d\" y=\"%d\">filled: nothing is both</text>\n"
            "<text x=\"%d\" y=\"%d\">faster and smaller</text>\n</svg>\n",
            LEGEND - 8, TOP + 22 * lines + 18, LEGEND - 8,
            TOP + 22 * lines + 40, LEGEND - 8, TOP + 22 * lines + 56);
}
