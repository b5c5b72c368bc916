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
#include "escape.h"
#include "picture.h"

#include <math.h>
#include <string.h>

enum {
    LEFT = 84,  // room for the ranks' names
    RIGHT = 20,
    FOOT = 34,
    WIDEST = 4200,    // of the time axis, in pixels
    READABLE = 1000,  // of a line of words
    SWATCH = 14       // width of a colour in the legend
};

typedef struct Mark {          // a piece of what stands above the rows
    const char *style, *text;  // a class; NULL: a swatch
    double x, y, height;       // of a swatch; 0: a line
} Mark;

typedef struct Drawing {
    Picture k;
    FILE *out;
    double stretch;              // pixels per unit of time
    double width;                // of the time axis
    double lane, strip, memory;  // heights: actions, phases, bytes
    double row;                  // all of them and the gap
    int digits;                  // size of the micro-batch numbers
    Mark *marks;                 // the words and the legend above the rows
    int mark_count;
    double head;  // where the rows begin
} Drawing;

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

static double row_top(const Drawing *d, int rank)
{
    return d->head + rank * d->row;
}

static void put(const Drawing *d, const char *before, double value)
{
    fputs(before, d->out);
    put_number(d->out, value);
}

/* `style` is a class. */
static void text_at(const Drawing *d, const char *style, double x, double y,
                    const char *text)
{
    fprintf(d->out, "<text class=\"%s\"", style);
    put(d, " x=\"", x);
    put(d, "\" y=\"", y);
    fputs("\">", d->out);
    fputs(xml_text(d->k.p->arena, text), d->out);
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

/* ---- style ---- */

static void colour_rules(const Drawing *d)
{
    for (int kind = 0; kind < COMPUTE_KINDS; kind++) {
        if (!d->k.used[kind])
            continue;
        for (int s = 0; s < shades_of(&d->k); s++)
            fprintf(d->out, ".%s%d{fill:%s}\n", action_names[kind], s,
                    shade_colour(&d->k, kind, s));
        fprintf(d->out, ".on%s{fill:%s}\n", action_names[kind],
                number_colour(kind));
    }
    fprintf(d->out,
            ".on text{font-size:%dpx;text-anchor:middle;fill:inherit}\n",
            d->digits);
}

/* The whole picture on one page, however wide or high it is. */
static void print_rules(const Drawing *d, double width, double height)
{
    fprintf(d->out,
            "@media print{\n@page{size:%s;margin:10mm}\n"
            "svg:root{width:100vw;height:99vh}\n}\n",
            width > height ? "landscape" : "portrait");
}

static void rules(const Drawing *d, double width, double height)
{
    fputs("<style>\n"
          "text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;"
          "font-size:11px;fill:#1b1f24}\n"
          ".title{font-size:15px;font-weight:bold}\n"
          ".rank{text-anchor:end;font-weight:bold}\n"
          ".small{text-anchor:end;font-size:9px;fill:#59636e}\n"
          ".tick{text-anchor:middle;fill:#59636e}\n"
          ".paper{fill:#fff}\n.idle{fill:#f2f4f6}\n"
          ".grid{stroke:#c5ccd3;stroke-width:.5;fill:none}\n"
          ".warmup{fill:#e3a008}\n.steady{fill:#4a545e}\n"
          ".cooldown{fill:#0d8096}\n"
          ".lasting{fill:#cfc8e3}\n.alive{fill:#8b78c4}\n"
          ".arena{stroke:#59636e;stroke-width:.7;stroke-dasharray:3 2;"
          "fill:none}\n"
          ".wire{stroke:#b3261e;stroke-width:.7;fill:none;opacity:.75}\n"
          ".head{fill:#b3261e;opacity:.75}\n",
          d->out);
    colour_rules(d);
    fputs("@media screen and (prefers-color-scheme:dark){\n"
          "text{fill:#e6e9ec}\n.small,.tick{fill:#a3acb5}\n"
          ".paper{fill:#14181c}\n.idle{fill:#1c2228}\n"
          ".grid{stroke:#46505a}\n"
          ".steady{fill:#c3cad1}\n"
          ".lasting{fill:#3d3658}\n.alive{fill:#8472bd}\n"
          ".arena{stroke:#a3acb5}\n.wire{stroke:#ff9d92}\n"
          ".head{fill:#ff9d92}\n}\n",
          d->out);
    print_rules(d, width, height);
    fputs("</style>\n", d->out);
}

/* ---- what stands above the rows ---- */

typedef struct Pen {
    double x, y;
} Pen;

/* Of a letter in Helvetica, in parts of the font's size; a little more than it
 * takes. */
static double letter_width(char letter)
{
    if ((letter & 0xc0) == 0x80)  // a letter goes on
        return 0;
    if (strchr(" ,.:;'|/()-ijlftrI", letter))
        return 0.32;
    if (strchr("mwMW%", letter))
        return 0.86;
    return letter >= 'A' && letter <= 'Z' ? 0.74 : 0.56;
}

static double text_width(const char *text, double size)
{
    double width = 0;
    for (; *text; text++)
        width += size * letter_width(*text);
    return width;
}

static void add_mark(Drawing *d, Mark mark)
{
    d->marks = array_grow(d->k.p->arena, d->marks, d->mark_count, sizeof mark);
    d->marks[d->mark_count++] = mark;
}

/* Bytes of the first line, which ends at a space if it has one. */
static size_t line_length(const char *text, double size, double room)
{
    size_t at = 0, space = 0;
    double width = 0;
    for (; text[at]; at++) {
        if (text[at] == ' ')
            space = at;
        width += size * letter_width(text[at]);
        if (width > room)
            return space ? space : at;
    }
    return at;
}

/* `step`: from line to line. */
static void paragraph(Drawing *d, Pen *pen, const char *style, const char *text,
                      double size, double step)
{
    double room = d->width < READABLE ? d->width : READABLE;
    while (*text) {
        int length = (int)line_length(text, size, room);
        const char *line = text_format(d->k.p->arena, "%.*s", length, text);
        add_mark(d, (Mark){style, line, pen->x, pen->y, 0});
        pen->y += step;
        text += length;
        text += *text == ' ';
    }
}

/* Swatches and what they mean stay on one line of the legend. */
static void legend_item(Drawing *d, Pen *pen, const char **styles, int count,
                        double height, const char *text)
{
    double width = count * SWATCH + 5 + text_width(text, 11);
    if (pen->x > LEFT && pen->x + width > LEFT + d->width)
        *pen = (Pen){LEFT, pen->y + 17};
    for (int i = 0; i < count; i++, pen->x += SWATCH)
        add_mark(d, (Mark){styles[i], NULL, pen->x, pen->y, height});
    pen->x += count > 0 ? 5 : 0;
    add_mark(d, (Mark){"key", text, pen->x, pen->y, 0});
    pen->x += 14 + text_width(text, 11);
}

static void legend_kinds(Drawing *d, Pen *pen)
{
    static const char *const names[] = {
        "F forward", "B backward", "I backward, input", "W backward, weights"};
    int count = shades_of(&d->k);
    const char **styles = arena_take(d->k.p->arena,
                                     sizeof *styles * (size_t)count);
    for (int kind = 0; kind < COMPUTE_KINDS; kind++) {
        if (!d->k.used[kind])
            continue;
        for (int s = 0; s < count; s++)
            styles[s] = text_format(d->k.p->arena, "%s%d", action_names[kind],
                                    s);
        legend_item(d, pen, styles, count, 10, names[kind]);
    }
    if (d->k.most_chunks > 1)
        legend_item(d, pen, NULL, 0, 0, lighter_line(&d->k));
}

static void legend(Drawing *d, Pen *pen)
{
    static const struct {
        const char *style;
        double height;
        const char *text;
    } others[] = {{"warmup", 5, "warm-up"},
                  {"steady", 5, "steady"},
                  {"cooldown", 5, "cool-down"},
                  {"lasting", 8, "bytes of weights and scratch"},
                  {"alive", 8, "of micro-batches"},
                  {"arena", 0, "height of the arena"}};
    legend_kinds(d, pen);
    *pen = (Pen){LEFT, pen->y + 17};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *style = others[i].style;
        legend_item(d, pen, &style, 1, others[i].height, others[i].text);
    }
}

