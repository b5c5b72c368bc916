/* check.c: tree -> names and shapes, or an error that says what to type.
 *
 * Reads: file. Writes: lets, set (check_settings.c), written
 * (check_schedule.c), name, tensors, parameters, ops, layers, input, targets,
 * vocabulary. Guarantees: every op's operands
 * exist and fit; between two layers exactly one tensor travels; every result is
 * used; sizes are small enough that later products do not overflow.
 *
 * Here is the model: its input, its entries in order, its loss. Each repetition
 * of an entry is one Layer; its body is evaluated by check_layer.c. */
#include "check.h"

#include <string.h>

enum { MAX_ENTRIES = 4096, MAX_NUMBERS = 100 };  // of a model; of a layer

/* Every op of the last layer leads to its result. */
static void check_used(Checker *c, int result)
{
    Program *p = c->p;
    for (int i = c->first_op; i < p->op_count; i++) {
        int output = p->ops[i].output;
        if (output < 0 || output == result || p->tensors[output].uses)
            continue;
        error_at(p, p->tensors[output].at, "`%s` is computed but never used",
                 p->tensors[output].name);
        help(p, "remove it, or use it in the layer's result");
    }
}

static Value call_entry(Checker *c, const Tree *call, Value x)
{
    const OpKind *kind = find_op(call->text);
    const Tree *layer = kind ? NULL : find_layer(c->p, call->text);
    c->alone = kind != NULL;
    if (kind && kind->tensors > 1) {
        error_at(c->p, call->at,
                 "`%s` takes two tensors, but an entry has one: what the entry "
                 "above returns",
                 call->text);
        help(c->p,
             "add inside a layer, as in layer skip { x + linear(x, 64) }");
        return unknown_tensor(c, call->at);
    }
    if (kind)
        return call_op(c, NULL, kind, call, NULL, &x);
    if (layer)
        return call_layer(c, NULL, layer, call, x, call->child);
    unknown_call(c, NULL, call);
    return unknown_tensor(c, call->at);
}

/* One repetition of an entry: a layer, or an op that is a layer by itself. One
 * that is wrong stands there too, so that those behind it have an input. */
static bool add_layer(Checker *c, const Tree *entry, const char *name)
{
    Program *p = c->p;
    const Tree *call = entry->child;
    int errors = p->errors, unknown = c->unknown_tensors;
    int input = p->layer_count ? p->layers[p->layer_count - 1].output
                               : p->input;
    c->prefix = name;
    c->first_op = p->op_count;
    Value result = call_entry(c, call, (Value){VALUE_TENSOR, 0, input});
    bool known = p->errors == errors && c->unknown_tensors == unknown;
    if (known && result.tensor == input) {
        error_at(p, entry->at, "layer `%s` returns its input as it is",
                 call->text);
        note_at(p, find_layer(p, call->text)->name, "it is defined here");
    } else if (known)
        check_used(c, result.tensor);
    p->layers = array_grow(p->arena, p->layers, p->layer_count,
                           sizeof *p->layers);
    p->layers[p->layer_count++] = (Layer){name,
                                          call->text,
                                          entry->at,
                                          input,
                                          result.tensor,
                                          c->first_op,
                                          p->op_count - c->first_op,
                                          strcmp(call->text, "mtp") == 0};
    return p->errors == errors;
}

/* ---- ties ---- */

static int find_parameter(const Program *p, const char *name)
{
    for (int i = 0; i < p->parameter_count; i++)
        if (strcmp(p->parameters[i].name, name) == 0)
            return i;
    return -1;
}

static const char *shape_text(Program *p, const Parameter *q)
{
    return q->columns
               ? text_format(p->arena, "[%ld x %ld]", q->rows, q->columns)
               : text_format(p->arena, "[%ld]", q->rows);
}

static const Tree *find_entry(const Tree *model, const char *name)
{
    const Tree *entry = model->child;
    while (entry && strcmp(entry->text, name) != 0)
        entry = entry->next;
    return entry;
}

static const char *nearest_entry(Program *p, const Tree *model,
                                 const char *name)
{
    const char **known = arena_take(p->arena, sizeof *known * MAX_ENTRIES);
    int count = 0;
    for (const Tree *entry = model->child; entry; entry = entry->next)
        known[count++] = entry->text;
    return nearest(name, known, count);
}

/* The parameter of an entry that is a single op; -1: it has none. */
static int weight_of(Program *p, const Tree *entry)
{
    return find_parameter(p, text_format(p->arena, "%s.weight", entry->text));
}

