/* check_settings.c: the first half of check: lets, and the blocks pipeline,
 * train and cluster.
 *
 * Reads: file, defines. Writes: lets, set. Guarantees: every setting is in
 * range; what was not written has its default and the span -1.
 *
 * A line is a key and its values; a block may hold several keys on one line.
 * What came by -D is put in first, so a key of the file that is already there
 * is skipped. */
#include "compile.h"

#include <math.h>
#include <string.h>

enum { MAX_LETS = 10000, MAX_DEPTH = 200 };
static const Span nowhere = {-1, 0, 0};

/* ---- constant expressions ---- */

const Let *find_let(const Program *p, const char *name)
{
    for (int i = p->let_count; i-- > 0;)
        if (strcmp(p->lets[i].name, name) == 0)
            return &p->lets[i];
    return NULL;
}

static void unknown_number(Program *p, const Node *at)
{
    const char **known = arena_take(p->arena,
                                    sizeof *known * (size_t)(p->let_count + 1));
    for (int i = 0; i < p->let_count; i++)
        known[i] = p->lets[i].name;
    error_at(p, at->at, "`%s` is no number that is known here", at->text);
    const char *near = nearest(at->text, known, p->let_count);
    if (near)
        help(p, "did you mean `%s`", near);
    else
        help(p, "define it first: let %s = 1", at->text);
}

static bool apply_operator(Program *p, const Node *at, double a, double b,
                           double *value)
{
    switch (at->text[0]) {
    case '+': *value = a + b; break;
    case '-': *value = a - b; break;
    case '*': *value = a * b; break;
    default:
        if (b == 0) {
            error_at(p, at->at, "division by zero");
            return false;
        }
        *value = a / b;
    }
    if (isfinite(*value))
        return true;
    error_at(p, at->at, "the result is too large");
    return false;
}

static bool evaluate_at(Program *p, const Node *at, Lookup find, void *context,
                        int depth, double *value)
{
    double a, b;
    if (depth > MAX_DEPTH) {
        error_at(p, at->at, "an expression of more than %d levels", MAX_DEPTH);
        help(p, "name parts of it with `let`");
        return false;
    }
    switch (at->kind) {
    case NODE_NUMBER: *value = at->number; return true;
    case NODE_NAME:
        if (find(context, at->text, value))
            return true;
        unknown_number(p, at);
        return false;
    case NODE_NEGATE:
        if (!evaluate_at(p, at->child, find, context, depth + 1, &a))
            return false;
        *value = -a;
        return true;
    case NODE_BINARY:
        return evaluate_at(p, at->child, find, context, depth + 1, &a) &&
               evaluate_at(p, at->child->next, find, context, depth + 1, &b) &&
               apply_operator(p, at, a, b, value);
    default: error_at(p, at->at, "expected a number"); return false;
    }
}

bool evaluate(Program *p, const Node *at, Lookup find, void *context,
              double *value)
{
    if (!evaluate_at(p, at, find, context, 0, value))
        return false;
    if (isfinite(*value))
        return true;
    error_at(p, at->at, "the number is too large");
    return false;
}

static bool find_in_lets(void *context, const char *name, double *value)
{
    const Let *let = find_let(context, name);
    if (let)
        *value = let->value;
    return let != NULL;
}

bool constant(Program *p, const Node *at, double *value)
{
    return evaluate(p, at, find_in_lets, p, value);
}

static bool in_range(Program *p, const Node *at, const char *what, double value,
                     long least, long most)
{
    if (value >= (double)least && value <= (double)most &&
        value == floor(value))
        return true;
    error_at(p, at->at,
             "`%s` is %g, but must be a whole number from %ld to %ld", what,
             value, least, most);
    return false;
}

bool whole_number(Program *p, const Node *at, const char *what, long least,
                  long most, long *value)
{
    double number;
    if (!constant(p, at, &number) ||
        !in_range(p, at, what, number, least, most))
        return false;
    *value = (long)number;
    return true;
}

static const Node *define_of(const Program *p, const char *name)
{
    const Node *found = NULL;
    for (int i = 0; i + 1 < p->source_count; i++)
        if (p->defines[i] && strcmp(p->defines[i]->text, name) == 0)
            found = p->defines[i];  // the last one counts
    return found;
}

