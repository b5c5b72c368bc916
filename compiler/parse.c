/* parse.c: text -> tree.
 *
 * Reads: sources. Writes: file, defines. Guarantees: the tree mirrors the text;
 * nothing is judged. The rules are in grammar/pipe.y; here is what they
 * call. */
#include "compile.h"

#include <stdlib.h>
#include <string.h>

#include "pipe_parse.h"
#include "pipe_lex.h"

Node *node(Program *p, NodeKind kind, Span at, Span name)
{
    Node *made = arena_take(p->arena, sizeof *made);
    made->kind = kind;
    made->at = at;
    made->name = name;
    return made;
}

Node *add_child(Node *parent, Node *child)
{
    if (parent->last)
        parent->last->next = child;
    else
        parent->child = child;
    parent->last = child;
    if (child->at.end > parent->at.end)
        parent->at.end = child->at.end;
    return parent;
}

/* 312T, 10us, 64Ki: the number, then at most one unit. */
int read_number(Reader *reader, const char *text, NumberToken *number,
                const Span *at)
{
    static const struct {
        const char *unit;
        double factor;
        char kind;
    } units[] = {
        {"", 1, 0},        {"k", 1e3, 0},     {"K", 1e3, 0},
        {"M", 1e6, 0},     {"G", 1e9, 0},     {"T", 1e12, 0},
        {"ki", 1024, 0},   {"Ki", 1024, 0},   {"Mi", 0x1p20, 0},
        {"Gi", 0x1p30, 0}, {"Ti", 0x1p40, 0}, {"s", 1, 's'},
        {"ms", 1e-3, 's'}, {"us", 1e-6, 's'}, {"ns", 1e-9, 's'},
    };
    char *end;
    number->value = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].unit) == 0) {
            number->value *= units[i].factor;
            number->unit = units[i].kind;
            return NUMBER;
        }
    }
    error_at(reader->program, *at, "unknown unit `%s`", end);
    help(reader->program, "units are K M G T, Ki Mi Gi Ti, s ms us ns");
    return NUMBER;
}

void stray_bytes(Reader *reader, const char *text, int length, Span at)
{
    unsigned char first = (unsigned char)text[0];
    if (first >= 32 && first < 127)
        error_at(reader->program, at, "`%c` has no meaning here", first);
    else
        error_at(reader->program, at,
                 "byte 0x%02x has no meaning here (%d such byte%s)", first,
                 length, length == 1 ? "" : "s");
}

/* Bison quotes its one-character tokens; ours read better in back quotes. */
static const char *readable(Program *p, const char *token)
{
    if (token[0] == '\'')
        return text_format(p->arena, "`%c`", token[1]);
    return token;
}

void report_syntax(Reader *reader, Span at, const char *unexpected,
                   const char *const *expected, int count)
{
    Program *p = reader->program;
    int length = at.end - at.begin;
    const char *what = readable(p, unexpected);
    if (length > 0 && length < 40 &&
        p->sources[at.source].text[at.begin] != '\n' && what[0] != '`')
        what = text_format(p->arena, "`%.*s`", length,
                           p->sources[at.source].text + at.begin);
    char *list = text_format(p->arena, "%s", "");
    for (int i = 0; i < count; i++)
        list = text_format(p->arena, "%s%s%s", list,
                           i == 0           ? ""
                           : i == count - 1 ? " or "
                                            : ", ",
                           readable(p, expected[i]));
    if (count)
        error_at(p, at, "unexpected %s, expected %s", what, list);
    else
        error_at(p, at, "unexpected %s", what);
}

static Node *read_source(Program *p, int source, int start)
{
    Reader reader = {.program = p, .source = source, .start = start};
    yyscan_t scanner;
    if (yylex_init_extra(&reader, &scanner))
        exit(1);
    YY_BUFFER_STATE buffer = yy_scan_bytes(p->sources[source].text,
                                           p->sources[source].length, scanner);
    if (yyparse(scanner, &reader) != 0 && !p->errors)
        error_plain(p, "%s cannot be read", p->sources[source].name);
    yy_delete_buffer(buffer, scanner);
    yylex_destroy(scanner);
    return reader.tree;
}

/* -D data=../some/file.txt: a path is no word of the language, so it is taken
 * as it stands. */
static Node *raw_data(Program *p, int source)
{
    const Source *s = &p->sources[source];
    Span name = {source, 0, 4}, value = {source, 5, s->length};
    Node *line = node(p, NODE_LINE, (Span){source, 0, s->length}, name);
    line->text = "data";
    Node *text = node(p, NODE_STRING, value, value);
    text->text = text_copy(p->arena, s->text + 5, (size_t)s->length - 5);
    return add_child(line, text);
}

bool parse(Program *p)
{
    p->file = read_source(p, 0, START_FILE);
    p->defines = arena_take(p->arena,
                            sizeof *p->defines * (size_t)p->source_count);
    for (int i = 1; i < p->source_count; i++)
        p->defines[i - 1] = strncmp(p->sources[i].text, "data=", 5) == 0
                                ? raw_data(p, i)
                                : read_source(p, i, START_DEFINE);
    return p->errors == 0;
}
