/* check_settings.c: the first half of check: lets, and the blocks pipeline,
 * train and cluster.
 *
 * Reads: file, defines. Writes: lets, set. Guarantees: every setting is in
 * range; what was not written has its default and the span -1.
 *
 * A line is a key and its values; a block may hold several keys on one line.
 * What came by -D is put in first, so a key of the file that is already there
 * is skipped. */
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

typedef struct NumberKey {
    const char *block, *key;
    size_t field;  // offset in Settings
    bool whole;
    char unit;  // 's': needs a unit of time
    double least, most, fallback;
} NumberKey;

static const NumberKey number_keys[] = {
    {"pipeline", "stages", offsetof(Settings, stages), true, 0, 1, 1024, 1},
    {"pipeline", "virtual", offsetof(Settings, virtuals), true, 0, 1, 256, 1},
    {"pipeline", "microbatches", offsetof(Settings, microbatches), true, 0, 1,
     16384, 1},
    {"pipeline", "rows", offsetof(Settings, rows), true, 0, 1, 1 << 20, 1},
    {"train", "steps", offsetof(Settings, steps), true, 0, 0, 1e9, 100},
    {"train", "clip", offsetof(Settings, clip), false, 0, 0, 1e9, 0},
    {"train", "warmup", offsetof(Settings, warmup), true, 0, 0, 1e9, 0},
    {"train", "cosine", offsetof(Settings, cosine), false, 0, 0, 1, 1},
    {"train", "seed", offsetof(Settings, seed), true, 0, 0, 9007199254740992.0,
     1},
    {"cluster", "flops", offsetof(Settings, flops), false, 0, 1, 1e30, 0},
    {"cluster", "memory", offsetof(Settings, memory), false, 0, 1, 1e30, 0},
    {"cluster", "link", offsetof(Settings, link), false, 0, 1, 1e30, 0},
    {"cluster", "latency", offsetof(Settings, latency), false, 's', 0, 1e6, 0},
};
enum { NUMBER_KEYS = sizeof number_keys / sizeof *number_keys };

static Number *field_of(Settings *set, const NumberKey *key)
{
    return (Number *)((char *)set + key->field);
}

static void set_number(Program *p, const NumberKey *key, Span at,
                       const Tree *value)
{
    Number *field = field_of(&p->set, key);
    double number;
    field->at = at;
    if (!constant(p, value, &number))
        return;
    const char *name = text_format(p->arena, "`%s`", key->key);
    if (key->whole &&
        !in_range(p, value, name, number, (long)key->least, (long)key->most))
        return;
    bool time = is_time(p, value, 0);
    if (time != (key->unit == 's')) {
        error_at(p, value->at,
                 time ? "`%s` is no time" : "`%s` needs a unit of time",
                 key->key);
        help(p, time ? "write it without a unit of time" : "%s 10us", key->key);
    } else if (number < key->least || number > key->most) {
        error_at(p, value->at, "`%s` is %s, but must be from %s to %s",
                 key->key, number_text(p, number), number_text(p, key->least),
                 number_text(p, key->most));
    } else {
        field->value = number;
    }
}

/* ---- settings that are words ---- */

static const char *option_list(Program *p, const Schedule *s)
{
    const char *list = "";
    for (int i = 0; i < 4 && s->option[i]; i++)
        list = text_format(p->arena, "%s%s%s = NUMBER", list, i ? ", " : "",
                           s->option[i]);
    return list;
}