/* Long lines are broken, so the rows begin where the words end. */
static void place_head(Drawing *d)
{
    Pen pen = {LEFT, 22};
    paragraph(d, &pen, "title", title_line(&d->k), 16.5, 18);  // it is bold
    paragraph(d, &pen, "key", cost_line(&d->k), 11, 16);
    paragraph(d, &pen, "key", result_line(&d->k), 11, 16);
    pen.y += 7;
    legend(d, &pen);
    d->head = pen.y + 28;  // the axis has its numbers there
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
    place_head(&d);
    return d;
}

static void put_mark(const Drawing *d, const Mark *mark)
{
    if (mark->text) {
        text_at(d, mark->style, mark->x, mark->y, mark->text);
        return;
    }
    fprintf(d->out, "<path class=\"%s\" d=\"", mark->style);
    if (mark->height > 0) {
        box(d, mark->x, mark->y - mark->height, SWATCH, mark->height);
    } else {
        put(d, "M", mark->x);
        put(d, " ", mark->y - 4);
        put(d, "h", SWATCH);
    }
    fputs("\"/>\n", d->out);
}

/* ---- head and axis ---- */

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
        put(d, " ", d->head - 4);
        put(d, "V", bottom);
    }
    fputs("\"/>\n", d->out);
    for (int i = 0; i * step <= last * 1.0000001; i++) {
        const char *text = text_format(d->k.p->arena, "%g", i * step);
        double x = LEFT + i * step / d->k.scale * d->stretch;
        text_at(d, "tick", x, d->head - 8, text);
        text_at(d, "tick", x, bottom + 12, text);
    }
    text_at(d, "key", LEFT, bottom + 27,
            text_format(d->k.p->arena,
                        "time in %s; a number in an action is "
                        "its micro-batch",
                        d->k.unit));
}

