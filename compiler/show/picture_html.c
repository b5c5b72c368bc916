/* picture_html.c: plans as one page that needs nothing but a browser.
 *
 * The page is picture.css, one block of JSON per plan, and picture.js, which
 * draws; the Makefile turns the two files into the arrays of picture_page.h.
 * Every fact is computed here, the script only looks it up:
 *
 *     rows[rank].a   actions: (kind * chunks + chunk) * M + micro
 *     rows[rank].g   ticks since the action before ended
 *     rows[rank].d   ticks that it takes
 *     rows[rank].f   number of the action that made what it reads; -1: none
 *     rows[rank].c   why it does not start earlier, one digit of Waits each
 *     rows[rank].w   pairs: place in the row, action that it waited for, where
 *                    that is neither the one before it nor the one of f
 *     rows[rank].b   pairs: place in the row, action that frees its buffer
 *     rows[rank].m   memory: ticks since the last change, change in 64 bytes
 *
 * Actions are numbered rank after rank. A tick is one forward, or a decimal
 * fraction of a second so short that the step takes over a million. */
#include "escape.h"
#include "picture.h"
#include "picture_page.h"

typedef struct Page {
    Picture k;
    FILE *out;
    double tick;  // in units of time
    int *number;  // [node] of a compute
} Page;

/* ---- JSON ---- */

static void put_integer(const Page *g, long value)
{
    char text[24], *at = text + sizeof text;
    unsigned long rest = (unsigned long)(value < 0 ? -value : value);
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *--at = '-';
    fwrite(at, 1, (size_t)(text + sizeof text - at), g->out);
}

/* One more element of an array of numbers. */
static void put_element(const Page *g, bool *more, long value)
{
    if (*more)
        fputc(',', g->out);
    *more = true;
    put_integer(g, value);
}

static void put_member(const Page *g, const char *name, const char *text)
{
    fprintf(g->out, "\"%s\":%s,\n", name, json_string(g->k.p->arena, text));
}

/* ---- time ---- */

static long ticks(const Page *g, double time)
{
    return (long)(time / g->tick + 0.5);
}

static bool whole_times(const Program *p)
{
    for (int r = 0; r < p->ranks; r++)
        for (int i = 0; i < p->lists[r].count; i++)
            if (p->nodes[node_at(p, r, i)].end !=
                (double)(long)p->nodes[node_at(p, r, i)].end)
                return false;
    return true;
}

static double tick_of(const Program *p)
{
    if (p->makespan <= 0 || whole_times(p))
        return 1;
    return power_of_ten(p->makespan) / 1e6;
}

static Page page_of(Program *p, FILE *out)
{
    Page g = {.k = picture_of(p), .out = out, .tick = tick_of(p)};
    int next = 0, nodes = p->first_node[p->ranks];
    g.number = arena_take(p->arena, sizeof *g.number * (size_t)(nodes + 1));
    for (int i = 0; i < nodes; i++)
        g.number[i] = is_compute(action_of(p, i).kind) ? next++ : -1;
    return g;
}

static long number_of(const Page *g, int node)
{
    return node < 0 ? -1 : g->number[node];
}

/* ---- one rank ---- */

typedef long (*Fact)(const Page *g, int node);

static long fact_action(const Page *g, int node)
{
    const Program *p = g->k.p;
    Action a = action_of(p, node);
    return ((long)a.kind * p->chunk_count + a.chunk) * (long)p->microbatches +
           a.micro;
}

static long fact_gap(const Page *g, int node)
{
    const Node *nodes = g->k.p->nodes;
    int before = compute_before(g->k.p, node);
    return ticks(g, nodes[node].start) -
           (before < 0 ? 0 : ticks(g, nodes[before].end));
}

static long fact_duration(const Page *g, int node)
{
    const Node *own = &g->k.p->nodes[node];
    return ticks(g, own->end) - ticks(g, own->start);
}

static long fact_from(const Page *g, int node)
{
    return number_of(g, maker_of(g->k.p, node));
}

static void put_facts(const Page *g, const char *name, int rank, Fact fact)
{
    const Program *p = g->k.p;
    bool more = false;
    fprintf(g->out, "\"%s\":[", name);
    for (int i = 0; i < p->lists[rank].count; i++)
        if (is_compute(p->lists[rank].at[i].kind))
            put_element(g, &more, fact(g, node_at(p, rank, i)));
    fputs("],\n", g->out);
}