static void set_schedule_option(Program *p, const Tree *argument)
{
    const Schedule *s = p->set.schedule;
    long value;
    int count = 0;
    for (; count < 4 && s->option[count]; count++) {
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
    for (int i = 0; i < 4; i++)
        p->set.option[i] = (Number){p->set.schedule->fallback[i], nowhere};
}

static const char *nearest_schedule(Program *p, const char *name)
{
    int count = schedule_count + p->written_count;
    const char **names = arena_take(p->arena, sizeof *names * (size_t)count);
    for (int i = 0; i < count; i++)
        names[i] = known_schedule(p, i)->name;
    return nearest(name, names, count);
}

static void set_schedule(Program *p, Span at, const Tree *value)
{
    p->set.schedule_at = at;
    if (value->kind != TREE_NAME && value->kind != TREE_CALL) {
        error_at(p, value->at, "expected the name of a schedule, not %s",
                 value->kind == TREE_NUMBER ? "a number" : kind_text(value));
        help(p, "`pipec --help schedules` lists them");
        return;
    }
    p->set.schedule = find_schedule(p, value->text);
    if (!p->set.schedule) {
        error_at(p, value->name, "no schedule is called `%s`", value->text);
        const char *near = nearest_schedule(p, value->text);
        if (near)
            help(p, "did you mean `%s`", near);
        else
            help(p, "`pipec --help schedules` lists them");
        return;
    }
    default_options(p);
    for (const Tree *argument = value->child;
         argument && p->errors <= MAX_ERRORS; argument = argument->next)
        set_schedule_option(p, argument);
}

static void set_split(Program *p, Span at, const Tree *value)
{
    p->set.split_at = at;
    if (value->kind == TREE_NAME && strcmp(value->text, "even") == 0)
        return;
    if (value->kind == TREE_STRING) {
        read_layout(p, value);
        return;
    }
    if (value->kind == TREE_NAME && strcmp(value->text, "balanced") == 0) {
        p->set.split = SPLIT_BALANCED;
        return;
    }
    if (value->kind != TREE_LIST || !value->child) {
        error_at(p, value->at,
                 "a split is `even`, `balanced` or a list of layers per chunk");
        help(p, "split balanced");
        return;
    }
    p->set.split = SPLIT_EXPLICIT;
    p->set.split_at = value->at;
    for (const Tree *size = value->child; size; size = size->next) {
        long layers = 1;
        whole_number(p, size, "a chunk's number of layers", 1, 1 << 20,
                     &layers);
        p->set.sizes = array_grow(p->arena, p->set.sizes, p->set.size_count,
                                  sizeof *p->set.sizes);
        p->set.sizes[p->set.size_count++] = (int)layers;
    }
}

static const char *const data_words[] = {"none", "bytes", "uint16", "uint32",
                                         "numbers"};

/* Returns the values it used: data bytes "file", or "file" alone from -D, which
 * keeps the format. */
static const Tree *set_data(Program *p, Span at, const Tree *value)
{
    if (value->kind == TREE_STRING) {
        p->set.data_path = value->text;
        p->set.data_at = at;
        return value->next;
    }
    const Tree *path = value->next;
    DataKind kind = DATA_NONE;
    for (int i = DATA_BYTES; value->kind == TREE_NAME && i <= DATA_NUMBERS; i++)
        if (strcmp(value->text, data_words[i]) == 0)
            kind = (DataKind)i;
    if (kind == DATA_NONE && value->kind == TREE_NAME)
        error_at(p, value->at, "no format of data is called `%s`", value->text);
    else if (kind == DATA_NONE || !path || path->kind != TREE_STRING)
        error_at(p, value->at, "`data` needs a format and a file in quotes");
    if (kind == DATA_NONE || !path || path->kind != TREE_STRING) {
        help(p, "data bytes \"corpus.txt\"; formats are bytes, uint16, uint32 "
                "and numbers");
        return NULL;
    }
    if (p->set.data == DATA_NONE)
        p->set.data = kind;
    if (!p->set.data_path) {
        p->set.data_path = path->text;
        p->set.data_at = at;
    }
    return path->next;
}

typedef struct OptimizerKey {
    const char *name;
    size_t field;
    bool sgd, adamw;
    double least, most;
} OptimizerKey;

static const OptimizerKey optimizer_keys[] = {
    {"lr", offsetof(Settings, rate), true, true, 0, 1e6},
    {"decay", offsetof(Settings, decay), true, true, 0, 1e6},
    {"momentum", offsetof(Settings, momentum), true, false, 0, 0.999999},
    {"beta1", offsetof(Settings, beta1), false, true, 0, 0.999999},
    {"beta2", offsetof(Settings, beta2), false, true, 0, 0.999999},
    {"eps", offsetof(Settings, epsilon), false, true, 1e-30, 1},
};
enum { OPTIMIZER_KEYS = sizeof optimizer_keys / sizeof *optimizer_keys };

static const OptimizerKey *find_optimizer_key(const Program *p,
                                              const char *name)
{
    bool sgd = p->set.optimizer == OPTIMIZER_SGD;
    for (int i = 0; i < OPTIMIZER_KEYS; i++)
        if (strcmp(name, optimizer_keys[i].name) == 0 &&
            (sgd ? optimizer_keys[i].sgd : optimizer_keys[i].adamw))
            return &optimizer_keys[i];
    return NULL;
}

static const Tree *same_argument(const Tree *first, const Tree *argument)
{
    for (; first != argument; first = first->next)
        if (first->kind == TREE_ARGUMENT &&
            strcmp(first->text, argument->text) == 0)
            return first;
    return NULL;
}

static void set_optimizer_key(Program *p, const Tree *optimizer,
                              const Tree *argument)
{
    const OptimizerKey *key = NULL;
    double value;
    if (argument->kind != TREE_ARGUMENT)
        error_at(p, argument->at, "an argument of `%s` needs its name",
                 optimizer->text);
    else if (!(key = find_optimizer_key(p, argument->text)))
        error_at(p, argument->name, "`%s` has no argument `%s`",
                 optimizer->text, argument->text);
    if (!key) {
        help(p, p->set.optimizer == OPTIMIZER_SGD
                    ? "sgd(lr = 0.1, momentum = 0.9, decay = 0)"
                    : "adamw(lr = 3e-4, decay = 0.1, beta1 = 0.9, beta2 = "
                      "0.95, eps = 1e-8)");
        return;
    }
    const Tree *before = same_argument(optimizer->child, argument);
    if (before) {
        error_at(p, argument->at, "`%s` is set twice", key->name);
        note_at(p, before->at, "first here");
    }
    if (!constant(p, argument->child, &value))
        return;
    if (value < key->least || value > key->most)
        error_at(p, argument->child->at,
                 "`%s` is %s, but must be from %s to %s", key->name,
                 number_text(p, value), number_text(p, key->least),
                 number_text(p, key->most));
    *(double *)((char *)&p->set + key->field) = value;
}

static void set_optimizer(Program *p, const Tree *value)
{
    bool named = value->kind == TREE_NAME || value->kind == TREE_CALL;
    if (named && strcmp(value->text, "sgd") == 0) {
        p->set.optimizer = OPTIMIZER_SGD;
        p->set.rate = 0.1;
        p->set.decay = 0;
    } else if (!named || strcmp(value->text, "adamw") != 0) {
        if (named)
            error_at(p, value->name, "no optimizer is called `%s`",
                     value->text);
        else
            error_at(p, value->at, "expected the name of an optimizer");
        help(p, "optimizer adamw(lr = 3e-4), or sgd(lr = 0.1)");
        return;
    }
    for (const Tree *argument = value->child;
         argument && p->errors <= MAX_ERRORS; argument = argument->next)
        set_optimizer_key(p, value, argument);
}

static void set_dtype(Program *p, Span at, const Tree *value)
{
    p->set.dtype_at = at;
    bool named = value->kind == TREE_NAME;
    if (named && strcmp(value->text, "f32") == 0)
        p->set.dtype = DTYPE_F32;
    else if (named && strcmp(value->text, "bf16") == 0)
        p->set.dtype = DTYPE_BF16;
    else
        error_at(p, value->at, "a dtype is `f32` or `bf16`");
    if (p->set.dtype == DTYPE_F32 || p->target == TARGET_CUDA)
        return;
    error_at(p, value->at, "the cpu computes in f32 alone");
    help(p, "use `dtype f32`, or compile for a GPU: --target cuda");
}

static void set_placement(Program *p, Span at, const Tree *value)
{
    p->set.placement_at = at;
    for (int i = 0; value->kind == TREE_NAME && i < PLACEMENT_COUNT; i++) {
        if (strcmp(value->text, placement_names[i]) != 0)
            continue;
        p->set.placement = (Placement)i;
        return;
    }
    error_at(p, value->at, "a placement is `loop`, `vee`, `wave` or `twin`");
    const char *near = value->kind == TREE_NAME
                           ? nearest(value->text, placement_names,
                                     PLACEMENT_COUNT)
                           : NULL;
    if (near)
        help(p, "did you mean `%s`", near);
}

/* ---- keys ---- */

static const struct {
    const char *block, *key;
} word_keys[] = {
    {"pipeline", "schedule"},
    {"pipeline", "split"},
    {"train", "data"},
    {"train", "optimizer"},
    {"train", "dtype"},
    {"pipeline", "placement"},
    {"cluster", "forward"},
    {"cluster", "backward"},
    {"cluster", "input_gradient"},
    {"cluster", "weight_gradient"},
};
enum {
    WORD_KEYS = sizeof word_keys / sizeof *word_keys,
    KEYS = NUMBER_KEYS + WORD_KEYS
};

static const char *key_name(int key)
{
    return key < NUMBER_KEYS ? number_keys[key].key
                             : word_keys[key - NUMBER_KEYS].key;
}

static const char *key_block(int key)
{
    return key < NUMBER_KEYS ? number_keys[key].block
                             : word_keys[key - NUMBER_KEYS].block;
}

/* -1: no such key. block NULL: in any block. */
static int find_key(const char *block, const char *name)
{
    for (int i = 0; i < KEYS; i++)
        if ((!block || strcmp(key_block(i), block) == 0) &&
            strcmp(key_name(i), name) == 0)
            return i;
    return -1;
}

static void unknown_key(Program *p, const char *block, const char *name,
                        Span at)
{
    const char **known = arena_take(
        p->arena, sizeof *known * (size_t)(KEYS + p->let_count));
    int count = 0, elsewhere = find_key(NULL, name);
    for (int i = 0; i < KEYS; i++)
        if (!block || strcmp(key_block(i), block) == 0)
            known[count++] = key_name(i);
    for (int i = 0; !block && i < p->let_count; i++)
        known[count++] = p->lets[i].name;
    if (block)
        error_at(p, at, "`%s` is no setting of `%s`", name, block);
    else
        error_at(p, at, "`%s` is neither a `let` of the file nor a setting",
                 name);
    const char *near = nearest(name, known, count);
    if (find_optimizer_key(p, name))
        help(p, "it belongs to the optimizer: optimizer adamw(%s = ...)", name);
    else if (elsewhere >= 0)
        help(p, "it belongs into `%s { }`", key_block(elsewhere));
    else if (near)
        help(p, "did you mean `%s`", near);
    else
        help(p, "`pipec --help language` lists the settings");
}

static void needs_value(Program *p, int key, Span at)
{
    static const char *const examples[WORD_KEYS] = {
        "schedule 1f1b",
        "split even",
        "data bytes \"corpus.txt\"",
        "optimizer adamw(lr = 3e-4)",
        "dtype f32",
        "placement vee",
        "forward [18ms 17ms]",
        "backward 40ms",
        "input 18ms",
        "weight 22ms"};
    error_at(p, at, "`%s` needs a value", key_name(key));
    if (key >= NUMBER_KEYS)
        help(p, "%s", examples[key - NUMBER_KEYS]);
    else
        help(p, "%s %s", key_name(key),
             number_keys[key].unit == 's' ? "10us" : "1");
}

static bool is_word(const Tree *value, const char *word)
{
    return value && value->kind == TREE_NAME && strcmp(value->text, word) == 0;
}

/* clip 1.0, clip 1.0 deferred: returns the value behind. A word alone at the
 * end cannot be the next key. */
static const Tree *set_clip(Program *p, const NumberKey *key, Span at,
                            const Tree *value)
{
    const Tree *word = value->next;
    if (is_word(value, "deferred") && !find_let(p, value->text)) {
        error_at(p, value->at, "`clip` needs its limit before `deferred`");
        help(p, "clip 1.0 deferred");
        return word;
    }
    set_number(p, key, at, value);
    if (is_word(word, "deferred")) {
        p->set.deferred = true;
        p->set.deferred_at = word->at;
        return word->next;
    }
    if (!word || word->next || word->kind != TREE_NAME ||
        find_key("train", word->text) >= 0)
        return word;
    error_at(p, word->at,
             "behind the limit of `clip` stands `deferred` or "
             "nothing, not `%s`",
             word->text);
    help(p, "clip 1.0 deferred");
    return NULL;
}

static void check_deferred(Program *p)
{
    if (p->set.deferred && p->target != TARGET_CPU) {
        error_at(p, p->set.deferred_at,
                 "deferred clipping runs on the cpu alone");
        help(p, "use `clip %g`, or --target cpu", p->set.clip.value);
    } else if (p->set.deferred && p->set.clip.value <= 0) {
        error_at(p, p->set.clip.at,
                 "`clip 0` computes no norm that could be deferred");
        help(p, "use a limit above 0, or `clip 0` alone");
    }
}

/* Sets one key from the values at `value`; returns the first value that is not
 * its own. */
static const Tree *set_key(Program *p, int key, Span at, const Tree *value)
{
    if (!value) {
        needs_value(p, key, at);
        return NULL;
    }
    if (key < NUMBER_KEYS && strcmp(key_name(key), "clip") == 0)
        return set_clip(p, &number_keys[key], at, value);
    if (key < NUMBER_KEYS) {
        set_number(p, &number_keys[key], at, value);
        return value->next;
    }
    switch (key - NUMBER_KEYS) {
    case 0:
        if (is_from(value))
            return set_schedule_file(p, at, value);
        set_schedule(p, at, value);
        break;
    case 1: set_split(p, at, value); break;
    case 2: return set_data(p, at, value);
    case 3: set_optimizer(p, value); break;
    case 4: set_dtype(p, at, value); break;
    case 5: set_placement(p, at, value); break;
    default: set_times(p, key - NUMBER_KEYS - 6, at, value);
    }
    return value->next;
}

static int values_of(int key, const Tree *value)
{
    bool data = key == NUMBER_KEYS + 2, schedule = key == NUMBER_KEYS;
    if (value && is_word(value->next, "deferred") &&
        strcmp(key_name(key), "clip") == 0)
        return 2;
    if (!value || value->kind != TREE_NAME || !value->next)
        return 1;
    return data || (schedule && is_from(value)) ? 2 : 1;
}

typedef struct Seen {
    Span at[KEYS];       // source -1: not yet
    bool defined[KEYS];  // by -D
} Seen;

/* What -D has set is not set again; but the format of `data` still comes from
 * the file. */
static const Tree *file_key(Program *p, Seen *seen, int key, Span at,
                            const Tree *value)
{
    bool data = key == NUMBER_KEYS + 2;
    if (seen->at[key].source >= 0) {
        error_at(p, at, "`%s` is set twice", key_name(key));
        note_at(p, seen->at[key], "first here");
    }
    seen->at[key] = at;
    if (!seen->defined[key] || data)
        return set_key(p, key, at, value);
    for (int i = values_of(key, value); value && i > 0; i--)
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
        int key = find_key(block->text, name);
        if (key < 0) {
            unknown_key(p, block->text, name, at);
            return;
        }
        value = file_key(
            p, seen, key,
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
        int key = find_key(NULL, define->text);
        if (key < 0) {
            unknown_key(p, NULL, define->text, define->name);
            continue;
        }
        seen->defined[key] = true;
        if (strcmp(key_block(key), "cluster") == 0)
            p->set.has_cluster = true;
        const Tree *rest = set_key(p, key, define->at, define->child);
        if (rest)
            error_at(p, rest->at, "one value is enough here");
    }
}

static void defaults(Settings *set)
{
    for (int i = 0; i < NUMBER_KEYS; i++)
        *field_of(set, &number_keys[i]) = (Number){number_keys[i].fallback,
                                                   nowhere};
    set->split_at = set->schedule_at = set->data_at = nowhere;
    set->dtype_at = set->placement_at = nowhere;
    set->optimizer = OPTIMIZER_ADAMW;
    set->rate = 3e-4;
    set->decay = 0.1;
    set->momentum = 0.9;
    set->beta1 = 0.9;
    set->beta2 = 0.95;
    set->epsilon = 1e-8;
}

/* Of the placement that the file asks for. */
static const char *default_name(const Settings *set)
{
    if (set->placement_at.source >= 0)
        switch (set->placement) {
        case PLACE_VEE: return "zbv";
        case PLACE_WAVE: return "hanayo";
        case PLACE_TWIN: return "naive";
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
    for (int i = 0; i < KEYS; i++)
        seen.at[i] = nowhere;
    defaults(&p->set);
    p->set.dtype = p->target == TARGET_CUDA ? DTYPE_BF16 : DTYPE_F32;
    set_defines(p, &seen);
    check_blocks(p, &seen);
    take_virtual(p);
    if (p->set.schedule_at.source < 0)
        default_schedule(p);
    check_placement(p);
    p->microbatches = (int)p->set.microbatches.value;
    check_times(p);
    check_deferred(p);
}
