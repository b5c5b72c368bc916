/* local.c: the transport between processes of one machine, in the shared memory
 * of control.h.
 *
 * A message is announced, not sent: the sender puts the place of its buffer in
 * a ring, the receiver copies from there straight into its own buffer. Each
 * direction of each pair of ranks has a ring of its own, so the k-th send meets
 * the k-th receive whatever the other pairs do.
 *
 * Every collective is two meetings of its members around a part that each does
 * alone; a meeting is one counter per ordered pair, so groups may overlap and
 * there is no limit on their number. */
#define _GNU_SOURCE
#include <sched.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../fail.h"
#include "../job.h"

enum {
    PAGE = 4096,
    USES = 4096,   // most uses of one tied parameter
    BLOCK = 1024,  // floats that are summed at a time; stays in the first cache
    SPINS = 2000,  // looks at a counter before the first sleep: some 50 us
    PATIENCE = 100,  // ms of one sleep, then the abort flag is read
};

typedef struct Message {
    uint64_t where, floats;
} Message;  // in the region; length
typedef struct Queue {
    Counter sent, taken;
    Message ring[];
} Queue;

static struct {
    int fd;  // -1 when alone
    int rank, ranks, spins;
    char *region;     // all behind the records; the pointers below lead there
    double *squares;  // [parameters]
    Counter *meets;   // [from][to]: meetings with `to` that `from` has come to
    uint64_t *offsets;  // [rank][USES]: the gradients of the tie at hand
    char *queues;       // [from][to], of queue_bytes each
    size_t queue_bytes;
    uint32_t ring;   // messages; a power of two, so that it divides 2^32
    size_t *arenas;  // [ranks]: where they begin in the region

    uint32_t *met;    // [ranks]: meetings with each rank so far
    uint32_t *first;  // [ranks]: messages sent to each rank before this step
    int *everyone;    // 0, 1, .. ranks - 1
    int *group;       // [ranks]: the owners of the tie at hand
    int *uses;        // [ranks]: their uses found so far
    float **parts;  // [USES]: the gradients of the tie at hand, in layer order
    float **sums;   // [ranks]: grads[0] of each owner
} shared;

/* ---- waiting ---- */

static int reached(Counter *counter, uint32_t count)
{
    uint32_t now = atomic_load_explicit(&counter->value, memory_order_acquire);
    return (int32_t)(now - count) >= 0;
}

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
    for (int i = 0; i <= shared.spins; i++) {
        if (reached(counter, count))
            return;
        relax();
    }
    note_waiting(kind, what, micro, peer);
    int64_t since = now_ns();
    while (!reached(counter, count)) {
        if (atomic_load(&pp_job.control->abort))
            _exit(1);
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

static void made_progress(void)
{
    atomic_fetch_add_explicit(&pp_job.self->progress, 1, memory_order_relaxed);
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
    if (plan->ranks != 1)
        pp_fail(
            "this is rank %d of %d, which pprun starts: pprun %d PREFIX, where "
            "PREFIX%d is this program",
            plan->rank, plan->ranks, plan->ranks, plan->rank);
    Control *control = map(-1, control_bytes(1), 0);
    control->ranks = 1;
    control->gate = gate_of(0, UINT32_MAX);
    pp_job.control = control;
    pp_job.alone = 1;
}

static void attach_launched(const PpJob *plan)
{
    int ranks = number_from("PP_RANKS"), rank = number_from("PP_RANK");
    struct stat file;
    if (ranks < 1 || rank < 0 || rank >= ranks ||
        fstat(shared.fd, &file) != 0 ||
        (size_t)file.st_size < control_bytes(ranks))
        pp_fail("PP_FD, PP_RANK and PP_RANKS are set, but not by pprun");
    Control *control = map(shared.fd, control_bytes(ranks), 0);
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
    shared.fd = number_from("PP_FD");
    if (shared.fd < 0)
        attach_alone(plan);
    else
        attach_launched(plan);
    pp_job.self = &pp_job.control->records[plan->rank];
    shared.rank = plan->rank;
    shared.ranks = plan->ranks;
    cpu_set_t cores;
    int known = sched_getaffinity(0, sizeof cores, &cores) == 0;
    int all_run = known && plan->ranks <= CPU_COUNT(&cores);
    shared.spins =
        all_run ? SPINS
                : 0;  // where ranks share a core, spinning delays the awaited
}

static void *allocate(size_t count, size_t size)
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
    size_t ranks = (size_t)shared.ranks;
    shared.ring = 2;
    for (size_t i = 0; i < ranks; i++)
        while (shared.ring < records[i].depth)
            shared.ring *= 2;
    shared.queue_bytes = round_up(sizeof(Queue) + shared.ring * sizeof(Message),
                                  sizeof(Counter));

    size_t at = round_up(records[0].parameters * sizeof(double),
                         sizeof(Counter));
    places[0] = 0;
    places[1] = at;
    at += ranks * ranks * sizeof(Counter);
    places[2] = at;
    at += ranks * USES * sizeof(uint64_t);
    places[3] = at;
    at += ranks * ranks * shared.queue_bytes;
    for (size_t i = 0; i < ranks; i++) {
        at = round_up(at, PAGE);
        shared.arenas[i] = at;
        at += records[i].arena;
    }
    return round_up(at, PAGE);
}

