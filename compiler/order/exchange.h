/* exchange.h: what the files share that read an order from a file.
 *
 *     csv.c               text -> cells, and plans -> text
 *     exchange.c          cells -> order
 *     exchange_size.c     is it a file for this pipeline
 *     import.c            what of the pipeline follows from it
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

struct Import {
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
    Slot counted;
    List *rows;                 // [rank] the row with its messages; NULL: the file has none
    int last_down, first_up;    // F's micro-batches: highest of stage 0, lowest of stage P
};

Slot slot_of(int kind);
/* They return false. */
bool wrong_cell(Import *x, Cell cell, const char *why);     // after its text
bool second_time(Import *x, Cell cell, int before);         // where the first one begins

/* The file of `schedule from`, read for the first time: its counts are there, and
 * each cell is an action. NULL: an error is reported. */
Import *open_import(Program *p);

/* exchange_size.c */
bool fits_pipeline(Import *x);
bool fits_rows(Import *x);
bool read_again(Import *x, CsvUse use);
int stages_meant(Import *x);                                // what is there without a gap
const int *micros_of_rows(Import *x, Slot counted);
int micros_meant(const Import *x, const int *counts);       // of these

/* exchange_messages.c */
bool has_messages(const Import *x);
bool take_stage_word(Import *x, Cell cell, Found found);    // UNSHARD RESHARD REDUCE_GRAD WAIT_REDUCE_GRAD
bool stage_is_there(Import *x, Cell cell, Found found);     // its parameters and gradients, for this compute
bool messages_bind(Import *x);                              // they are sound: -> p->rows

/* Where the file of `schedule from` lies. A path in the .pipe file is relative
 * to it, one from -D to where the user stands. */
const char *schedule_file(Program *p);

#endif
