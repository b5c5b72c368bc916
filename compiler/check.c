/* check.c: tree -> names and shapes, or an error that says what to type.
 *
 * Reads: file. Writes: lets, set (check_settings.c), name, tensors, parameters,
 * ops, layers, input, targets, vocabulary. Guarantees: every op's operands
 * exist and fit; between two layers exactly one tensor travels; every result is
 * used; sizes are small enough that later products do not overflow.
 *
 * Here is the model: its input, its entries in order, its loss. Each repetition
 * of an entry is one Layer; its body is evaluated by check_layer.c. */
#include "check.h"

#include <string.h>

enum { MAX_ENTRIES = 4096 };

static void check_used(Checker *c, int first_tensor, int result)
{
    Program *p = c->p;
    for (int i = first_tensor; i < p->tensor_count; i++) {
        const Tensor *t = &p->tensors[i];
        bool stats = false;
        for (int k = c->first_op; k < p->op_count; k++)
            stats |= p->ops[k].stats == i;
        if (t->uses || i == result || stats)
            continue;
        error_at(p, t->at, "`%s` is computed but never used", t->name);
        help(p, "remove it, or use it in the layer's result");
    }
}

/* One repetition of an entry: a layer, or an op that is a layer by itself. */
static bool add_layer(Checker *c, const Node *entry, const char *name)
{
    Program *p = c->p;
    const Node *call = entry->child;
    const OpKind *kind = find_op(call->text);
    const Node *layer = find_layer(p, call->text);
    int errors = p->errors, tensors = p->tensor_count;
    int input = p->layer_count ? p->layers[p->layer_count - 1].output
                               : p->input;
    Value x = {VALUE_TENSOR, 0, input};
    c->prefix = name;
    c->alone = kind != NULL;
    c->first_op = p->op_count;
    c->levels = 0;
    Value result = kind ? call_op(c, NULL, kind, call, NULL, &x)
                        : call_layer(c, NULL, layer, call, x, call->child);
    if (result.kind != VALUE_TENSOR || p->errors > errors)
        return false;
    if (p->op_count == c->first_op) {
        error_at(p, entry->at, "layer `%s` computes nothing", call->text);
        return false;
    }
    check_used(c, tensors, result.tensor);
    p->layers = array_grow(p->arena, p->layers, p->layer_count,
                           sizeof *p->layers);
    p->layers[p->layer_count++] = (Layer){name,
                                          call->text,
                                          entry->at,
                                          input,
                                          result.tensor,
                                          c->first_op,
                                          p->op_count - c->first_op};
    return p->errors == errors;
}

static int find_parameter(const Program *p, const char *name)
{
    for (int i = 0; i < p->parameter_count; i++)
        if (strcmp(p->parameters[i].name, name) == 0)
            return i;
    return -1;
}

static void shape_note(Program *p, const Parameter *a, const Parameter *b,
                       Span at)
{
    error_at(p, at, "`%s` is [%ld x %ld], but `%s` is [%ld x %ld]", b->name,
             b->rows, b->columns, a->name, a->rows, a->columns);
    help(p, "tied weights need the same shape: linear(vocabulary) of an "
            "embedding's width");
}

static void tie(Checker *c, const Node *entry, const Node *tied)
{
    Program *p = c->p;
    int root = find_parameter(p,
                              text_format(p->arena, "%s.weight", tied->text));
    int own = find_parameter(p,
                             text_format(p->arena, "%s.weight", entry->text));
    if (own < 0) {
        error_at(p, tied->at,
                 "`%s` has no weight of its own that could be tied",
                 entry->text);
        help(p, "only an entry that is a single op can be tied");
    } else if (root < 0 || root == own) {
        error_at(p, tied->at, "no earlier entry `%s` has a weight", tied->text);
        help(p, "name an embedding or a linear that stands above");
    } else if (p->parameters[root].rows != p->parameters[own].rows ||
               p->parameters[root].columns != p->parameters[own].columns) {
        shape_note(p, &p->parameters[root], &p->parameters[own], tied->at);
    } else {
        p->parameters[own].tied = p->parameters[root].tied >= 0
                                      ? p->parameters[root].tied
                                      : root;
    }
}

