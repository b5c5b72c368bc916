/* look.c: where a number became none.
 *
 * A step is not watched: that would cost a pass over all that it makes. Its
 * losses are, each before its gradient is made, and its norm. Where one is no
 * number, no rank updates, so the parameters are still those that made it: the
 * step is run once more, with the same bits, and now every layer's output is
 * looked at, of the first micro-batch with such a loss, or every gradient.
 *
 *     rank 0   F0 F1 ...            B0 (knows) ... no update | F0: pp_look fails, or is silent
 *     rank 1      F0  B0: pp_check_loss notes it   no update |     F0 ...
 *
 * The note is made before the gradient of that micro-batch leaves the last
 * stage, and every rank needs that gradient, in a chain of messages, before it
 * can update: so all know. Along the model a layer computes when those before it
 * were looked at, so the first one to fail is the first one. */
#include <math.h>

#include "fail.h"
#include "job.h"

typedef struct BadLoss {
    int step, micro, is_nan;
} BadLoss;

static BadLoss bad_loss(void)
{
    unsigned long long seen = atomic_load(&pp_job.control->bad_loss);
    return (BadLoss){(int)(seen >> 32), (int)(seen >> 1 & INT32_MAX),
                     (int)(seen & 1)};
}

int pp_loss_is_bad(void)
{
    return pp_job.step > 0 && bad_loss().step == pp_job.step;
}

/* The first micro-batch of several, as a rank may have the ends of two copies of
 * the model. */
static void note_loss(float loss, int micro)
{
    atomic_ullong *noted = &pp_job.control->bad_loss;
    unsigned long long seen = atomic_load(noted),
                       fresh = (unsigned long long)pp_job.step << 32 |
                               (unsigned long long)micro << 1 |
                               (isnan(loss) ? 1 : 0);
    while ((seen == 0 || fresh < seen) &&
           !atomic_compare_exchange_weak(noted, &seen, fresh))
        continue;
}

static _Noreturn void fail_at(const char *layer)
{
    BadLoss bad = bad_loss();
    pp_fail(
        "the loss of micro-batch %d of step %d is %s: the first layer whose "
        "output is no number is %s; `on nonfinite skip` leaves such steps "
        "out",
        bad.micro, bad.step, bad.is_nan ? "nan" : "infinite", layer);
}

void pp_check_loss(const char *layer, const float *loss, int micro)
{
    if (isfinite(*loss) || pp_job.plan.skip)
        return;
    if (!pp_job.looking)
        note_loss(*loss, micro);
    else if (micro == bad_loss().micro)
        fail_at(layer);
}

float pp_scale(void)
{
    return pp_loss_is_bad() ? NAN : 1;
}

void pp_look(const char *layer, const float *values, size_t count)
{
    if (!pp_job.looking || pp_job.bad_norm ||
        pp_job.self->micro != bad_loss().micro)
        return;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            fail_at(layer);
}

int pp_look_again(void)
{
    if (pp_job.looking || !(pp_loss_is_bad() || pp_job.bad_norm))
        return 0;
    pp_job.looking = 1;
    return 1;
}
