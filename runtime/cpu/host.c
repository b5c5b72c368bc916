/* host.c: what pp.h offers beside kernels, where the arena is host memory: data,
 * initial values and the learning rate are simply there when they are asked
 * for, and a call is done when it returns. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

#include "../job.h"
#include "../random.h"

enum {
    SPIN =
        50000,  // ns: an emulated action ends spinning, where each rank has a core
    SIGN = 1000000000,  // ns: most between two signs of life
};

void pp_tokens(int32_t *tokens, int micro)
{
    pp_read_tokens(tokens, micro);
}

void pp_token_targets(int32_t *targets, int micro)
{
    pp_read_token_targets(targets, micro);
}

void pp_numbers(float *values, int micro)
{
    pp_read_numbers(values, micro);
}

void pp_number_targets(float *values, int micro)
{
    pp_read_number_targets(values, micro);
}

void pp_normal(float *w, size_t count, const char *name, float deviation)
{
    pp_draw_normal(w, count, name, deviation);
}

float pp_rate(float rate, int warmup, float floor)
{
    return pp_rate_at(pp_step(), rate, warmup, floor);
}

void pp_loss(const float *losses, int microbatches)
{
    pp_add_losses(losses, microbatches);
}

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
    pp_job.clock += nanoseconds;
    int64_t sleep = pp_job.clock - spin_time(), now;
    while ((now = now_ns()) < sleep) {
        sleep_until(sleep - now > SIGN ? now + SIGN : sleep);
        pp_progress();
    }
    while ((now = now_ns()) < pp_job.clock)
        continue;
    if (nanoseconds > 0 && now - pp_job.clock > pp_job.self->late)
        pp_job.self->late = now - pp_job.clock;
}

int pp_is_started_elsewhere(void)
{
    return 0;  // the transport is shared memory: only pprun can start ranks
}

void pp_begin_step(void)
{
}

void pp_end_step(void)
{
}

void pp_copy(float *to, const float *from, size_t count)
{
    memcpy(to, from, count * sizeof *to);
}

const float *pp_read_back(const float *values, size_t count)
{
    (void)count;
    return values;
}
