/* picture_svg.c: the plan as a drawing for print, documents and browsers.
 *
 *     title, cost model, makespan and bubbles, legend
 *     rank 0   |F0|F1|F2|      |B0  |F3|B1  |      lane: actions
 *              ======----------------              phases, a thin strip
 *              __/--\__/-----\____                 bytes alive, one scale
 *     rank 1   ...
 *              0     5     10    15                axis
 *
 * All actions of a rank with one colour are one path, so that a hundred
 * thousand of them are a few megabytes. Positions are rounded to hundredths
 * only when they are printed. */
#include "picture.h"

#include <string.h>

enum {
    LEFT = 84,  // room for the ranks' names
    RIGHT = 20,
    HEAD = 124,  // title, cost, result, two lines of legend, axis
    FOOT = 34,
    WIDEST = 4200,  // of the time axis, in pixels
    SHADES = 8      // the later chunks of a rank share the lightest
};

typedef struct Drawing {
    Picture k;
    FILE *out;
    double stretch;              // pixels per unit of time
    double width;                // of the time axis
    double lane, strip, memory;  // heights: actions, phases, bytes
    double row;                  // all of them and the gap
    int digits;                  // size of the micro-batch numbers
} Drawing;

/* Blue, green, teal and brown, as in the terminal: F B I W. */
static const unsigned char colours[COMPUTE_KINDS][3] = {
    {29, 91, 160}, {35, 122, 70}, {12, 124, 124}, {158, 96, 24}};

/* ---- sizes ---- */

static int digits(int number)
{
    return number > 9 ? 1 + digits(number / 10) : 1;
}

/* The mean, since layers of a chunk may cost next to nothing. */
static double forward_time(const Program *p)
{
    double sum = 0;
    long count = 0;
    for (int r = 0; r < p->ranks; r++) {
        for (int i = 0; i < p->lists[r].count; i++) {
            const Node *node = &p->nodes[node_at(p, r, i)];
            if (p->lists[r].at[i].kind != ACT_F)
                continue;
            sum += node->end - node->start;
            count++;
        }
    }
    return sum > 0 ? sum / (double)count : 1;
}

/* A forward is wide enough for its number, unless that makes the picture too
 * wide; then it all shrinks and numbers that do not fit are
 * left out. */
static Drawing draw(Program *p, FILE *out)
{
    Drawing d = {.k = picture_of(p), .out = out, .strip = 5, .digits = 10};
    int number = digits(p->microbatches - 1);
    double makespan = p->makespan > 0 ? p->makespan : 1,
           wanted = (number * 6 + 4) / forward_time(p) * makespan;
    d.width = wanted < 760 ? 760 : wanted > WIDEST ? WIDEST : wanted;
    d.stretch = d.width / makespan;
    bool many = p->ranks > 24;
    d.lane = many ? 13 : 20;
    d.memory = many ? 13 : 24;
    d.row = d.lane + d.strip + d.memory + (many ? 5 : 9);
    return d;
}

static double row_top(const Drawing *d, int rank)
{
    return HEAD + rank * d->row;
}

static void put(const Drawing *d, const char *before, double value)
{
    fputs(before, d->out);
    put_number(d->out, value);
}

static void put_text(const Drawing *d, const char *text)
{
    for (; *text; text++) {
        if (*text == '<' || *text == '&' || *text == '>')
            fprintf(d->out, "&#%d;", *text);
        else
            fputc(*text, d->out);
    }
}

/* `style` is a class. */
static void text_at(const Drawing *d, const char *style, double x, double y,
                    const char *text)
{
    fprintf(d->out, "<text class=\"%s\"", style);
    put(d, " x=\"", x);
    put(d, "\" y=\"", y);
    fputs("\">", d->out);
    put_text(d, text);
    fputs("</text>\n", d->out);
}

/* Continues the data of a path. */
static void box(const Drawing *d, double x, double y, double w, double h)
{
    put(d, "M", x);
    put(d, " ", y);
    put(d, "h", w);
    put(d, "v", h);
    put(d, "h", -w);
    fputc('z', d->out);
}

/* ---- colours ---- */

static int shade(const Drawing *d, int chunk)
{
    int ordinal = d->k.ordinal[chunk];
    return ordinal < SHADES ? ordinal : SHADES - 1;
}

/* From the full colour to 62 % white. */
static double whiteness(const Drawing *d, int level)
{
    int most = d->k.most_chunks < SHADES ? d->k.most_chunks : SHADES;
    return most > 1 ? 0.62 * level / (most - 1) : 0;
}

