/* picture.c: a plan as a file, in the format of its suffix.
 *
 * The file is written beside its place and then renamed: a reader, or a browser
 * that reloads, never sees half of it, and a full disk leaves the old one. */
#include "picture.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

typedef struct Format {
    const char *suffix;
    void (*write)(Program *p, FILE *out, const Look *look);
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
    picture_csv(p, out, look->comms);
}

static void write_text(Program *p, FILE *out, const Look *look)
{
    (look->text ? look->text : inspect)(p, out, false, look->all);
}

static const Format formats[] = {
    {".svg", write_svg}, {".html", write_html}, {".json", write_trace},
    {".csv", write_csv}, {".txt", write_text},
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
    if (find_format(path))
        return true;
    error_plain(p, "`%s` has none of the endings of a picture", path);
    help(p, "use .svg, .html, .json (Chrome trace), .csv (PyTorch schedule) or "
            ".txt");
    return false;
}

static bool cannot_write(Program *p, const char *path, const char *temporary)
{
    error_plain(p, "cannot write %s: %s", path, strerror(errno));
    if (temporary)
        remove(temporary);
    return false;
}

bool picture(Program *p, const char *path, const Look *look)
{
    static const Look plain;
    enum { BUFFER = 1 << 18 };
    if (!can_picture(p, path))
        return false;
    const char *temporary = text_format(p->arena, "%s.%ld.tmp", path,
                                        (long)getpid());
    FILE *out = fopen(temporary, "wb");
    if (!out)
        return cannot_write(p, path, NULL);
    setvbuf(out, arena_take(p->arena, BUFFER), _IOFBF, BUFFER);
    errno = 0;
    find_format(path)->write(p, out, look ? look : &plain);
    bool failed = fflush(out) != 0 || ferror(out);
    if (fclose(out) != 0 || failed || rename(temporary, path) != 0)
        return cannot_write(p, path, temporary);
    return true;
}