static void no_weight(Program *p, const Tree *entry, Span at)
{
    error_at(p, at, "`%s` has no weight of its own that could be shared",
             entry->text);
    if (at.begin != entry->name.begin)
        note_at(p, entry->at, "it stands here");
    help(p, "an entry that is a single linear or embedding, once, has one");
}

static void tie(Checker *c, const Tree *model, const Tree *entry,
                const Tree *tied)
{
    Program *p = c->p;
    const Tree *other = find_entry(model, tied->text);
    int own = weight_of(p, entry), root = other ? weight_of(p, other) : -1;
    Parameter *q = p->parameters;
    if (!other) {
        const char *near = nearest_entry(p, model, tied->text);
        error_at(p, tied->at, "no entry is called `%s`", tied->text);
        help(p, near ? "did you mean `%s`" : "name one that stands above",
             near);
    } else if (other == entry) {
        error_at(p, tied->at, "`%s` cannot be tied to itself", entry->text);
    } else if (other->at.begin > entry->at.begin) {
        error_at(p, tied->at, "`%s` stands further down", tied->text);
        note_at(p, other->at, "here");
        help(p, "tie it there, to `%s`", entry->text);
    } else if (c->errors < p->errors) {
        return;  // either may have no weight because it is wrong itself
    } else if (own < 0) {
        no_weight(p, entry, entry->name);
    } else if (root < 0) {
        no_weight(p, other, tied->at);
    } else if (q[root].rows != q[own].rows ||
               q[root].columns != q[own].columns) {
        error_at(p, tied->at, "`%s` is %s, but `%s` is %s", q[own].name,
                 shape_text(p, &q[own]), q[root].name, shape_text(p, &q[root]));
        note_at(p, other->at, "`%s` stands here", tied->text);
        help(p, "tied weights need the same shape");
    } else {
        q[own].tied = q[root].tied >= 0 ? q[root].tied : root;
    }
}

/* ---- input and loss ---- */

/* Logits and input may both be unknown. */
static bool loss_fits(Program *p, const Tree *entry, const Tensor *logits)
{
    bool ids = strcmp(entry->child->text, "cross_entropy") == 0;
    const Tensor *input = &p->tensors[p->input];
    if (input->width == UNKNOWN_WIDTH)
        return false;
    if (ids != (p->vocabulary > 0)) {
        error_at(p, entry->at,
                 ids ? "cross_entropy compares token ids, but the model's "
                       "input is numbers"
                     : "mse compares numbers, but the model's input is tokens");
        note_at(p, input->at, "the input is declared here");
        help(p, ids ? "use mse" : "use cross_entropy");
        return false;
    }
    if (!ids || logits->width == p->vocabulary)
        return true;
    if (logits->width == UNKNOWN_WIDTH)
        return false;
    error_at(p, entry->at,
             "cross_entropy compares %ld values per position with a "
             "vocabulary of %ld",
             logits->width, p->vocabulary);
    note_at(p, input->at, "the vocabulary, from here");
    help(p, "end the model with linear(%ld)", p->vocabulary);
    return false;
}

static void check_loss(Checker *c, const Tree *entry)
{
    Program *p = c->p;
    if (p->layer_count == 0) {
        error_at(p, entry->at,
                 "a model needs at least one layer before its loss");
        return;
    }
    int last = p->layer_count - 1;
    Value x = {VALUE_TENSOR, 0, p->layers[last].output};
    Tensor logits = p->tensors[x.tensor];
    bool fits = loss_fits(p, entry, &logits);
    c->prefix = entry->text;
    c->alone = true;
    c->first_op = p->op_count;
    p->layer_count = last;  // the loss belongs to the last layer
    call_op(c, NULL, find_op(entry->child->text), entry->child, NULL, &x);
    if (fits)
        p->targets = new_tensor(
            c, "targets", p->vocabulary ? TENSOR_IDS : TENSOR_EXACT, logits.seq,
            p->vocabulary ? 0 : logits.width, entry->at);
    p->layer_count = last + 1;
    p->layers[last].op_count++;
}

/* A file that came by -D without a format is of the kind that the input
 * needs. */
static void check_data_kind(Program *p, Span input_at)
{
    Settings *set = &p->set;
    bool numbers = set->data == DATA_NUMBERS;
    if (set->data == DATA_NONE && set->data_path)
        set->data = p->vocabulary ? DATA_BYTES : DATA_NUMBERS;
    if (set->data == DATA_NONE || (set->data == DATA_NUMBERS) == !p->vocabulary)
        return;
    error_at(p, set->data_at.source < 0 ? input_at : set->data_at,
             numbers ? "the data is numbers, but the model's input is tokens"
                     : "the data is tokens, but the model's input is numbers");
    note_at(p, input_at, "the input is declared here");
    help(p, numbers ? "data bytes \"FILE\"" : "data numbers \"FILE\"");
}

