/* rank_program.h: what lower hands to emit: one program for each rank, as calls
 * with constant operands. */
#ifndef RANK_PROGRAM_H
#define RANK_PROGRAM_H

#include "compile.h"

typedef enum {
    ARG_AT,         // an address of the arena, by the name of its offset
    ARG_KEEP, ARG_HOLD, ARG_DHOLD,      // the same in a block of the chunk
    ARG_IDS,        // an address of the arena that holds token ids
    ARG_OFFSET,     // a named offset, handed to a chunk's function
    ARG_NUMBER, ARG_REAL, ARG_NULL, ARG_TEXT, ARG_NAME, ARG_LINK,
    ARG_PARTS       // a list of addresses
} ArgKind;

typedef struct Arg {
    ArgKind kind;
    const char *name;
    double number;
} Arg;

typedef enum { COLUMN_TAKE, COLUMN_COMPUTE, COLUMN_GIVE } Column;

typedef struct Call {
    const char *function;
    Arg arg[12];
    int args;
    Column column;              // of a phase's line
    int action;                 // of a phase's line: index in the rank's list
    const char *comment;        // printed above, when it differs from the call before
    int line;                   // of the .pipe file; 0: none
} Call;

typedef struct Constant {       // a named offset, in floats; or, without a name, a heading
    const char *name, *comment;
    size_t value;
} Constant;

typedef enum { BODY_FORWARD, BODY_BACKWARD, BODY_INPUT, BODY_WEIGHT, BODY_WARMUP, BODY_STEADY, BODY_COOLDOWN, BODY_REDUCE, BODY_UPDATE,
               BODY_INITIALISE, BODY_SAVE, BODY_REMEMBER, BODY_UNDO } BodyKind;
extern const char *const body_words[BODY_UNDO + 1];         // forward backward input ...

typedef struct Body {           // one function of the rank program
    BodyKind kind;
    int chunk;
    Call *calls;
    int call_count;
} Body;

typedef struct Link {
    const char *name;           // "send_f1"
    const char *action;         // "1SEND_F"
    int peer;
    size_t floats;
} Link;

enum { EMULATED_FLOATS = 16 };  // of a message; a rank's arena has one to send from and one to receive into
double emulated_ns(const Program *p, double time);          // of the plan, as the emulation sleeps it

struct RankProgram {
    Constant *constants;
    int constant_count, block_constants;        // the first ones are the blocks of a micro-batch
    Link *links;
    int link_count;
    Body *bodies;
    int body_count;
    int depth;                  // most messages on one queue
};

char *identifier(Program *p, const char *name);             // "h.3.q" -> "h_3_q"
/* Does a call take this parameter of its chunk's function: one of block_words,
 * or micro. */
bool call_uses(const Call *call, const char *parameter);

#endif
