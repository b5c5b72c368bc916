/* shared.h: the memory that the ranks of one machine share, for the transports
 * that use it: local/local.c and cuda/pinned.cu. control.h has the drawing. */
#ifndef PP_SHARED_H
#define PP_SHARED_H

#include "../job.h"

enum { USES = 4096 };  // most uses of one tied parameter

typedef struct Notice {
    uint64_t where, floats;  // in the region; length
    /* emulation, all in ns of model time */
    int64_t wire, delay;            // on its wire; from there until it arrives
    int adapter;                    // which carries it, too, or -1
    int64_t ready, arrive, taken;   // clock of the send; known when it was carried; end of its receive
} Notice;

typedef struct Wire {  // from one rank to another
    Counter sent, taken;
    uint32_t handed;  // by the sender; sent, once their arrival is known: else the same
    int64_t free;     // emulation: the end of what the wire has carried
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

static inline uint32_t pp_count(Counter *counter)  // of one that nobody else raises now
{
    return atomic_load_explicit(&counter->value, memory_order_relaxed);
}

static inline int pp_reached(Counter *counter, uint32_t count)
{
    uint32_t now = atomic_load_explicit(&counter->value, memory_order_acquire);
    return (int32_t)(now - count) >= 0;
}

void pp_open_norm(void);            // norm.c

/* ---- emulate.c: of an emulation alone ---- */

int64_t pp_clock(void);             // of this rank
void pp_start_together(void);       // all ranks: a step begins at one model time
void pp_rest(void);                 // this rank waits for all others
void pp_hand_over(int to, const Notice *message);
/* Before pp_await: until then the clocks of others say what may come. */
void pp_expect(Waiting kind, int peer, Counter *counter, uint32_t count);
void pp_move_clock(int64_t time);   // what this rank waited for was there at `time`
void pp_note_taken(int from);       // the next message of that wire, at this rank's clock

#endif