static bool check_loss(Checker *c, const Node *entry)
{
    Program *p = c->p;
    const Node *call = entry->child;
    const OpKind *kind = find_op(call->text);
    int logits = p->layer_count ? p->layers[p->layer_count - 1].output
                                : p->input;
    Value x = {VALUE_TENSOR, 0, logits};
    const Tensor *t = &p->tensors[logits];
    bool ids = strcmp(call->text, "cross_entropy") == 0;
    if (entry->next) {
        error_at(p, entry->next->at, "an entry after the loss");
        note_at(p, entry->at, "the loss ends the model");
        return false;
    }
    if (p->layer_count == 0) {
        error_at(p, entry->at,
                 "a model needs at least one layer before its loss");
        return false;
    }
    if (ids && t->kind == TENSOR_FLOATS && t->width != p->vocabulary) {
        error_at(p, entry->at,
                 "cross_entropy compares %ld values per position with a "
                 "vocabulary of %ld",
                 t->width, p->vocabulary);
        help(p,
             p->vocabulary ? "end the model with linear(%ld)"
                           : "numbers are compared by `mse`",
             p->vocabulary);
        return false;
    }
    if (!ids && p->vocabulary) {
        error_at(p, entry->at,
                 "mse compares numbers, but the model's input is tokens");
        help(p, "use cross_entropy");
        return false;
    }
    c->prefix = entry->text;
    c->alone = true;
    c->first_op = p->op_count;
    int last = --p->layer_count;  // the loss belongs to the last layer
    Value done = call_op(c, NULL, kind, call, NULL, &x);
    p->targets = new_tensor(c, "targets", ids ? TENSOR_IDS : TENSOR_FLOATS,
                            t->seq, ids ? 0 : t->width, entry->at);
    p->layer_count = last + 1;
    p->layers[last].op_count++;
    return done.kind == VALUE_TENSOR;
}

static void check_data_kind(Program *p, Span input_at)
{
    bool numbers = p->set.data == DATA_NUMBERS;
    if (p->set.data == DATA_NONE || numbers == (p->vocabulary == 0))
        return;
    error_at(p, p->set.data_at.source < 0 ? input_at : p->set.data_at,
             numbers ? "the data is numbers, but the model's input is tokens"
                     : "the data is tokens, but the model's input is numbers");
    note_at(p, input_at, "the input is declared here");
    help(p, numbers ? "data bytes \"FILE\"" : "data numbers \"FILE\"");
}

static void check_input(Checker *c, const Node *input)
{
    Program *p = c->p;
    const Node *dimension = input->child->child,
               *vocabulary = input->child->next;
    long size[2] = {1, 1};
    int count = 0;
    for (; dimension; dimension = dimension->next, count++) {
        if (count == 2 || (vocabulary && count == 1)) {
            error_at(p, dimension->at,
                     "an input has one dimension for tokens, one or two for "
                     "numbers");
            break;
        }
        whole_number(p, dimension, "dimension", 1, MAX_SEQ, &size[count]);
    }
    if (vocabulary)
        whole_number(p, vocabulary, "vocabulary", 2, MAX_WIDTH, &p->vocabulary);
    long seq = vocabulary || count == 2 ? size[0] : 1,
         width = vocabulary ? 0 : size[count == 2];
    p->input = new_tensor(c, input->text,
                          vocabulary ? TENSOR_IDS : TENSOR_FLOATS, seq, width,
                          input->at);
    check_data_kind(p, input->at);
}

