/* passes.c: the passes in order: text goes in at the top, rank programs come
 * out. This list is the architecture. */
#include "passes.h"

const Pass passes[PASSES] = {
    {"parse", parse, "text -> tree"},
    {"check", check,
     "tree -> names and shapes, or an error that says what to type"},
    {"import", import,
     "the file of an order -> ranks, chunks and where they lie"},
    {"graph", graph,
     "forward ops -> their gradient, split in input and weights"},
    {"partition", partition, "layers -> chunks on ranks"},
    {"schedule", schedule, "chunks -> compute order per rank"},
    {"communicate", communicate, "order -> plus sends, receives, reductions"},
    {"prove", prove,
     "actions -> exactly once, matched, acyclic; times by longest path"},
    {"memory", memory,
     "tensors -> fixed offsets in one arena per rank; waits; proved once more"},
    {"lower", lower, "actions -> rank programs: calls with constant operands"},
};
