/* calls.h: every function of the runtime that a generated program may call: one
 * row each, with the type of its result and the kind of every parameter.
 *
 * `lower` checks its calls against these rows; whoever prints a program in
 * another language takes the types, whoever reads one back takes the roles. That
 * the rows are the prototypes of runtime/pp.h is for tests/lower/calls.sh to
 * say: the compiler itself knows the runtime only as text. */
#ifndef CALLS_H
#define CALLS_H

#include "rank_program.h"

typedef enum {
    ROLE_NONE,
    ROLE_READ, ROLE_WRITE, ROLE_UPDATE,         // an offset: read, written, read and written
    ROLE_SCRATCH,               // an offset: written, and read only by the same call
    ROLE_PEER,                  // says which other ranks take part
    ROLE_MICRO,                 // micro-batch
    ROLE_ORDINAL,               // of a message in its queue, from 1
    ROLE_COUNT,                 // floats at each of the offsets
    ROLE_SCALAR,                // what the result depends on beside that
    ROLE_TEXT,
    ROLE_RECORD                 // settings of the job or of the optimizer
} Role;

/* Kinds of parameters: type in C, role, kinds of arguments that it takes. */
#define TAKES(kind) (1u << ARG_##kind)
#define ADDRESS (TAKES(AT) | TAKES(KEEP) | TAKES(HOLD) | TAKES(DHOLD) | TAKES(LOSS))
#define WHOLE (TAKES(NUMBER) | TAKES(TIMES))
#define PARAMETERS(X) \
    X(NOTHING,     "void",            ROLE_NONE,    0) \
    X(READS,       "const float *",   ROLE_READ,    ADDRESS) \
    X(MAY_READ,    "const float *",   ROLE_READ,    ADDRESS | TAKES(NULL)) \
    X(READS_IDS,   "const int32_t *", ROLE_READ,    TAKES(IDS)) \
    X(WRITES,      "float *",         ROLE_WRITE,   ADDRESS) \
    X(WRITES_IDS,  "int32_t *",       ROLE_WRITE,   TAKES(IDS)) \
    X(UPDATES,     "float *",         ROLE_UPDATE,  ADDRESS) \
    X(MAY_UPDATE,  "float *",         ROLE_UPDATE,  ADDRESS | TAKES(NULL)) \
    X(UPDATES_ALL, "float *const *",  ROLE_UPDATE,  TAKES(PARTS)) \
    X(SCRATCH,     "float *",         ROLE_SCRATCH, ADDRESS) \
    X(LINK,        "const PpLink *",  ROLE_PEER,    TAKES(LINK)) \
    X(TIE,         "const PpTie *",   ROLE_PEER,    TAKES(TIE)) \
    X(MICRO,       "int",             ROLE_MICRO,   TAKES(NUMBER) | TAKES(MICRO)) \
    X(ORDINAL,     "int",             ROLE_ORDINAL, TAKES(NUMBER)) \
    X(COUNT,       "size_t",          ROLE_COUNT,   WHOLE) \
    X(SIZE,        "int",             ROLE_SCALAR,  WHOLE) \
    X(LENGTH,      "size_t",          ROLE_SCALAR,  WHOLE) \
    X(FACTOR,      "float",           ROLE_SCALAR,  TAKES(REAL)) \
    X(NANOSECONDS, "int64_t",         ROLE_SCALAR,  TAKES(NUMBER)) \
    X(MACHINE,     "int",             ROLE_SCALAR,  TAKES(NUMBER)) \
    X(TEXT,        "const char *",    ROLE_TEXT,    TAKES(TEXT)) \
    X(SGD,         "const PpSgd *",   ROLE_RECORD,  TAKES(RECORD)) \
    X(ADAMW,       "const PpAdamw *", ROLE_RECORD,  TAKES(RECORD)) \
    X(JOB,         "const PpJob *",   ROLE_RECORD,  TAKES(RECORD)) \
    X(WORDS,       "int",             ROLE_SCALAR,  TAKES(NAME)) \
    X(WORD_LIST,   "char **",         ROLE_SCALAR,  TAKES(NAME))

