/* traffic.c: wires and adapters of an emulation under random traffic. Each step
 * draws another list of sends, receives, waits and computes for four ranks on two
 * machines, and reckons all clocks from the rules of docs/language.md by going
 * through time from event to event, which processes cannot. After each of its
 * actions a rank's clock must be the same to the nanosecond.
 *
 * Compiled once per rank with -DRANK. Many times are equal, since all are small
 * multiples of one unit: who is first by rank is tested, too. */
#include "../../runtime/fail.h"
#include "../../runtime/job.h"

enum { UNIT = 100000, RANKS = 4, ACTIONS = 60, STEPS = 150, NEVER = 1 << 30 };

typedef enum { COMPUTE, SEND, RECEIVE, WAIT } Kind;

typedef struct Act {  // times in units from the step's start
    Kind kind;
    int rank, peer;
    int number;  // of the message on its wire, from 0
    int time;    // COMPUTE, and SEND: on the wire
    int delay, adapter;
    int end;  // reckoned: the rank's clock behind it
} Act;

typedef struct Way {             // a wire as it is reckoned
    int made, received, waited;  // while drawing
    int send[ACTIONS];           // [number] its SEND
    int arrive[ACTIONS], taken[ACTIONS];
    int sent, carried, free;
} Way;

static const PpLink to[RANKS] = {
    {0, 16, "SEND"}, {1, 16, "SEND"}, {2, 16, "SEND"}, {3, 16, "SEND"}};
static const PpLink from[RANKS] = {
    {0, 16, "RECV"}, {1, 16, "RECV"}, {2, 16, "RECV"}, {3, 16, "RECV"}};
static Act acts[2 * ACTIONS];
static int count;
static Way way[RANKS][RANKS];
static uint64_t dice;

static int below(int limit)
{
    dice = pp_splitmix64(dice);
    return (int)(dice >> 33) % limit;
}

/* ---- draw: an order in which all can be done ---- */

static void add_send(int a, int b)
{
    int far = a / 2 != b / 2;
    way[a][b].send[way[a][b].made] = count;
    acts[count++] = (Act){.kind = SEND,
                          .rank = a,
                          .peer = b,
                          .number = way[a][b].made++,
                          .time = below(15) + far,
                          .delay = below(3) * below(8),
                          .adapter = far ? a / 2 : -1};
}

static void add_receive(int a, int b)
{
    if (way[a][b].received < way[a][b].made)
        acts[count++] = (Act){.kind = RECEIVE,
                              .rank = b,
                              .peer = a,
                              .number = way[a][b].received++};
}

static void add_wait(int a, int b)
{
    if (way[a][b].waited < way[a][b].received)
        acts[count++] = (Act){
            .kind = WAIT, .rank = a, .peer = b, .number = way[a][b].waited++};
}

static void draw(int step)
{
    dice = (uint64_t)step;
    count = 0;
    for (int a = 0; a < RANKS; a++)
        for (int b = 0; b < RANKS; b++)
            way[a][b] = (Way){0};
    while (count < ACTIONS) {
        int what = below(10), a = below(RANKS), b = (a + 1 + below(3)) % RANKS;
        if (what < 4)
            add_send(a, b);
        else if (what < 7)
            add_receive(a, b);
        else if (what < 8)
            add_wait(a, b);
        else
            acts[count++] = (Act){
                .kind = COMPUTE, .rank = a, .time = below(20)};
    }
    for (int i = 0; i < RANKS * RANKS; i++)
        while (way[i / RANKS][i % RANKS].received <
               way[i / RANKS][i % RANKS].made)
            add_receive(i / RANKS, i % RANKS);
}

/* ---- reckon ---- */

static int most(int a, int b)
{
    return a > b ? a : b;
}

