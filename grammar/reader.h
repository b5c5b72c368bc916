/* reader.h: what the lexer and the parser share while they read one source. */
#ifndef READER_H
#define READER_H

#include "compile.h"

enum {
    MAX_NAME = 100,             // bytes of a name
    MAX_DEPTH = 1000,           // levels of an expression
    MAX_BRACES = 64             // whose places are known
};

typedef struct Reader {
    Program *program;
    int source;                 // index in Program.sources
    int start;                  // first token: START_FILE or START_DEFINE
    int at;                     // byte offset
    int depth;                  // open ( and [
    Span open;                  // the outermost of them, end 0: none
    int braces;                 // open {
    Span brace[MAX_BRACES];     // and their places, the outermost first
    bool schedule;              // the word has begun an item: the next { opens a schedule block
    bool continued;             // the last token asks for more: no new line here
    bool ended;
    bool reported;              // this line is wrong: one error is enough
    Tree *tree;
} Reader;

typedef struct NumberToken {
    double value;
    char unit;                  // 0 or 's'
} NumberToken;

bool begins_item(const Reader *reader, Span at);
int read_number(Reader *reader, const char *text, NumberToken *number, const Span *at);
/* These report, once per line, and return the token YYerror: the line is
 * skipped. */
int stray_bytes(Reader *reader, const char *text, int length, Span at);
int long_name(Reader *reader, int length, Span at);
int open_text(Reader *reader, Span at);
void report_syntax(Reader *reader, Span at, const char *unexpected, const char **expected, int count);

#endif
