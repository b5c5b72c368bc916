/* emulate.c: the model time of an emulation (pp.h), and the wires that its
 * messages take.
 *
 * Each rank has a clock of model time. An ordered pair of ranks is a wire that
 * carries one message at a time:
 *
 *     begin = max(the sender's clock, end of the message before on this wire)
 *     end = begin + wire        arrive = end + delay
 *
 * So a sender knows at once when its message arrives, unless the message also
 * goes through an adapter. All ranks of a machine share one, which carries
 * messages in the order in which they are ready, that is, at the `begin` above:
 * then nobody may still send one that is ready earlier. What is still to come
 * is caused by what is there: by a rank that runs, not before its clock, or by
 * a message that no adapter has carried yet, not before that is ready. So the
 * first of these messages is carried as soon as all ranks that run have later
 * clocks. A rank that waits for another does not count: what it will do is
 * caused by one that runs.
 *
 *     handed over, not carried:  0 -> 2 ready at 5,   1 -> 2 ready at 6
 *     rank 0 runs, clock 9    rank 1 runs, clock 6    rank 2 waits for rank 0
 *
 *         0 -> 2 is carried from 5 on; 1 -> 2 when rank 1 does something that takes time, or waits
 *
 * (This is conservative simulation, Chandy and Misra 1979, with one lock in
 * place of null messages.) A message is in its wire's ring when it is handed
 * over, and counts as sent when its arrival is known. */
#include "shared.h"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>

#include "../fail.h"

enum {
    SPIN = 50000,  // ns: an action ends spinning, where each rank has a core
    SIGN = 1000000000,  // ns: most between two signs of life
    LEAD = 5000000,     // ns from the last rank's arrival to the step
};

/* ---- the lock: all of Pace, of Wire and of Notice that is model time ---- */

static void lock(void)
{
    Control *control = pp_job.control;
    while (atomic_exchange_explicit(&control->model, 1, memory_order_acquire)) {
        if (atomic_load(&control->abort))
            _exit(1);
        sched_yield();
    }
}

static void unlock(void)
{
    atomic_store_explicit(&pp_job.control->model, 0, memory_order_release);
}

static Pace *pace_of(int rank)
{
    return &pp_job.control->records[rank].pace;
}

/* ---- wires and adapters ---- */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The first message of a wire that has not been carried. */
static Notice *head_of(Wire *wire)
{
    return &wire->ring[pp_count(&wire->sent) % pp_shared.ring];
}

static int64_t ready_at(Wire *wire)
{
    return later(head_of(wire)->ready, wire->free);
}

/* If `rank` waits for this, it runs again; it moves its own clock when it is
 * awake. */
static void happened(int rank, Waiting kind, int peer, uint32_t count)
{
    Pace *pace = pace_of(rank);
    if (pace->waits == kind && pace->peer == peer && pace->count == count)
        pace->waits = NOT_WAITING;
}

/* The head of this wire finds wire and adapter free, or waits for them. */
static void carry(int from, int to)
{
    Wire *wire = pp_wire(from, to);
    Notice *message = head_of(wire);
    int64_t begin = ready_at(wire);
    if (message->adapter >= 0)
        begin = later(begin, pace_of(message->adapter)->adapter);
    wire->free = begin + message->wire;
    if (message->adapter >= 0)
        pace_of(message->adapter)->adapter = wire->free;
    message->arrive = wire->free + message->delay;
    pace_of(from)->waiting_messages--;
    happened(to, WAIT_MESSAGE, from, pp_count(&wire->sent) + 1);
    raise_counter(&wire->sent);
}

/* The message that is ready first, of equal ones that of the smallest ranks. */
static int find_first(int *from, int *to, int64_t *ready)
{
    *ready = INT64_MAX;
    for (int a = 0; a < pp_shared.ranks; a++) {
        if (pace_of(a)->waiting_messages == 0)
            continue;
        for (int b = 0; b < pp_shared.ranks; b++) {
            Wire *wire = pp_wire(a, b);
            if (wire->handed == pp_count(&wire->sent) ||
                ready_at(wire) >= *ready)
                continue;
            *from = a, *to = b, *ready = ready_at(wire);
        }
    }
    return *ready < INT64_MAX;
}