/* An entry's repetitions: h -> h.0, h.1, ...; without a count just h. */
static bool check_entry(Checker *c, const Node *entry)
{
    Program *p = c->p;
    const Node *call = entry->child, *next = call->next, *tied = NULL,
               *count_at = NULL;
    long count = 1;
    if (next && next->kind != NODE_TIED) {
        count_at = next;
        if (!whole_number(p, next, "repetition", 1, MAX_LAYERS, &count))
            return false;
        next = next->next;
    }
    tied = next;
    if (!find_op(call->text) && !find_layer(p, call->text)) {
        unknown_call(c, call, false);
        return false;
    }
    for (long i = 0; i < count; i++) {
        if (p->layer_count == MAX_LAYERS) {
            error_at(p, entry->at, "more than %d layers", MAX_LAYERS);
            return false;
        }
        if (!add_layer(c, entry,
                       count_at
                           ? text_format(p->arena, "%s.%ld", entry->text, i)
                           : entry->text))
            return false;
    }
    if (tied)
        tie(c, entry, tied);
    return true;
}

static bool name_is_free(Program *p, const Node *model, const Node *entry)
{
    for (const Node *before = model->child; before != entry;
         before = before->next) {
        if (strcmp(before->text, entry->text) == 0) {
            error_at(p, entry->name, "`%s` is used twice", entry->text);
            note_at(p, before->name, "first here");
            return false;
        }
    }
    return true;
}

static void check_model(Checker *c, const Node *model)
{
    Program *p = c->p;
    bool loss = false;
    int entries = 0;
    p->name = model->text;
    for (const Node *entry = model->child; entry; entry = entry->next) {
        const OpKind *kind = entry->kind == NODE_ENTRY
                                 ? find_op(entry->child->text)
                                 : NULL;
        if (++entries > MAX_ENTRIES) {
            error_at(p, entry->at, "more than %d entries", MAX_ENTRIES);
            return;
        }
        if (!name_is_free(p, model, entry))
            return;
        if (entry->kind == NODE_INPUT &&
            (p->input >= 0 || entry != model->child)) {
            error_at(p, entry->at, "a model has one input, at its top");
            return;
        }
        if (entry->kind == NODE_INPUT) {
            check_input(c, entry);
            continue;
        }
        if (p->input < 0) {
            error_at(p, entry->at, "the model's first line must be its input");
            help(p, "input tokens[128] of 256");
            return;
        }
        loss = kind && kind->loss;
        if (loss ? !check_loss(c, entry) : !check_entry(c, entry))
            return;
    }
    if (loss)
        return;
    error_at(p, model->name, "model `%s` has no loss", model->text);
    help(p, "end it with `loss : cross_entropy` or `loss : mse`");
}

static void check_definitions(Program *p)
{
    int count = 0;
    for (const Node *item = p->file->child; item; item = item->next) {
        if (item->kind != NODE_LAYER)
            continue;
        const Node *before = find_layer(p, item->text);
        if (find_op(item->text)) {
            error_at(p, item->name, "`%s` is an op already", item->text);
            help(p, "choose another name for the layer");
        } else if (before != item) {
            error_at(p, item->name, "layer `%s` is defined twice", item->text);
            note_at(p, before->name, "first here");
        }
        if (++count > MAX_ENTRIES) {
            error_at(p, item->name, "more than %d layers are defined",
                     MAX_ENTRIES);
            return;
        }
    }
}

bool check(Program *p)
{
    Checker c = {.p = p};
    const Node *model = NULL;
    p->input = p->targets = -1;
    check_settings(p);
    check_definitions(p);
    for (const Node *item = p->file->child; item; item = item->next) {
        if (item->kind == NODE_MODEL && model) {
            error_at(p, item->name, "a second model");
            note_at(p, model->name, "the first is here");
            return false;
        }
        if (item->kind == NODE_MODEL)
            model = item;
    }
    if (model)
        check_model(&c, model);
    else if (!p->errors)
        error_plain(p, "%s defines no model", p->sources[0].name);
    return p->errors == 0;
}
