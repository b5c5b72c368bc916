/* picture.c: a plan as a file, in the format of its suffix. */
#include "picture.h"
#include "order/csv.h"
#include "output.h"

#include <string.h>

typedef struct Format {
    const char *suffix;
    void (*write)(Program *p, FILE *out, const Look *look);
    bool (*can)(Program *p);  // reports why not; NULL: always
} Format;

/* The plan and the others. */
static Program **all_plans(Program *p, const Look *look)
{
    size_t count = (size_t)look->other_count + 1;
    Program **plans = arena_take(p->arena, sizeof *plans * count);
    plans[0] = p;
    for (int i = 0; i < look->other_count; i++)
        plans[i + 1] = look->others[i];
    return plans;
}

static void write_svg(Program *p, FILE *out, const Look *look)
{
    picture_svg(all_plans(p, look), look->other_count + 1, out, look->arrows);
}

static void write_html(Program *p, FILE *out, const Look *look)
{
    picture_html(all_plans(p, look), look->other_count + 1, out);
}

static void write_trace(Program *p, FILE *out, const Look *look)
{
    picture_trace(all_plans(p, look), look->other_count + 1, out);
}

static void write_csv(Program *p, FILE *out, const Look *look)
{
    csv_write(p, out, look->comms);
}

static void write_text(Program *p, FILE *out, const Look *look)
{
    (look->text ? look->text : inspect)(p, out, false, look->all);
}

static void write_layout(Program *p, FILE *out, const Look *look)
{
    (void)look;
    layout_file(p, out);
}

static const Format formats[] = {
    {".svg", write_svg, NULL},    {".html", write_html, NULL},
    {".json", write_trace, NULL}, {".csv", write_csv, NULL},
    {".txt", write_text, NULL},   {".layout", write_layout, has_layout},
};

static const Format *find_format(const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        size_t own = strlen(formats[i].suffix);
        if (length > own && strcmp(path + length - own, formats[i].suffix) == 0)
            return &formats[i];
    }
    return NULL;
}

bool can_picture(Program *p, const char *path)
{
    const Format *format = find_format(path);
    if (format)
        return !format->can || format->can(p);
    error_plain(p, "`%s` has none of the endings of a picture", path);
    help(p, "use .svg, .html, .json (Chrome trace), .csv (PyTorch schedule), "
            ".layout (Megatron-LM) or .txt");
    return false;
}

bool picture(Program *p, const char *path, const Look *look)
{
    static const Look plain;
    enum { BUFFER = 1 << 18 };
    Output out;
    if (!can_picture(p, path) || !open_output(p, &out, path))
        return false;
    setvbuf(out.stream, arena_take(p->arena, BUFFER), _IOFBF, BUFFER);
    find_format(path)->write(p, out.stream, look ? look : &plain);
    return close_output(&out);
}
