/* hash.h: FNV-1a, 64 bits: of a job (job.c) and of a model (hash.c). */
#ifndef HASH_H
#define HASH_H

#include "compile.h"

typedef struct Hash {
    uint64_t value;
} Hash;

#define HASH_START {14695981039346656037u}

void hash_bytes(Hash *hash, const void *bytes, size_t count);
void hash_text(Hash *hash, const char *text);       // with its end, so that words do not run together
void hash_number(Hash *hash, long number);
void hash_file(Hash *hash, const char *path);
FILE *hash_stream(Hash *hash);                      // of all that is written there; or NULL
const char *hash_digits(Arena *arena, const Hash *hash);

/* What a save must agree with: parameters with their names and shapes, ops, and
 * what the optimizer keeps. Not how the model is cut, scheduled and fed. */
const char *hash_model(Program *p);

#endif
