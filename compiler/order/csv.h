/* csv.h: the format in which PyTorch's pipelining reads and writes schedules,
 * torch.distributed.pipelining.schedules, `_load_csv` and `_dump_csv`. */
#ifndef CSV_H
#define CSV_H

#include "compile.h"

/* Its words: kinds of actions, and behind them those that no list of ours has. */
enum {
    CSV_FULL = ACTION_KIND_COUNT,  // BW: the full backward of the old dialect
    CSV_UNSHARD,
    CSV_RESHARD,
    CSV_REDUCE,
    CSV_WAIT_REDUCE,
    CSV_KINDS
};

typedef struct Cell {  // of p->schedule_source
    int rank;          // its row, from 0
    int begin, end;    // bytes, without spaces and quotes around it
} Cell;

typedef struct Found {  // one action of a cell
    int kind;           // ActionKind or CSV_
    int stage, micro;   // micro: -1 where the word has none
} Found;

/* What is done with each action of the file; false stops the reading. */
typedef bool (*CsvUse)(void *context, Cell cell, Found found);

/* All cells of p->schedule_source, row by row; counts rows, and cells that hold
 * several actions. False: a cell is none, which is said, or `use` has stopped. */
bool csv_read(Program *p, CsvUse use, void *context, int *rows, int *overlaps);
bool csv_has_micro(int kind);
Span cell_span(Cell cell);
Span cell_at(const Program *p, int begin);                  // the cell that begins there
Span row_at(const Program *p, int rank);                    // the whole row
const char *cell_text(Program *p, Cell cell);               // for a terminal: `of its bytes`, cut where it is long
/* compute_only, or compute_comms: with SENDs, RECVs and what PyTorch's runtime
 * needs beside them. */
void csv_write(Program *p, FILE *out, bool comms);

#endif
