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
#include "escape.h"

#include <stdlib.h>
#include <string.h>

enum {
    LINE_SHOWN = 200,  // bytes of a source line that are printed
    LONGEST = 40       // word that is compared with others
};

static const Source *source_of(const Program *p, Span at)
{
    return at.source == SOURCE_SCHEDULE ? &p->schedule_source
           : at.source < 0              ? NULL
                                        : &p->sources[at.source];
}

static bool is_file(Span at)
{
    return at.source == 0 || at.source == SOURCE_SCHEDULE;
}

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
        line += source_of(p, at)->text[i] == '\n';
    return line;
}

const char *place_text(Program *p, Span at)
{
    const Source *source = source_of(p, at);
    return text_format(p->arena, "%s:%d:%d", shown_text(p->arena, source->name),
                       line_of(p, at),
                       at.begin - line_start(source, at.begin) + 1);
}

const char *file_name(const Program *p)
{
    const char *slash = strrchr(p->sources[0].name, '/');
    return slash ? slash + 1 : p->sources[0].name;
}

/* Prints [from, to), or `mark` once per column; control bytes and broken text
 * must not reach a terminal. */
static void show(FILE *out, const char *text, int from, int to, char mark)
{
    while (from < to) {
        int bytes = seen_bytes(text + from, to - from);
        if (mark)
            fputc(mark, out);
        else if (bytes)
            fwrite(text + from, 1, (size_t)bytes, out);
        else
            fputc(text[from] == '\t' ? ' ' : '?', out);
        from += bytes ? bytes : 1;
    }
}

static bool inside_character(const Source *source, int at)
{
    return at < source->length && (source->text[at] & 0xc0) == 0x80;
}

static void show_line(Program *p, Span at)
{
    const Source *source = source_of(p, at);
    int start = line_start(source, at.begin), end = start;
    while (end < source->length && source->text[end] != '\n')
        end++;
    if (end > start && source->text[end - 1] == '\r')
        end--;
    if (at.begin - start > LINE_SHOWN / 2)
        start = at.begin - LINE_SHOWN / 2;  // the part that matters
    if (end - start > LINE_SHOWN)
        end = start + LINE_SHOWN;
    while (start < at.begin && inside_character(source, start))
        start++;
    while (end > at.begin + 1 && inside_character(source, end))
        end--;
    int last = at.end < end ? at.end : end;
    if (is_file(at))
        fprintf(p->diagnostics, "%5d | ", line_of(p, at));
    else
        fprintf(p->diagnostics, "%5s | ", source->name);
    show(p->diagnostics, source->text, start, end, 0);
    fprintf(p->diagnostics, "\n      | ");
    show(p->diagnostics, source->text, start, at.begin, ' ');
    fputc('^', p->diagnostics);
    show(p->diagnostics, source->text, at.begin + 1, last, '~');
    fputc('\n', p->diagnostics);
}

/* What a message quotes cannot begin another line. */
static void print_shown(Program *p, const char *format, va_list list)
{
    const char *text = text_format_list(p->arena, format, list);
    fprintf(p->diagnostics, "%s\n", shown_text(p->arena, text));
}

static void message(Program *p, Span at, const char *kind, const char *format,
                    va_list list)
{
    const Source *source = source_of(p, at);
    if (!source)
        fprintf(p->diagnostics,
                "%s: %s: ", shown_text(p->arena, p->sources[0].name), kind);
    else if (is_file(at))
        fprintf(p->diagnostics, "%s: %s: ", place_text(p, at), kind);
    else
        fprintf(p->diagnostics, "command line: %s: ", kind);
    print_shown(p, format, list);
    if (source)
        show_line(p, at);
}

void error_at(Program *p, Span at, const char *format, ...)
{
    if (++p->errors > MAX_ERRORS) {
        if (p->errors == MAX_ERRORS + 1)
            fprintf(p->diagnostics,
                    "%s: error: more than %d errors; the rest is not shown\n",
                    shown_text(p->arena, p->sources[0].name), MAX_ERRORS);
        return;
    }
    va_list list;
    va_start(list, format);
    message(p, at, "error", format, list);
    va_end(list);
}

void warning_at(Program *p, Span at, const char *format, ...)
{
    if (p->errors > MAX_ERRORS)
        return;
    va_list list;
    va_start(list, format);
    message(p, at, "warning", format, list);
    va_end(list);
}

void error_plain(Program *p, const char *format, ...)
{
    if (++p->errors > MAX_ERRORS)
        return;
    va_list list;
    va_start(list, format);
    fputs("pipec: error: ", p->diagnostics);
    print_shown(p, format, list);
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
    print_shown(p, format, list);
    va_end(list);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Levenshtein distance with one row; both words are short. */
static int distance(const char *a, const char *b)
{
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
    int length = (int)strlen(word), best_distance = 1 + length / 3;
    if (length > LONGEST)
        return NULL;
    for (int i = 0; i < count; i++) {
        int d = distance(word, known[i]);
        if (d >= length)
            continue;  // nothing in common
        if (d < best_distance || (d == best_distance && !best)) {
            best = known[i];
            best_distance = d;
        }
    }
    return best;
}