static void check_needs(void)
{
    RankRecord *records = pp_job.control->records;
    for (int i = 1; i < shared.ranks; i++)
        if (records[i].parameters != records[0].parameters)
            pp_fail("rank %d was compiled for a model of %u parameters, rank 0 "
                    "for %u: "
                    "compile all ranks again",
                    i, records[i].parameters, records[0].parameters);
}

/* The pages are taken as they are first written; without this the kernel kills
 * a job too large. */
static void check_memory(size_t needed)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[256];
    double kib;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lf", &kib) == 1 &&
            (double)needed > kib * 1024)
            pp_fail(
                "the ranks need %.2f GB of memory together, %.2f GB are free",
                (double)needed / 1e9, kib * 1024 / 1e9);
    if (file)
        fclose(file);
}

/* The last rank to arrive knows all needs: it makes the file long enough for
 * everybody. */
static void grow(size_t bytes)
{
    Control *control = pp_job.control;
    check_needs();
    check_memory(bytes);
    if (shared.fd >= 0 && ftruncate(shared.fd, (off_t)bytes) != 0)
        pp_fail("cannot get %.1f MB of shared memory: %m", (double)bytes / 1e6);
    raise_counter(&control->grown);
}

static void allocate_lists(void)
{
    size_t ranks = (size_t)shared.ranks;
    shared.arenas = allocate(ranks, sizeof *shared.arenas);
    shared.met = allocate(ranks, sizeof *shared.met);
    shared.first = allocate(ranks, sizeof *shared.first);
    shared.everyone = allocate(ranks, sizeof *shared.everyone);
    shared.group = allocate(ranks, sizeof *shared.group);
    shared.uses = allocate(ranks, sizeof *shared.uses);
    shared.parts = allocate(USES, sizeof *shared.parts);
    shared.sums = allocate(ranks, sizeof *shared.sums);
    for (int i = 0; i < shared.ranks; i++)
        shared.everyone[i] = i;
}

float *pp_join(void)
{
    Control *control = pp_job.control;
    allocate_lists();
    pp_job.self->arena = pp_job.plan.arena;
    pp_job.self->depth = (uint32_t)pp_job.plan.depth;
    pp_job.self->parameters = (uint32_t)pp_job.plan.parameters;

    uint32_t before = atomic_fetch_add(&control->arrived.value,
                                       1);  // publishes the needs
    size_t places[4], from = round_up(control_bytes(shared.ranks), PAGE);
    if ((int)before + 1 == shared.ranks)
        grow(from + lay_out(places));
    pp_await(&control->grown, 1, WAIT_START, "start", -1, -1);

    size_t length = lay_out(places);
    shared.region = map(shared.fd, length, from);
    shared.squares = (double *)(shared.region + places[0]);
    shared.meets = (Counter *)(shared.region + places[1]);
    shared.offsets = (uint64_t *)(shared.region + places[2]);
    shared.queues = shared.region + places[3];
    if (shared.fd >= 0)
        close(shared.fd);
    return (float *)(shared.region + shared.arenas[shared.rank]);
}

/* ---- messages ---- */

static Queue *queue(int from, int to)
{
    return (Queue *)(shared.queues +
                     (size_t)(from * shared.ranks + to) * shared.queue_bytes);
}

static uint64_t place(const float *buffer)
{
    return (uint64_t)((const char *)buffer - shared.region);
}

static uint32_t now(Counter *own)  // of a counter that only this rank raises
{
    return atomic_load_explicit(&own->value, memory_order_relaxed);
}

void pp_mark_step(void)
{
    for (int i = 0; i < shared.ranks; i++)
        shared.first[i] = now(&queue(shared.rank, i)->sent);
}

void pp_send(const PpLink *link, int micro, const float *from)
{
    pp_delay();
    Queue *q = queue(shared.rank, link->peer);
    uint32_t k = now(&q->sent);
    /* One step never fills a ring; several steps can, when no buffer is reused
     * in between. */
    pp_await(&q->taken, k + 1 - shared.ring, WAIT_TAKEN, link->name, micro,
             link->peer);
    q->ring[k % shared.ring] = (Message){place(from), link->floats};
    raise_counter(&q->sent);
    made_progress();
}

void pp_recv(const PpLink *link, int micro, float *to)
{
    pp_delay();
    Queue *q = queue(link->peer, shared.rank);
    uint32_t k = now(&q->taken);
    pp_await(&q->sent, k + 1, WAIT_MESSAGE, link->name, micro, link->peer);
    Message message = q->ring[k % shared.ring];
    if (message.floats != link->floats)
        pp_fail("%s%d expects %zu floats, but rank %d sent %zu", link->name,
                micro, link->floats, link->peer, (size_t)message.floats);
    memcpy(to, shared.region + message.where, link->floats * sizeof *to);
    raise_counter(&q->taken);
    made_progress();
}

