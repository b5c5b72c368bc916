/* check_cluster.c: what the `cluster` block gives in numbers for all, or one for
 * each chunk or rank: times of actions, in place of operations over `flops`, and
 * what a rank can do; and the machines that have a name.
 *
 *     cluster { forward [18ms 17ms]  backward 40ms  latency 10us }
 *     cluster h100 { memory [80G 80G 48G 48G]  node 4 }
 *
 * Reads: set. Writes: set. Guarantees: with `forward` there is a backward, whole
 * or in its two parts; whether a list has as many numbers as there are chunks or
 * ranks is seen in partition. */
#include "check.h"

#include <stddef.h>
#include <string.h>

static Given *field_of(Settings *set, const SettingRow *row)
{
    return (Given *)((char *)set + row->field);
}

static void add_value(Program *p, const SettingRow *row, const Tree *value)
{
    Given *given = field_of(&p->set, row);
    double number = 0;
    if (!constant(p, value, &number))
        return;
    bool time = is_time(p, value, 0);
    if (row->time && !time) {
        error_at(p, value->at, "a time needs a unit");
        help(p, "18.5ms; units of time are s, ms, us and ns");
    } else if (row->time && (number < row->least || number > row->most)) {
        error_at(p, value->at, "a time must be from %s to %s s, not %s s",
                 number_text(p, row->least), number_text(p, row->most),
                 number_text(p, number));
    } else if (time && !row->time) {
        error_at(p, value->at, "`%s` is not a time", row->key);
        help(p, "write it without a unit of time");
    } else if (number < row->least || number > row->most) {
        error_at(p, value->at, "`%s` is %s, but must be from %s to %s",
                 row->key, number_text(p, number), number_text(p, row->least),
                 number_text(p, row->most));
    }
    given->value = array_grow(p->arena, given->value, given->count,
                              sizeof *given->value);
    given->value[given->count++] = number;
}

const Tree *set_given(Program *p, const SettingRow *row, Span at,
                      const Tree *value)
{
    Given *given = field_of(&p->set, row);
    *given = (Given){.at = at};
    if (value->kind != TREE_LIST) {
        add_value(p, row, value);
        return value->next;
    }
    if (!value->child) {
        error_at(p, value->at, "an empty list");
        help(p, "one number for every %s, or one for each: %s %s",
             row->time ? "chunk" : "rank", row->key,
             row->time ? "[18ms 17ms]" : "[80G 48G]");
    }
    for (const Tree *number = value->child; number && p->errors <= MAX_ERRORS;
         number = number->next)
        add_value(p, row, number);
    return value->next;
}

/* ---- machines with a name ---- */

/* Dense bf16 operations and memory of one device, bytes per second of one
 * direction of its links: inside a machine, and to other machines by one network
 * port for each device.
 *
 *   v100  NVIDIA V100 SXM2 32 GB data sheet: 125 Tflop/s (fp16), NVLink 300 GB/s
 *         both ways; DGX-1: 8 devices, 4 x 100 Gbit/s InfiniBand
 *   a100  NVIDIA A100 80 GB SXM data sheet: 312 Tflop/s, NVLink 600 GB/s both
 *         ways; DGX A100: 8 devices, 8 x 200 Gbit/s
 *   h100  NVIDIA H100 SXM data sheet: 989 Tflop/s, NVLink 900 GB/s both ways; DGX
 *         H100: 8 devices, 8 x 400 Gbit/s
 *   h200  NVIDIA H200 data sheet: as h100, 141 GB
 *   b200  NVIDIA DGX B200 data sheet: 2.25 Pflop/s and 180 GB a device, NVLink
 *         1.8 TB/s both ways, 8 x 400 Gbit/s
 *
 * The latencies, 2 us and 10 us, are round figures and no one's promise. */
static const struct {
    const char *name;
    double flops, memory, node_link, link;
} machines[] = {
    {"v100", 125e12, 32e9, 150e9, 6.25e9}, {"a100", 312e12, 80e9, 300e9, 25e9},
    {"h100", 989e12, 80e9, 450e9, 50e9},   {"h200", 989e12, 141e9, 450e9, 50e9},
    {"b200", 2250e12, 180e9, 900e9, 50e9},
};
enum { MACHINES = sizeof machines / sizeof *machines };