static void put_waits(const Page *g, int rank)
{
    const Program *p = g->k.p;
    bool more = false;
    int from, message;
    fputs("\"c\":\"", g->out);
    for (int i = 0; i < p->lists[rank].count; i++)
        if (is_compute(p->lists[rank].at[i].kind))
            fputc('0' + (int)why_waits(p, p->nodes, node_at(p, rank, i), &from,
                                       &message),
                  g->out);
    fputs("\",\n\"w\":[", g->out);
    for (int i = 0, place = 0; i < p->lists[rank].count; i++) {
        int node = node_at(p, rank, i);
        if (!is_compute(p->lists[rank].at[i].kind))
            continue;
        Waits waits = why_waits(p, p->nodes, node, &from, &message);
        if (waits > WAITS_RANK && from >= 0 &&
            (waits != WAITS_DATA || from != maker_of(p, node))) {
            put_element(g, &more, place);
            put_element(g, &more, number_of(g, from));
        }
        place++;
    }
    fputs("],\n", g->out);
}

/* The WAITs before an action, each by the last compute before its message was
 * taken. */
static void put_buffer_waits(const Page *g, int rank)
{
    const Program *p = g->k.p;
    bool more = false;
    int last = p->lists[rank].count;
    while (last > 0 && !is_compute(p->lists[rank].at[last - 1].kind))
        last--;
    fputs("\"b\":[", g->out);
    for (int i = 0, place = 0; i < last; i++) {
        int node = node_at(p, rank, i), freed = p->nodes[node].freed;
        int taken = freed < 0 ? -1 : compute_before(p, freed);
        if (taken >= 0) {
            put_element(g, &more, place);
            put_element(g, &more, number_of(g, taken));
        }
        place += is_compute(p->lists[rank].at[i].kind);
    }
    fputs("],\n", g->out);
}

static void put_curve(const Page *g, int rank)
{
    const Curve *c = &g->k.curves[rank];
    long time = 0, level = 0;
    bool more = false;
    fputs("\"m\":[", g->out);
    for (int i = 0; i < c->count; i++) {
        long now = ticks(g, c->at[i].time), next = (long)(c->at[i].floats / 16);
        put_element(g, &more, now - time);
        put_element(g, &more, next - level);
        time = now;
        level = next;
    }
    fputs("],\n", g->out);
}

/* How many computes come before a phase. */
static int computes_before(const List *list, int phase)
{
    int count = 0;
    for (int i = 0; i < list->count && phase_of(list, i) < phase; i++)
        count += is_compute(list->at[i].kind);
    return count;
}

static void put_rank(const Page *g, int rank)
{
    const Program *p = g->k.p;
    const List *list = &p->lists[rank];
    fputs(rank ? ",\n{" : "{", g->out);
    put_facts(g, "a", rank, fact_action);
    put_facts(g, "g", rank, fact_gap);
    put_facts(g, "d", rank, fact_duration);
    put_facts(g, "f", rank, fact_from);
    put_waits(g, rank);
    put_buffer_waits(g, rank);
    put_curve(g, rank);
    fprintf(g->out,
            "\"steady\":%d,\"cooldown\":%d,\"arena\":%zu,\"lasting\":%zu}",
            computes_before(list, 1), computes_before(list, 2),
            4 * p->arena_floats[rank], 4 * g->k.curves[rank].lasting);
}

/* ---- chunks and their buffers ---- */

static const Block *block_of(const Page *g, int kind, int chunk, int micro)
{
    int block = find_block_of(g->k.p, (BlockKind)(BLOCK_KEEP + kind), chunk,
                              micro);
    return block < 0 ? NULL : &g->k.p->blocks[block];
}

/* ["y0_", bytes, offset of slot 0, of slot 1, ...]; or 0. */
static void put_buffer(const Page *g, int kind, int chunk, long *offsets)
{
    int microbatches = g->k.p->microbatches, slots = 0;
    const Block *first = NULL;
    for (int m = 0; m < microbatches && !first; m++)
        first = block_of(g, kind, chunk, m);
    if (!first) {
        fputc('0', g->out);
        return;
    }
    for (int m = 0; m < microbatches; m++) {
        const Block *b = block_of(g, kind, chunk, m);
        if (!b)
            continue;
        offsets[b->slot] = 4 * (long)b->offset;
        slots = b->slot >= slots ? b->slot + 1 : slots;
    }
    fprintf(g->out, "[\"%s%d_\",%zu", block_words[first->kind - BLOCK_KEEP],
            first->chunk, 4 * first->floats);
    for (int s = 0; s < slots; s++) {
        fputc(',', g->out);
        put_integer(g, offsets[s]);
    }
    fputc(']', g->out);
}

static void put_chunks(const Page *g)
{
    Program *p = g->k.p;
    long *offsets = arena_take(p->arena,
                               sizeof *offsets * (size_t)p->microbatches);
    fputs("\"chunk\":[\n", g->out);
    for (int c = 0; c < p->chunk_count; c++) {
        fprintf(g->out,
                "%s{\"ordinal\":%d,\"message\":%ld,\"layers\":", c ? ",\n" : "",
                g->k.ordinal[c], ticks(g, p->cost.wire[c] + p->cost.delay[c]));
        fputs(json_string(p->arena, layers_text(p, c)), g->out);
        fputs(",\"buffer\":[", g->out);
        for (int kind = 0; kind < MICRO_KINDS; kind++) {
            if (kind)
                fputc(',', g->out);
            put_buffer(g, kind, c, offsets);
        }
        fputs("]}", g->out);
    }
    fputs("],\n", g->out);
}

