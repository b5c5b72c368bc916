/* check.h: what the files of the check pass share.
 *
 *     check.c           the model: input, entries, loss, ties
 *     check_layer.c     bodies of layers: names, expressions, calls
 *     check_op.c        calls of ops: arguments, shapes, parameters
 *     check_settings.c  lets and the blocks pipeline, train and cluster */
#ifndef CHECK_H
#define CHECK_H

#include "compile.h"

enum { MAX_LAYERS = 65536, MAX_WIDTH = 1 << 24, MAX_SEQ = 1 << 24 };

typedef enum {
    VALUE_NOTHING,  // already reported
    VALUE_NUMBER,
    VALUE_TENSOR
} ValueKind;

typedef struct Value {
    ValueKind kind;
    double number;
    int tensor;
} Value;

static const Value nothing = {VALUE_NOTHING, 0, -1};

typedef struct Scope Scope;  // the names of one evaluation of one layer body

typedef struct Checker {
    Program *p;
    const char *prefix;  // "h.3"
    bool alone;  // the entry is an op itself: its parameters are PREFIX.weight
    int first_op;  // of this layer: labels are counted from here
    int levels;    // of layers calling layers
} Checker;

int new_tensor(Checker *c, const char *name, TensorKind kind, long seq,
               long width, Span at);
/* Appends an op. `given` is a NODE_LABEL or NULL; `first` is the tensor that
 * the call does not write, as in the model: `ln : layernorm`. */
Value call_op(Checker *c, Scope *scope, const OpKind *kind, const Node *call,
              const Node *given, const Value *first);
Value add_op(Checker *c, const Node *at, Value a, Value b);

Value eval(Checker *c, Scope *scope, const Node *at);
/* Evaluates the body with `x` as its input and numbers as the rest. */
Value call_layer(Checker *c, Scope *scope, const Node *layer, const Node *call,
                 Value x, const Node *arguments);
const Node *find_layer(const Program *p, const char *name);
void unknown_call(Checker *c, const Node *at, bool loss);

#endif
