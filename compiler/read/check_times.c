/* check_times.c: times of actions that the `cluster` block gives, measured or
 * guessed, in place of operations over `flops`.
 *
 *     cluster { forward [18ms 17ms]  backward 40ms  latency 10us }
 *
 * Reads: set. Writes: set.given. Guarantees: with `forward` there is a backward,
 * whole or in its two parts; whether a list has one time for each chunk is seen
 * in partition. */
#include "check.h"

static const char *key_of(ActionKind kind)
{
    for (int i = 0; i < setting_count; i++)
        if (setting_rows[i].set == set_times &&
            setting_rows[i].field == TIMES_OF(kind))
            return setting_rows[i].key;
    return "";
}

static void add_time(Program *p, const SettingRow *row, const Tree *value)
{
    Given *given = (Given *)((char *)&p->set + row->field);
    double seconds = 0;
    if (!constant(p, value, &seconds))
        return;
    if (!is_time(p, value, 0)) {
        error_at(p, value->at, "a time needs a unit");
        help(p, "18.5ms; units of time are s, ms, us and ns");
    } else if (seconds < row->least || seconds > row->most) {
        error_at(p, value->at, "a time must be from %s to %s s, not %s s",
                 number_text(p, row->least), number_text(p, row->most),
                 number_text(p, seconds));
    }
    given->time = array_grow(p->arena, given->time, given->count,
                             sizeof *given->time);
    given->time[given->count++] = seconds;
}

const Tree *set_times(Program *p, const SettingRow *row, Span at,
                      const Tree *value)
{
    Given *given = (Given *)((char *)&p->set + row->field);
    given->at = at;
    if (value->kind != TREE_LIST) {
        add_time(p, row, value);
        return value->next;
    }
    if (!value->child) {
        error_at(p, value->at, "an empty list of times");
        help(p, "one time for every chunk, or one for each: %s [18ms 17ms]",
             row->key);
    }
    for (const Tree *time = value->child; time && p->errors <= MAX_ERRORS;
         time = time->next)
        add_time(p, row, time);
    return value->next;
}

static void help_with_all(Program *p)
{
    help(p, "cluster { forward 18ms  backward 40ms }, or forward, "
            "input_gradient and weight_gradient");
}

/* One part of a backward alone says nothing of the other. */
static bool parts_come_together(Program *p)
{
    const Given *given = p->set.given;
    if (!given[ACT_I].count == !given[ACT_W].count)
        return true;
    ActionKind there = given[ACT_I].count ? ACT_I : ACT_W,
               other = there == ACT_I ? ACT_W : ACT_I;
    error_at(p, given[there].at, "`%s` needs `%s` beside it", key_of(there),
             key_of(other));
    if (!given[ACT_F].count)
        help_with_all(p);
    else if (given[ACT_B].count)
        help(p, "leave it out: a `backward` is shared out by operations");
    else
        help(p, "add `%s 22ms`, or write `backward 40ms` for both parts",
             key_of(other));
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
        const Given *one = &given[i];
        if (!one->count || (given[ACT_F].count && back))
            continue;
        error_at(p, one->at, "`%s` needs %s beside it", key_of((ActionKind)i),
                 i == ACT_F
                     ? "`backward`, or `input_gradient` and `weight_gradient`,"
                     : "`forward` and all of a backward");
        help_with_all(p);
        return;
    }
}

bool given_times_fit(Program *p)
{
    for (int i = 0; i < 4; i++) {
        const Given *given = &p->set.given[i];
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
