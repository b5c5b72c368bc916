/* escape.c: a user's text inside generated text.
 *
 * The name of a .pipe file, a path or a word of the command line may hold any
 * byte but 0. Whatever it holds, it ends neither the string nor the comment nor
 * the element in which it stands, and a terminal does nothing but show it:
 *
 *                  C string   C comment   JSON     XML        CSV    terminal
 *     "            \"         "           \"       &#34;      ""     "
 *     \            \\         \134        \\       \          \      \
 *     ?            \?         \077        ?        ?          ?      ?
 *     *            *          \052        *        *          *      *
 *     < > & '      as it is   as it is    \u003c   &#60; ...  as it is
 *     new line     \012       \012        \u000a   U+FFFD     ?      ?
 *     a letter of
 *     UTF-8        octal      as it is everywhere else
 *     broken UTF-8 octal      octal       \ufffd   U+FFFD     ?      ?
 *
 * Two question marks may begin a trigraph, a backslash may end a line and so
 * join it to the next one, and a star may end a comment. A character that turns
 * the direction of the text behind it counts as one that is not seen. */
#include "escape.h"

#include <string.h>

/* ---- characters ---- */

static long code_of(const unsigned char *c, int bytes)
{
    long code = bytes == 1 ? c[0] : c[0] & (0x7f >> bytes);
    for (int i = 1; i < bytes; i++)
        code = code << 6 | (c[i] & 0x3f);
    return code;
}

/* Is it no control character, end of a line, mark of a direction, and does the
 * standard call it a character. */
static bool is_seen(long code)
{
    static const struct {
        long first, last;
    } hidden[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
                  {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
                  {0xd800, 0xdfff}, {0xfeff, 0xfeff}, {0xfffe, 0xffff}};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (code >= hidden[i].first && code <= hidden[i].last)
            return false;
    return code <= 0x10ffff;
}

int seen_bytes(const char *text, int left)
{
    static const long least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *c = (const unsigned char *)text;
    int bytes = c[0] < 0x80   ? 1
                : c[0] < 0xc2 ? 0
                : c[0] < 0xe0 ? 2
                : c[0] < 0xf0 ? 3
                : c[0] < 0xf5 ? 4
                              : 0;
    if (bytes > left)
        return 0;
    for (int i = 1; i < bytes; i++)
        if (c[i] >> 6 != 2)
            return 0;
    long code = code_of(c, bytes ? bytes : 1);
    return bytes && code >= least[bytes] && is_seen(code) ? bytes : 0;
}

/* ---- one function for each language ---- */

enum { LONGEST = 8 };  // what stands for one byte: "&#65533;"

/* Writes what stands for the character at `at`, which has so many bytes; 0: one
 * byte that is not seen. Returns its length. */
typedef int (*Spelling)(char *to, const char *at, int bytes);

static const char *spell(Arena *arena, const char *text, const char *quote,
                         Spelling spelling)
{
    size_t room = LONGEST * strlen(text) + 2 * strlen(quote) + 1;
    char *made = arena_take(arena, room), *to = stpcpy(made, quote);
    for (int bytes; *text; text += bytes ? bytes : 1) {
        bytes = seen_bytes(text, 4);
        to += spelling(to, text, bytes);
    }
    strcpy(to, quote);
    return made;
}

static int as_it_is(char *to, const char *at, int bytes)
{
    memcpy(to, at, (size_t)bytes);
    return bytes;
}

static int octal(char *to, const char *at, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to += sprintf(to, "\\%03o", (unsigned)(unsigned char)at[i]);
    return 4 * bytes;
}

static int in_c_string(char *to, const char *at, int bytes)
{
    if (bytes != 1)
        return octal(to, at, bytes ? bytes : 1);
    return strchr("\"\\?", *at) ? sprintf(to, "\\%c", *at)
                                : as_it_is(to, at, bytes);
}

static int in_c_comment(char *to, const char *at, int bytes)
{
    return bytes && !strchr("*\\?", *at) ? as_it_is(to, at, bytes)
                                         : octal(to, at, 1);
}

static int in_json(char *to, const char *at, int bytes)
{
    unsigned c = (unsigned char)*at;
    if (bytes == 0)
        return sprintf(to, "\\u%04x", c < 128 ? c : 0xfffd);
    if (*at == '<')
        return sprintf(to, "\\u%04x", c);
    return strchr("\"\\", *at) ? sprintf(to, "\\%c", *at)
                               : as_it_is(to, at, bytes);
}

static int in_xml(char *to, const char *at, int bytes)
{
    if (bytes == 0)
        return sprintf(to, "&#%d;", 0xfffd);
    return strchr("<>&\"'", *at) ? sprintf(to, "&#%d;", *at)
                                 : as_it_is(to, at, bytes);
}

static int on_terminal(char *to, const char *at, int bytes)
{
    *to = *at == '\t' ? ' ' : '?';
    return bytes ? as_it_is(to, at, bytes) : 1;
}

static int in_csv_quotes(char *to, const char *at, int bytes)
{
    return *at == '"' ? sprintf(to, "\"\"") : on_terminal(to, at, bytes);
}

const char *c_string(Arena *arena, const char *text)
{
    return spell(arena, text, "\"", in_c_string);
}

const char *c_comment(Arena *arena, const char *text)
{
    return spell(arena, text, "", in_c_comment);
}

const char *json_string(Arena *arena, const char *text)
{
    return spell(arena, text, "\"", in_json);
}

const char *xml_text(Arena *arena, const char *text)
{
    return spell(arena, text, "", in_xml);
}

const char *csv_cell(Arena *arena, const char *text)
{
    return strpbrk(text, ",\"") ? spell(arena, text, "\"", in_csv_quotes)
                                : shown_text(arena, text);
}

const char *shown_text(Arena *arena, const char *text)
{
    return spell(arena, text, "", on_terminal);
}
