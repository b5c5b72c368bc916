/* parse.c: text -> tree.
 *
 * Reads: sources. Writes: file, defines. Guarantees: the tree mirrors the text;
 * nothing is judged. The rules are in grammar/pipe.y; here is what they
 * call. */
#include "compile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipe_parse.h"
#include "pipe_lex.h"

Tree *tree(Program *p, TreeKind kind, Span at, Span name)
{
    Tree *made = arena_take(p->arena, sizeof *made);
    made->kind = kind;
    made->at = at;
    made->name = name;
    return made;
}

/* The `number` of a tree that is no number is how deep it goes. */
Tree *add_child(Tree *parent, Tree *child)
{
    double depth = 1 + (child->kind == TREE_NUMBER ? 0 : child->number);
    if (parent->number < depth)
        parent->number = depth;
    if (parent->last)
        parent->last->next = child;
    else
        parent->child = child;
    parent->last = child;
    if (child->at.end > parent->at.end)
        parent->at.end = child->at.end;
    return parent;
}

/* ---- words of the lexer ---- */

/* Is the word here the first of an item of the file; `schedule` begins a block
 * then, and is the name of a setting everywhere else. */
bool begins_item(const Reader *reader, Span at)
{
    const char *text = reader->program->sources[at.source].text;
    int i = at.begin;
    if (at.source != 0 || reader->braces || reader->depth || reader->continued)
        return false;
    while (i > 0 && strchr(" \t\r\xEF\xBB\xBF", text[i - 1]))
        i--;
    return i == 0 || strchr("\n;}", text[i - 1]);
}

static int refuse(Reader *reader, Span at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports what the lexer cannot read; the rest of the line is skipped. */
static int refuse(Reader *reader, Span at, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const char *text = text_format_list(reader->program->arena, format, list);
    va_end(list);
    if (!reader->reported)
        error_at(reader->program, at, "%s", text);
    reader->reported = true;
    return YYerror;
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
        if (strcmp(end, units[i].unit) != 0)
            continue;
        number->value *= units[i].factor;
        number->unit = units[i].kind;
        return isfinite(number->value)
                   ? NUMBER
                   : refuse(reader, *at, "the number is too large");
    }
    bool reported = reader->reported;
    refuse(reader, *at, "unknown unit `%.20s`", end);
    if (!reported)
        help(reader->program, "units are K M G T, Ki Mi Gi Ti, s ms us ns");
    return YYerror;
}

int stray_bytes(Reader *reader, const char *text, int length, Span at)
{
    unsigned char first = (unsigned char)text[0];
    if (first < 32 || first > 126)
        return refuse(reader, at,
                      "byte 0x%02x has no meaning here (%d such byte%s)", first,
                      length, length == 1 ? "" : "s");
    at.end = at.begin + 1;
    return refuse(reader, at, "`%c` has no meaning here", first);
}

int long_name(Reader *reader, int length, Span at)
{
    return refuse(reader, at, "a name of %d bytes, but at most %d are allowed",
                  length, MAX_NAME);
}

/* Ended by the end of the line, of the file, or by a zero byte. */
int open_text(Reader *reader, Span at)
{
    const Source *source = &reader->program->sources[at.source];
    bool reported = reader->reported;
    if (at.end < source->length && source->text[at.end] == '\0')
        return refuse(reader, at, "text that holds a byte 0x00");
    while (source->text[at.end - 1] == '\r')
        at.end--;
    refuse(reader, at, "text without a closing quote");
    if (!reported)
        help(reader->program, "end it with \" on the same line");
    return YYerror;
}

/* ---- syntax errors ---- */

static bool is_keyword(const char *token)
{
    static const char *const keywords[] = {
        "let", "layer", "model", "input", "of",   "tied", "schedule", "for",
        "in",  "by",    "down",  "if",    "else", "and",  "or"};
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(keywords[i], token) == 0)
            return true;
    return false;
}

/* Bison quotes its one-character tokens; ours read better in back quotes. */
static const char *readable(Program *p, const char *token)
{
    if (token[0] == '\'')
        return text_format(p->arena, "`%c`", token[1]);
    if (is_keyword(token) || strcmp(token, "..") == 0)
        return text_format(p->arena, "`%s`", token);
    return token;
}

static int find_token(const char *const *tokens, int count, const char *token)
{
    for (int i = 0; i < count; i++)
        if (strcmp(tokens[i], token) == 0)
            return i;
    return -1;
}

static void drop(const char **tokens, int *count, int at)
{
    if (at >= 0)
        memmove(tokens + at, tokens + at + 1,
                sizeof *tokens * (size_t)(--*count - at));
}

/* If all `parts` are among the tokens, the first gives way to `whole` and the
 * others go. */
static bool fold(const char **tokens, int *count, const char *const *parts,
                 int part_count, const char *whole)
{
    for (int i = 0; i < part_count; i++)
        if (find_token(tokens, *count, parts[i]) < 0)
            return false;
    tokens[find_token(tokens, *count, parts[0])] = whole;
    for (int i = 1; i < part_count; i++)
        drop(tokens, count, find_token(tokens, *count, parts[i]));
    return true;
}

