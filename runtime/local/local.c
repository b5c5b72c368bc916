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
 * there is no limit on their number.
 *
 * Under --trace every call of a message leaves an event. In an emulation (pp.h)
 * emulate.c says when a message is there. */
#include "shared.h"

#include <string.h>

#include "../fail.h"

enum {
    BLOCK = 1024,      // floats summed at a time; they stay in the first cache
    EVENTS = 1 << 19,  // most that a rank keeps: 24 MiB
};

static struct {
    uint32_t *first;  // [ranks]: messages sent to each rank before this step
    int *group;       // [ranks]: the owners of the tie at hand
    int *uses;        // [ranks]: their uses found so far
    float **parts;  // [USES]: the gradients of the tie at hand, in layer order
    float **sums;   // [ranks]: grads[0] of each owner
    Event *events;  // the ring of the last steps'; NULL without --trace
} own;

/* As many of the last steps as there is room for. */
static void ask_for_events(void)
{
    const PpJob *plan = &pp_job.plan;
    if (!pp_job.control->trace || plan->actions <= 0 || plan->steps <= 0)
        return;
    int most = EVENTS / plan->actions > 1 ? EVENTS / plan->actions : 1;
    pp_job.self->actions = (uint32_t)plan->actions;
    pp_job.self->kept = (uint32_t)(plan->steps < most ? plan->steps : most);
}

float *pp_join(void)
{
    ask_for_events();
    float *arena = pp_join_region(pp_job.plan.arena);
    size_t ranks = (size_t)pp_shared.ranks;
    own.first = pp_allocate(ranks, sizeof *own.first);
    own.group = pp_allocate(ranks, sizeof *own.group);
    own.uses = pp_allocate(ranks, sizeof *own.uses);
    own.parts = pp_allocate(USES, sizeof *own.parts);
    own.sums = pp_allocate(ranks, sizeof *own.sums);
    own.events = pp_event_room();
    pp_open_norm();
    return arena;
}

/* ---- messages ---- */

static uint64_t place(const float *buffer)
{
    return (uint64_t)((const char *)buffer - pp_shared.region);
}

void pp_mark_step(void)
{
    const RankRecord *self = pp_job.self;
    for (int i = 0; i < pp_shared.ranks; i++)
        own.first[i] = pp_wire(pp_shared.rank, i)->handed;
    if (own.events) {
        uint32_t at = (uint32_t)(pp_job.step - 1) % self->kept * self->actions;
        pp_job.event = own.events + at;
        pp_job.event_end = pp_job.event + self->actions;
    }
    if (pp_job.emulated)
        pp_start_together();
}

static void send(const PpLink *link, int micro, Notice message)
{
    pp_delay();
    int64_t begin = pp_event_time();
    Wire *wire = pp_wire(pp_shared.rank, link->peer);
    /* One step never fills a ring; several steps can, when no buffer is reused
     * in between. */
    pp_await(&wire->taken, wire->handed + 1 - pp_shared.ring, WAIT_TAKEN,
             link->name, micro, link->peer);
    if (pp_job.emulated) {
        pp_hand_over(link->peer, &message);
    } else {
        wire->ring[wire->handed++ % pp_shared.ring] = message;
        raise_counter(&wire->sent);
    }
    pp_progress();
    pp_note_event(EVENT_SEND, link->name, micro, link->peer, begin,
                  pp_event_time());
}

void pp_send(const PpLink *link, int micro, const float *from)
{
    pp_send_over(link, micro, from, 0, 0, -1);
}

void pp_send_over(const PpLink *link, int micro, const float *from,
                  int64_t wire, int64_t delay, int adapter)
{
    send(link, micro,
         (Notice){.where = place(from),
                  .floats = link->floats,
                  .wire = wire,
                  .delay = delay,
                  .adapter = adapter});
}

static void await(const PpLink *link, int micro, Waiting kind, Counter *counter,
                  uint32_t count)
{
    if (pp_job.emulated)
        pp_expect(kind, link->peer, counter, count);
    pp_await(counter, count, kind, link->name, micro, link->peer);
}

