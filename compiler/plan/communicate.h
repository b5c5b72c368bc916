/* communicate.h: what the files of communicate share.
 *
 *     communicate.c       the pass; a queue for each direction, or messages of a file
 *     communicate_pair.c  one queue for both directions */
#ifndef COMMUNICATE_H
#define COMMUNICATE_H

#include "compile.h"

void open_lists(Program *p);
bool is_pair(const List *order, int entry);                         // do it and the next run as one
/* Before an entry of the order is added, and at its end: a phase begins with the
 * last one that does not lie behind its beginning. */
void mark_phases(List *list, const List *order, int entry);
void add_receive(Program *p, int rank, Action maker, int from);     // of what the maker sends
/* Entries [first, end) of the order, which run as one: TAKEs of what comes, they
 * themselves, SENDs of what goes. */
void add_computes(Program *p, int rank, int first, int end);
void add_collectives(Program *p);                                   // at the ends of the lists; finds ties

void queue_lists(Program *p);       // -> lists, whole
/* The same; false: computes wait for each other, and there are none. */
bool pair_lists(Program *p);

#endif