static void colour_rules(const Drawing *d)
{
    for (int kind = 0; kind <= ACT_W; kind++) {
        for (int s = 0; s < d->k.most_chunks && s < SHADES; s++) {
            fprintf(d->out, ".%s%d{fill:#", action_names[kind], s);
            for (int i = 0; i < 3; i++)
                fprintf(d->out, "%02x",
                        (int)(colours[kind][i] +
                              (255 - colours[kind][i]) * whiteness(d, s)));
            fputs("}\n", d->out);
        }
    }
}

static void rules(const Drawing *d)
{
    fputs("<style>\n"
          "text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;"
          "font-size:11px;fill:#1b1f24}\n"
          ".title{font-size:15px;font-weight:bold}\n"
          ".rank{text-anchor:end;font-weight:bold}\n"
          ".small{text-anchor:end;font-size:9px;fill:#59636e}\n"
          ".tick{text-anchor:middle;fill:#59636e}\n"
          ".paper{fill:#fff}\n.idle{fill:#eceff2}\n"
          ".grid{stroke:#c5ccd3;stroke-width:.5;fill:none}\n"
          ".warmup{fill:#e3a008}\n.steady{fill:#4a545e}\n"
          ".cooldown{fill:#19a7c0}\n"
          ".lasting{fill:#cfc8e3}\n.alive{fill:#8b78c4}\n"
          ".arena{stroke:#59636e;stroke-width:.7;stroke-dasharray:3 2;"
          "fill:none}\n"
          ".wire{stroke:#b3261e;stroke-width:.7;fill:none;opacity:.75}\n"
          ".head{fill:#b3261e;opacity:.75}\n",
          d->out);
    fprintf(
        d->out,
        ".on{fill:#fff}.off{fill:#101418}\n"
        ".on text,.off text{font-size:%dpx;text-anchor:middle;fill:inherit}\n",
        d->digits);
    colour_rules(d);
    fputs("@media (prefers-color-scheme:dark){\n"
          "text{fill:#e6e9ec}\n.small,.tick{fill:#a3acb5}\n"
          ".paper{fill:#14181c}\n.idle{fill:#232a31}\n"
          ".grid{stroke:#46505a}\n"
          ".steady{fill:#c3cad1}\n"
          ".lasting{fill:#3d3658}\n.alive{fill:#8472bd}\n"
          ".arena{stroke:#a3acb5}\n.wire{stroke:#ff9d92}\n"
          ".head{fill:#ff9d92}\n}\n</style>\n",
          d->out);
}

/* ---- head and axis ---- */

typedef struct Pen {  // writes a line of the legend
    double x, y;
} Pen;

static void swatch(const Drawing *d, Pen *pen, const char *style, double height)
{
    fprintf(d->out, "<path class=\"%s\" d=\"", style);
    box(d, pen->x, pen->y - height, 14, height);
    fputs("\"/>\n", d->out);
    pen->x += 14;
}

static void legend_text(const Drawing *d, Pen *pen, const char *text)
{
    text_at(d, "key", pen->x + 5, pen->y, text);
    pen->x += 19 + 5.7 * (double)strlen(text);
}

static void legend_kinds(const Drawing *d, Pen *pen)
{
    static const char *const names[] = {
        "F forward", "B backward", "I backward, input", "W backward, weights"};
    for (int kind = 0; kind <= ACT_W; kind++) {
        if (!d->k.used[kind])
            continue;
        for (int s = 0; s < d->k.most_chunks && s < SHADES; s++)
            swatch(d, pen,
                   text_format(d->k.p->arena, "%s%d", action_names[kind], s),
                   10);
        legend_text(d, pen, names[kind]);
    }
    if (d->k.most_chunks > 1)
        legend_text(d, pen, lighter_line(&d->k));
}

static void legend(const Drawing *d)
{
    static const char *const phases[] = {"warm-up", "steady", "cool-down"};
    static const char *const styles[] = {"warmup", "steady", "cooldown"};
    Pen pen = {LEFT, 79};
    legend_kinds(d, &pen);
    pen = (Pen){LEFT, 96};
    for (int i = 0; i < 3; i++) {
        swatch(d, &pen, styles[i], 5);
        legend_text(d, &pen, phases[i]);
    }
    swatch(d, &pen, "lasting", 8);
    legend_text(d, &pen, "bytes of weights and scratch");
    swatch(d, &pen, "alive", 8);
    legend_text(d, &pen, "of micro-batches");
    fprintf(d->out, "<path class=\"arena\" d=\"M%.0f 92h14\"/>\n", pen.x);
    pen.x += 14;
    legend_text(d, &pen, "height of the arena");
}

