/* communicate.h: what the files of communicate share.
 *
 *     communicate.c       the pass; a queue for each direction, or messages of a file
 *     communicate_pair.c  one queue for both directions */
#ifndef COMMUNICATE_H
#define COMMUNICATE_H

#include "compile.h"

void open_lists(Program *p);
void add_take(Program *p, int rank, Action a);                      // of what comes, if anything does
void add_receive(Program *p, int rank, Action maker, int from);     // of what the maker sends
void add_send(Program *p, int rank, Action maker);                  // if anything goes
void add_collectives(Program *p);                                   // at the ends of the lists; finds ties

void queue_lists(Program *p);       // -> lists, whole
/* The same; false: computes wait for each other, and there are none. */
bool pair_lists(Program *p);

#endif
