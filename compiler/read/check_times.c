/* check_times.c: times of actions that the `cluster` block gives, measured or
 * guessed, in place of operations over `flops`.
 *
 *     cluster { forward [18ms 17ms]  backward 40ms  latency 10us }
 *
 * Reads: set. Writes: set.given. Guarantees: with `forward` there is a backward,
 * whole or in its two parts; whether a list has one time for each chunk is seen
 * in partition. */
#include "check.h"

static const struct {
    const char *key;
    ActionKind kind;
} times[] = {{"forward", ACT_F},
             {"backward", ACT_B},
             {"input_gradient", ACT_I},
             {"weight_gradient", ACT_W}};

static void add_time(Program *p, Given *given, const Tree *value)
{
    double seconds = 0;
    if (!constant(p, value, &seconds))
        return;
    if (!is_time(p, value, 0)) {
        error_at(p, value->at, "a time needs a unit");
        help(p, "18.5ms; units of time are s, ms, us and ns");
    } else if (seconds < 0 || seconds > 1e6) {
        error_at(p, value->at, "a time must be from 0 to 1e6 s, not %s s",
                 number_text(p, seconds));
    }
    given->time = array_grow(p->arena, given->time, given->count,
                             sizeof *given->time);
    given->time[given->count++] = seconds;
}

void set_times(Program *p, int which, Span at, const Tree *value)
{
    Given *given = &p->set.given[times[which].kind];
    given->at = at;
    if (value->kind != TREE_LIST) {
        add_time(p, given, value);
        return;
    }
    if (!value->child) {
        error_at(p, value->at, "an empty list of times");
        help(p, "one time for every chunk, or one for each: %s [18ms 17ms]",
             times[which].key);
    }
    for (const Tree *time = value->child; time && p->errors <= MAX_ERRORS;
         time = time->next)
        add_time(p, given, time);
}

/* One part of a backward alone says nothing of the other. */
static bool parts_come_together(Program *p)
{
    const Given *input = &p->set.given[ACT_I], *weight = &p->set.given[ACT_W];
    if (!input->count == !weight->count)
        return true;
    error_at(p, input->count ? input->at : weight->at,
             "`%s` needs `%s` beside it",
             input->count ? "input_gradient" : "weight_gradient",
             input->count ? "weight_gradient" : "input_gradient");
    help(p, "leave it out: a `backward` is shared out by operations");
    return false;
}

static bool takes_time(Program *p)
{
    const Given *given = &p->set.given[ACT_F];
    double sum = 0;
    for (int i = 0; i < given->count; i++)
        sum += given->time[i];
    if (sum > 0 || !given->count)
        return true;
    error_at(p, given->at, "no forward takes any time");
    help(p, "forward 18ms");
    return false;
}

void check_times(Program *p)
{
    const Given *given = p->set.given;
    bool back = given[ACT_B].count || given[ACT_I].count;
    if (p->errors || !parts_come_together(p) || !takes_time(p))
        return;
    for (int i = 0; i < 4; i++) {
        const Given *one = &given[times[i].kind];
        if (!one->count || (given[ACT_F].count && back))
            continue;
        error_at(p, one->at, "`%s` needs %s beside it", times[i].key,
                 times[i].kind == ACT_F
                     ? "`backward`, or `input_gradient` and `weight_gradient`,"
                     : "`forward`, and all of a backward");
        help(p, "cluster { forward 18ms  backward 40ms }, or forward, "
                "input_gradient and weight_gradient");
        return;
    }
}

bool given_times_fit(Program *p)
{
    for (int i = 0; i < 4; i++) {
        const Given *given = &p->set.given[times[i].kind];
        if (given->count <= 1 || given->count == p->copy_chunks)
            continue;
        error_at(p, given->at, "%d times for %d chunks", given->count,
                 p->copy_chunks);
        note_at(p, p->set.stages.at, "%g stages, from here",
                p->set.stages.value);
        help(p, "one time for each chunk, in the order of the model, or one "
                "for all");
        return false;
    }
    return true;
}
