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

typedef struct GivenKey {
    const char *key;
    size_t field;  // offset of a Given in Settings
    bool time;     // needs a unit of time; one for each chunk, else for each rank
    double least, most;
    const char *example;
} GivenKey;

#define GIVEN(kind) offsetof(Settings, given) + (kind) * sizeof(Given)
static const GivenKey keys[] = {
    {"forward", GIVEN(ACT_F), true, 0, 1e6, "forward [18ms 17ms]"},
    {"backward", GIVEN(ACT_B), true, 0, 1e6, "backward 40ms"},
    {"input_gradient", GIVEN(ACT_I), true, 0, 1e6,
     "input_gradient 18ms  weight_gradient 22ms"},
    {"weight_gradient", GIVEN(ACT_W), true, 0, 1e6,
     "input_gradient 18ms  weight_gradient 22ms"},
    {"flops", offsetof(Settings, flops), false, 1, 1e30, "flops 312T"},
    {"memory", offsetof(Settings, memory), false, 1, 1e30, "memory 80G"},
};
enum { KEYS = sizeof keys / sizeof *keys };

static Given *field_of(Settings *set, const GivenKey *key)
{
    return (Given *)((char *)set + key->field);
}

static void add_value(Program *p, const GivenKey *key, const Tree *value)
{
    Given *given = field_of(&p->set, key);
    double number = 0;
    if (!constant(p, value, &number))
        return;
    bool time = is_time(p, value, 0);
    if (key->time && !time) {
        error_at(p, value->at, "a time needs a unit");
        help(p, "18.5ms; units of time are s, ms, us and ns");
    } else if (key->time && (number < 0 || number > key->most)) {
        error_at(p, value->at, "a time must be from 0 to 1e6 s, not %s s",
                 number_text(p, number));
    } else if (time && !key->time) {
        error_at(p, value->at, "`%s` is not a time", key->key);
        help(p, "write it without a unit of time");
    } else if (number < key->least || number > key->most) {
        error_at(p, value->at, "`%s` is %s, but must be from %s to %s",
                 key->key, number_text(p, number), number_text(p, key->least),
                 number_text(p, key->most));
    }
    given->value = array_grow(p->arena, given->value, given->count,
                              sizeof *given->value);
    given->value[given->count++] = number;
}

int find_given(const char *name)
{
    for (int i = 0; i < KEYS; i++)
        if (strcmp(keys[i].key, name) == 0)
            return i;
    return -1;
}

const char *given_example(int which)
{
    return keys[which].example;
}

void set_given(Program *p, int which, Span at, const Tree *value)
{
    const GivenKey *key = &keys[which];
    Given *given = field_of(&p->set, key);
    *given = (Given){.at = at};
    if (value->kind != TREE_LIST) {
        add_value(p, key, value);
        return;
    }
    if (!value->child) {
        error_at(p, value->at, "an empty list");
        help(p, "one number for every %s, or one for each: %s",
             key->time ? "chunk" : "rank", key->example);
    }
    for (const Tree *number = value->child;
         number && p->errors <= MAX_ERRORS; number = number->next)
        add_value(p, key, number);
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
    {"v100", 125e12, 32e9, 150e9, 6.25e9},  {"a100", 312e12, 80e9, 300e9, 25e9},
    {"h100", 989e12, 80e9, 450e9, 50e9},    {"h200", 989e12, 141e9, 450e9, 50e9},
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
    for (int i = 0; i < KEYS; i++) {
        const Given *given = field_of(&p->set, &keys[i]);
        if (!given->count || given == &set->memory)
            continue;
        error_at(p, given->at, "`%s` is not a setting of `cluster unit`",
                 keys[i].key);
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
    for (int i = 0; i < KEYS; i++) {
        const Given *one = field_of(&p->set, &keys[i]);
        if (!keys[i].time || !one->count || (given[ACT_F].count && back))
            continue;
        error_at(p, one->at, "`%s` needs %s beside it", keys[i].key,
                 one == &given[ACT_F]
                     ? "`backward`, or `input_gradient` and `weight_gradient`,"
                     : "`forward`, and all of a backward");
        help(p, "cluster { forward 18ms  backward 40ms }, or forward, "
                "input_gradient and weight_gradient");
        return;
    }
}

bool given_fit(Program *p)
{
    for (int i = 0; i < KEYS; i++) {
        const Given *given = field_of(&p->set, &keys[i]);
        int count = keys[i].time ? p->copy_chunks : p->ranks;
        if (given->count <= 1 || given->count == count)
            continue;
        const char *what = keys[i].time ? "chunk" : "rank";
        error_at(p, given->at, "%d %s for %d %ss", given->count,
                 keys[i].time ? "times" : "numbers", count, what);
        note_at(p, p->set.stages.at, "%g stages, from here",
                p->set.stages.value);
        help(p, "one for each %s, in order, or one for all", what);
        return false;
    }
    return true;
}
