/* control.h: the memory that the launcher and the ranks of one machine share.
 *
 * One memfd holds everything. The launcher makes it as long as `Control` and
 * hands its number to the ranks (PP_FD). The ranks say what they need, the last
 * of them grows the file, and all map it:
 *
 *      Control | records[ranks] || squares[2][parameters] | meets[from][to] | offsets[rank][uses] |
 *     |<- launcher and ranks -->|| wires[from][to]        | arena of rank 0 | arena of rank 1 | ...
 *                               || events of rank 0       | events of rank 1 | ...
 *                               ||<- ranks alone; begins at a page, found by shared.c: lay_out ->|
 *
 * Only the events, which are there under --trace, are read by the launcher, when
 * all ranks have left.
 *
 *     a wire, from rank 0 to rank 1, of a ring of 4, after three sends and one receive:
 *         sent 3  taken 1  ring [ - | where, length | where, length | - ]   (places: in arena 0)
 *     The receiver copies from the sender's arena into its own: no message is ever stored twice.
 *
 * The idea: every word that somebody waits for is a 32-bit counter that only
 * grows (modulo 2^32), has one writer, and is compared by signed difference.
 * Whoever reads a counter that is high enough (acquire) sees all that its
 * writer wrote before raising it (release).
 *
 * The text fields are for reports only: the launcher may read one while it is
 * being written. */
#ifndef PP_CONTROL_H
#define PP_CONTROL_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    CONTROL_MAGIC = 0x70703036,     // "pp06": launcher and ranks are of one version
    TEXT = 48,                      // bytes of a name in a report
    JOB_HASH = 17,                  // bytes of a job's hash
    STEP_RING = 64,                 // steps that a rank keeps for the launcher
    STEP_LEAD = 60,                 // a rank waits when the launcher is so many steps behind
    EVENT_NAME = 16,                // bytes of an event's name
};

typedef struct Counter {            // a cache line each: writers of two counters never meet
    _Alignas(64) atomic_uint value;
    atomic_uint sleepers;           // who may be asleep on it
} Counter;

enum { BUSY_UNKNOWN = -1 };         // StepRecord.busy, where the host does not see the actions

typedef struct StepRecord {         // one finished step of one rank; times in ns of CLOCK_MONOTONIC
    double loss;                    // sum over `losses` micro-batches; 0 of 0: this rank has none
    int losses;
    int skipped;                    // 1: the update was left out, as the loss or the norm is no number
    float norm;                     // of the gradients; NaN where nothing is clipped
    int64_t busy;                   // in actions, without waiting
    int64_t begin, end;             // of the first and last action; if none: of the report
    int64_t model_begin, model_end; // emulation: the same by the rank's clock; 0 without an action
} StepRecord;

typedef enum { EVENT_COMPUTE, EVENT_SEND, EVENT_RECV, EVENT_WAIT } EventKind;

typedef struct Event {              // --trace: one action of one rank; times in ns of CLOCK_MONOTONIC
    int64_t begin, end;
    int step, micro, peer;          // step 0: this place was never written
    EventKind kind;
    char name[EVENT_NAME];          // "2F"; of a message that of its link, "2RECV_F"
} Event;

typedef enum {
    NOT_WAITING,
    WAIT_MESSAGE,                   // for `waiting` from `peer`
    WAIT_TAKEN,                     // until `peer` has taken `waiting`
    WAIT_MEETING,                   // for `peer` in the collective `waiting`
    WAIT_START,                     // for the other ranks to start
    WAIT_LAUNCHER,                  // for the launcher to read the last steps
} Waiting;

typedef struct Pace {               // emulation: one rank in model time, in ns; see emulate.c
    int64_t clock;                  // whatever it still does is not before
    Waiting waits;                  // for message `count` on a wire from or to `peer`; or it runs
    int peer;
    uint32_t count;
    int waiting_messages;           // handed over by this rank, not carried yet
    int64_t adapter;                // the adapter of this number is free from here on
} Pace;

