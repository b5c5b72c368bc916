/* check_settings.c: the first half of check: lets, and the blocks pipeline,
 * train and cluster.
 *
 * Reads: file, defines. Writes: lets, set. Guarantees: every setting is in
 * range; what was not written has its default and the span -1.
 *
 * A line is a key and its values; a block may hold several keys on one line.
 * What came by -D is put in first, so a key of the file that is already there
 * is skipped. A setting is one row of setting_rows: help, errors, and the test
 * that the documents name it come from there. */
#include "check.h"

#include <math.h>
#include <string.h>

enum { MAX_LETS = 10000 };
static const Span nowhere = {-1, 0, 0};

static const Tree *define_of(const Program *p, const char *name)
{
    const Tree *found = NULL;
    for (int i = 0; i + 1 < p->source_count; i++)
        if (p->defines[i] && strcmp(p->defines[i]->text, name) == 0)
            found = p->defines[i];  // the last one counts
    return found;
}

static bool add_let(Program *p, const Tree *written)
{
    const Let *before = find_let(p, written->text);
    const Tree *define = define_of(p, written->text);
    const Tree *from = define ? define->child : written->child;
    double value = 0;
    if (before) {
        error_at(p, written->name, "`%s` is defined twice", written->text);
        note_at(p, before->at, "first here");
        return true;
    }
    if (p->let_count == MAX_LETS) {
        error_at(p, written->name, "more than %d lets", MAX_LETS);
        return false;
    }
    if (!from)
        error_at(p, define->at, "`%s` needs a value", written->text);
    else if (from->next)
        error_at(p, from->next->at, "one value is enough here");
    if (from && !constant(p, from, &value))
        value = 1;  // reported; go on with something
    p->lets = array_grow(p->arena, p->lets, p->let_count, sizeof *p->lets);
    p->lets[p->let_count++] = (Let){written->text, value, written->name};
    return true;
}

/* ---- numbers in blocks ---- */

static Number *field_of(Settings *set, const SettingRow *row)
{
    return (Number *)((char *)set + row->field);
}

const Tree *set_number(Program *p, const SettingRow *row, Span at,
                       const Tree *value)
{
    Number *field = field_of(&p->set, row);
    double number;
    field->at = at;
    if (!constant(p, value, &number))
        return value->next;
    const char *name = text_format(p->arena, "`%s`", row->key);
    if (row->whole &&
        !in_range(p, value, name, number, (long)row->least, (long)row->most))
        return value->next;
    bool time = is_time(p, value, 0);
    if (time != row->time) {
        error_at(p, value->at,
                 time ? "`%s` is not a time" : "`%s` needs a unit of time",
                 row->key);
        help(p, time ? "write it without a unit of time" : "%s", row->example);
    } else if (number < row->least || number > row->most) {
        error_at(p, value->at, "`%s` is %s, but must be from %s to %s",
                 row->key, number_text(p, number), number_text(p, row->least),
                 number_text(p, row->most));
    } else {
        field->value = number;
    }
    return value->next;
}

/* ---- settings that are words ---- */

static const char *option_list(Program *p, const Schedule *s)
{
    const char *list = "";
    for (int i = 0; i < MOST_OPTIONS && s->option[i]; i++)
        list = text_format(p->arena, "%s%s%s = NUMBER", list, i ? ", " : "",
                           s->option[i]);
    return list;
}

