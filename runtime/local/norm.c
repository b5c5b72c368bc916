/* norm.c: the norm of all gradients of all ranks, and the two ways to clip by it.
 *
 * Each rank notes the squares of its own parameters and raises a counter. Who
 * needs the norm waits for the counters of all and adds the squares in the order
 * of the parameters: the same bits on every rank.
 *
 *     pp_clip               waits at once: nobody updates before all have reduced
 *     pp_defer, pp_settle   wait a step later, where the first gradients are made:
 *
 *     step n      ... reduce [squares]  pp_defer: 1   update
 *     step n + 1  warmup                pp_settle: the norm of step n
 *                 if it had to be clipped: undo, update, pp_restart, warmup once more
 *
 * (Qi et al. 2024, Zero Bubble Pipeline Parallelism, section 4, call the second
 * post-validation.) Only an update that was not clipped is a good guess for the
 * next: after one that was, pp_defer waits like pp_clip, and nothing is undone.
 * All ranks guess alike, since they know the same norms.
 *
 * Two sets of squares take turns. A rank notes its squares of step n + 2 when it
 * knows the norm of n + 1, so all have noted n + 1, so all knew the norm of n. */
#include "shared.h"
#include "../fail.h"

#include <math.h>
#include <stdio.h>

typedef struct Gradient {  // of a parameter whose squares this rank notes
    const char *name;      // NULL: another rank does
    const float *values;
    size_t count;
} Gradient;

static struct {
    Gradient *gradients;  // [parameters]
    uint32_t noted;       // sets of squares that this rank has completed
    float scale;          // by the last norm that is known
    int clipped;          // that norm was beyond the limit
} own;

static double *squares(uint32_t set)
{
    return pp_shared.squares +
           (size_t)(set & 1) * (size_t)pp_job.plan.parameters;
}

void pp_open_norm(void)
{
    own.gradients = pp_allocate((size_t)pp_job.plan.parameters + 1,
                                sizeof *own.gradients);
}

/* Eight sums, so that the compiler may use vectors; they are fixed, so the bits
 * are, too. */
void pp_square(const char *name, int parameter, const float *grad, size_t count)
{
    own.gradients[parameter] = (Gradient){name, grad, count};
    double sum[8] = {0};
    size_t whole = count / 8 * 8;
    for (size_t i = 0; i < whole; i += 8)
        for (size_t j = 0; j < 8; j++)
            sum[j] += (double)grad[i + j] * (double)grad[i + j];
    for (size_t i = whole; i < count; i++)
        sum[i - whole] += (double)grad[i] * (double)grad[i];
    squares(own.noted)[parameter] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) +
                                    ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* A loss that is no number leaves the step out on all ranks, also where the
 * gradients are numbers. */
static void squares_are_noted(void)
{
    pp_job.self->no_number[own.noted & 1] = !isfinite(pp_job.record.loss);
    own.noted++;
    raise_counter(&pp_job.self->squared);
}

/* The first whose squares are no number; where only the sum of all is too large,
 * the one with the most. */
static int worst_parameter(uint32_t set)
{
    const double *square = squares(set);
    int worst = 0;
    for (int i = 0; i < pp_job.plan.parameters && isfinite(square[worst]); i++)
        if (!isfinite(square[i]) || square[i] > square[worst])
            worst = i;
    return worst;
}

/* The second look. Gradients are added up micro-batch by micro-batch, so the
 * first after which one is no number has made it none; of several parameters
 * the last in the model, which a backward reaches first. */
void pp_look_at_gradients(void)
{
    RankRecord *self = pp_job.self;
    for (int i = pp_job.plan.parameters; i > 0 && !self->bad_gradient; i--) {
        const Gradient *gradient = &own.gradients[i - 1];
        for (size_t k = 0; gradient->name && k < gradient->count; k++)
            if (!isfinite(gradient->values[k])) {
                self->bad_gradient = i;
                self->bad_micro = self->micro;
                break;
            }
    }
}

/* Of all ranks. 0: each gradient was a number before all uses were added, or
 * there was no second look. */