/* The sizes of the input; false: they are not known. */
static bool input_sizes(Program *p, const Tree *input, long size[2], int *count)
{
    const Tree *dimension = input->child->child,
               *vocabulary = input->child->next;
    int most = vocabulary ? 1 : 2, errors = p->errors;
    for (; dimension; dimension = dimension->next, ++*count) {
        if (*count == most) {
            error_at(p, dimension->at,
                     vocabulary ? "tokens have one dimension, their sequence"
                                : "numbers have one or two dimensions");
            help(p, vocabulary ? "input %s[128] of 256" : "input %s[8][2]",
                 input->text);
            return false;
        }
        whole_number(p, dimension, "the dimension", 1, MAX_SEQ, &size[*count]);
    }
    if (vocabulary)
        whole_number(p, vocabulary, "the vocabulary", 2, MAX_WIDTH,
                     &p->vocabulary);
    return p->errors == errors;
}

/* Kernels count the positions of a micro-batch in an int, some in strides: no
 * step of theirs is so long that it would pass the largest one. */
static void check_positions(Program *p, const Tree *dimension, long seq)
{
    enum { STRIDE = 1 << 24, MOST = INT32_MAX - STRIDE + 1 };
    double positions = p->set.rows.value * (double)seq;
    if (positions <= MOST)
        return;
    error_at(p, dimension->at,
             "%s rows of %ld positions are %.0f in a micro-batch",
             number_text(p, p->set.rows.value), seq, positions);
    if (p->set.rows.at.source >= 0)
        note_at(p, p->set.rows.at, "%s rows, from here",
                number_text(p, p->set.rows.value));
    help(p,
         "at most %d are supported; more micro-batches of fewer rows make "
         "as large a step",
         MOST);
}

static void check_input(Checker *c, const Tree *input)
{
    Program *p = c->p;
    const Tree *vocabulary = input->child->next;
    long size[2] = {1, 1};
    int count = 0;
    if (!input_sizes(p, input, size, &count)) {
        p->input = unknown_tensor(c, input->at).tensor;
        return;
    }
    long seq = vocabulary || count == 2 ? size[0] : 1,
         width = vocabulary ? 0 : size[count == 2];
    if (seq > 1)
        check_positions(p, input->child->child, seq);
    p->input = new_tensor(c, input->text,
                          vocabulary ? TENSOR_IDS : TENSOR_FLOATS, seq, width,
                          input->at);
    check_data_kind(p, input->at);
}

/* ---- the model ---- */

static bool is_loss(const Tree *entry)
{
    const OpKind *kind = entry->kind == TREE_ENTRY ? find_op(entry->child->text)
                                                   : NULL;
    return kind && kind->loss;
}

/* An entry's repetitions: h -> h.0, h.1, ...; without a count just h. */
static void check_entry(Checker *c, const Tree *model, const Tree *entry)
{
    Program *p = c->p;
    const Tree *next = entry->child->next, *count_at = NULL;
    long count = 1;
    if (next && next->kind != TREE_TIED) {
        count_at = next;
        whole_number(p, next, "the repetition", 1, MAX_LAYERS, &count);
        next = next->next;
    }
    for (long i = 0; i < count; i++) {
        const char *name = entry->text;
        if (count_at)
            name = text_format(p->arena, "%s.%ld", name, i);
        if (p->layer_count == MAX_LAYERS) {
            error_at(p, entry->at, "more than %d layers", MAX_LAYERS);
            c->over = true;
            return;
        }
        if (!add_layer(c, entry, name))
            break;  // the others are wrong in the same way
    }
    if (next)
        tie(c, model, entry, next);
}

/* ---- layers `mtp` ---- */

static bool predicts(const Tree *entry)
{
    return entry->kind == TREE_ENTRY && strcmp(entry->child->text, "mtp") == 0;
}

static bool is_repeated(const Tree *entry)
{
    const Tree *count = entry->kind == TREE_ENTRY ? entry->child->next : NULL;
    return count && count->kind != TREE_TIED && !predicts(entry);
}

/* The entry behind which blocks stand in for the `m` of a layout; NULL: the model
 * has its own, or needs none. */
