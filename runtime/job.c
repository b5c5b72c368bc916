/* job.c: the life of one rank: options, steps, actions, the times and the loss
 * that it reports, failure.
 *
 * What is told to the launcher goes into this rank's record (local/control.h);
 * nothing here waits for the launcher, except when it is so far behind that a
 * step would be lost. A program that runs alone has a private record and prints
 * its steps itself. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu/device.h"
#include "fail.h"
#include "job.h"
#include "random.h"
#include "shown.h"

Job pp_job;

static struct {
    const char *action;  // that runs
    int64_t begin;       // of the action that runs
    int64_t blocked;     // pp_job.blocked at that time
    uint64_t dice;       // state of --delay
} local;

/* ---- failure ---- */

static void name_action(char *text, size_t size)
{
    RankRecord *self = pp_job.self;
    char number[16] = "";
    if (self->micro >= 0)
        snprintf(number, sizeof number, "%d", self->micro);
    if (pp_job.step == 0)
        snprintf(text, size, "%s", "");
    else if (self->action[0])
        snprintf(text, size, "%s %s%s of step %d",
                 atomic_load(&self->computing) ? " in" : " after", self->action,
                 number, pp_job.step);
    else
        snprintf(text, size, " in step %d", pp_job.step);
}

_Noreturn void pp_fail(const char *format, ...)
{
    char message[900], action[2 * TEXT] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    pp_show(message);

    pp_drop_draft();
    Control *control = pp_job.control;
    if (!control || pp_job.alone) {
        fprintf(stderr, "%s: error: %s\n", pp_job.plan.name, message);
        fflush(NULL);
        _exit(1);
    }
    if (pp_job.self)
        name_action(action, sizeof action);
    if (!atomic_exchange(&control->failing, 1)) {
        snprintf(control->reason, sizeof control->reason,
                 "rank %d failed%s: %s", pp_job.plan.rank, action, message);
        atomic_store(&control->reason_is_written, 1);
        atomic_store(&control->abort, 1);
        raise_counter(&control->news);
    }
    fflush(NULL);
    _exit(1);
}

/* ---- start ---- */

uint64_t pp_splitmix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* All ranks are given the same options: one of them speaks. */
static _Noreturn void usage(int status, const char *problem, const char *option)
{
    FILE *out = status ? stderr : stdout;
    char shown[256];
    snprintf(shown, sizeof shown, "%s", option ? option : "");
    pp_show(shown);
    if (pp_job.plan.rank == 0 && problem)
        fprintf(out, "%s: error: %s %s\noptions:\n%s", pp_job.plan.name,
                problem, shown, RANK_OPTIONS);
    else if (pp_job.plan.rank == 0)
        fprintf(out, "usage: %s\n%s",
                pp_job.alone ? "rank0 [options]" : "pprun [options] N PREFIX",
                RANK_OPTIONS);
    fflush(NULL);
    _exit(status);
}

static uint64_t whole_number(const char *option, const char *text,
                             uint64_t most)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || number > most)
        usage(2, "not a whole number in range:", option);
    return number;
}

static void take_option(const char *option, const char *value)
{
    if (!strcmp(option, "--steps"))
        pp_job.plan.steps = (int)whole_number(option, value, INT32_MAX - 1);
    else if (!strcmp(option, "--data"))
        pp_job.plan.data.path = value;
    else if (!strcmp(option, "--save"))
        pp_job.save = value;
    else if (!strcmp(option, "--delay"))
        pp_job.delay = (int64_t)whole_number(option, value, 1000000);
    else if (!strcmp(option, "--graph"))
        pp_job.graph = value;
    else if (!strcmp(option, "--transport"))
        pp_job.transport = value;
    else if (!strcmp(option, "--seed"))
        pp_job.plan.seed = whole_number(option, value, UINT64_MAX);
    else
        usage(2, "unknown option", option);
}