static const char *token_list(Program *p, const char *const *tokens, int count)
{
    char *list = text_format(p->arena, "%s", "");
    for (int i = 0; i < count; i++)
        list = text_format(p->arena, "%s%s%s", list,
                           i == 0           ? ""
                           : i == count - 1 ? " or "
                                            : ", ",
                           readable(p, tokens[i]));
    return list;
}

static void syntax_help(Reader *reader, Span at, const char *what,
                        bool name_wanted, bool setting)
{
    Program *p = reader->program;
    const char *text = p->sources[at.source].text;
    bool word = is_keyword(what);
    bool end = strcmp(what, "end of file") == 0;
    bool item = strcmp(what, "a block") == 0 || strcmp(what, "model") == 0 ||
                strcmp(what, "layer") == 0;
    if (reader->open.end && (end || line_of(p, reader->open) < line_of(p, at)))
        note_at(p, reader->open, "this bracket is still open");
    else if ((end || (item && !name_wanted)) && reader->braces > 0 &&
             reader->braces <= MAX_BRACES)
        note_at(p, reader->brace[reader->braces - 1],
                "this one may still be open");
    if (name_wanted && (word || strcmp(what, "a block") == 0))
        help(p, "`%.*s` is a word of the language; choose another name",
             at.end - at.begin, text + at.begin);
    else if (setting && strcmp(what, "'='") == 0)
        help(p, "a setting stands before its value without `=`: stages 4");
    else if (setting && strcmp(what, "','") == 0)
        help(p, "settings of one line stand side by side: stages 4  rows 2");
}

void report_syntax(Reader *reader, Span at, const char *unexpected,
                   const char **expected, int count)
{
    static const char *const expression[] = {
        "a number", "text in quotes", "a name", "a word", "'('", "'['", "'-'"};
    static const char *const operators[] = {"'+'", "'*'", "'/'", "'%'"};
    static const char *const items[] = {
        "let", "layer", "model", "schedule", "a block", "a name", "end of line",
    };
    static const char *const steps[] = {"let", "a name", "for", "if"};
    Program *p = reader->program;
    int length = at.end - at.begin;
    const char *what = readable(p, unexpected);
    if (length > 0 && length < 40 &&
        p->sources[at.source].text[at.begin] != '\n' && what[0] != '`')
        what = text_format(p->arena, "`%.*s`", length,
                           p->sources[at.source].text + at.begin);
    bool value = fold(expected, &count, expression, 7, "an expression");
    bool setting = value && find_token(expected, count, "'}'") >= 0;
    bool item = fold(expected, &count, items, 7,
                     "`let`, `layer`, `model`, `pipeline`, `train`, "
                     "`cluster`, `schedule`");
    bool step = fold(expected, &count, steps, 4, "a step of the schedule");
    bool compared = find_token(expected, count, "a comparison") >= 0;
    fold(expected, &count, operators, 4, "an operator");
    if (strcmp(unexpected, "end of file") == 0)
        drop(expected, &count, find_token(expected, count, "end of line"));
    if (item && strcmp(unexpected, "'}'") == 0)
        error_at(p, at, "unexpected `}`: no `{` is open");
    else if (count > 0 && count < 8)
        error_at(p, at, "unexpected %s, expected %s", what,
                 token_list(p, expected, count));
    else
        error_at(p, at, "unexpected %s", what);
    reader->reported = true;
    syntax_help(reader, at, unexpected,
                find_token(expected, count, "a name") >= 0 ||
                    (value && strchr("iot", unexpected[0])),
                setting);
    if (strcmp(unexpected, "'='") == 0 && (step || compared))
        help(p, compared ? "`==` compares" : "`let` names a number: let w = 2");
    else if (strcmp(unexpected, "else") == 0)
        help(p, "`else` stands behind the `}` of its `if`, on the same line");
    reader->open.end = 0;
}

static Tree *read_source(Program *p, int source, int start)
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

/* -D data=../some/file.txt: a path without quotes is no word of the language,
 * so it is taken as it stands. */
static bool is_raw_data(const Source *s)
{
    return strncmp(s->text, "data=", 5) == 0 && !strchr(s->text, '"');
}

static Tree *raw_data(Program *p, int source)
{
    const Source *s = &p->sources[source];
    Span name = {source, 0, 4}, value = {source, 5, s->length};
    Tree *line = tree(p, TREE_LINE, (Span){source, 0, s->length}, name);
    line->text = "data";
    Tree *text = tree(p, TREE_STRING, value, value);
    text->text = text_copy(p->arena, s->text + 5, (size_t)s->length - 5);
    return add_child(line, text);
}

bool parse(Program *p)
{
    p->file = read_source(p, 0, START_FILE);
    p->defines = arena_take(p->arena,
                            sizeof *p->defines * (size_t)p->source_count);
    for (int i = 1; i < p->source_count; i++)
        p->defines[i - 1] = is_raw_data(&p->sources[i])
                                ? raw_data(p, i)
                                : read_source(p, i, START_DEFINE);
    return p->errors == 0;
}
