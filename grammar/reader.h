/* reader.h: what the lexer and the parser share while they read one source. */
#ifndef READER_H
#define READER_H

#include "compile.h"

typedef struct Reader {
    Program *program;
    int source;                 // index in Program.sources
    int start;                  // first token: START_FILE or START_DEFINE
    int at;                     // byte offset
    int depth;                  // open ( and [
    bool continued;             // the last token asks for more: no new line here
    bool ended;
    Node *tree;
} Reader;

typedef struct NumberToken {
    double value;
    char unit;                  // 0 or 's'
} NumberToken;

int read_number(Reader *reader, const char *text, NumberToken *number, const Span *at);
void stray_bytes(Reader *reader, const char *text, int length, Span at);
void report_syntax(Reader *reader, Span at, const char *unexpected, const char *const *expected, int count);

#endif
