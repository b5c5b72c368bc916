/* exchange.h: what the files share that read an order from a file.
 *
 *     csv.c               text -> cells, and plans -> text
 *     exchange.c          cells -> order
 *     exchange_size.c     is it a file for this pipeline
 *     exchange_messages.c its messages, waits, reductions and shards */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "csv.h"

typedef enum {
    SLOT_F,
    SLOT_BACKWARD,
    SLOT_W,
    SLOT_SEND_F,
    SLOT_RECV_F,
    SLOT_SEND_B,
    SLOT_RECV_B,
    SLOT_WAIT_F,
    SLOT_WAIT_B,
    SLOTS
} Slot;

/* Where cells are: first bytes + 1, 0: there is none. */
typedef struct Stage {
    int shard;                  // the latest UNSHARD or RESHARD
    bool whole;                 // it was UNSHARD
    int reduce, wait;           // REDUCE_GRAD, WAIT_REDUCE_GRAD
} Stage;

typedef struct Import {
    Program *p;
    int row_count, stages, micros;      // of the file
    int seen[CSV_KINDS];        // first cell of the kind
    bool old;                   // the dialect in which B is I
    int overlaps;               // cells
    int *owner;                 // [stage] rank + 1
    int *owner_cell;            // [stage] where the cell begins that said so
    int *slot[SLOTS];           // [micro * stages + stage] cell
    Stage *stage;               // [stage]
    bool *there;                // [row][most] or [most]: is the number in the file
    int most;
    List *rows;                 // [rank] the row with its messages; NULL: the file has none
} Import;

Slot slot_of(int kind);
Span cell_span(Cell cell);
/* They return false. */
bool wrong_cell(Import *x, Cell cell, const char *why);     // after its text
bool second_time(Import *x, Cell cell, int before);         // where the first one begins

bool fits_pipeline(Import *x);  // exchange_size.c

/* exchange_messages.c */
bool has_messages(const Import *x);
bool take_stage_word(Import *x, Cell cell, Found found);    // UNSHARD RESHARD REDUCE_GRAD WAIT_REDUCE_GRAD
bool stage_is_there(Import *x, Cell cell, Found found);     // its parameters and gradients, for this compute
bool messages_bind(Import *x);                              // they are sound: -> p->rows

/* Where the file of `schedule from` lies. A path in the .pipe file is relative
 * to it, one from -D to where the user stands. */
const char *schedule_file(Program *p);

#endif