static void add_let(Program *p, const Node *written)
{
    const Let *before = find_let(p, written->text);
    const Node *define = define_of(p, written->text);
    const Node *from = define ? define->child : written->child;
    double value = 0;
    if (before) {
        error_at(p, written->name, "`%s` is defined twice", written->text);
        note_at(p, before->at, "first here");
        return;
    }
    if (p->let_count == MAX_LETS) {
        error_at(p, written->name, "more than %d lets", MAX_LETS);
        return;
    }
    if (!from)
        error_at(p, define->at, "`%s` needs a value", written->text);
    else if (!constant(p, from, &value))
        value = 1;  // reported; go on with something
    p->lets = array_grow(p->arena, p->lets, p->let_count, sizeof *p->lets);
    p->lets[p->let_count++] = (Let){written->text, value, written->name};
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
     65536, 1},
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
                       const Node *value)
{
    Number *field = field_of(&p->set, key);
    double number;
    field->at = at;
    if (!constant(p, value, &number))
        return;
    if (key->whole && !in_range(p, value, key->key, number, (long)key->least,
                                (long)key->most))
        return;
    if (key->unit == 's' && value->unit != 's') {
        error_at(p, value->at, "`%s` needs a unit of time", key->key);
        help(p, "%s 10us", key->key);
    } else if (number < key->least || number > key->most) {
        error_at(p, value->at, "`%s` is %g, but must be from %g to %g",
                 key->key, number, key->least, key->most);
    } else {
        field->value = number;
    }
}

/* ---- settings that are words ---- */

static void set_schedule_option(Program *p, const Node *argument)
{
    const Schedule *s = p->set.schedule;
    long value;
    for (int i = 0; i < 4 && s->option[i]; i++) {
        if (argument->kind == NODE_ARGUMENT &&
            strcmp(argument->text, s->option[i]) == 0) {
            if (whole_number(p, argument->child, argument->text, 1, 65536,
                             &value))
                p->set.option[i] = (Number){(double)value, argument->at};
            return;
        }
    }
    error_at(p, argument->at, "schedule `%s` takes no such option", s->name);
    if (s->option[0])
        help(p, "it takes `%s = NUMBER`", s->option[0]);
}

static void set_schedule(Program *p, Span at, const Node *value)
{
    p->set.schedule_at = at;
    if (value->kind != NODE_NAME && value->kind != NODE_CALL) {
        error_at(p, value->at, "expected the name of a schedule");
        return;
    }
    const char *names[64];
    int count = 0;
    for (; count < schedule_count && count < 64; count++) {
        names[count] = schedules[count]->name;
        if (strcmp(names[count], value->text) == 0)
            p->set.schedule = schedules[count];
    }
    if (!p->set.schedule) {
        error_at(p, value->name, "no schedule is called `%s`", value->text);
        const char *near = nearest(value->text, names, count);
        if (near)
            help(p, "did you mean `%s`", near);
        else
            help(p, "`pipec --help schedules` lists them");
        return;
    }
    for (int i = 0; i < 4; i++)
        p->set.option[i] = (Number){p->set.schedule->fallback[i], nowhere};
    for (const Node *argument = value->child; argument;
         argument = argument->next)
        set_schedule_option(p, argument);
}

static void set_split(Program *p, Span at, const Node *value)
{
    p->set.split_at = at;
    if (value->kind == NODE_NAME && strcmp(value->text, "even") == 0)
        return;
    if (value->kind != NODE_LIST || !value->child) {
        error_at(p, value->at,
                 "a split is `even` or a list of layers per chunk");
        help(p, "split [3 4 4 3]");
        return;
    }
    p->set.split = SPLIT_EXPLICIT;
    p->set.split_at = value->at;
    for (const Node *size = value->child; size; size = size->next) {
        long layers = 1;
        whole_number(p, size, "split", 1, 1 << 20, &layers);
        p->set.sizes = array_grow(p->arena, p->set.sizes, p->set.size_count,
                                  sizeof *p->set.sizes);
        p->set.sizes[p->set.size_count++] = (int)layers;
    }
}