void pp_wait(const PpLink *link, int micro, int taken)
{
    Queue *q = queue(shared.rank, link->peer);
    pp_await(&q->taken, shared.first[link->peer] + (uint32_t)taken, WAIT_TAKEN,
             link->name, micro, link->peer);
}

/* ---- collectives ---- */

/* Returns when every member has called it as often as this rank has for it;
 * their writes show. */
static void meet(const int *members, int count, const char *what)
{
    for (int i = 0; i < count; i++) {
        if (members[i] == shared.rank)
            continue;
        shared.met[members[i]]++;
        raise_counter(&shared.meets[shared.rank * shared.ranks + members[i]]);
    }
    for (int i = 0; i < count; i++)
        if (members[i] != shared.rank)
            pp_await(&shared.meets[members[i] * shared.ranks + shared.rank],
                     shared.met[members[i]], WAIT_MEETING, what, -1,
                     members[i]);
    made_progress();
}

void pp_meet_all(const char *what)
{
    meet(shared.everyone, shared.ranks, what);
}

/* Fills `group` with the ranks that use it, each once, ascending, and says how
 * many. */
static int find_owners(const PpTie *tie)
{
    if (tie->uses > USES)
        pp_fail("%s is used %d times, at most %d are possible", tie->name,
                tie->uses, USES);
    memset(shared.uses, 0, (size_t)shared.ranks * sizeof *shared.uses);
    for (int u = 0; u < tie->uses; u++)
        shared.uses[tie->ranks[u]]++;
    int owners = 0;
    for (int i = 0; i < shared.ranks; i++)
        if (shared.uses[i])
            shared.group[owners++] = i;
    return owners;
}

/* Fills `parts` from the offsets that all owners published, and `sums` with the
 * first of each. */
static void find_parts(const PpTie *tie, int owners)
{
    memset(shared.uses, 0, (size_t)shared.ranks * sizeof *shared.uses);
    for (int u = 0; u < tie->uses; u++) {
        int owner = tie->ranks[u];
        uint64_t where =
            shared.offsets[(size_t)owner * USES + (size_t)shared.uses[owner]++];
        shared.parts[u] = (float *)(shared.region + where);
    }
    for (int i = 0; i < owners; i++)
        shared.sums[i] =
            (float *)(shared.region +
                      shared.offsets[(size_t)shared.group[i] * USES]);
}

/* Nobody else touches these elements of any part between the two meetings, so
 * the sum may be written over its own terms. Blocks only serve the cache: each
 * element is added in the order of the uses. */
static void sum_slice(int uses, int owners, size_t begin, size_t end)
{
    float sum[BLOCK];
    for (size_t at = begin; at < end; at += BLOCK) {
        size_t count = end - at < BLOCK ? end - at : BLOCK;
        memcpy(sum, shared.parts[0] + at, count * sizeof *sum);
        for (int u = 1; u < uses; u++) {
            const float *part = shared.parts[u] + at;
            for (size_t i = 0; i < count; i++)
                sum[i] += part[i];
        }
        for (int i = 0; i < owners; i++)
            memcpy(shared.sums[i] + at, sum, count * sizeof *sum);
    }
}

/* The lines that a slice shares with its neighbours are at most its two ends:
 * cut at lines. */
static size_t cut(size_t floats, int part, int parts)
{
    return part == parts ? floats
                         : floats / (size_t)parts * (size_t)part / 16 * 16;
}

void pp_reduce(const PpTie *tie, float *const grads[])
{
    int owners = find_owners(tie), mine = 0;
    if (shared.uses[shared.rank] == 0)
        return;
    for (int i = 0; i < shared.uses[shared.rank]; i++)
        shared.offsets[(size_t)shared.rank * USES + (size_t)i] = place(
            grads[i]);
    meet(shared.group, owners, tie->name);
    find_parts(tie, owners);
    while (shared.group[mine] != shared.rank)
        mine++;
    sum_slice(tie->uses, owners, cut(tie->floats, mine, owners),
              cut(tie->floats, mine + 1, owners));
    meet(shared.group, owners, tie->name);
}

/* Eight sums, so that the compiler may use vectors; they are fixed, so the bits
 * are, too. */
void pp_square(int parameter, const float *grad, size_t count)
{
    double sum[8] = {0};
    size_t whole = count / 8 * 8;
    for (size_t i = 0; i < whole; i += 8)
        for (size_t j = 0; j < 8; j++)
            sum[j] += (double)grad[i + j] * (double)grad[i + j];
    for (size_t i = whole; i < count; i++)
        sum[i - whole] += (double)grad[i] * (double)grad[i];
    shared.squares[parameter] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) +
                                ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

float pp_clip(float limit)
{
    pp_meet_all("clip");
    double total = 0;
    for (int i = 0; i < pp_job.plan.parameters; i++)
        total += shared.squares[i];
    pp_meet_all("clip");  // before anybody notes the squares of the next step
    float norm = (float)sqrt(total);
    pp_job.record.norm = norm;
    return norm > limit ? limit / norm : 1.0f;
}
