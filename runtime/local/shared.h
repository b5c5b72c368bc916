/* shared.h: the memory that the ranks of one machine share, for the transports
 * that use it: local/local.c and cuda/pinned.cu. control.h has the drawing. */
#ifndef PP_SHARED_H
#define PP_SHARED_H

#include "../job.h"

enum { USES = 4096 };  // most uses of one tied parameter

typedef struct Notice {
    uint64_t where, floats;  // in the region; length
    int64_t sent, taken;     // emulation: clock of the sender, of the receiver
} Notice;

typedef struct Wire {  // from one rank to another
    Counter sent, taken;
    Notice ring[];
} Wire;

typedef struct Shared {
    int fd;  // -1 when alone
    int rank, ranks, spins;
    char *region;       // all behind the records; the pointers below lead there
    double *squares;    // [2][parameters]; see norm.c
    Counter *meets;     // [from][to]: meetings with `to` that `from` has come to
    uint64_t *offsets;  // [rank][USES]: the gradients of the tie at hand
    char *wires;        // [from][to], of wire_bytes each
    size_t wire_bytes;
    size_t length;      // of the region
    uint32_t ring;   // messages; a power of two, so that it divides 2^32
    size_t *arenas;  // [ranks]: where they begin in the region
    size_t *events;  // [ranks]: the same of their events
    uint32_t *met;   // [ranks]: meetings with each rank so far
    int *everyone;   // 0, 1, .. ranks - 1
} Shared;

extern Shared pp_shared;

/* Says what this rank needs and waits for all; its own part of the region. */
void *pp_join_region(size_t bytes);
/* The room for this rank's events, kept * actions of them, written once so that
 * no page is missing later; NULL without --trace. */
Event *pp_event_room(void);
/* Returns when every member has called it as often as this rank has for it. */
void pp_meet(const int *members, int count, const char *what);
void *pp_allocate(size_t count, size_t size);  // zeroed
Wire *pp_wire(int from, int to);

#endif