/* May a message still come that is ready by then? */
static int more_may_come(int64_t ready)
{
    for (int i = 0; i < pp_shared.ranks; i++)
        if (pace_of(i)->waits == NOT_WAITING && pace_of(i)->clock <= ready)
            return 1;
    return 0;
}

static void carry_what_is_certain(void)
{
    int from = 0, to = 0;
    int64_t ready;
    while (find_first(&from, &to, &ready) && !more_may_come(ready))
        carry(from, to);
}

void pp_hand_over(int to, const Notice *message)
{
    Wire *wire = pp_wire(pp_shared.rank, to);
    if (message->adapter >= pp_shared.ranks)
        pp_fail("adapter %d, but there are at most as many as ranks, %d",
                message->adapter, pp_shared.ranks);
    lock();
    Notice *here = &wire->ring[wire->handed % pp_shared.ring];
    *here = *message;
    here->ready = pp_clock();
    int first = wire->handed++ == pp_count(&wire->sent);
    pace_of(pp_shared.rank)->waiting_messages++;
    if (first && message->adapter < 0)
        carry(pp_shared.rank, to);
    carry_what_is_certain();
    unlock();
}

/* ---- clocks ---- */

int64_t pp_clock(void)
{
    return pp_job.self->pace.clock;
}

static void set_clock(int64_t time)
{
    lock();
    pp_job.self->pace.clock = time;
    carry_what_is_certain();
    unlock();
}

void pp_expect(Waiting kind, int peer, Counter *counter, uint32_t count)
{
    Pace *pace = &pp_job.self->pace;
    lock();
    if (!pp_reached(counter, count)) {
        pace->peer = peer;
        pace->count = count;
        pace->waits = kind;
        carry_what_is_certain();
    }
    unlock();
}

void pp_move_clock(int64_t time)
{
    if (time > pp_clock())
        set_clock(time);
    pp_sleep(0);
}

void pp_note_taken(int from)
{
    Wire *wire = pp_wire(from, pp_shared.rank);
    lock();
    uint32_t taken = pp_count(&wire->taken);
    wire->ring[taken % pp_shared.ring].taken = pp_clock();
    happened(from, WAIT_TAKEN, pp_shared.rank, taken + 1);
    raise_counter(&wire->taken);
    unlock();
}

/* Who waits for all others sends nothing before they are there. */
void pp_rest(void)
{
    lock();
    pp_job.self->pace.waits = WAIT_MEETING;
    carry_what_is_certain();
    unlock();
}

/* Every rank takes the latest clock of all, and a little more than it takes to
 * meet: then none is late. Before one is there, all run, so that nothing is
 * carried before their clocks allow it. */
void pp_start_together(void)
{
    int64_t start = 0;
    pp_job.self->pace.clock = now_ns();
    pp_meet_all("the start of the step");
    for (int i = 0; i < pp_shared.ranks; i++)
        start = later(start, pace_of(i)->clock);
    pp_job.self->pace.waits = NOT_WAITING;
    pp_meet(pp_shared.everyone, pp_shared.ranks, "the start of the step");
    pp_sleep(start + LEAD - pp_clock());
}

/* ---- sleep ---- */

static void sleep_until(int64_t time)
{
    struct timespec at = {time / 1000000000, time % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

static int64_t spin_time(void)
{
    static int64_t spin = -1;
    if (spin < 0) {
        cpu_set_t cores;
        int known = sched_getaffinity(0, sizeof cores, &cores) == 0;
        spin = known && pp_job.plan.ranks < CPU_COUNT(&cores) ? SPIN : 0;
        prctl(PR_SET_TIMERSLACK, 1);  // ns; 50 us by default
    }
    return spin;
}

void pp_emulate(int64_t step)
{
    pp_job.emulated = 1;
    if (pp_job.plan.rank == 0)
        pp_job.control->makespan = (double)step;
}

void pp_sleep(int64_t nanoseconds)
{
    if (nanoseconds > 0)
        set_clock(pp_clock() + nanoseconds);
    int64_t clock = pp_clock(), sleep = clock - spin_time(), now;
    while ((now = now_ns()) < sleep) {
        sleep_until(sleep - now > SIGN ? now + SIGN : sleep);
        pp_progress();
    }
    while ((now = now_ns()) < clock)
        continue;
    if (nanoseconds > 0 && now - clock > pp_job.self->late)
        pp_job.self->late = now - clock;
}