static int first_gradient(int *micro)
{
    int first = 0;
    for (int i = 0; i < pp_shared.ranks; i++) {
        const RankRecord *record = &pp_job.control->records[i];
        int earlier = !first || record->bad_micro < *micro ||
                      (record->bad_micro == *micro &&
                       record->bad_gradient > first);
        if (record->bad_gradient && earlier) {
            first = record->bad_gradient;
            *micro = record->bad_micro;
        }
    }
    return first;
}

/* All ranks know the same squares: the one that knows the parameter's name
 * speaks, and the others wait for that. */
static _Noreturn void fail_by_norm(float norm, int step)
{
    char where[32] = "";
    int micro = 0, first = first_gradient(&micro),
        parameter = first ? first - 1 : worst_parameter(own.noted - 1);
    const char *name = own.gradients[parameter].name;
    if (first)
        snprintf(where, sizeof where, " in micro-batch %d", micro);
    if (name)
        pp_fail("the norm of the gradients of step %d is %s, by that of %s%s; "
                "`on nonfinite skip` leaves such steps out",
                step, isnan(norm) ? "nan" : "infinite", name, where);
    for (;;)
        pp_meet_all("clip");
}

/* All ranks come to the same end, since they know the same squares. A step whose
 * update is left out can be run again; where it was made already, it is too late
 * to look. */
static float without_norm(float norm, int step, StepRecord *record)
{
    int skip = pp_job.plan.skip, lost = pp_loss_is_bad();
    if (!skip && !lost && (pp_job.looking || pp_job.deferred))
        fail_by_norm(norm, step);
    record->skipped = skip;
    pp_job.bad_norm = !skip && !lost;
    own.clipped = 0;
    return own.scale = NAN;
}

/* The norm of the last squares, into the record of their step, and own.scale. */
static float await_norm(float limit, int step, StepRecord *record)
{
    double total = 0;
    int bad = 0;
    for (int i = 0; i < pp_shared.ranks; i++)
        pp_await(&pp_job.control->records[i].squared, own.noted, WAIT_MEETING,
                 "clip", -1, i);
    for (int i = 0; i < pp_shared.ranks; i++)
        bad |= pp_job.control->records[i].no_number[(own.noted - 1) & 1];
    for (int i = 0; i < pp_job.plan.parameters; i++)
        total += squares(own.noted - 1)[i];
    pp_progress();
    float norm = (float)sqrt(total);
    record->norm = norm;
    if (bad || !isfinite(norm))
        return without_norm(norm, step, record);
    own.clipped = norm > limit;
    own.scale = own.clipped ? limit / norm : 1.0f;
    return own.scale;
}

float pp_clip(float limit)
{
    squares_are_noted();
    return await_norm(limit, pp_job.step, &pp_job.record);
}

/* ---- a step later ---- */

float pp_defer(float limit)
{
    if (pp_job.redo)
        return own.scale;
    squares_are_noted();
    if (pp_loss_is_bad())
        return NAN;
    if (own.clipped)
        return await_norm(limit, pp_job.step, &pp_job.record);
    pp_job.deferred = pp_job.step;
    return 1.0f;
}

int pp_settle(float limit)
{
    if (pp_job.deferred == 0)
        return 0;
    await_norm(limit, pp_job.deferred, &pp_job.pending);
    pp_report(pp_job.deferred, &pp_job.pending);
    pp_job.redo = own.clipped;
    if (!own.clipped)
        pp_job.deferred = 0;
    return own.clipped;
}

/* Between the two meetings nobody sends: all have done what comes before
 * pp_settle, and what nobody has received of it is forgotten. */
void pp_restart(void)
{
    pp_meet_all("the start of the step, once more");
    for (int i = 0; i < pp_shared.ranks; i++) {
        Wire *wire = pp_wire(i, pp_shared.rank);
        atomic_store(&wire->taken.value, atomic_load(&wire->sent.value));
    }
    pp_meet_all("the start of the step, once more");
    pp_job.deferred = pp_job.redo = 0;
    pp_job.record.busy = 0;  // what was in vain is no use of the time
    pp_mark_step();
}