static void set_schedule_option(Program *p, const Tree *argument)
{
    const Schedule *s = p->set.schedule;
    long value;
    int count = 0;
    for (; count < MOST_OPTIONS && s->option[count]; count++) {
        if (argument->kind != TREE_ARGUMENT ||
            strcmp(argument->text, s->option[count]) != 0)
            continue;
        Number *option = &p->set.option[count];
        const char *what = text_format(p->arena, "`%s`", argument->text);
        if (option->at.source >= 0) {
            error_at(p, argument->at, "%s is set twice", what);
            note_at(p, option->at, "first here");
        }
        option->at = argument->at;
        long least = s->most[count] > 1;  // the others are flags
        if (whole_number(p, argument->child, what, least, s->most[count],
                         &value))
            option->value = (double)value;
        return;
    }
    if (!count)
        error_at(p, argument->at, "schedule `%s` takes no options", s->name);
    else if (argument->kind != TREE_ARGUMENT)
        error_at(p, argument->at, "an option of schedule `%s` needs its name",
                 s->name);
    else
        error_at(p, argument->name, "schedule `%s` has no option `%s`", s->name,
                 argument->text);
    if (count)
        help(p, "it takes %s", option_list(p, s));
}

static bool is_from(const Tree *value)
{
    return value->kind == TREE_NAME && strcmp(value->text, "from") == 0;
}

/* Values of a schedule: from "x.csv" has two. */
static int schedule_values(const Tree *value)
{
    return is_from(value) && value->next ? 2 : 1;
}

/* schedule from "x.csv": returns the value behind. */
static const Tree *set_schedule_file(Program *p, Span at, const Tree *from)
{
    const Tree *path = from->next;
    if (!path || path->kind != TREE_STRING) {
        error_at(p, path ? path->at : from->at,
                 "`from` needs a file in quotes");
        help(p, "schedule from \"order.csv\"");
        p->set.schedule_at = at;
        return NULL;
    }
    p->set.schedule_at = (Span){at.source, at.begin, path->at.end};
    p->set.schedule_path = path->text;
    p->set.schedule = schedule_from(p, path->text);
    return path->next;
}

static void default_options(Program *p)
{
    for (int i = 0; i < MOST_OPTIONS; i++)
        p->set.option[i] = (Number){p->set.schedule->fallback[i], nowhere};
}

const char *nearest_schedule(Program *p, const char *name)
{
    int count = schedule_count + p->written_count;
    const char **names = arena_take(p->arena, sizeof *names * (size_t)count);
    for (int i = 0; i < count; i++)
        names[i] = known_schedule(p, i)->name;
    return nearest(name, names, count);
}

static const Tree *set_schedule(Program *p, const SettingRow *row, Span at,
                                const Tree *value)
{
    (void)row;
    if (is_from(value))
        return set_schedule_file(p, at, value);
    p->set.schedule_at = at;
    if (value->kind != TREE_NAME && value->kind != TREE_CALL) {
        error_at(p, value->at, "expected the name of a schedule, not %s",
                 value->kind == TREE_NUMBER ? "a number" : kind_text(value));
        help(p, "`pipec --help schedules` lists them");
        return value->next;
    }
    p->set.schedule = find_schedule(p, value->text);
    if (!p->set.schedule) {
        error_at(p, value->name, "no schedule is called `%s`", value->text);
        const char *near = nearest_schedule(p, value->text);
        if (near)
            help(p, "did you mean `%s`", near);
        else
            help(p, "`pipec --help schedules` lists them");
        return value->next;
    }
    default_options(p);
    for (const Tree *argument = value->child;
         argument && p->errors <= MAX_ERRORS; argument = argument->next)
        set_schedule_option(p, argument);
    return value->next;
}

/* placement [0 1 1 0]: whether it fits the stages is seen when they are known. */
static void set_ranks(Program *p, const Tree *list)
{
    Settings *set = &p->set;
    for (const Tree *at = list->child; at; at = at->next) {
        long rank = 0;
        if (!whole_number(p, at, "a chunk's rank", 0, MAX_RANKS - 1, &rank)) {
            set->placement_at = nowhere;  // go on without it
            set->listed = NULL;
            return;
        }
        set->listed = array_grow(p->arena, set->listed, set->listed_count,
                                 sizeof *set->listed);
        set->listed[set->listed_count++] = (int)rank;
    }
    set->placement = PLACE_OWN;
}