#define CALLS(X) \
    X("float *", pp_start, JOB, WORDS, WORD_LIST) \
    X("int", pp_next_step, NOTHING) \
    X("int", pp_capture, NOTHING) \
    X("void", pp_launch, NOTHING) \
    X("int", pp_step, NOTHING) \
    X("int", pp_finish, NOTHING) \
    \
    X("void", pp_begin, TEXT, MICRO) \
    X("void", pp_end, NOTHING) \
    X("void", pp_send, LINK, MICRO, READS) \
    X("void", pp_recv, LINK, MICRO, WRITES) \
    X("void", pp_take, LINK, MICRO, ORDINAL) \
    X("void", pp_wait, LINK, MICRO, ORDINAL) \
    X("void", pp_emulate, NANOSECONDS) \
    X("void", pp_sleep, NANOSECONDS) \
    X("void", pp_send_over, LINK, MICRO, READS, NANOSECONDS, NANOSECONDS, MACHINE) \
    \
    X("void", pp_reduce, TIE, UPDATES_ALL) \
    X("void", pp_square, TEXT, SIZE, READS, COUNT) \
    X("float", pp_clip, FACTOR) \
    X("float", pp_defer, FACTOR) \
    X("int", pp_settle, FACTOR) \
    X("void", pp_restart, NOTHING) \
    X("void", pp_copy, WRITES, READS, COUNT) \
    X("void", pp_loss, READS, SIZE) \
    X("void", pp_check_loss, TEXT, READS, MICRO) \
    X("float", pp_scale, NOTHING) \
    X("void", pp_look, TEXT, READS, COUNT) \
    X("int32_t *", pp_ids, UPDATES) \
    \
    X("void", pp_tokens, WRITES_IDS, MICRO) \
    X("void", pp_token_targets, WRITES_IDS, MICRO) \
    X("void", pp_numbers, WRITES, MICRO) \
    X("void", pp_number_targets, WRITES, MICRO) \
    \
    X("void", pp_normal, WRITES, COUNT, TEXT, FACTOR) \
    X("void", pp_fill, WRITES, COUNT, FACTOR) \
    X("void", pp_narrow, WRITES, READS, COUNT) \
    X("void", pp_save, TEXT, READS, LENGTH, LENGTH) \
    X("float", pp_rate, FACTOR, SIZE, FACTOR) \
    X("void", pp_sgd, UPDATES, READS, MAY_UPDATE, COUNT, SGD, FACTOR) \
    X("void", pp_adamw, UPDATES, READS, UPDATES, UPDATES, COUNT, ADAMW, FACTOR) \
    \
    X("void", pp_zero, WRITES, COUNT) \
    X("void", pp_sum, WRITES, READS, MAY_READ, COUNT) \
    X("void", pp_embedding_forward, WRITES, READS_IDS, READS, SIZE, SIZE) \
    X("void", pp_embedding_weight, UPDATES, READS_IDS, READS, SIZE, SIZE) \
    X("void", pp_position_forward, WRITES, READS, READS, SIZE, SIZE, SIZE) \
    X("void", pp_position_weight, UPDATES, READS, SIZE, SIZE, SIZE) \
    X("void", pp_linear_forward, WRITES, READS, READS, MAY_READ, SIZE, SIZE, SIZE) \
    X("void", pp_linear_input, WRITES, READS, READS, MAY_READ, SIZE, SIZE, SIZE) \
    X("void", pp_linear_weight, UPDATES, MAY_UPDATE, READS, READS, SIZE, SIZE, SIZE) \
    X("void", pp_layernorm_forward, WRITES, WRITES, READS, READS, READS, SIZE, SIZE) \
    X("void", pp_layernorm_input, WRITES, READS, READS, READS, READS, MAY_READ, SIZE, SIZE) \
    X("void", pp_layernorm_weight, UPDATES, UPDATES, READS, READS, READS, SIZE, SIZE) \
    X("void", pp_gelu_forward, WRITES, READS, COUNT) \
    X("void", pp_gelu_input, WRITES, READS, READS, MAY_READ, COUNT) \
    X("void", pp_relu_forward, WRITES, READS, COUNT) \
    X("void", pp_relu_input, WRITES, READS, READS, MAY_READ, COUNT) \
    X("void", pp_add_forward, WRITES, READS, READS, COUNT) \
    X("void", pp_attention_forward, WRITES, WRITES, READS, SCRATCH, SIZE, SIZE, SIZE, SIZE, SIZE) \
    X("void", pp_attention_input, WRITES, READS, READS, READS, READS, SCRATCH, MAY_READ, SIZE, SIZE, SIZE, SIZE, SIZE) \
    X("void", pp_cross_entropy_forward, WRITES, WRITES, READS, READS_IDS, SIZE, SIZE) \
    X("void", pp_cross_entropy_input, WRITES, READS, READS, READS_IDS, SIZE, SIZE, FACTOR) \
    X("void", pp_mse_forward, WRITES, READS, READS, SIZE, SIZE) \
    X("void", pp_mse_input, WRITES, READS, READS, SIZE, SIZE, FACTOR)

typedef enum {
#define AS_ENUM(name, type, role, takes) name,
    PARAMETERS(AS_ENUM)
#undef AS_ENUM
    PARAMETER_KIND_COUNT
} ParameterKind;

typedef struct ParameterRow {
    const char *type;
    Role role;
    unsigned takes;             // a bit for each ArgKind
} ParameterRow;

typedef struct CallRow {
    const char *result, *function;
    ParameterKind parameters[MOST_ARGS + 1];    // up to NOTHING
} CallRow;

extern const ParameterRow parameter_rows[PARAMETER_KIND_COUNT];
extern const CallRow call_rows[];
extern const int call_row_count;
/* All calls of the program, against the rows and its own functions. One that
 * does not fit is a mistake of pipec, which stops. */
void check_calls(const RankProgram *program);

#endif