static void parse_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help"))
            usage(0, NULL, NULL);
        if (!strcmp(argv[i], "--quiet")) {
            pp_job.quiet = 1;
        } else if (i + 1 == argc) {
            take_option(argv[i], "0");  // an unknown one is said to be unknown
            usage(2, "a value is missing after", argv[i]);
        } else {
            take_option(argv[i], argv[i + 1]);
            i++;
        }
    }
}

static void describe(void)
{
    const PpJob *plan = &pp_job.plan;
    Control *control = pp_job.control;
    pp_job.self->rows_per_step = (int64_t)plan->microbatches * plan->data.rows *
                                 plan->data.seq;
    pp_job.self->numbers = plan->data.format == PP_NUMBERS;
    pp_job.self->micro = -1;
    snprintf(pp_job.self->job, sizeof pp_job.self->job, "%s",
             plan->hash ? plan->hash : "");
    if (plan->rank != 0)
        return;
    snprintf(control->name, sizeof control->name, "%s", plan->name);
    snprintf(control->schedule, sizeof control->schedule, "%s", plan->schedule);
    control->steps = plan->steps;
    control->bubble = plan->bubble;
}

float *pp_start(const PpJob *job, int argc, char **argv)
{
    pp_job.plan = *job;
    signal(SIGXFSZ,
           SIG_IGN);  // a file that grows too large is an error of its writing
    pp_attach();
    parse_options(argc, argv);
    describe();
    local.dice = pp_splitmix64((uint64_t)job->rank + 1);
    pp_seed = pp_job.plan.seed;
    pp_device_start();
    pp_open_data();
    pp_open_save();
    return pp_join();
}

/* ---- steps ---- */

static void print_step(int step, const StepRecord *record)
{
    int every = (pp_job.plan.steps - 1) / 48 + 1;
    if (pp_job.quiet ||
        (step % every != 0 && step != 1 && step != pp_job.plan.steps))
        return;
    printf("step %d/%d", step, pp_job.plan.steps);
    if (record->losses)
        printf("  loss %.4f", record->loss / record->losses);
    if (!isnan(record->norm))
        printf("  norm %.3f", (double)record->norm);
    printf("%s\n", record->skipped ? "  left out" : "");
    fflush(stdout);
}

void pp_report(int step, const StepRecord *record)
{
    Control *control = pp_job.control;
    RankRecord *self = pp_job.self;
    if (pp_job.alone) {
        print_step(step, record);
        return;
    }
    uint32_t behind = (uint32_t)step - STEP_LEAD;
    if ((int32_t)(behind - atomic_load(&control->reported.value)) > 0)
        raise_counter(&control->news);
    pp_await(&control->reported, behind, WAIT_LAUNCHER, "the launcher", -1, -1);
    self->steps[step % STEP_RING] = *record;
    atomic_fetch_add_explicit(&self->done.value, 1, memory_order_release);
    atomic_fetch_add_explicit(&self->progress, 1, memory_order_relaxed);
}

/* A step whose norm is not known yet is reported by pp_settle. */
static void end_step(void)
{
    if (pp_job.step == 0)
        return;
    pp_end_step();
    if (pp_job.record.begin == 0)
        pp_job.record.begin = pp_job.record.end = now_ns();
    pp_job.pending = pp_job.record;
    if (pp_job.deferred == 0)
        pp_report(pp_job.step, &pp_job.record);
}

/* See gate_of. */
static int may_start(uint32_t step)
{
    atomic_ullong *gate = &pp_job.control->gate;
    unsigned long long seen = atomic_load(gate);
    for (;;) {
        uint32_t started = (uint32_t)(seen >> 32), last = (uint32_t)seen;
        if (step > last)
            return 0;
        if (started >= step ||
            atomic_compare_exchange_weak(gate, &seen, gate_of(step, last)))
            return 1;
    }
}

int pp_step(void)
{
    return pp_job.redo ? pp_job.deferred : pp_job.step;
}