/* 1, 2 or 5 times a power of ten, about 80 pixels. */
static double tick_step(const Drawing *d)
{
    double least = 80 / d->stretch * d->k.scale, power = power_of_ten(least);
    return power * (least <= power       ? 1
                    : least <= 2 * power ? 2
                    : least <= 5 * power ? 5
                                         : 10);
}

static void axis(const Drawing *d)
{
    double step = tick_step(d), bottom = row_top(d, d->k.p->ranks),
           last = d->k.p->makespan * d->k.scale;
    fputs("<path class=\"grid\" d=\"", d->out);
    for (int i = 0; i * step <= last * 1.0000001; i++) {
        put(d, "M", LEFT + i * step / d->k.scale * d->stretch);
        put(d, " ", HEAD - 4);
        put(d, "V", bottom);
    }
    fputs("\"/>\n", d->out);
    for (int i = 0; i * step <= last * 1.0000001; i++) {
        const char *text = text_format(d->k.p->arena, "%g", i * step);
        double x = LEFT + i * step / d->k.scale * d->stretch;
        text_at(d, "tick", x, HEAD - 8, text);
        text_at(d, "tick", x, bottom + 12, text);
    }
    text_at(d, "key", LEFT, bottom + 27,
            text_format(d->k.p->arena,
                        "time in %s; a number in an action is "
                        "its micro-batch",
                        d->k.unit));
}

