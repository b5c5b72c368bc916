/* memory.h: what the files of memory share. */
#ifndef MEMORY_H
#define MEMORY_H

#include "compile.h"

typedef struct Item {           // something to place: alive over [first, last]
    size_t floats, offset;
    int first, last;
    int id;
} Item;

size_t pack(Arena *arena, Item *items, int count);          // fills the offsets, returns the height
void place_blocks(Program *p);                              // offsets of all blocks, then WAITs

#endif
