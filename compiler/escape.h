/* escape.h: a user's text inside generated text: one function for each language
 * that pipec writes. */
#ifndef ESCAPE_H
#define ESCAPE_H

#include "compile.h"

/* All take any bytes, and return text in the arena that ends where it is meant
 * to end. */
const char *c_string(Arena *arena, const char *text);       // with its quotes, for C and C++: the same bytes
const char *c_comment(Arena *arena, const char *text);      // for a comment of either kind
const char *json_string(Arena *arena, const char *text);    // with its quotes; inside <script> as well
const char *xml_text(Arena *arena, const char *text);       // for an element or an attribute, of HTML too
const char *csv_cell(Arena *arena, const char *text);       // with quotes where it needs them
const char *shown_text(Arena *arena, const char *text);     // for a terminal: of one line
/* Bytes of the character at `text`, of which `left` are there, if a terminal
 * shows it where it stands; 0: it does not, or this is no UTF-8. */
int seen_bytes(const char *text, int left);

#endif