static const Tree *place_of_stand_ins(Program *p, const Tree *model)
{
    const Tree *last = NULL, *layer = find_layer(p, "mtp");
    if (!layout_count(p, LAYOUT_PREDICTION))
        return NULL;
    for (const Tree *entry = model->child; entry; entry = entry->next) {
        if (predicts(entry))
            return NULL;
        last = is_repeated(entry) ? entry : last;
    }
    if (!layer)
        return last;
    error_at(
        p, p->set.split_at,
        "the layout has `m`, and there is a layer `mtp`, but the model has "
        "no entry of it");
    note_at(p, layer->name, "the layer is defined here");
    if (last)
        note_at(p, last->at, "the entry belongs behind this one");
    help(p, "mtp : mtp");
    return NULL;
}

/* Each weighs as much as a block, and lies where the layer would. */
static void add_stand_ins(Checker *c, const Tree *block)
{
    Program *p = c->p;
    int count = layout_count(p, LAYOUT_PREDICTION);
    for (int i = 0; i < count && p->layer_count < MAX_LAYERS; i++) {
        if (!add_layer(c, block, text_format(p->arena, "m.%d", i)))
            return;
        p->layers[p->layer_count - 1].predicts = true;
        p->stand_ins++;
    }
}

static void check_name(Program *p, const Tree *model, const Tree *entry)
{
    const Tree *before = find_entry(model, entry->text);
    if (before == entry)
        return;
    error_at(p, entry->name, "`%s` is used twice", entry->text);
    note_at(p, before->name, "first here");
}

static const Tree *find_input(const Tree *model)
{
    const Tree *entry = model->child;
    while (entry && entry->kind != TREE_INPUT)
        entry = entry->next;
    return entry;
}

static void check_place(Program *p, const Tree *model, const Tree *entry)
{
    const Tree *call = entry->child;
    if (entry->kind == TREE_INPUT) {
        const Tree *first = find_input(model);
        if (entry == model->child)
            return;
        error_at(p, entry->at, "a model has one input, at its top");
        if (first != entry)
            note_at(p, first->at, "it is here");
    } else if (is_loss(entry)) {
        if (entry->next) {
            error_at(p, entry->next->at, "`%s` stands after the loss",
                     entry->next->text);
            note_at(p, entry->at, "the loss ends the model");
        }
        if (call->next)
            error_at(p, call->next->at,
                     call->next->kind == TREE_TIED
                         ? "a loss has no weight that could be tied"
                         : "a loss cannot be repeated");
    }
}

/* Is it a loss, or may it be meant as one: the last entry, of no known op. */
static bool ends_model(const Program *p, const Tree *entry)
{
    return is_loss(entry) ||
           (entry->kind == TREE_ENTRY && !entry->next &&
            !find_op(entry->child->text) && !find_layer(p, entry->child->text));
}

/* What can be said before anything is evaluated: each mistake for itself. */
static bool check_entries(Program *p, const Tree *model)
{
    int count = 0;
    bool loss = false;
    const Tree *entry = model->child;
    if (entry && !find_input(model)) {
        error_at(p, entry->at, "the model's first line must be its input");
        help(p, "input tokens[128] of 256");
    }
    for (; entry; entry = entry->next) {
        if (++count > MAX_ENTRIES) {
            error_at(p, entry->at, "more than %d entries", MAX_ENTRIES);
            help(p, "repeat a layer: h : block * 12");
            return false;
        }
        check_name(p, model, entry);
        check_place(p, model, entry);
        loss |= ends_model(p, entry);
    }
    if (!loss) {
        error_at(p, model->name, "model `%s` has no loss", model->text);
        help(p, "end it with `loss : cross_entropy` or `loss : mse`");
    }
    return true;
}

/* So that no later sum overflows: 65536 micro-batches of it fit 63 bits. */
static void check_sizes(Program *p, const Tree *model)
{
    static const double MOST = 0x1p44;
    double tensors = 0, parameters = 0;
    for (int i = 0; i < p->tensor_count; i++)
        tensors += (double)p->tensors[i].floats;
    for (int i = 0; i < p->parameter_count; i++) {
        const Parameter *q = &p->parameters[i];
        parameters += (double)parameter_values(q);
    }
    if (tensors <= MOST && parameters <= MOST)
        return;
    error_at(p, model->name,
             tensors > MOST ? "one micro-batch of `%s` holds %.3g values"
                            : "`%s` has %.3g parameters",
             model->text, tensors > MOST ? tensors : parameters);
    help(p, "at most %.3g are supported", MOST);
}

