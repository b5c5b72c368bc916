/* bridge.c: the C11 side of bridge.h, and the edges of a step that job.c knows. */
#include "bridge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../fail.h"
#include "../job.h"
#include "../local/shared.h"
#include "../random.h"
#include "rendezvous.h"

static const char **names;  // [parameters] NULL: of another rank

/* ---- what job.c calls ---- */

void pp_device_start(void)
{
    host_start();
}

float *pp_join(void)
{
    names = pp_allocate((size_t)pp_job.plan.parameters + 1, sizeof *names);
    return host_arena();
}

void pp_begin_step(void)
{
    host_begin_step();
}

void pp_end_step(void)
{
    host_end_step();
}

void pp_mark_step(void)
{
    host_mark_step();
}

void pp_meet_all(const char *what)
{
    (void)what;
    host_meet();
}

const float *pp_read_back(const float *values, size_t count)
{
    return host_read_back(values, count);
}

void pp_look_at_gradients(void)
{
    /* A step is not run twice here: the host does not see a loss in time. */
}

int pp_is_started_elsewhere(void)
{
    return rendezvous_is_started(pp_job.plan.rank, pp_job.plan.ranks);
}

/* ---- what the CUDA files call ---- */

const PpJob *bridge_job(void)
{
    return &pp_job.plan;
}

int bridge_step(void)
{
    return pp_job.step;
}

int bridge_local_rank(void)
{
    return pp_job.alone ? rendezvous_local_rank() : pp_job.plan.rank;
}

int bridge_is_launched(void)
{
    return !pp_job.alone;
}

int bridge_option_graph(void)
{
    if (!pp_job.graph)
        return -1;
    if (strcmp(pp_job.graph, "on") != 0 && strcmp(pp_job.graph, "off") != 0)
        pp_fail("--graph is `on` or `off`, not `%s`", pp_job.graph);
    return strcmp(pp_job.graph, "on") == 0;
}

const char *bridge_option_transport(void)
{
    return pp_job.transport;
}

void bridge_check_abort(void)
{
    if (!pp_job.alone && atomic_load(&pp_job.control->abort))
        _exit(1);
}

void bridge_rest(void)
{
    nanosleep(&(struct timespec){0, 50000}, NULL);
}

/* The host sees a step as a whole: its begin and end, not its bubble. */
void bridge_record(const float *losses, int count, float norm)
{
    pp_add_losses(losses, count);
    pp_job.record.norm = norm;
    pp_job.record.busy = BUSY_UNKNOWN;
    pp_job.record.end = now_ns();
    if (pp_job.record.begin == 0)
        pp_job.record.begin = pp_job.record.end;
}

void bridge_name_parameter(int parameter, const char *name)
{
    names[parameter] = name;
}

/* All ranks come here in the same step. The one that knows more speaks; without
 * a launcher nobody would tell the others, so each does. */
void bridge_left_out(int lost, int worst)
{
    const char *name = names[worst];
    pp_job.record.skipped = pp_job.plan.skip;
    if (pp_job.plan.skip)
        return;
    while (!pp_job.alone && (lost || !name)) {
        bridge_check_abort();
        bridge_rest();
    }
    if (lost)
        pp_fail("a loss of step %d is no number, on another rank", pp_job.step);
    pp_fail("the norm of the gradients of step %d is %s, by that of %s; `on "
            "nonfinite skip` leaves such steps out",
            pp_job.step, isnan(pp_job.record.norm) ? "nan" : "infinite",
            name ? name : "a parameter of another rank");
}

float bridge_rate(float rate, int warmup, float floor)
{
    return pp_rate_at(pp_job.step, rate, warmup, floor);
}

void bridge_tokens(int32_t *to, int micro, int targets)
{
    if (targets)
        pp_read_token_targets(to, micro);
    else
        pp_read_tokens(to, micro);
}

void bridge_numbers(float *to, int micro, int targets)
{
    if (targets)
        pp_read_number_targets(to, micro);
    else
        pp_read_numbers(to, micro);
}

void bridge_draw_normal(float *w, size_t count, const char *name,
                        float deviation)
{
    pp_draw_normal(w, count, name, deviation);
}

/* With a launcher through its control block, else over the network. */
void bridge_share_id(void *id, size_t bytes, void (*make)(void *id))
{
    Control *control = pp_job.control;
    if (pp_job.plan.rank == 0)
        make(id);
    if (pp_job.plan.ranks == 1)
        return;
    if (pp_job.alone) {
        rendezvous_share(id, bytes, pp_job.plan.rank, pp_job.plan.ranks);
        return;
    }
    if (bytes > sizeof control->id)
        pp_fail("an id of %zu bytes does not fit", bytes);
    if (pp_job.plan.rank == 0) {
        memcpy(control->id, id, bytes);
        raise_counter(&control->id_is_there);
    }
    pp_await(&control->id_is_there, 1, WAIT_START, "start", -1, 0);
    memcpy(id, control->id, bytes);
}

/* ---- memory shared with the ranks of this machine ---- */

char *bridge_join(size_t bytes)
{
    return pp_join_region(bytes);
}

char *bridge_part(int rank)
{
    return pp_shared.region + pp_shared.arenas[rank];
}

size_t bridge_region(char **region)
{
    *region = pp_shared.region;
    return pp_shared.length;
}

static uint32_t *word(Counter *counter)
{
    return (uint32_t *)(void *)&counter->value;
}

uint32_t *bridge_sent(int from, int to)
{
    return word(&pp_wire(from, to)->sent);
}

uint32_t *bridge_taken(int from, int to)
{
    return word(&pp_wire(from, to)->taken);
}

uint32_t *bridge_met(int from, int to)
{
    return word(&pp_shared.meets[from * pp_shared.ranks + to]);
}
