/* check_train.c: the settings of the `train` block that are more than a number:
 * data, optimizer, dtype, clip, and what is done with a step that is no number.
 *
 * Reads: the values behind the keys. Writes: set. */
#include "check.h"

#include <stddef.h>
#include <string.h>

static const char *const data_words[] = {"none", "bytes", "uint16", "uint32",
                                         "numbers"};

int data_values(const Tree *value)
{
    return value->kind == TREE_NAME && value->next ? 2 : 1;
}

/* data bytes "file", or "file" alone from -D, which keeps the format. */
const Tree *set_data(Program *p, const SettingRow *row, Span at,
                     const Tree *value)
{
    (void)row;
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

const char *const optimizer_usage[] = {
    [OPTIMIZER_SGD] = "sgd(lr = 0.1, momentum = 0.9, decay = 0)",
    [OPTIMIZER_ADAMW] = "adamw(lr = 3e-4, decay = 0.1, beta1 = 0.9, beta2 = "
                        "0.95, eps = 1e-8)",
};

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
        help(p, "%s", optimizer_usage[p->set.optimizer]);
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

const Tree *set_optimizer(Program *p, const SettingRow *row, Span at,
                          const Tree *value)
{
    (void)row, (void)at;
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
        return value->next;
    }
    for (const Tree *argument = value->child;
         argument && p->errors <= MAX_ERRORS; argument = argument->next)
        set_optimizer_key(p, value, argument);
    return value->next;
}

const Tree *set_dtype(Program *p, const SettingRow *row, Span at,
                      const Tree *value)
{
    (void)row;
    p->set.dtype_at = at;
    bool named = value->kind == TREE_NAME;
    if (named && strcmp(value->text, "f32") == 0)
        p->set.dtype = DTYPE_F32;
    else if (named && strcmp(value->text, "bf16") == 0)
        p->set.dtype = DTYPE_BF16;
    else
        error_at(p, value->at, "a dtype is `f32` or `bf16`");
    if (p->set.dtype == DTYPE_BF16 && p->target == TARGET_CPU) {
        error_at(p, value->at, "the cpu computes in f32 alone");
        help(p, "use `dtype f32`, or compile for a GPU: --target cuda");
    }
    return value->next;
}

static bool is_word(const Tree *value, const char *word)
{
    return value && value->kind == TREE_NAME && strcmp(value->text, word) == 0;
}

int on_values(const Tree *value)
{
    return value->next ? 2 : 1;
}

/* on nonfinite stop, on nonfinite skip */
const Tree *set_on(Program *p, const SettingRow *row, Span at,
                   const Tree *value)
{
    const Tree *word = is_word(value, "nonfinite") ? value->next : NULL;
    p->set.skip_nonfinite = is_word(word, "skip");
    p->set.skip_at = at;
    if (p->set.skip_nonfinite || is_word(word, "stop"))
        return word->next;
    error_at(p, word ? word->at : value->at,
             "`on` stands before `nonfinite "
             "stop` or `nonfinite skip`");
    help(p, "%s", row->example);
    return NULL;
}

int clip_values(const Tree *value)
{
    return is_word(value->next, "deferred") ? 2 : 1;
}

/* clip 1.0, clip 1.0 deferred: returns the value behind. A word alone at the
 * end cannot be the next key. */
const Tree *set_clip(Program *p, const SettingRow *row, Span at,
                     const Tree *value)
{
    const Tree *word = value->next;
    if (is_word(value, "deferred") && !find_let(p, value->text)) {
        error_at(p, value->at, "`clip` needs its limit before `deferred`");
        help(p, "clip 1.0 deferred");
        return word;
    }
    set_number(p, row, at, value);
    if (is_word(word, "deferred")) {
        p->set.deferred = true;
        p->set.deferred_at = word->at;
        return word->next;
    }
    if (!word || word->next || word->kind != TREE_NAME ||
        find_setting("train", word->text))
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

/* The update of a step is left out when the norm is known before it. */
static void check_nonfinite(Program *p)
{
    if (!p->set.skip_nonfinite || !p->set.deferred)
        return;
    error_at(p, p->set.skip_at,
             "a step cannot be left out when its norm is known a step later");
    note_at(p, p->set.deferred_at, "by this");
    help(p, "use `clip %g`, or `on nonfinite stop`", p->set.clip.value);
}

bool is_optimizer_argument(const Program *p, const char *name)
{
    return find_optimizer_key(p, name) != NULL;
}

void default_train(Settings *set)
{
    set->optimizer = OPTIMIZER_ADAMW;
    set->rate = 3e-4;
    set->decay = 0.1;
    set->momentum = 0.9;
    set->beta1 = 0.9;
    set->beta2 = 0.95;
    set->epsilon = 1e-8;
}

void check_train(Program *p)
{
    check_deferred(p);
    check_nonfinite(p);
}
