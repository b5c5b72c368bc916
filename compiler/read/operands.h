/* operands.h: what the words of an op's entries stand for: one row each. */
#ifndef OPERANDS_H
#define OPERANDS_H

#include "compile.h"

typedef enum {
    OPERAND_TENSOR,
    OPERAND_TARGETS,            // the tensor that the chunk of the loss has
    OPERAND_PARAMETER,
    OPERAND_GRADIENT,           // of a parameter
    OPERAND_LOSS,               // of the micro-batch
    OPERAND_SCRATCH,
    OPERAND_NUMBER,             // a whole constant
    OPERAND_COUNT,              // the same, times the positions of a micro-batch
    OPERAND_REAL
} OperandKind;

typedef struct Operand {
    const char *word;
    OperandKind kind;
    int moved;                  // how often its bytes are read or written
    /* Which tensor, or which parameter; -1: the op has none. `g` is NULL in a
     * forward. */
    int (*index)(const Program *p, const Op *op, const Gradient *g);
    double (*value)(const Program *p, const Op *op);
} Operand;

/* The row of the next word of an entry, which `words` is moved behind; NULL at
 * the end. A word without a row is a mistake in the op table: it stops pipec. */
const Operand *next_operand(const char **words);

#endif
