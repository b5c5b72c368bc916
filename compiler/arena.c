/* arena.c: all memory of one Program.
 *
 * Blocks are chained and never freed one by one: a compiler's data lives until
 * the program is written. A request larger than a block gets a block of its
 * own. The fuzzers make blocks of one byte, so that a sanitizer sees whatever gets
 * out of its place. */
#include "compile.h"

#include <stdlib.h>
#include <string.h>

typedef struct ArenaBlock ArenaBlock;
struct ArenaBlock {
    ArenaBlock *before;
    size_t used, size;  // bytes after this header
};

struct Arena {
    ArenaBlock *newest;
};

#ifndef BLOCK_BYTES
#define BLOCK_BYTES ((size_t)1 << 20)
#endif

enum { HEADER = (sizeof(ArenaBlock) + 15) / 16 * 16 };

Arena *arena_open(void)
{
    Arena *arena = calloc(1, sizeof *arena);
    if (!arena) {
        fputs("pipec: out of memory\n", stderr);
        exit(1);
    }
    return arena;
}

void arena_close(Arena *arena)
{
    for (ArenaBlock *block = arena->newest; block;) {
        ArenaBlock *before = block->before;
        free(block);
        block = before;
    }
    free(arena);
}

static ArenaBlock *new_block(Arena *arena, size_t bytes)
{
    size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    ArenaBlock *block = size < SIZE_MAX / 2 ? calloc(1, HEADER + size) : NULL;
    if (!block) {
        fprintf(stderr, "pipec: out of memory: %zu bytes asked for\n", bytes);
        exit(1);
    }
    block->size = size;
    block->before = arena->newest;
    return arena->newest = block;
}

void *arena_take(Arena *arena, size_t bytes)
{
    ArenaBlock *block = arena->newest;
    if (!block || bytes > block->size || block->used > block->size - bytes)
        block = new_block(arena, bytes);
    void *taken = (char *)block + HEADER + block->used;
    block->used += (bytes + 15) / 16 * 16;
    return taken;
}

/* The capacity is the power of two at or above `count`, so it only runs out
 * when count is one. */
void *array_grow(Arena *arena, void *items, int count, size_t size)
{
    if (count > 0 && (count & (count - 1)) != 0)
        return items;
    void *grown = arena_take(arena, (count ? (size_t)count * 2 : 1) * size);
    if (count)
        memcpy(grown, items, (size_t)count * size);
    return grown;
}

char *text_copy(Arena *arena, const char *from, size_t length)
{
    char *copy = arena_take(arena, length + 1);
    memcpy(copy, from, length);
    return copy;
}

char *text_format_list(Arena *arena, const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    char *text = arena_take(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *text_format(Arena *arena, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = text_format_list(arena, format, list);
    va_end(list);
    return text;
}