/* slots[kind][chunk * M + micro]: which of the buffers above. */
static void put_slots(const Page *g)
{
    const Program *p = g->k.p;
    fputs("\"slots\":[", g->out);
    for (int kind = 0; kind < MICRO_KINDS; kind++) {
        bool more = false;
        fputs(kind ? ",\n[" : "[", g->out);
        for (int c = 0; c < p->chunk_count; c++) {
            for (int m = 0; m < p->microbatches; m++) {
                const Block *b = block_of(g, kind, c, m);
                put_element(g, &more, b ? b->slot : 0);
            }
        }
        fputc(']', g->out);
    }
    fputs("],\n", g->out);
}

/* colours[kind][shade], numbers[kind]: of an action, and of what is written on
 * it. */
static void put_colours(const Page *g)
{
    fputs("\"colours\":[", g->out);
    for (int kind = 0; kind < COMPUTE_KINDS; kind++)
        for (int s = 0; s < shades_of(&g->k); s++)
            fprintf(g->out, "%s\"%s\"",
                    s      ? ","
                    : kind ? "],\n["
                           : "[",
                    shade_colour(&g->k, kind, s));
    fputs("]],\n\"numbers\":", g->out);
    for (int kind = 0; kind < COMPUTE_KINDS; kind++)
        fprintf(g->out, "%c\"%s\"", kind ? ',' : '[', number_colour(kind));
    fputs("],\n", g->out);
}

/* ---- the page ---- */

static void put_plan(Program *p, FILE *out)
{
    Page g = page_of(p, out);
    fputs("<script type=\"application/json\" class=\"plan\">{\n", out);
    put_member(&g, "schedule", p->set.schedule->name);
    put_member(&g, "title", title_line(&g.k));
    put_member(&g, "cost", cost_line(&g.k));
    put_member(&g, "result", result_line(&g.k));
    put_member(&g, "unit", g.k.unit);
    if (g.k.most_chunks > 1)
        put_member(&g, "lighter", lighter_line(&g.k));
    fprintf(out,
            "\"shown\":%.17g,\"makespan\":%ld,\"chunks\":%d,\"micros\":%d,\n",
            g.tick * g.k.scale, ticks(&g, p->makespan), p->chunk_count,
            p->microbatches);
    put_colours(&g);
    put_chunks(&g);
    put_slots(&g);
    fputs("\"rows\":[\n", out);
    for (int r = 0; r < p->ranks; r++)
        put_rank(&g, r);
    fputs("]}</script>\n", out);
}

static const char page_head[] =
    "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n";

static const char page_body[] =
    "<header><h1 id=\"title\"></h1><p id=\"cost\"></p><p id=\"result\"></p>"
    "</header>\n"
    "<nav>\n"
    "<label id=\"plans\">schedule <select id=\"plan\"></select></label>\n"
    "<span><button id=\"out\" aria-label=\"zoom out\" title=\"zoom out: "
    "-\">&minus;</button>"
    "<button id=\"in\" aria-label=\"zoom in\" title=\"zoom in: +\">+</button>"
    "<button id=\"fit\" title=\"the whole step: 0\">fit</button></span>\n"
    "<label><input type=\"checkbox\" id=\"messages\"> messages"
    "<span id=\"many\" hidden>: too many, zoom in</span></label>\n"
    "<button id=\"critical\" title=\"c\">critical path</button>\n"
    "<span class=\"time\"><button id=\"play\" title=\"space\">play</button>"
    "<input type=\"range\" id=\"scrub\" min=\"0\" max=\"1\" step=\"any\" "
    "value=\"0\" aria-label=\"time\">"
    "<output id=\"now\" aria-live=\"off\"></output></span>\n"
    "</nav>\n"
    "<div id=\"legend\"></div>\n"
    "<canvas id=\"view\" tabindex=\"0\" role=\"application\" "
    "aria-label=\"timeline\"></canvas>\n"
    "<section id=\"about\" aria-live=\"polite\"></section>\n";

void picture_html(Program **plans, int count, FILE *out)
{
    fputs(page_head, out);
    fprintf(out, "<title>%s</title>\n<style>\n",
            xml_text(plans[0]->arena, plans[0]->name));
    fwrite(picture_css, 1, sizeof picture_css - 1, out);
    fputs("</style>\n", out);
    fputs(page_body, out);
    for (int i = 0; i < count; i++)
        put_plan(plans[i], out);
    fputs("<script>\n", out);
    fwrite(picture_js, 1, sizeof picture_js - 1, out);
    fputs("</script>\n</html>\n", out);
}