static const Tree *set_placement(Program *p, const SettingRow *row, Span at,
                                 const Tree *value)
{
    (void)row;
    p->set.placement_at = at;
    if (value->kind == TREE_LIST && value->child) {
        set_ranks(p, value);
        return value->next;
    }
    for (int i = 0; value->kind == TREE_NAME && i < PLACEMENT_COUNT; i++) {
        if (strcmp(value->text, placement_names[i]) != 0)
            continue;
        p->set.placement = (Placement)i;
        return value->next;
    }
    error_at(p, value->at,
             "a placement is `loop`, `vee`, `wave`, `twin` or a list of ranks");
    const char *near = value->kind == TREE_NAME
                           ? nearest(value->text, placement_names,
                                     PLACEMENT_COUNT)
                           : NULL;
    if (near)
        help(p, "did you mean `%s`", near);
    else
        help(p, "placement [0 1 1 0]: the rank of each chunk, in the order of "
                "the model");
    return value->next;
}

static const Tree *set_adapter(Program *p, const SettingRow *row, Span at,
                               const Tree *value)
{
    (void)row, (void)at;
    bool named = value->kind == TREE_NAME;
    p->set.adapter_shared = named && strcmp(value->text, "shared") == 0;
    if (p->set.adapter_shared || (named && strcmp(value->text, "own") == 0))
        return value->next;
    error_at(p, value->at, "an adapter is `own` or `shared`");
    help(p, "shared: what the ranks of a machine send to others goes through "
            "one link");
    return value->next;
}

/* ---- the settings ---- */

// clang-format off
#define FIELD(name) offsetof(Settings, name)
#define WHOLE .whole = true

