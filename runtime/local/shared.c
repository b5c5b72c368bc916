/* shared.c: how ranks of one machine find each other: they attach to the control
 * block that the launcher made, wait on counters, join one region of memory and
 * meet in it. What travels there is the transport's business. */
#include "shared.h"
#include "memory.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../fail.h"

enum {
    PAGE = 4096,
    SPINS = 2000,    // looks at a counter before the first sleep: some 50 us
    PATIENCE = 100,  // ms of one sleep, then the abort flag is read
};

Shared pp_shared;

/* ---- waiting ---- */

static void relax(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

static void note_waiting(Waiting kind, const char *what, int micro, int peer)
{
    RankRecord *self = pp_job.self;
    snprintf(self->waiting_for, sizeof self->waiting_for, "%s", what);
    self->waiting_micro = micro;
    self->peer = peer;
    atomic_store_explicit(&self->waiting, (int)kind, memory_order_release);
}

void pp_await(Counter *counter, uint32_t count, Waiting kind, const char *what,
              int micro, int peer)
{
    for (int i = 0; i <= pp_shared.spins; i++) {
        if (pp_reached(counter, count))
            return;
        relax();
    }
    note_waiting(kind, what, micro, peer);
    int64_t since = now_ns();
    while (!pp_reached(counter, count)) {
        if (atomic_load(&pp_job.control->abort)) {
            pp_drop_draft();
            _exit(1);
        }
        /* A counter that grows between these two lines makes the wait return at
         * once. */
        uint32_t seen = atomic_load_explicit(&counter->value,
                                             memory_order_acquire);
        if ((int32_t)(seen - count) < 0)
            sleep_on(counter, seen, PATIENCE);
    }
    pp_job.blocked += now_ns() - since;
    atomic_store_explicit(&pp_job.self->waiting, NOT_WAITING,
                          memory_order_release);
}

/* ---- start ---- */

static int number_from(const char *variable)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : -1;
}

static void *map(int fd, size_t bytes, size_t from)
{
    int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd,
                        (off_t)from);
    if (memory == MAP_FAILED)
        pp_fail("cannot map %.1f MB of shared memory: %m", (double)bytes / 1e6);
    return memory;
}

static void attach_alone(const PpJob *plan)
{
    if (plan->ranks != 1 && !pp_is_started_elsewhere())
        pp_fail(
            "this is rank %d of %d, which pprun starts: pprun %d PREFIX, where "
            "PREFIX%d is this program",
            plan->rank, plan->ranks, plan->ranks, plan->rank);
    Control *control = map(-1, control_bytes(plan->ranks), 0);
    control->ranks = plan->ranks;
    control->gate = gate_of(0, UINT32_MAX);
    pp_job.control = control;
    pp_job.alone = 1;
}

static void attach_launched(const PpJob *plan)
{
    int ranks = number_from("PP_RANKS"), rank = number_from("PP_RANK");
    struct stat file;
    if (ranks < 1 || rank < 0 || rank >= ranks ||
        fstat(pp_shared.fd, &file) != 0 ||
        (size_t)file.st_size < control_bytes(ranks))
        pp_fail("PP_FD, PP_RANK and PP_RANKS are set, but not by pprun");
    Control *control = map(pp_shared.fd, control_bytes(ranks), 0);
    if (control->magic != CONTROL_MAGIC || control->ranks != ranks)
        pp_fail("pprun and this program are not of the same version of the "
                "runtime");
    pp_job.control = control;
    pp_job.self = &control->records[rank];
    if (rank != plan->rank || ranks != plan->ranks)
        pp_fail("started as rank %d of %d, but the program is rank %d of %d",
                rank, ranks, plan->rank, plan->ranks);
}

void pp_attach(void)
{
    const PpJob *plan = &pp_job.plan;
    pp_shared.fd = number_from("PP_FD");
    if (pp_shared.fd < 0)
        attach_alone(plan);
    else
        attach_launched(plan);
    pp_job.self = &pp_job.control->records[plan->rank];
    pp_shared.rank = plan->rank;
    pp_shared.ranks = plan->ranks;
    cpu_set_t cores;
    int known = sched_getaffinity(0, sizeof cores, &cores) == 0;
    int all_run = known && plan->ranks <= CPU_COUNT(&cores);
    pp_shared.spins =
        all_run ? SPINS
                : 0;  // where ranks share a core, spinning delays the awaited
}

void *pp_allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        pp_fail("out of memory");
    return memory;
}

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* All ranks compute the same places from the needs of all. Returns the length
 * of the region. */
static size_t lay_out(size_t places[4])
{
    RankRecord *records = pp_job.control->records;
    size_t ranks = (size_t)pp_shared.ranks;
    pp_shared.ring = 2;
    for (size_t i = 0; i < ranks; i++)
        while (pp_shared.ring < records[i].depth)
            pp_shared.ring *= 2;
    pp_shared.wire_bytes = round_up(
        sizeof(Wire) + pp_shared.ring * sizeof(Notice), sizeof(Counter));

    size_t at = round_up(2 * sizeof(double) * records[0].parameters,
                         sizeof(Counter));
    places[0] = 0;
    places[1] = at;
    at += ranks * ranks * sizeof(Counter);
    places[2] = at;
    at += ranks * USES * sizeof(uint64_t);
    places[3] = at;
    at += ranks * ranks * pp_shared.wire_bytes;
    for (size_t i = 0; i < ranks; i++) {
        at = round_up(at, PAGE);
        pp_shared.arenas[i] = at;
        at += records[i].arena;
    }
    for (size_t i = 0; i < ranks; i++) {
        at = round_up(at, PAGE);
        pp_shared.events[i] = at;
        at += (size_t)records[i].actions * records[i].kept * sizeof(Event);
    }
    return round_up(at, PAGE);
}

