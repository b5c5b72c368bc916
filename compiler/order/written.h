/* written.h: orders that a person has written, in a schedule block or in a
 * file. */
#ifndef WRITTEN_H
#define WRITTEN_H

#include "compile.h"

void find_phases(List *order);                              // steady and cooldown of an order without marks
bool run_block(Program *p);                                 // set.schedule->block -> order, origin
bool import_order(Program *p);                              // set.schedule_path -> order, origin

#endif
