/* exchange.h: what the files share that read an order from a file.
 *
 *     exchange.c         text -> cells -> order; messages of the file
 *     exchange_size.c    is it a file for this pipeline */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "compile.h"

enum { FULL = ACTION_KIND_COUNT, SHARD, GRADIENTS, KINDS };  // after ActionKind

typedef struct Cell {
    int rank, number;  // number: from 1
    const char *text;  // without spaces around it
    int length;
} Cell;

typedef struct Found {  // one action of a cell
    int kind, stage, micro;
} Found;

typedef enum {
    SLOT_F,
    SLOT_BACKWARD,
    SLOT_W,
    SLOT_SEND_F,
    SLOT_RECV_F,
    SLOT_SEND_B,
    SLOT_RECV_B,
    SLOTS
} Slot;

typedef struct Import {
    Program *p;
    const char *name;  // of the file, as it is printed
    const char *text;
    size_t length;
    int rows, stages, micros;  // of the file
    bool seen[KINDS];
    bool old;          // the dialect in which B is I
    int overlaps;      // cells
    int *owner;        // [stage] rank + 1
    int *owner_cell;   // [stage] number of the cell that said so
    int *slot[SLOTS];  // [micro * stages + stage] number of the cell, or 0
    bool *there;       // [row][most] or [most]: is the number in the file
    int most;
    List *whole;        // [rank] the row with its messages; NULL: the file has none
    int **whole_cells;  // [rank][entry]
} Import;

/* What is done with each action of the file; false stops the reading. */
typedef bool (*Use)(Import *x, Cell cell, Found found);

bool read_rows(Import *x, Use use);  // all cells, row by row
/* Every error about a place of the file: a cell of a row, or the row when the
 * number is 0. They return false. */
bool wrong_at(Import *x, int rank, int number, const char *why);
bool wrong_cell(Import *x, Cell cell, const char *why);  // after its text

bool fits_pipeline(Import *x);  // exchange_size.c
/* Where the file of `schedule from` lies. A path in the .pipe file is relative
 * to it, one from -D to where the user stands. */
const char *schedule_file(Program *p);

#endif
