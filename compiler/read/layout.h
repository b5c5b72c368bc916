/* layout.h: what a layout is written with, for its reader (layout.c) and its
 * writer (show/layout_write.c). */
#ifndef LAYOUT_H
#define LAYOUT_H

#include "compile.h"

typedef struct LayoutWord {
    char letter;       // in a text: "Et*2|tL"
    const char *word;  // in a list: [["embedding", "decoder"]], and in Megatron's own tables
    const char *what;
} LayoutWord;

extern const LayoutWord layout_words[LAYOUT_WORDS];

#endif