const SettingRow setting_rows[] = {
    {"pipeline", "stages", "stages 4", "ranks that the model is cut over",
        set_number, FIELD(stages), WHOLE, .least = 1, .most = MAX_RANKS, .fallback = 1},
    {"pipeline", "virtual", "virtual 1", "chunks of each rank",
        set_number, FIELD(virtuals), WHOLE, .least = 1, .most = 256, .fallback = 1},
    {"pipeline", "microbatches", "microbatches 8", "micro-batches of a step",
        set_number, FIELD(microbatches), WHOLE, .least = 1, .most = 16384, .fallback = 1},
    {"pipeline", "rows", "rows 4", "samples of a micro-batch",
        set_number, FIELD(rows), WHOLE, .least = 1, .most = 1 << 20, .fallback = 1},
    {"pipeline", "schedule", "schedule 1f1b",
        "a name of `pipec --help schedules`, one of the file's, or from \"order.csv\"",
        set_schedule, .values = schedule_values},
    {"pipeline", "split", "split even",
        "layers of the chunks: even, balanced, [3 4 4 3], first 2 last 1, or a layout, \"Et*2|tL\"",
        set_split, .values = split_values},
    {"pipeline", "account", "account embedding, loss",
        "an even split counts blocks, and what stands before them or behind as one more; or none",
        set_account, .values = NULL},
    {"pipeline", "placement", "placement loop", 
        "which rank has a chunk: loop, vee, wave, twin, or each chunk's rank, [0 1 1 0]",
        set_placement, .values = NULL},
    {"train", "data", "data bytes \"corpus.txt\"",
        "bytes, uint16, uint32 or numbers, and a file or a glob pattern",
        set_data, .values = data_values},
    {"train", "optimizer", "optimizer adamw(lr = 3e-4)", "adamw or sgd, with its numbers",
        set_optimizer, .values = NULL},
    {"train", "dtype", "dtype f32", "f32, or bf16 on a GPU",
        set_dtype, .values = NULL},
    {"train", "steps", "steps 200", "steps of training",
        set_number, FIELD(steps), WHOLE, .most = 1e9, .fallback = 100},
    {"train", "clip", "clip 1.0",
        "limit of the gradients' norm, 0 for none; `deferred` behind it: known a step later",
        set_clip, FIELD(clip), .most = 1e9, .values = clip_values},
    {"train", "on", "on nonfinite skip",
        "nonfinite stop, or nonfinite skip: a step whose loss or norm is no number ends the job, or is left out",
        set_on, .values = on_values},
    {"train", "warmup", "warmup 20", "steps until the rate is whole",
        set_number, FIELD(warmup), WHOLE, .most = 1e9},
    {"train", "cosine", "cosine 0.1", "share of the rate that is left in the last step",
        set_number, FIELD(cosine), .most = 1, .fallback = 1},
    {"train", "seed", "seed 1", "of the first values and of the order of the data",
        set_number, FIELD(seed), WHOLE, .most = 9007199254740991.0, .fallback = 1},
    {"cluster", "flops", "flops 312T", "operations per second of a rank, or [312T 989T], of each",
        set_given, FIELD(flops), .least = 1, .most = 1e30},
    {"cluster", "memory", "memory 80G", "bytes of a rank, or [80G 48G], of each",
        set_given, FIELD(memory), .least = 1, .most = 1e30},
    {"cluster", "link", "link 25G", "bytes per second from one rank to another",
        set_number, FIELD(link), .least = 1, .most = 1e30},
    {"cluster", "latency", "latency 10us", "of every message",
        set_number, FIELD(latency), .time = true, .most = 1e6},
    {"cluster", "node", "node 8", "ranks of one machine",
        set_number, FIELD(node), WHOLE, .least = 1, .most = 1024},
    {"cluster", "node_link", "node_link 450G", "the link inside a machine",
        set_number, FIELD(node_link), .least = 1, .most = 1e30},
    {"cluster", "node_latency", "node_latency 2us", "the latency inside a machine",
        set_number, FIELD(node_latency), .time = true, .most = 1e6},
    {"cluster", "adapter", "adapter shared", "own or shared: how a machine's ranks reach other machines",
        set_adapter, .values = NULL},
    {"cluster", "forward", "forward 18ms  backward 40ms",
        "time of a chunk's F: one for all, or [18ms 17ms], one for each",
        set_given, TIMES_OF(ACT_F), .time = true, .most = 1e6},
    {"cluster", "backward", "backward 40ms  forward 18ms", "the same of B",
        set_given, TIMES_OF(ACT_B), .time = true, .most = 1e6},
    {"cluster", "input_gradient", "input_gradient 18ms  weight_gradient 22ms  forward 18ms",
        "the same of the part of B for the input, with the other part",
        set_given, TIMES_OF(ACT_I), .time = true, .most = 1e6},
    {"cluster", "weight_gradient", "weight_gradient 22ms  input_gradient 18ms  forward 18ms",
        "the same of the part of B for the weights, with the other part",
        set_given, TIMES_OF(ACT_W), .time = true, .most = 1e6},
};
// clang-format on
enum { SETTINGS = sizeof setting_rows / sizeof *setting_rows };
const int setting_count = SETTINGS;

const SettingRow *find_setting(const char *block, const char *key)
{
    for (int i = 0; i < SETTINGS; i++)
        if ((!block || strcmp(setting_rows[i].block, block) == 0) &&
            strcmp(setting_rows[i].key, key) == 0)
            return &setting_rows[i];
    return NULL;
}

bool is_number_setting(const SettingRow *row)
{
    return row->set == set_number || row->set == set_clip;
}

/* ---- keys ---- */