void pp_recv(const PpLink *link, int micro, float *to)
{
    pp_delay();
    int64_t begin = pp_event_time();
    Wire *wire = pp_wire(link->peer, pp_shared.rank);
    uint32_t k = pp_count(&wire->taken);
    await(link, micro, WAIT_MESSAGE, &wire->sent, k + 1);
    const Notice *message = &wire->ring[k % pp_shared.ring];
    if (message->floats != link->floats)
        pp_fail("%s%d expects %zu floats, but rank %d sent %zu", link->name,
                micro, link->floats, link->peer, (size_t)message->floats);
    if (pp_job.emulated)
        pp_move_clock(message->arrive);
    memcpy(to, pp_shared.region + message->where, link->floats * sizeof *to);
    if (pp_job.emulated)
        pp_note_taken(link->peer);
    else
        raise_counter(&wire->taken);
    pp_progress();
    pp_note_event(EVENT_RECV, link->name, micro, link->peer, begin,
                  pp_event_time());
}

void pp_wait(const PpLink *link, int micro, int taken)
{
    int64_t begin = pp_event_time();
    Wire *wire = pp_wire(pp_shared.rank, link->peer);
    uint32_t count = own.first[link->peer] + (uint32_t)taken;
    await(link, micro, WAIT_TAKEN, &wire->taken, count);
    if (pp_job.emulated)
        pp_move_clock(wire->ring[(count - 1) % pp_shared.ring].taken);
    pp_note_event(EVENT_WAIT, link->name, micro, link->peer, begin,
                  pp_event_time());
}

/* ---- collectives ---- */

void pp_meet_all(const char *what)
{
    if (pp_job.emulated)
        pp_rest();
    pp_meet(pp_shared.everyone, pp_shared.ranks, what);
}

/* Fills `group` with the ranks that use it, each once, ascending, and says how
 * many. */
static int find_owners(const PpTie *tie)
{
    if (tie->uses > USES)
        pp_fail("%s is used %d times, at most %d are possible", tie->name,
                tie->uses, USES);
    memset(own.uses, 0, (size_t)pp_shared.ranks * sizeof *own.uses);
    for (int u = 0; u < tie->uses; u++)
        own.uses[tie->ranks[u]]++;
    int owners = 0;
    for (int i = 0; i < pp_shared.ranks; i++)
        if (own.uses[i])
            own.group[owners++] = i;
    return owners;
}

/* Fills `parts` from the offsets that all owners published, and `sums` with the
 * first of each. */
static void find_parts(const PpTie *tie, int owners)
{
    memset(own.uses, 0, (size_t)pp_shared.ranks * sizeof *own.uses);
    for (int u = 0; u < tie->uses; u++) {
        int owner = tie->ranks[u];
        uint64_t where =
            pp_shared.offsets[(size_t)owner * USES + (size_t)own.uses[owner]++];
        own.parts[u] = (float *)(pp_shared.region + where);
    }
    for (int i = 0; i < owners; i++)
        own.sums[i] = (float *)(pp_shared.region +
                                pp_shared.offsets[(size_t)own.group[i] * USES]);
}

/* Nobody else touches these elements of any part between the two meetings, so
 * the sum may be written over its own terms. Blocks only serve the cache: each
 * element is added in the order of the uses. */
static void sum_slice(int uses, int owners, size_t begin, size_t end)
{
    float sum[BLOCK];
    for (size_t at = begin; at < end; at += BLOCK) {
        size_t count = end - at < BLOCK ? end - at : BLOCK;
        memcpy(sum, own.parts[0] + at, count * sizeof *sum);
        for (int u = 1; u < uses; u++) {
            const float *part = own.parts[u] + at;
            for (size_t i = 0; i < count; i++)
                sum[i] += part[i];
        }
        for (int i = 0; i < owners; i++)
            memcpy(own.sums[i] + at, sum, count * sizeof *sum);
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
    if (own.uses[pp_shared.rank] == 0)
        return;
    for (int i = 0; i < own.uses[pp_shared.rank]; i++)
        pp_shared.offsets[(size_t)pp_shared.rank * USES + (size_t)i] = place(
            grads[i]);
    pp_meet(own.group, owners, tie->name);
    find_parts(tie, owners);
    while (own.group[mine] != pp_shared.rank)
        mine++;
    sum_slice(tie->uses, owners, cut(tie->floats, mine, owners),
              cut(tie->floats, mine + 1, owners));
    pp_meet(own.group, owners, tie->name);
}