/* F = I = W = 1 of each chunk, messages 0: what there is without a block. */
static const char unit_name[] = "unit";

static Given one_for_all(Program *p, double value, Span at)
{
    double *number = arena_take(p->arena, sizeof *number);
    *number = value;
    return (Given){number, 1, at};
}

static void unknown_machine(Program *p, const Tree *name)
{
    const char *known[MACHINES + 1], *list = unit_name;
    for (int i = 0; i < MACHINES; i++) {
        known[i] = machines[i].name;
        list = text_format(p->arena, "%s, %s", list, known[i]);
    }
    known[MACHINES] = unit_name;
    const char *near = nearest(name->text, known, MACHINES + 1);
    error_at(p, name->at, "no cluster is called `%s`", name->text);
    if (near)
        help(p, "did you mean `%s`", near);
    else
        help(p, "known are %s; or give flops, link and latency without a name",
             list);
}

/* Before the lines of the block, which win over it. */
void set_machine(Program *p, const Tree *name)
{
    Settings *set = &p->set;
    set->preset = name->text;
    if (strcmp(name->text, unit_name) == 0)
        return;
    for (int i = 0; i < MACHINES; i++) {
        if (strcmp(machines[i].name, name->text) != 0)
            continue;
        set->flops = one_for_all(p, machines[i].flops, name->at);
        set->memory = one_for_all(p, machines[i].memory, name->at);
        set->link = (Number){machines[i].link, name->at};
        set->latency = (Number){10e-6, name->at};
        set->node = (Number){8, name->at};
        set->node_link = (Number){machines[i].node_link, name->at};
        set->node_latency = (Number){2e-6, name->at};
        return;
    }
    unknown_machine(p, name);
}

/* ---- what belongs together ---- */

static const char *key_of(ActionKind kind)
{
    for (int i = 0; i < setting_count; i++)
        if (setting_rows[i].set == set_given &&
            setting_rows[i].field == TIMES_OF(kind))
            return setting_rows[i].key;
    return "";
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
        sum += given->value[i];
    if (sum > 0 || !given->count)
        return true;
    error_at(p, given->at, "no forward takes any time");
    help(p, "forward 18ms");
    return false;
}

/* The textbook's chunks take one unit each, whatever they are. */
static bool unit_alone(Program *p)
{
    const Settings *set = &p->set;
    if (!set->preset || strcmp(set->preset, unit_name) != 0)
        return true;
    for (int i = 0; i < setting_count; i++) {
        const SettingRow *row = &setting_rows[i];
        const Given *given = field_of(&p->set, row);
        if (row->set != set_given || !given->count || given == &set->memory)
            continue;
        error_at(p, given->at, "`%s` is not a setting of `cluster unit`",
                 row->key);
        help(p, "leave `unit` out, or leave this out");
        return false;
    }
    return true;
}

void check_cluster(Program *p)
{
    const Given *given = p->set.given;
    bool back = given[ACT_B].count || given[ACT_I].count;
    if (p->errors || !unit_alone(p) || !parts_come_together(p) ||
        !takes_time(p))
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

bool given_fit(Program *p)
{
    for (int i = 0; i < setting_count; i++) {
        const SettingRow *row = &setting_rows[i];
        const Given *given = field_of(&p->set, row);
        if (row->set != set_given)
            continue;
        int count = row->time ? p->copy_chunks : p->ranks;
        if (given->count <= 1 || given->count == count)
            continue;
        const char *what = row->time ? "chunk" : "rank";
        error_at(p, given->at, "%d %s for %d %ss", given->count,
                 row->time ? "times" : "numbers", count, what);
        note_at(p, p->set.stages.at, "%g stages, from here",
                p->set.stages.value);
        help(p, "one for each %s, in order, or one for all", what);
        return false;
    }
    return true;
}