static void unknown_key(Program *p, const char *block, const char *name,
                        Span at)
{
    const char **known = arena_take(
        p->arena, sizeof *known * (size_t)(SETTINGS + p->let_count));
    const SettingRow *elsewhere = find_setting(NULL, name);
    int count = 0;
    for (int i = 0; i < SETTINGS; i++)
        if (!block || strcmp(setting_rows[i].block, block) == 0)
            known[count++] = setting_rows[i].key;
    for (int i = 0; !block && i < p->let_count; i++)
        known[count++] = p->lets[i].name;
    if (block)
        error_at(p, at, "`%s` is not a setting of `%s`", name, block);
    else
        error_at(p, at, "`%s` is neither a `let` of the file nor a setting",
                 name);
    const char *near = nearest(name, known, count);
    if (is_optimizer_argument(p, name))
        help(p, "it belongs to the optimizer: optimizer adamw(%s = ...)", name);
    else if (elsewhere)
        help(p, "it belongs in `%s { }`", elsewhere->block);
    else if (near)
        help(p, "did you mean `%s`", near);
    else
        help(p, "`pipec --help settings` lists the settings");
}

/* embedding, loss: names without brackets around them. */
static bool is_comma_list(const Tree *value)
{
    return value->kind == TREE_LIST && value->text;
}

/* Sets one key from the values at `value`; returns the first value that is not
 * its own. */
static const Tree *set_key(Program *p, const SettingRow *row, Span at,
                           const Tree *value)
{
    if (value && is_comma_list(value) && row->set != set_account) {
        error_at(p, value->at, "`%s` takes no list with commas", row->key);
        help(p, "settings of one line stand side by side: stages 4  rows 2");
        return value->next;
    }
    if (value)
        return row->set(p, row, at, value);
    error_at(p, at, "`%s` needs a value", row->key);
    help(p, "%s", row->example);
    return NULL;
}

typedef struct Seen {
    Span at[SETTINGS];       // source -1: not yet
    bool defined[SETTINGS];  // by -D
} Seen;

/* What -D has set is not set again; but the format of `data` still comes from
 * the file. */
static const Tree *file_key(Program *p, Seen *seen, const SettingRow *row,
                            Span at, const Tree *value)
{
    Span *before = &seen->at[row - setting_rows];
    if (before->source >= 0) {
        error_at(p, at, "`%s` is set twice", row->key);
        note_at(p, *before, "first here");
    }
    *before = at;
    if (!seen->defined[row - setting_rows] || row->set == set_data)
        return set_key(p, row, at, value);
    for (int i = value && row->values ? row->values(value) : 1; value && i > 0;
         i--)
        value = value->next;
    return value;
}

static void block_line(Program *p, Seen *seen, const Tree *block,
                       const Tree *line)
{
    const char *name = line->text;
    Span at = line->name;
    const Tree *value = line->child;
    for (;;) {
        const SettingRow *row = find_setting(block->text, name);
        if (!row) {
            unknown_key(p, block->text, name, at);
            return;
        }
        value = file_key(
            p, seen, row,
            (Span){at.source, at.begin, value ? value->at.end : at.end}, value);
        if (!value)
            return;
        if (value->kind != TREE_NAME && value->kind != TREE_CALL) {
            error_at(p, value->at, "`%s` takes one value", name);
            return;
        }
        name = value->text;
        at = value->name;
        value = value->next;
    }
}

static void set_defines(Program *p, Seen *seen)
{
    for (int i = 0; i + 1 < p->source_count; i++) {
        const Tree *define = p->defines[i];
        if (!define || find_let(p, define->text) ||
            define_of(p, define->text) != define)
            continue;  // of several for one name the last counts
        const SettingRow *row = find_setting(NULL, define->text);
        if (!row) {
            unknown_key(p, NULL, define->text, define->name);
            continue;
        }
        seen->defined[row - setting_rows] = true;
        if (strcmp(row->block, "cluster") == 0)
            p->set.has_cluster = true;
        const Tree *rest = set_key(p, row, define->at, define->child);
        if (rest)
            error_at(p, rest->at, "one value is enough here");
    }
}

