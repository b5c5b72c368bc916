/* layout.h: the words of Megatron's layouts, and a plan's stages as a text of
 * them. Reading is declared in check.h. */
#ifndef LAYOUT_H
#define LAYOUT_H

#include "compile.h"

typedef struct LayoutWord {
    char letter;       // in a text: "Et*2|tL"
    const char *word;  // in a list: [["embedding", "decoder"]], and in Megatron's own tables
    const char *what;
} LayoutWord;

extern const LayoutWord layout_words[LAYOUT_WORDS];

/* What read_layout makes the same stages of. */
const char *layout_text(Arena *arena, const LayoutStage *stages, int count);

#endif
