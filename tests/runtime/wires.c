/* wires.c: the wires and adapters of an emulation, driven as a generated program
 * drives them, by three ranks. Each step is one case; its model clocks are
 * exact, whatever the processes' speed. A clock that is wrong is a pp_fail.
 *
 * Compiled once per rank with -DRANK; times are in ms behind the step's start. */
#include <time.h>

#include "../../runtime/fail.h"
#include "../../runtime/job.h"

enum { MS = 1000000, RANKS = 3 };

static const PpJob job = {
    .name = "wires",
    .schedule = "none",
    .rank = RANK,
    .ranks = RANKS,
    .microbatches = 1,
    .depth = 8,
    .arena = 256,
};

static const PpLink to[RANKS] = {
    {0, 16, "SEND"}, {1, 16, "SEND"}, {2, 16, "SEND"}};
static const PpLink from[RANKS] = {
    {0, 16, "RECV"}, {1, 16, "RECV"}, {2, 16, "RECV"}};
static float *memory;
static int64_t start;

static void at(int64_t expected)
{
    int64_t clock = pp_job.self->pace.clock - start;
    if (clock != expected * MS)
        pp_fail("case %d: rank %d is at %.3f ms, not at %lld", pp_step(), RANK,
                (double)clock / MS, (long long)expected);
}

static void send(int rank, int wire, int delay, int adapter)
{
    pp_send_over(&to[rank], 0, memory, (int64_t)wire * MS, (int64_t)delay * MS,
                 adapter);
}

static void receive(int rank, int64_t expected)
{
    pp_recv(&from[rank], 0, memory + 16);
    at(expected);
}

static void wait_for(int rank, int taken, int64_t expected)
{
    pp_wait(&to[rank], 0, taken);
    at(expected);
}

static void compute(int ms)
{
    pp_sleep((int64_t)ms * MS);
}

/* The process is late: the model knows nothing of it. */
static void dawdle(void)
{
    struct timespec time = {0, 30 * MS};
    nanosleep(&time, NULL);
}

static void messages_follow_each_other(void)
{
    for (int i = 1; i <= 8 && RANK == 0; i++)
        send(1, 10, 0, -1);
    for (int i = 1; i <= 8; i++) {
        if (RANK == 0)
            wait_for(1, i, 10 * i);
        if (RANK == 1)
            receive(0, 10 * i);
    }
}

/* The wire is free behind a message that is still under way. */
static void long_one_holds_up_short_ones(void)
{
    if (RANK == 0) {
        send(1, 20, 0, -1);
        send(1, 1, 5, -1);
        send(1, 1, 5, -1);
        compute(30);
        send(1, 2, 5, -1);
    }
    if (RANK == 1) {
        receive(0, 20);
        receive(0, 26);
        receive(0, 27);
        receive(0, 37);
    }
}

static void late_receiver_finds_it_there(void)
{
    if (RANK == 0) {
        send(1, 10, 0, -1);
        send(1, 0, 0, -1);
        wait_for(1, 2, 25);
    }
    if (RANK == 1) {
        compute(25);
        receive(0, 25);
        receive(0, 25);
    }
}

static void two_wires(void)
{
    int adapter = pp_step() == 4 ? -1 : 2;
    if (RANK == 0) {
        send(1, 10, 0, adapter);
        send(2, 10, 0, adapter);
    }
    if (RANK == 1)
        receive(0, 10);
    if (RANK == 2)
        receive(0, adapter < 0 ? 10 : 20);
}

static void other_adapters(void)
{
    if (RANK < 2)
        send(2, 10, 1, RANK);
    if (RANK == 2) {
        receive(1, 11);
        receive(0, 11);
    }
}

/* Rank 0 hands its message over last, but it is ready first. */
static void adapter_asks_for_clocks(void)
{
    if (RANK == 0) {
        compute(4);
        dawdle();
    }
    if (RANK == 1)
        compute(5);
    if (RANK < 2)
        send(2, 10, 0, 0);
    if (RANK == 2) {
        receive(0, 14);
        receive(1, 24);
    }
}

/* The second message of rank 0 was sent before that of rank 1, but its wire is
 * free only at 10. */
static void adapter_asks_for_readiness(void)
{
    if (RANK == 0) {
        send(2, 10, 0, 0);
        send(2, 10, 0, 0);
    }
    if (RANK == 1) {
        compute(5);
        dawdle();
        send(2, 10, 0, 0);
    }
    if (RANK == 2) {
        receive(0, 10);
        receive(1, 20);
        receive(0, 30);
    }
}

static void equal_ones_by_rank(void)
{
    if (RANK == 0)
        dawdle();
    if (RANK < 2)
        send(2, 10, 0, 0);
    if (RANK == 1)
        send(0, 10, 0, 0);
    if (RANK == 0)
        receive(1, 20);
    if (RANK == 2) {
        receive(1, 30);
        receive(0, 30);
    }
}

/* Rank 1 has an early clock as long as it waits, but sends nothing. */
static void who_waits_does_not_count(void)
{
    if (RANK == 0) {
        compute(10);
        send(1, 10, 0, 0);
        wait_for(1, 1, 20);
    }
    if (RANK == 1) {
        receive(0, 20);
        send(2, 10, 0, 0);
    }
    if (RANK == 2) {
        compute(12);
        send(0, 10, 0, 0);
        receive(1, 40);
    }
    if (RANK == 0)
        receive(2, 30);
}

static void who_waits_for_a_receive_does_not_count(void)
{
    if (RANK == 0) {
        send(1, 10, 0, 0);
        wait_for(1, 1, 30);
    }
    if (RANK == 2) {
        compute(12);
        send(1, 10, 0, 0);
    }
    if (RANK == 1) {
        compute(5);
        receive(2, 22);
        compute(8);
        receive(0, 30);
    }
}

/* Rank 0 is late again, just when it has got what it waited for. */
static void who_has_waited_counts_again(void)
{
    if (RANK == 0) {
        send(1, 10, 0, -1);
        wait_for(1, 1, 10);
        dawdle();
        send(2, 10, 0, 0);
        receive(1, 32);
        dawdle();
        send(2, 10, 0, 0);
    }
    if (RANK == 1) {
        receive(0, 10);
        compute(1);
        send(2, 10, 0, 0);
        compute(11);
        dawdle();
        dawdle();
        send(0, 10, 0, -1);
        compute(11);
        send(2, 10, 0, 0);
    }
    if (RANK == 2) {
        receive(0, 20);
        receive(1, 30);
        receive(0, 42);
        receive(1, 52);
    }
}

static void (*const cases[])(void) = {messages_follow_each_other,
                                      long_one_holds_up_short_ones,
                                      late_receiver_finds_it_there,
                                      two_wires,
                                      two_wires,
                                      other_adapters,
                                      adapter_asks_for_clocks,
                                      adapter_asks_for_readiness,
                                      equal_ones_by_rank,
                                      who_waits_does_not_count,
                                      who_waits_for_a_receive_does_not_count,
                                      who_has_waited_counts_again};

int main(int argc, char **argv)
{
    PpJob all = job;
    all.steps = sizeof cases / sizeof *cases;
    memory = pp_start(&all, argc, argv);
    pp_emulate(MS);
    while (pp_next_step()) {
        start = pp_job.self->pace.clock;
        cases[pp_step() - 1]();
    }
    return pp_finish();
}
