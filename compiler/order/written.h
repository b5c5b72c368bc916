/* written.h: orders and splits that a person has written, in a schedule block or
 * in a file, and where each of their entries stands. */
#ifndef WRITTEN_H
#define WRITTEN_H

#include "compile.h"

/* A schedule without `order`, and with the formula of what it competes with. */
Schedule *written_schedule(Program *p, const char *name, const char *summary);
void find_phases(List *order);                              // steady and cooldown of an order without marks

/* Where a person has written an entry of `order`, or of `lists`. */
typedef struct Origin {
    Span at;                    // in the .pipe file; source -1: it is pipec's own
    const char *text;           // " (x.csv, line 2, cell 4)", " (mine, line 14, m = 3)" or ""
} Origin;
Origin origin_of(Program *p, int rank, int entry);
Origin origin_in_lists(Program *p, int rank, int index);    // of a SEND: that of its compute

/* ---- schedule_block.c: the order that a schedule block writes ---- */

bool run_block(Program *p);                                 // set.schedule->block -> order
Origin block_origin(Program *p, int rank, int entry);

/* ---- exchange.c, exchange_layout.c: orders and splits of files ---- */

const Schedule *schedule_from(Program *p, const char *path);        // import_order makes its order
bool import_order(Program *p);                              // set.schedule_path -> order, cells
Origin imported_origin(Program *p, int rank, int entry);
void read_layout(Program *p, const Node *value);            // text -> set.sizes, counting `t` alone
bool fit_layout(Program *p);                                // adds the layers of `E` and `L` to them

#endif
