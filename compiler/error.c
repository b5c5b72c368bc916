/* error.c: messages that say what is wrong, where else to look and what to
 * type.
 *
 *     few.pipe:3:5: error: 2 microbatches cannot fill 4 stages
 *         3 |     microbatches 2
 *           |     ^~~~~~~~~~~~~~
 *       help: use at least 4 microbatches
 *
 * Places are byte offsets until this moment; line, column and the underline are
 * found here. */
#include "compile.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_SHOWN = 200 };  // bytes of a source line that are printed

static int line_start(const Source *source, int at)
{
    while (at > 0 && source->text[at - 1] != '\n')
        at--;
    return at;
}

int line_of(const Program *p, Span at)
{
    int line = 1;
    for (int i = 0; i < at.begin; i++)
        line += p->sources[at.source].text[i] == '\n';
    return line;
}

const char *file_name(const Program *p)
{
    const char *slash = strrchr(p->sources[0].name, '/');
    return slash ? slash + 1 : p->sources[0].name;
}

/* One printable character per column: control bytes and broken text must not
 * reach a terminal. */
static void show_text(FILE *out, const char *text, int length)
{
    for (int i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        fputc(c == '\t' ? ' ' : c < 32 || c > 126 ? '?' : c, out);
    }
}

static void show_line(Program *p, Span at)
{
    const Source *source = &p->sources[at.source];
    int start = line_start(source, at.begin), end = start;
    while (end < source->length && source->text[end] != '\n')
        end++;
    if (at.begin - start >
        LINE_SHOWN / 2)  // a very long line: show the part that matters
        start = at.begin - LINE_SHOWN / 2;
    if (end - start > LINE_SHOWN)
        end = start + LINE_SHOWN;
    int last = at.end < end ? at.end : end;
    fprintf(p->diagnostics, "%5d | ", line_of(p, at));
    show_text(p->diagnostics, source->text + start, end - start);
    fprintf(p->diagnostics, "\n      | %*s^", at.begin - start, "");
    for (int i = at.begin + 1; i < last; i++)
        fputc('~', p->diagnostics);
    fputc('\n', p->diagnostics);
}

static void message(Program *p, Span at, const char *kind, const char *format,
                    va_list list)
{
    const Source *source = &p->sources[at.source];
    fprintf(p->diagnostics, "%s:%d:%d: %s: ", source->name, line_of(p, at),
            at.begin - line_start(source, at.begin) + 1, kind);
    vfprintf(p->diagnostics, format, list);
    fputc('\n', p->diagnostics);
    show_line(p, at);
}

void error_at(Program *p, Span at, const char *format, ...)
{
    if (++p->errors > MAX_ERRORS) {
        if (p->errors == MAX_ERRORS + 1)
            fprintf(p->diagnostics,
                    "%s: error: more than %d errors; the rest is not shown\n",
                    p->sources[0].name, MAX_ERRORS);
        return;
    }
    va_list list;
    va_start(list, format);
    message(p, at, "error", format, list);
    va_end(list);
}

void error_plain(Program *p, const char *format, ...)
{
    if (++p->errors > MAX_ERRORS)
        return;
    va_list list;
    va_start(list, format);
    fputs("pipec: error: ", p->diagnostics);
    vfprintf(p->diagnostics, format, list);
    fputc('\n', p->diagnostics);
    va_end(list);
}

void note_at(Program *p, Span at, const char *format, ...)
{
    if (p->errors > MAX_ERRORS || at.source < 0)
        return;
    va_list list;
    va_start(list, format);
    message(p, at, "note", format, list);
    va_end(list);
}

void help(Program *p, const char *format, ...)
{
    if (p->errors > MAX_ERRORS)
        return;
    va_list list;
    va_start(list, format);
    fputs("  help: ", p->diagnostics);
    vfprintf(p->diagnostics, format, list);
    fputc('\n', p->diagnostics);
    va_end(list);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Levenshtein distance with one row; both words are short. */
static int distance(const char *a, const char *b)
{
    enum { LONGEST = 40 };
    int la = (int)strlen(a), lb = (int)strlen(b), row[LONGEST + 1];
    if (la > LONGEST || lb > LONGEST)
        return LONGEST;
    for (int j = 0; j <= lb; j++)
        row[j] = j;
    for (int i = 1; i <= la; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= lb; j++) {
            int above = row[j];
            row[j] = least(least(row[j] + 1, row[j - 1] + 1),
                           diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[lb];
}

const char *nearest(const char *word, const char *const *known, int count)
{
    const char *best = NULL;
    int best_distance = 1 + (int)strlen(word) / 3;
    for (int i = 0; i < count; i++) {
        int d = distance(word, known[i]);
        if (d < best_distance || (d == best_distance && !best)) {
            best = known[i];
            best_distance = d;
        }
    }
    return best;
}