int pp_next_step(void)
{
    if (!pp_look_again()) {
        end_step();
        int next = pp_job.step + 1;
        if (next > pp_job.plan.steps || !may_start((uint32_t)next))
            return 0;
        pp_job.step = next;
    }
    int next = pp_job.step;
    pp_job.record = (StepRecord){.norm = NAN};
    pp_job.self->action[0] = 0;
    atomic_store(&pp_job.self->step, next);
    pp_mark_step();
    pp_begin_step();
    return 1;
}

/* A stop that came before the first step leaves nothing worth saving. */
int pp_finish(void)
{
    if (pp_job.save && (pp_job.step > 0 || pp_job.plan.steps == 0))
        pp_write_save();
    pp_meet_all("finish");
    atomic_store(&pp_job.self->finished, 1);
    fflush(NULL);
    return 0;
}

/* ---- actions ---- */

void pp_delay(void)
{
    if (pp_job.delay == 0)
        return;
    local.dice = pp_splitmix64(local.dice);
    int64_t microseconds = (int64_t)(local.dice % (uint64_t)(pp_job.delay + 1));
    struct timespec pause = {microseconds / 1000000,
                             microseconds % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

void pp_begin(const char *action, int micro)
{
    RankRecord *self = pp_job.self;
    pp_delay();
    snprintf(self->action, sizeof self->action, "%s", action);
    self->micro = micro;
    local.action = action;
    atomic_store_explicit(&self->computing, 1, memory_order_release);
    local.blocked = pp_job.blocked;
    local.begin = now_ns();
    if (pp_job.record.begin == 0) {
        pp_job.record.begin = local.begin;
        pp_job.record.model_begin = self->pace.clock;
    }
}

void pp_end(void)
{
    int64_t end = now_ns();
    pp_job.record.busy += end - local.begin - (pp_job.blocked - local.blocked);
    pp_job.record.end = end;
    pp_job.record.model_end = pp_job.self->pace.clock;
    pp_note_event(EVENT_COMPUTE, local.action, pp_job.self->micro, -1,
                  local.begin, end);
    if (pp_job.looking && pp_job.bad_norm && !strchr(local.action, 'F'))
        pp_look_at_gradients();
    atomic_store_explicit(&pp_job.self->computing, 0, memory_order_release);
    atomic_fetch_add_explicit(&pp_job.self->progress, 1, memory_order_relaxed);
}

/* The pages are there since the start; strncpy stops at the name's end and
 * clears the rest. */
void pp_note_event(EventKind kind, const char *name, int micro, int peer,
                   int64_t begin, int64_t end)
{
    if (pp_job.event == pp_job.event_end)
        return;
    Event *event = pp_job.event++;
    event->begin = begin;
    event->end = end;
    event->step = pp_job.step;
    event->micro = micro;
    event->peer = peer;
    event->kind = kind;
    strncpy(event->name, name, sizeof event->name - 1);
}

void pp_add_losses(const float *losses, int microbatches)
{
    for (int i = 0; i < microbatches; i++) {
        if (!isfinite(losses[i]) && !pp_job.plan.skip && !pp_loss_is_bad())
            pp_fail("the loss of micro-batch %d of step %d is %s; `on "
                    "nonfinite skip` leaves such steps out",
                    i, pp_job.step, isnan(losses[i]) ? "nan" : "infinite");
        pp_job.record.loss += (double)losses[i];
    }
    pp_job.record.losses += microbatches;
}

/* The first step has rate / warmup, step `warmup` the whole rate, the last one
 * floor * rate. */
float pp_rate_at(int step, float rate, int warmup, float floor)
{
    int steps = pp_job.plan.steps;
    if (step <= warmup)
        return (float)((double)rate * step / warmup);
    if (floor >= 1 || steps <= warmup)
        return rate;
    double way = (double)(step - warmup) / (steps - warmup);
    double share = 0.5 * (1 + cos(3.14159265358979323846 * way));
    return (float)((double)rate *
                   ((double)floor + (1 - (double)floor) * share));
}