typedef struct RankRecord {         // written by its rank, read by the launcher; its needs by all
    char job[JOB_HASH];             // hash of the job that the program belongs to; "": it does not say
    uint64_t arena;                 // needs, fixed before `arrived` is raised: bytes,
    uint32_t depth, parameters;     //     messages per wire and step, length of squares
    int64_t rows_per_step;          // positions that one step trains on: microbatches * rows * seq
    int numbers;                    // 1: they are not tokens
    uint32_t actions, kept;         // --trace: events of one step, steps that are kept
    uint64_t events;                // where they begin in the file: step s at (s - 1) % kept * actions

    atomic_int step;                // that runs, from 1
    atomic_int computing;           // inside `action`; else between it and the next
    char action[TEXT];              // "2F", with `micro` 3: 2F3; micro < 0: no number
    int micro;
    atomic_int waiting;             // Waiting
    char waiting_for[TEXT];
    int waiting_micro, peer;
    Pace pace;                      // emulation alone, as is the next
    int64_t late;                   // the most ns by which an action has ended behind its model time

    atomic_uint progress;           // grows with everything that is done; standing still is a stall
    atomic_int finished;            // left by pp_finish
    int no_number[2];               // by set: a loss of this rank is none
    int bad_gradient, bad_micro;    // the second look: parameter + 1, and the micro-batch that made it none; 0: none
    Counter squared;                // sets of squares that it has noted, ever
    Counter done;                   // steps in `steps`, ever
    StepRecord steps[STEP_RING];    // step s at s % STEP_RING
} RankRecord;

typedef struct Control {
    int magic, ranks;
    char job[JOB_HASH];             // that pprun was asked for; "": whichever rank 0 belongs to
    char name[TEXT], schedule[TEXT];    // of the job; from rank 0, as are the next two
    int steps;
    double bubble;                  // planned, 0 .. 1
    double makespan;                // planned, ns: of an emulation alone, else 0
    int trace;                      // 1: the launcher wants events
    Counter arrived;                // ranks whose needs are known
    Counter grown;                  // 1: the file has its full length
    Counter reported;               // steps that the launcher has read from all ranks
    Counter news;                   // raised by a rank that wants the launcher to look now
    atomic_ullong gate;             // highest step started << 32 | last step allowed
    atomic_uint model;              // emulation: the lock of all model time
    atomic_ullong bad_loss;         // step << 32 | micro-batch << 1 | is it NaN; 0: none; see look.c
    atomic_int abort;               // whoever waits leaves
    atomic_int failing;             // taken by the first rank that fails
    atomic_int reason_is_written;
    char reason[1024];
    Counter id_is_there;            // 1: rank 0 has written `id`
    char id[128];                   // by which ranks find each other elsewhere (NCCL)
    RankRecord records[];
} Control;

/* A step may start only while it is <= last. Both halves change in one atomic
 * exchange, so when the launcher sets last = started no rank is beyond it and
 * every rank will still run up to it: all stop after the same step, whatever
 * their speed. */
static inline uint64_t gate_of(uint32_t started, uint32_t last)
{
    return (uint64_t)started << 32 | last;
}

static inline size_t control_bytes(int ranks)
{
    return sizeof(Control) + (size_t)ranks * sizeof(RankRecord);
}

static inline int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns when woken, when *word is not `seen`, after a signal, or after the
 * time: look again. */
static inline void futex_wait(atomic_uint *word, uint32_t seen, int milliseconds)
{
    struct timespec limit = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
}

static inline void futex_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* The raiser writes `value`, then reads `sleepers`; the sleeper writes
 * `sleepers`, then reads `value` (the kernel does, before it sleeps). All four
 * are sequentially consistent, so one of the two sees the other: no wake is
 * lost, and none is made in vain: a message between ranks that spin takes 0.4
 * us, with a wake for each 32 us. */
static inline void raise_counter(Counter *counter)
{
    atomic_fetch_add(&counter->value, 1);
    if (atomic_load(&counter->sleepers) > 0)
        futex_wake(&counter->value);
}

/* Sleeps unless the value is no longer `seen`; may return early: look again. */
static inline void sleep_on(Counter *counter, uint32_t seen, int milliseconds)
{
    atomic_fetch_add(&counter->sleepers, 1);
    futex_wait(&counter->value, seen, milliseconds);
    atomic_fetch_sub(&counter->sleepers, 1);
}

/* Options of every rank program; pprun hands them on. */
#define RANK_OPTIONS                                                                               \
    "  --steps N     train N steps\n"                                                              \
    "  --data PATH   read this file, or these files (a glob pattern)\n"                            \
    "  --save DIR    write the parameters there, as safetensors, at the end\n"                     \
    "  --seed N      of the first parameters and of the order of the data\n"                       \
    "  --delay US    sleep 0 to US microseconds before each action and message (a test)\n"         \
    "  --quiet       no progress\n"                                                               \
    "  --graph on|off, --transport nccl|local   CUDA programs only\n"

#endif