/* ---- a target that reaches its own prediction ---- */

static bool is_place_of_earlier_op(const Program *p, int op)
{
    for (int i = 0; i < op; i++)
        if (p->ops[i].at.begin == p->ops[op].at.begin)
            return true;
    return false;
}

/* The targets are the next tokens of the input, and every op lies between input
 * and loss; so one that lets a position see those behind it shows it its own
 * target. A loss of numbers has targets of its own. */
static void warn_of_own_targets(Program *p, const Tree *loss)
{
    for (int i = 0; p->vocabulary && i < p->op_count; i++) {
        const Op *op = &p->ops[i];
        if (!op->kind->causal || op->causal ||
            p->tensors[op->input[0]].seq == 1 || is_place_of_earlier_op(p, i))
            continue;
        warning_at(p, op->at,
                   "without `causal` a position sees the token that it is to "
                   "predict");
        note_at(p, loss->at, "the loss compares with the next token");
        help(p, "write %s(%s%ld, causal)", op->kind->name,
             strchr(op->label, '.') ? ".., " : "", op->heads);
    }
}

static void check_model(Checker *c, const Tree *model)
{
    Program *p = c->p;
    const Tree *entry = model->child, *loss = NULL;
    p->name = model->text;
    c->errors = p->errors;
    if (!check_entries(p, model))
        return;
    if (entry && entry->kind == TREE_INPUT)
        check_input(c, entry);
    else
        p->input = unknown_tensor(c, model->at).tensor;
    const Tree *stand_ins = place_of_stand_ins(p, model);
    for (; entry && !c->over; entry = entry->next) {
        int errors = p->errors;
        if (entry->kind == TREE_ENTRY && !is_loss(entry))
            check_entry(c, model, entry);
        if (entry == stand_ins && p->errors == errors)
            add_stand_ins(c, entry);
        if (is_loss(entry) && !entry->next)
            check_loss(c, loss = entry);
    }
    if (p->errors == c->errors)
        check_sizes(p, model);
    if (!p->errors)
        warn_of_own_targets(p, loss);
    else
        check_meant_layers(c);
}

/* ---- layers, and the whole ---- */

static void check_parameter_names(Program *p, const Tree *layer)
{
    const Tree *first = layer->child->child;
    int count = 0;
    for (const Tree *name = first; name; name = name->next) {
        const Tree *before = first;
        if (++count > MAX_NUMBERS) {
            error_at(p, name->at, "a layer of more than %d numbers",
                     MAX_NUMBERS);
            return;
        }
        while (before != name && strcmp(before->text, name->text) != 0)
            before = before->next;
        if (strcmp(name->text, "x") == 0) {
            error_at(p, name->at, "`x` is the layer's input");
            help(p, "choose another name");
        } else if (before != name) {
            error_at(p, name->at, "`%s` is used twice", name->text);
            note_at(p, before->at, "first here");
        }
    }
}

static void check_definitions(Program *p)
{
    int count = 0;
    for (const Tree *item = p->file->child; item; item = item->next) {
        if (item->kind != TREE_LAYER)
            continue;
        if (++count > MAX_ENTRIES) {
            error_at(p, item->name, "more than %d layers are defined",
                     MAX_ENTRIES);
            return;
        }
        const Tree *before = find_layer(p, item->text);
        if (find_op(item->text)) {
            error_at(p, item->name, "`%s` is an op already", item->text);
            help(p, "choose another name for the layer");
        } else if (before != item) {
            error_at(p, item->name, "layer `%s` is defined twice", item->text);
            note_at(p, before->name, "first here");
        }
        check_parameter_names(p, item);
    }
}

static const Tree *find_model(Program *p)
{
    const Tree *model = NULL;
    for (const Tree *item = p->file->child; item; item = item->next) {
        if (item->kind != TREE_MODEL)
            continue;
        if (model) {
            error_at(p, item->name, "a second model");
            note_at(p, model->name, "the first is here");
            return NULL;
        }
        model = item;
    }
    if (!model) {
        error_at(p, (Span){-1, 0, 0}, "no model is defined");
        help(p, "`pipec --help language` shows one");
    }
    return model;
}

bool check(Program *p)
{
    Checker c = {.p = p};
    p->input = p->targets = -1;
    if (!check_lets(p))
        return false;
    check_schedules(p);
    check_settings(p);
    int errors = p->errors;
    check_definitions(p);
    const Tree *model = find_model(p);
    open_labels(&c);
    if (model && p->errors == errors)
        check_model(&c, model);
    return p->errors == 0;
}