static void head(const Drawing *d, double width, double height)
{
    fputs("<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"", d->out);
    fprintf(d->out, " width=\"%.0f\" height=\"%.0f\"", width, height);
    fprintf(d->out, " viewBox=\"0 0 %.0f %.0f\">\n<title>", width, height);
    put_text(d, title_line(&d->k));
    fputs("</title>\n<desc>", d->out);
    put_text(d, result_line(&d->k));
    fputs("</desc>\n", d->out);
    rules(d);
    fprintf(d->out, "<path class=\"paper\" d=\"M0 0h%.0fv%.0fH0z\"/>\n", width,
            height);
    text_at(d, "title", LEFT, 22, title_line(&d->k));
    text_at(d, "key", LEFT, 40, cost_line(&d->k));
    text_at(d, "key", LEFT, 56, result_line(&d->k));
    legend(d);
}

/* ---- rows ---- */

static bool has_style(const Drawing *d, Action a, int kind, int level)
{
    return (int)a.kind == kind && shade(d, a.chunk) == level;
}

/* All actions of a rank in one colour. */
static void actions_of_style(const Drawing *d, int rank, int kind, int level)
{
    const Program *p = d->k.p;
    double y = row_top(d, rank);
    bool any = false;
    for (int i = 0; i < p->lists[rank].count; i++) {
        if (!has_style(d, p->lists[rank].at[i], kind, level))
            continue;
        const Node *node = &p->nodes[node_at(p, rank, i)];
        double x = LEFT + node->start * d->stretch,
               w = LEFT + node->end * d->stretch - x;
        if (!any)
            fprintf(d->out, "<path class=\"%s%d\" d=\"", action_names[kind],
                    level);
        any = true;
        box(d, x, y, w > 4 ? w - 1 : w * 0.85, d->lane);
    }
    if (any)
        fputs("\"/>\n", d->out);
}

/* Numbers where they fit: white on the darker shades (`dark`), black on the
 * others. */
static void numbers(const Drawing *d, int rank, bool dark)
{
    const Program *p = d->k.p;
    double y = row_top(d, rank) + d->lane / 2 + d->digits * 0.36;
    fprintf(d->out, "<g class=\"%s\">", dark ? "on" : "off");
    for (int i = 0; i < p->lists[rank].count; i++) {
        Action a = p->lists[rank].at[i];
        const Node *node = &p->nodes[node_at(p, rank, i)];
        double start = node->start, end = node->end;
        if (!is_compute(a.kind) || dark != (whiteness(d, shade(d, a.chunk)) < 0.3) ||
            (end - start) * d->stretch < digits(a.micro) * d->digits * 0.58 + 2)
            continue;
        put(d, "<text x=\"", LEFT + (start + end) / 2 * d->stretch);
        put(d, "\" y=\"", y);
        fprintf(d->out, "\">%d</text>", a.micro);
    }
    fputs("</g>\n", d->out);
}

static void phases(const Drawing *d, int rank)
{
    static const char *const styles[] = {"warmup", "steady", "cooldown"};
    double y = row_top(d, rank) + d->lane + 1, from, to;
    for (int phase = 0; phase < 3; phase++) {
        if (!phase_span(&d->k, rank, phase, &from, &to))
            continue;
        fprintf(d->out, "<path class=\"%s\" d=\"", styles[phase]);
        box(d, LEFT + from * d->stretch, y, (to - from) * d->stretch,
            d->strip - 1);
        fputs("\"/>\n", d->out);
    }
}

/* A step for every change; changes that fall on one hundredth of a pixel
 * differ only in height. */
static void memory_curve(const Drawing *d, int rank)
{
    const Curve *c = &d->k.curves[rank];
    double bottom = row_top(d, rank) + d->lane + d->strip + d->memory,
           unit = (d->memory - 2) / (double)d->k.highest;
    fputs("<path class=\"alive\" d=\"", d->out);
    put(d, "M", LEFT);
    put(d, " ", bottom);
    for (int i = 0; i < c->count; i++) {
        put(d, "H", LEFT + c->at[i].time * d->stretch);
        put(d, "V", bottom - (double)c->at[i].floats * unit);
    }
    put(d, "H", LEFT + d->width);
    put(d, "V", bottom);
    fputs("z\"/>\n<path class=\"lasting\" d=\"", d->out);
    box(d, LEFT, bottom - (double)c->lasting * unit, d->width,
        (double)c->lasting * unit);
    put(d, "\"/>\n<path class=\"arena\" d=\"M", LEFT);
    put(d, " ", bottom - (double)d->k.p->arena_floats[rank] * unit);
    put(d, "h", d->width);
    fputs("\"/>\n", d->out);
}

/* What arrows may cross. */
static void row_ground(const Drawing *d, int rank)
{
    double y = row_top(d, rank);
    fputs("<path class=\"idle\" d=\"", d->out);
    box(d, LEFT, y, d->width, d->lane);
    fputs("\"/>\n", d->out);
    phases(d, rank);
    memory_curve(d, rank);
    text_at(d, "rank", LEFT - 6, y + d->lane / 2 + 4,
            text_format(d->k.p->arena, "rank %d", rank));
    text_at(d, "small", LEFT - 6, y + d->lane + d->strip + d->memory / 2 + 4,
            bytes_text(d->k.p->arena, 4.0 * (double)d->k.p->arena_floats[rank]));
}

static void row_actions(const Drawing *d, int rank)
{
    for (int kind = 0; kind <= ACT_W; kind++)
        for (int s = 0; s < d->k.most_chunks && s < SHADES; s++)
            actions_of_style(d, rank, kind, s);
    for (int dark = 1; dark >= 0; dark--)
        numbers(d, rank, dark);
}

/* ---- messages ---- */

typedef struct Arrow {
    double x1, y1, x2, y2;
} Arrow;

/* From the lane's edge when it leaves to the other lane's edge when it has
 * arrived. */
static bool arrow_of(const Drawing *d, int rank, int index, Arrow *arrow)
{
    const Program *p = d->k.p;
    if (!is_send(p->lists[rank].at[index].kind))
        return false;
    int send = node_at(p, rank, index), to = p->lists[rank].at[index].peer;
    bool down = to > rank;
    *arrow = (Arrow){LEFT + p->nodes[send].start * d->stretch,
                     row_top(d, rank) + (down ? d->lane : 0),
                     LEFT + p->nodes[send].end * d->stretch,
                     row_top(d, to) + (down ? 0 : d->lane)};
    return true;
}

static void arrow_head(const Drawing *d, const Arrow *a)
{
    put(d, "M", a->x2);
    put(d, " ", a->y2);
    put(d, "l-2 ", a->y2 > a->y1 ? -5 : 5);
    fputs("h4z", d->out);
}

static void messages(const Drawing *d, bool heads)
{
    Arrow a;
    fprintf(d->out, "<path class=\"%s\" d=\"", heads ? "head" : "wire");
    for (int r = 0; r < d->k.p->ranks; r++) {
        for (int i = 0; i < d->k.p->lists[r].count; i++) {
            if (!arrow_of(d, r, i, &a))
                continue;
            if (heads) {
                arrow_head(d, &a);
                continue;
            }
            put(d, "M", a.x1);
            put(d, " ", a.y1);
            put(d, "L", a.x2);
            put(d, " ", a.y2);
        }
    }
    fputs("\"/>\n", d->out);
}

void picture_svg(Program *p, FILE *out, bool arrows)
{
    Drawing d = draw(p, out);
    double height = row_top(&d, p->ranks) + FOOT;
    head(&d, LEFT + d.width + RIGHT, height);
    axis(&d);
    for (int r = 0; r < p->ranks; r++)
        row_ground(&d, r);
    if (arrows)
        messages(&d, false);
    for (int r = 0; r < p->ranks; r++)
        row_actions(&d, r);
    if (arrows)
        messages(&d, true);
    fputs("</svg>\n", out);
}