static void head(const Drawing *d, double top, double width, double height)
{
    fputs("<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"", d->out);
    if (top > 0)
        fprintf(d->out, " y=\"%.0f\"", top);
    fprintf(d->out, " width=\"%.0f\" height=\"%.0f\"", width, height);
    fprintf(d->out, " viewBox=\"0 0 %.0f %.0f\">\n<title>", width, height);
    fputs(xml_text(d->k.p->arena, title_line(&d->k)), d->out);
    fputs("</title>\n<desc>", d->out);
    fputs(xml_text(d->k.p->arena, result_line(&d->k)), d->out);
    fputs("</desc>\n", d->out);
    rules(d, width, height);
    fprintf(d->out, "<path class=\"paper\" d=\"M0 0h%.0fv%.0fH0z\"/>\n", width,
            height);
    for (int i = 0; i < d->mark_count; i++)
        put_mark(d, &d->marks[i]);
}

/* ---- rows ---- */

static bool has_style(const Drawing *d, Action a, int kind, int level)
{
    return (int)a.kind == kind && shade_of(&d->k, a.chunk) == level;
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

/* The micro-batches of one kind, where they fit. */
static void numbers(const Drawing *d, int rank, int kind)
{
    const Program *p = d->k.p;
    double y = row_top(d, rank) + d->lane / 2 + d->digits * 0.36;
    fprintf(d->out, "<g class=\"on on%s\">", action_names[kind]);
    for (int i = 0; i < p->lists[rank].count; i++) {
        Action a = p->lists[rank].at[i];
        const Node *node = &p->nodes[node_at(p, rank, i)];
        double start = node->start, end = node->end;
        if ((int)a.kind != kind ||
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
    text_at(
        d, "small", LEFT - 6, y + d->lane + d->strip + d->memory / 2 + 4,
        bytes_text(d->k.p->arena, 4.0 * (double)d->k.p->arena_floats[rank]));
}

static void row_actions(const Drawing *d, int rank)
{
    for (int kind = 0; kind < COMPUTE_KINDS; kind++) {
        if (!d->k.used[kind])
            continue;
        for (int s = 0; s < shades_of(&d->k); s++)
            actions_of_style(d, rank, kind, s);
        numbers(d, rank, kind);
    }
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

static double width_of(const Drawing *d)
{
    return LEFT + d->width + RIGHT;
}

static double height_of(const Drawing *d)
{
    return row_top(d, d->k.p->ranks) + FOOT;
}

static void put_drawing(const Drawing *d, double top, bool arrows)
{
    int ranks = d->k.p->ranks;
    head(d, top, width_of(d), height_of(d));
    axis(d);
    for (int r = 0; r < ranks; r++)
        row_ground(d, r);
    if (arrows)
        messages(d, false);
    for (int r = 0; r < ranks; r++)
        row_actions(d, r);
    if (arrows)
        messages(d, true);
    fputs("</svg>\n", d->out);
}

void picture_svg(Program **plans, int count, FILE *out, bool arrows)
{
    Drawing *drawings = arena_take(plans[0]->arena,
                                   sizeof *drawings * (size_t)count);
    double width = 0, height = 0, top = 0;
    for (int i = 0; i < count; i++) {
        drawings[i] = draw(plans[i], out);
        height += height_of(&drawings[i]);
        width = fmax(width, width_of(&drawings[i]));
    }
    if (count > 1)
        fprintf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
                "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n",
                width, height, width, height);
    for (int i = 0; i < count; i++) {
        put_drawing(&drawings[i], top, arrows);
        top += height_of(&drawings[i]);
    }
    if (count > 1)
        fputs("</svg>\n", out);
}
