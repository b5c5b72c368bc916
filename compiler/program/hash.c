/* hash.c: what is compared where two things have to be the same.
 *
 * A model's hash is of what its parameters mean: their names and shapes, which
 * of them are one, the ops between them, and what the optimizer keeps of each.
 * The numbers of stages, micro-batches and rows, the schedule, the rate and the
 * data are none of it: a save is of the model alone. */
#include "hash.h"

#include <string.h>

void hash_bytes(Hash *hash, const void *bytes, size_t count)
{
    const unsigned char *byte = bytes;
    uint64_t value = hash->value;
    for (size_t i = 0; i < count; i++)
        value = (value ^ byte[i]) * 1099511628211u;
    hash->value = value;
}

void hash_text(Hash *hash, const char *text)
{
    hash_bytes(hash, text, strlen(text) + 1);
}

void hash_number(Hash *hash, long number)
{
    int64_t value = number;
    hash_bytes(hash, &value, sizeof value);
}

void hash_file(Hash *hash, const char *path)
{
    char bytes[1 << 16];
    FILE *in = fopen(path, "rbe");
    for (size_t got; in && (got = fread(bytes, 1, sizeof bytes, in)) > 0;)
        hash_bytes(hash, bytes, got);
    if (in)
        fclose(in);
}

static ssize_t hash_write(void *hash, const char *bytes, size_t count)
{
    hash_bytes(hash, bytes, count);
    return (ssize_t)count;
}

FILE *hash_stream(Hash *hash)
{
    return fopencookie(hash, "w", (cookie_io_functions_t){.write = hash_write});
}

const char *hash_digits(Arena *arena, const Hash *hash)
{
    return text_format(arena, "%016llx", (unsigned long long)hash->value);
}

/* ---- a model ---- */

static void hash_parameters(const Program *p, Hash *hash)
{
    for (int i = 0; i < p->parameter_count; i++) {
        const Parameter *q = &p->parameters[i];
        if (q->copy)
            continue;
        hash_text(hash, q->name);
        hash_number(hash, q->rows);
        hash_number(hash, q->columns);
        hash_number(hash, q->tied);
    }
}

/* The copy of a twin stands behind the original, which ends at the first loss. */
static void hash_ops(const Program *p, Hash *hash)
{
    for (int i = 0; i < p->op_count; i++) {
        const Op *op = &p->ops[i];
        hash_text(hash, op->kind->name);
        hash_number(hash, op->input[0]);
        hash_number(hash, op->input[1]);
        hash_number(hash, op->output);
        hash_number(hash, op->weight);
        hash_number(hash, op->bias);
        hash_number(hash, op->heads);
        hash_number(hash, op->causal);
        if (op->output < 0)
            return;
    }
}

const char *hash_model(Program *p)
{
    Hash hash = HASH_START;
    hash_parameters(p, &hash);
    hash_ops(p, &hash);
    hash_number(&hash, p->vocabulary);
    hash_number(&hash, p->set.optimizer);
    hash_number(&hash,
                p->set.optimizer == OPTIMIZER_SGD && p->set.momentum > 0);
    return hash_digits(p->arena, &hash);
}