/* When a rank that stands at `clock` gets beyond this action; NEVER: not yet. */
static int done_at(const Act *act, int clock)
{
    const Way *out = &way[act->rank][act->peer],
              *in = &way[act->peer][act->rank];
    switch (act->kind) {
    case COMPUTE:
    case SEND: return clock;
    case RECEIVE:
        return act->number < in->carried ? most(clock, in->arrive[act->number])
                                         : NEVER;
    default:
        return out->taken[act->number] >= 0
                   ? most(clock, out->taken[act->number])
                   : NEVER;
    }
}

static void do_act(Act *act, int time)
{
    act->end = act->kind == COMPUTE ? time + act->time : time;
    if (act->kind == SEND)
        way[act->rank][act->peer].sent++;
    if (act->kind == RECEIVE)
        way[act->peer][act->rank].taken[act->number] = time;
}

static int ready(const Way *w)
{
    return w->carried == w->sent ? NEVER
                                 : most(acts[w->send[w->carried]].end, w->free);
}

static void carry(Way *w, int adapters[2])
{
    const Act *send = &acts[w->send[w->carried]];
    int begin = ready(w);
    if (send->adapter >= 0)
        begin = most(begin, adapters[send->adapter]);
    w->free = begin + send->time;
    if (send->adapter >= 0)
        adapters[send->adapter] = w->free;
    w->arrive[w->carried++] = w->free + send->delay;
}

/* From event to event: what ranks do at a time comes before what becomes ready
 * then. */
static void reckon(void)
{
    int next[RANKS] = {0}, clock[RANKS] = {0}, adapters[2] = {0};
    for (int i = 0; i < RANKS * RANKS * ACTIONS; i++)
        way[i / ACTIONS / RANKS][i / ACTIONS % RANKS].taken[i % ACTIONS] = -1;
    for (;;) {
        int rank = -1, time = NEVER;
        Way *first = NULL;
        for (int r = 0; r < RANKS; r++) {
            while (next[r] < count && acts[next[r]].rank != r)
                next[r]++;
            int at = next[r] < count ? done_at(&acts[next[r]], clock[r])
                                     : NEVER;
            if (at < time)
                rank = r, time = at;
        }
        for (int i = 0; i < RANKS * RANKS; i++)
            if (ready(&way[i / RANKS][i % RANKS]) <
                (first ? ready(first) : time))
                first = &way[i / RANKS][i % RANKS];
        if (first) {
            carry(first, adapters);
        } else if (rank >= 0) {
            do_act(&acts[next[rank]], time);
            clock[rank] = acts[next[rank]++].end;
        } else {
            return;
        }
    }
}

/* ---- run ---- */

static void run(const Act *act, float *memory)
{
    switch (act->kind) {
    case COMPUTE: pp_sleep((int64_t)act->time * UNIT); break;
    case SEND:
        pp_send_over(&to[act->peer], act->number, memory,
                     (int64_t)act->time * UNIT, (int64_t)act->delay * UNIT,
                     act->adapter);
        break;
    case RECEIVE: pp_recv(&from[act->peer], act->number, memory + 16); break;
    case WAIT: pp_wait(&to[act->peer], act->number, act->number + 1); break;
    }
}

int main(int argc, char **argv)
{
    static const PpJob job = {.name = "traffic",
                              .schedule = "none",
                              .rank = RANK,
                              .ranks = RANKS,
                              .steps = STEPS,
                              .microbatches = 1,
                              .depth = ACTIONS,
                              .arena = 256};
    float *memory = pp_start(&job, argc, argv);
    pp_emulate(UNIT);
    while (pp_next_step()) {
        int64_t start = pp_job.self->pace.clock;
        draw(pp_step());
        reckon();
        for (int i = 0; i < count; i++) {
            if (acts[i].rank != RANK)
                continue;
            run(&acts[i], memory);
            int64_t clock = pp_job.self->pace.clock - start;
            if (clock != (int64_t)acts[i].end * UNIT)
                pp_fail("step %d, action %d: the clock is at %.1f units, not "
                        "at %d",
                        pp_step(), i, (double)clock / UNIT, acts[i].end);
        }
    }
    return pp_finish();
}
