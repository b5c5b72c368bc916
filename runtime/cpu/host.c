/* host.c: what pp.h offers beside kernels, where the arena is host memory: data,
 * initial values and the learning rate are simply there when they are asked
 * for, and a call is done when it returns. */
#include <string.h>

#include "../job.h"
#include "../random.h"

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
