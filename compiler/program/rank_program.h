/* rank_program.h: what lower hands to emit: one program for each rank, as
 * records and calls with constant operands. Whoever prints it, in C or in
 * another language, decides nothing but the layout. */
#ifndef RANK_PROGRAM_H
#define RANK_PROGRAM_H

#include "compile.h"

typedef enum {
    ARG_AT,         // an address of the arena: the offset of that name, and `number` floats on
    ARG_KEEP, ARG_HOLD, ARG_DHOLD,      // the same in a block of the chunk
    ARG_LOSS,       // the same, and `micro` floats on
    ARG_IDS,        // an address of the arena that holds token ids
    ARG_ARENA,      // the arena itself
    ARG_OFFSET,     // a named offset, handed to a chunk's function
    ARG_MICRO,      // the micro-batch of a chunk's function
    ARG_NUMBER,     // whole; by its name, where it has one
    ARG_TIMES,      // the size of that name, `number` times
    ARG_REAL, ARG_DOUBLE, ARG_NULL, ARG_TEXT, ARG_NAME,
    ARG_LINK, ARG_TIE, ARG_RECORD,      // the record of that name
    ARG_PARTS       // a list of addresses, by their offsets
} ArgKind;

typedef struct Arg {
    ArgKind kind;
    const char *name;
    double number;
} Arg;

typedef enum { COLUMN_TAKE, COLUMN_COMPUTE, COLUMN_GIVE } Column;

typedef enum {
    FORM_CALL,
    FORM_ARENA,                 // its result is the arena
    FORM_WHILE, FORM_IF,        // while, if it returns 1: what follows, up to ...
    FORM_END,                   // ... this, which calls nothing
    FORM_RETURN,                // its result is that of the body
    FORM_RECORD                 // defines `record`, and calls nothing itself
} Form;

enum { MOST_ARGS = 12 };

typedef struct Record Record;

typedef struct Call {
    Form form;
    const char *function;
    Arg arg[MOST_ARGS];
    int args;
    const char **parts;         // of ARG_PARTS: named offsets
    int part_count;
    const Record *record;
    Column column;              // of a phase's line
    const char *comment;        // of a compute in a phase: its action and when the plan begins it, "2F1 @3"
    int line;                   // of the .pipe file; 0: none
} Call;

typedef struct Field {
    const char *name, *comment;
    Arg value;
    const Call *call;           // its result is the value; or NULL
    const Record *record;       // the value is a record; or NULL
} Field;

struct Record {                 // constants under one name
    const char *type, *name;    // "PpJob", "job"
    Field *fields;
    int field_count;
};

typedef struct Constant {       // a named offset, in floats; or, without a name, a heading
    const char *name, *comment;
    size_t value;
} Constant;

typedef enum { BODY_FORWARD, BODY_BACKWARD, BODY_INPUT, BODY_WEIGHT, BODY_WARMUP, BODY_STEADY, BODY_COOLDOWN, BODY_REDUCE, BODY_UPDATE,
               BODY_INITIALISE, BODY_SAVE, BODY_REMEMBER, BODY_UNDO, BODY_MAIN } BodyKind;
extern const char *const body_words[BODY_MAIN + 1];         // forward backward input ...

/* One function of the rank program; without calls it is not there. That of a
 * chunk begins with pp_begin and ends with pp_end. */
typedef struct Body {
    BodyKind kind;
    int chunk;                  // -1: of none
    const char *name;           // "forward_2", "warmup"
    bool takes[MICRO_KINDS];    // that of a chunk: the offsets of blocks that it is called with
    Call *calls;
    int call_count;
} Body;

typedef struct Link {
    const char *name;           // "send_f1"
    const char *action;         // "1SEND_F"
    int peer;
    size_t floats;
    bool sends;                 // to the peer; else it receives from it
} Link;

typedef struct Route {          // an ordered pair of ranks between which messages travel
    int from, to;
} Route;

typedef struct TieOwners {
    const char *name, *ranks_name;      // "tie_wte_weight", "owners_wte_weight"
    const char *parameter;      // "wte.weight"
    int *ranks, uses;           // [uses] in layer order
    size_t floats;
} TieOwners;

enum { EMULATED_FLOATS = 16 };  // of a message; a rank's arena has one to send from and one to receive into
double emulated_ns(const Program *p, double time);          // of the plan, as the emulation sleeps it

struct RankProgram {
    Constant *sizes;            // of the model and the step: numbers that have a name
    int size_count;
    Constant *constants;
    int constant_count, block_constants;        // the first ones are the blocks of a micro-batch
    Link *links;
    int link_count;
    Route *routes;              // cuda: of the whole job, in one order for all ranks
    int route_count;
    TieOwners *ties;            // of this rank
    int tie_count;
    Record job;
    Body *bodies;
    int body_count;
    int depth;                  // most messages on one queue
};

char *identifier(Program *p, const char *name);             // "h.3.q" -> "h_3_q"
/* Does a call take this parameter of its chunk's function: one of block_words,
 * or micro. */
bool call_uses(const Call *call, const char *parameter);
bool uses_arena(const Call *call);
bool is_address(ArgKind kind);                               // of the arena, or in it

#endif