static const char *const data_words[] = {"none", "bytes", "uint16", "uint32",
                                         "numbers"};

/* Returns the values it used: data bytes "file", or "file" alone from -D, which
 * keeps the format. */
static const Node *set_data(Program *p, Span at, const Node *value)
{
    if (value->kind == NODE_STRING) {
        p->set.data_path = value->text;
        p->set.data_at = at;
        return value->next;
    }
    const Node *path = value->next;
    DataKind kind = DATA_NONE;
    for (int i = DATA_BYTES; value->kind == NODE_NAME && i <= DATA_NUMBERS; i++)
        if (strcmp(value->text, data_words[i]) == 0)
            kind = (DataKind)i;
    if (kind == DATA_NONE || !path || path->kind != NODE_STRING) {
        error_at(p, value->at, "expected a format and a file");
        help(p, "data bytes \"corpus.txt\"; formats are bytes, uint16, uint32 "
                "and numbers");
        return NULL;
    }
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
    {"momentum", offsetof(Settings, momentum), true, false, 0, 1},
    {"beta1", offsetof(Settings, beta1), false, true, 0, 1},
    {"beta2", offsetof(Settings, beta2), false, true, 0, 1},
    {"eps", offsetof(Settings, epsilon), false, true, 0, 1},
};

static void set_optimizer_key(Program *p, const char *optimizer,
                              const Node *argument)
{
    bool sgd = p->set.optimizer == OPTIMIZER_SGD;
    for (size_t i = 0; argument->kind == NODE_ARGUMENT &&
                       i < sizeof optimizer_keys / sizeof *optimizer_keys;
         i++) {
        const OptimizerKey *key = &optimizer_keys[i];
        double value;
        if (strcmp(argument->text, key->name) != 0 ||
            !(sgd ? key->sgd : key->adamw))
            continue;
        if (!constant(p, argument->child, &value))
            return;
        if (value < key->least || value > key->most)
            error_at(p, argument->child->at,
                     "`%s` is %g, but must be from %g to %g", key->name, value,
                     key->least, key->most);
        *(double *)((char *)&p->set + key->field) = value;
        return;
    }
    error_at(p, argument->at, "`%s` takes no such argument", optimizer);
    help(p, sgd ? "sgd(lr = 0.1, momentum = 0.9, decay = 0)"
                : "adamw(lr = 3e-4, decay = 0.1, beta1 = 0.9, beta2 = 0.95, "
                  "eps = 1e-8)");
}

static void set_optimizer(Program *p, const Node *value)
{
    bool named = value->kind == NODE_NAME || value->kind == NODE_CALL;
    if (named && strcmp(value->text, "sgd") == 0) {
        p->set.optimizer = OPTIMIZER_SGD;
        p->set.rate = 0.1;
        p->set.decay = 0;
    } else if (!named || strcmp(value->text, "adamw") != 0) {
        error_at(p, value->at, "expected `adamw(...)` or `sgd(...)`");
        return;
    }
    for (const Node *argument = value->child; argument;
         argument = argument->next)
        set_optimizer_key(p, value->text, argument);
}

/* ---- keys ---- */

static const struct {
    const char *block, *key;
} word_keys[] = {
    {"pipeline", "schedule"},
    {"pipeline", "split"},
    {"train", "data"},
    {"train", "optimizer"},
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
    const char *known[KEYS];
    int count = 0;
    for (int i = 0; i < KEYS; i++)
        if (!block || strcmp(key_block(i), block) == 0)
            known[count++] = key_name(i);
    int elsewhere = find_key(NULL, name);
    if (block)
        error_at(p, at, "`%s` is no setting of `%s`", name, block);
    else
        error_at(p, at, "`%s` is neither a `let` of the file nor a setting",
                 name);
    const char *near = nearest(name, known, count);
    if (near)
        help(p, "did you mean `%s`", near);
    else if (elsewhere >= 0)
        help(p, "it belongs into `%s { }`", key_block(elsewhere));
    else if (block)
        help(p, "`pipec --help language` lists the settings");
}

/* Sets one key from the values at `value`; returns the first value that is not
 * its own. */
