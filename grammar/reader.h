/* reader.h: what the lexer and the parser share while they read one source. */
#ifndef READER_H
#define READER_H

#include "compile.h"

enum { MAX_NAME = 100, MAX_DEPTH = 1000 };      // bytes of a name; levels of an expression

typedef struct Reader {
    Program *program;
    int source;                 // index in Program.sources
    int start;                  // first token: START_FILE or START_DEFINE
    int at;                     // byte offset
    int depth;                  // open ( and [
    Span open, brace;           // the outermost of them, end 0: none; the last {
    bool continued;             // the last token asks for more: no new line here
    bool ended;
    bool reported;              // this line is wrong: one error is enough
    Node *tree;
} Reader;

typedef struct NumberToken {
    double value;
    char unit;                  // 0 or 's'
} NumberToken;

int read_number(Reader *reader, const char *text, NumberToken *number, const Span *at);
/* These report, once per line, and return the token YYerror: the line is
 * skipped. */
int stray_bytes(Reader *reader, const char *text, int length, Span at);
int long_name(Reader *reader, int length, Span at);
int open_text(Reader *reader, Span at);
void report_syntax(Reader *reader, Span at, const char *unexpected, const char **expected, int count);

#endif