static void defaults(Settings *set)
{
    for (int i = 0; i < SETTINGS; i++)
        if (is_number_setting(&setting_rows[i]))
            *field_of(set, &setting_rows[i]) = (Number){
                setting_rows[i].fallback, nowhere};
    set->split_at = set->schedule_at = set->data_at = nowhere;
    set->dtype_at = set->placement_at = set->account_at = nowhere;
    set->first.at = set->last.at = nowhere;
    default_train(set);
}

/* Of the placement that the file asks for. */
static const char *default_name(const Settings *set)
{
    if (set->placement_at.source >= 0)
        switch (set->listed ? named_list(set, PLACE_LOOP) : set->placement) {
        case PLACE_VEE: return "zbv";
        case PLACE_WAVE: return "hanayo";
        case PLACE_TWIN: return "naive";
        case PLACE_OWN: return "bfs";
        default: break;
        }
    return set->virtuals.value > 1 ? "interleaved" : "1f1b";
}

static void default_schedule(Program *p)
{
    p->set.schedule = find_schedule(p, default_name(&p->set));
    default_options(p);
}

static const char *const block_names[] = {"pipeline", "train", "cluster"};
enum { BLOCKS = sizeof block_names / sizeof *block_names };

static int find_block(Program *p, const Tree *block)
{
    for (int i = 0; i < BLOCKS; i++)
        if (strcmp(block->text, block_names[i]) == 0)
            return i;
    const char *near = nearest(block->text, block_names, BLOCKS);
    error_at(p, block->name, "no block is called `%s`", block->text);
    if (near)
        help(p, "did you mean `%s`", near);
    else
        help(p, "blocks are pipeline, train and cluster; layers begin with "
                "`layer`, the model with `model`, a schedule with `schedule`");
    return -1;
}

/* cluster h100 { }: its numbers come before -D and before the lines. */
static void set_machines(Program *p)
{
    for (const Tree *item = p->file->child; item; item = item->next) {
        const Tree *name = item->kind == TREE_BLOCK ? item->child : NULL;
        if (!name || name->kind != TREE_NAME)
            continue;
        if (strcmp(item->text, "cluster") == 0) {
            set_machine(p, name);
            continue;
        }
        error_at(p, name->at, "only a `cluster` block has a name");
        help(p, "%s { ... }", item->text);
    }
}

static void check_blocks(Program *p, Seen *seen)
{
    const Tree *first[BLOCKS] = {NULL};
    for (const Tree *item = p->file->child; item; item = item->next) {
        int which = item->kind == TREE_BLOCK ? find_block(p, item) : -1;
        if (which < 0)
            continue;
        if (first[which]) {
            error_at(p, item->name, "a second `%s` block", item->text);
            note_at(p, first[which]->name, "the first is here");
            continue;
        }
        first[which] = item;
        p->set.has_cluster |= which == 2;
        for (const Tree *line = item->child; line; line = line->next)
            if (line->kind == TREE_LINE)
                block_line(p, seen, item, line);
    }
}

bool check_lets(Program *p)
{
    for (const Tree *item = p->file->child; item; item = item->next)
        if (item->kind == TREE_LET && !add_let(p, item))
            return false;
    return true;
}

void check_settings(Program *p)
{
    Seen seen;
    memset(&seen, 0, sizeof seen);
    for (int i = 0; i < SETTINGS; i++)
        seen.at[i] = nowhere;
    defaults(&p->set);
    p->set.dtype = p->target == TARGET_CUDA ? DTYPE_BF16 : DTYPE_F32;
    set_machines(p);
    set_defines(p, &seen);
    check_blocks(p, &seen);
    check_list(p);
    check_split(p);
    if (!p->set.listed && !p->set.schedule_path)
        take_virtual(p);
    if (p->set.schedule_at.source < 0)
        default_schedule(p);
    if (!p->set.schedule_path)
        check_placement(p);  // else `import`, which has read the file
    p->microbatches = (int)p->set.microbatches.value;
    check_cluster(p);
    check_train(p);
}