static const Node *set_key(Program *p, int key, Span at, const Node *value)
{
    if (!value) {
        error_at(p, at, "`%s` needs a value", key_name(key));
        return NULL;
    }
    if (key < NUMBER_KEYS) {
        set_number(p, &number_keys[key], at, value);
        return value->next;
    }
    switch (key - NUMBER_KEYS) {
    case 0: set_schedule(p, at, value); break;
    case 1: set_split(p, at, value); break;
    case 2: return set_data(p, at, value);
    default: set_optimizer(p, value);
    }
    return value->next;
}

static int values_of(int key, const Node *value)
{
    bool data = key == NUMBER_KEYS + 2;
    return data && value && value->kind == NODE_NAME && value->next ? 2 : 1;
}

typedef struct Seen {
    Span at[KEYS];       // source -1: not yet
    bool defined[KEYS];  // by -D
} Seen;

/* What -D has set is not set again; but the format of `data` still comes from
 * the file. */
static const Node *file_key(Program *p, Seen *seen, int key, Span at,
                            const Node *value)
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

static void block_line(Program *p, Seen *seen, const Node *block,
                       const Node *line)
{
    const char *name = line->text;
    Span at = line->name;
    const Node *value = line->child;
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
        if (value->kind != NODE_NAME && value->kind != NODE_CALL) {
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
        const Node *define = p->defines[i];
        if (!define || find_let(p, define->text))
            continue;
        int key = find_key(NULL, define->text);
        if (key < 0) {
            unknown_key(p, NULL, define->text, define->name);
            continue;
        }
        seen->defined[key] = true;
        if (strcmp(key_block(key), "cluster") == 0)
            p->set.has_cluster = true;
        const Node *rest = set_key(p, key, define->at, define->child);
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
    set->optimizer = OPTIMIZER_ADAMW;
    set->rate = 3e-4;
    set->decay = 0.1;
    set->momentum = 0.9;
    set->beta1 = 0.9;
    set->beta2 = 0.95;
    set->epsilon = 1e-8;
}

static void default_schedule(Program *p)
{
    const char *name = p->set.virtuals.value > 1 ? "interleaved" : "1f1b";
    for (int i = 0; i < schedule_count; i++)
        if (strcmp(schedules[i]->name, name) == 0)
            p->set.schedule = schedules[i];
    for (int i = 0; i < 4; i++)
        p->set.option[i] = (Number){p->set.schedule->fallback[i], nowhere};
}

static void check_virtual(Program *p)
{
    const Schedule *s = p->set.schedule;
    if (!s || s->many_chunks || p->set.virtuals.value == 1)
        return;
    Span at = p->set.virtuals.at.source >= 0 ? p->set.virtuals.at
                                             : p->set.schedule_at;
    error_at(p, at,
             "schedule `%s` runs one chunk per rank, but `virtual` is %g",
             s->name, p->set.virtuals.value);
    note_at(p, p->set.schedule_at, "the schedule is chosen here");
    help(p, "use `virtual 1`, or `schedule interleaved`");
}

void check_settings(Program *p)
{
    Seen seen;
    const Node *first[3] = {NULL};
    memset(&seen, 0, sizeof seen);
    for (int i = 0; i < KEYS; i++)
        seen.at[i] = nowhere;
    defaults(&p->set);
    for (const Node *item = p->file->child; item; item = item->next)
        if (item->kind == NODE_LET)
            add_let(p, item);
    set_defines(p, &seen);
    for (const Node *item = p->file->child; item; item = item->next) {
        if (item->kind != NODE_BLOCK)
            continue;
        int which = item->text[0] == 'p' ? 0 : item->text[0] == 't' ? 1 : 2;
        if (first[which]) {
            error_at(p, item->name, "a second `%s` block", item->text);
            note_at(p, first[which]->name, "the first is here");
        }
        first[which] = item;
        p->set.has_cluster |= which == 2;
        for (const Node *line = item->child; line; line = line->next)
            block_line(p, &seen, item, line);
    }
    if (p->set.schedule_at.source < 0)
        default_schedule(p);
    check_virtual(p);
}