/* Programs of two jobs can each be right and train nonsense together. */
static void check_jobs(void)
{
    const Control *control = pp_job.control;
    const char *wanted = *control->job ? control->job : control->records[0].job;
    for (int i = 0; i < pp_shared.ranks; i++)
        if (strcmp(control->records[i].job, wanted) != 0)
            pp_fail("the program of rank %d belongs to job %s, not to %s: "
                    "build all ranks again",
                    i,
                    *control->records[i].job ? control->records[i].job
                                             : "unknown",
                    *wanted ? wanted : "unknown");
}

static void check_needs(void)
{
    RankRecord *records = pp_job.control->records;
    check_jobs();
    for (int i = 1; i < pp_shared.ranks; i++)
        if (records[i].parameters != records[0].parameters)
            pp_fail("rank %d was compiled for a model of %u parameters, rank 0 "
                    "for %u: "
                    "compile all ranks again",
                    i, records[i].parameters, records[0].parameters);
}

/* The pages are taken as they are first written; without this the kernel kills
 * a job too large. */
static void check_memory(size_t region)
{
    double left = pp_free_memory(), arenas = 0;
    for (int i = 0; i < pp_shared.ranks; i++)
        arenas += (double)pp_job.control->records[i].arena;
    /* Where no length of a file can be as large, only the second is right. */
    double needed = fmax((double)region, arenas);
    if (needed > left)
        pp_fail("the ranks need %.2f GB of memory together, %.2f GB are free",
                needed / 1e9, left / 1e9);
}

/* The last rank to arrive knows all needs: it makes the file long enough for
 * everybody. */
static void grow(size_t bytes)
{
    Control *control = pp_job.control;
    check_needs();
    check_memory(bytes);
    if (pp_shared.fd >= 0 && ftruncate(pp_shared.fd, (off_t)bytes) != 0)
        pp_fail("cannot get %.1f MB of shared memory: %m", (double)bytes / 1e6);
    raise_counter(&control->grown);
}

void *pp_join_region(size_t bytes)
{
    Control *control = pp_job.control;
    size_t ranks = (size_t)pp_shared.ranks;
    pp_shared.arenas = pp_allocate(ranks, sizeof *pp_shared.arenas);
    pp_shared.events = pp_allocate(ranks, sizeof *pp_shared.events);
    pp_shared.met = pp_allocate(ranks, sizeof *pp_shared.met);
    pp_shared.everyone = pp_allocate(ranks, sizeof *pp_shared.everyone);
    for (int i = 0; i < pp_shared.ranks; i++)
        pp_shared.everyone[i] = i;
    pp_job.self->arena = bytes;
    pp_job.self->depth = (uint32_t)pp_job.plan.depth;
    pp_job.self->parameters = (uint32_t)pp_job.plan.parameters;

    uint32_t before = atomic_fetch_add(&control->arrived.value,
                                       1);  // publishes the needs
    size_t places[4], from = round_up(control_bytes(pp_shared.ranks), PAGE);
    if ((int)before + 1 == pp_shared.ranks)
        grow(from + lay_out(places));
    pp_await(&control->grown, 1, WAIT_START, "start", -1, -1);

    pp_shared.length = lay_out(places);
    pp_shared.region = map(pp_shared.fd, pp_shared.length, from);
    pp_shared.squares = (double *)(pp_shared.region + places[0]);
    pp_shared.meets = (Counter *)(pp_shared.region + places[1]);
    pp_shared.offsets = (uint64_t *)(pp_shared.region + places[2]);
    pp_shared.wires = pp_shared.region + places[3];
    pp_job.self->events = from + pp_shared.events[pp_shared.rank];
    if (pp_shared.fd >= 0)
        close(pp_shared.fd);
    return pp_shared.region + pp_shared.arenas[pp_shared.rank];
}

Event *pp_event_room(void)
{
    const RankRecord *self = pp_job.self;
    char *room = pp_shared.region + pp_shared.events[pp_shared.rank];
    memset(room, 0, (size_t)self->actions * self->kept * sizeof(Event));
    return self->actions ? (Event *)room : NULL;
}

/* ---- meetings ---- */

Wire *pp_wire(int from, int to)
{
    return (Wire *)(pp_shared.wires + (size_t)(from * pp_shared.ranks + to) *
                                          pp_shared.wire_bytes);
}

void pp_progress(void)
{
    atomic_fetch_add_explicit(&pp_job.self->progress, 1, memory_order_relaxed);
}

/* Returns when every member has called it as often as this rank has for it;
 * their writes show. */
void pp_meet(const int *members, int count, const char *what)
{
    for (int i = 0; i < count; i++) {
        if (members[i] == pp_shared.rank)
            continue;
        pp_shared.met[members[i]]++;
        raise_counter(
            &pp_shared.meets[pp_shared.rank * pp_shared.ranks + members[i]]);
    }
    for (int i = 0; i < count; i++)
        if (members[i] != pp_shared.rank)
            pp_await(
                &pp_shared.meets[members[i] * pp_shared.ranks + pp_shared.rank],
                pp_shared.met[members[i]], WAIT_MEETING, what, -1, members[i]);
    pp_progress();
}
