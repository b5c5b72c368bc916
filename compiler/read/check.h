/* check.h: what the files of the check pass share.
 *
 *     check.c           the model: input, entries, loss, ties
 *     check_layer.c     bodies of layers: names, expressions, calls
 *     check_op.c        calls of ops: arguments, shapes, parameters
 *     check_number.c    the value of a constant expression
 *     check_schedule.c  schedule blocks: names, actions, marks
 *     check_cluster.c   numbers of the cluster block, machines with a name
 *     check_split.c     split and account
 *     check_train.c     settings of train that are more than a number
 *     check_settings.c  lets and the blocks pipeline, train and cluster */
#ifndef CHECK_H
#define CHECK_H

#include "compile.h"

enum {
    MAX_LAYERS = 65536,
    MAX_WIDTH = 1 << 24,
    MAX_SEQ = 1 << 24,
    MAX_RANKS = 1024
};

#define UNITS "units are K M G T, Ki Mi Gi Ti, s ms us ns"

/* ---- numbers ---- */

const char *number_text(Program *p, double number);  // 1048577, 0.1, 1e+30
const char *kind_text(const Tree *at);               // "text", "a list"
bool apply_operator(Program *p, const Tree *at, double a, double b,
                    double *value);
bool is_whole(double value, long least, long most);
/* `what` opens the message: "the width". */
bool in_range(Program *p, const Tree *at, const char *what, double value,
              long least, long most);
/* A constant expression that is a whole number from least to most. */
bool whole_number(Program *p, const Tree *at, const char *what, long least,
                  long most, long *value);
bool is_time(const Program *p, const Tree *at, int levels);
/* Is the call one of min, max or floor, with so many arguments as it takes. */
bool function_fits(Program *p, const Tree *call);
/* `own`: names that are known here beside the lets. */
void unknown_number(Program *p, const Tree *at, const char *const *own,
                    int own_count);
/* Reports a name like 10xs; of 2dim with a known `dim` it says what to write. */
bool is_wrong_number(Program *p, const Tree *at, const char *const *known,
                     int count);

/* ---- settings: one row each, in check_settings.c ---- */

typedef struct SettingRow SettingRow;
struct SettingRow {
    const char *block, *key;
    const char *example;  // a line of the block that is accepted as it stands
    const char *what;     // it is, for `pipec --help settings`
    /* Returns the first value that is not its own. */
    const Tree *(*set)(Program *p, const SettingRow *row, Span at,
                       const Tree *value);
    size_t field;  // in Settings: a Number, or a Given
    bool whole;    // the number has no fraction
    bool time;     // the number needs a unit of time
    double least, most, fallback;
    int (*values)(const Tree *value);  // how many it takes; NULL: one
};

#define TIMES_OF(kind) (offsetof(Settings, given) + (kind) * sizeof(Given))
extern const SettingRow setting_rows[];
extern const int setting_count;
const SettingRow *find_setting(const char *block, const char *key);  // block NULL: any
bool is_number_setting(const SettingRow *row);               // one number, with a default

const Tree *set_number(Program *p, const SettingRow *row, Span at,
                       const Tree *value);

/* ---- check_train.c: setters of rows, and how many values they take ---- */

extern const char *const optimizer_usage[];                  // [OptimizerKind]
const Tree *set_data(Program *p, const SettingRow *row, Span at, const Tree *value);
int data_values(const Tree *value);
const Tree *set_optimizer(Program *p, const SettingRow *row, Span at, const Tree *value);
bool is_optimizer_argument(const Program *p, const char *name);
const Tree *set_dtype(Program *p, const SettingRow *row, Span at, const Tree *value);
const Tree *set_on(Program *p, const SettingRow *row, Span at, const Tree *value);
int on_values(const Tree *value);
const Tree *set_clip(Program *p, const SettingRow *row, Span at, const Tree *value);
int clip_values(const Tree *value);
void default_train(Settings *set);
void check_train(Program *p);

/* ---- check_split.c ---- */

const Tree *set_split(Program *p, const SettingRow *row, Span at, const Tree *value);
int split_values(const Tree *value);
const Tree *set_account(Program *p, const SettingRow *row, Span at, const Tree *value);
void check_split(Program *p);

/* ---- check_cluster.c ---- */

const Tree *set_given(Program *p, const SettingRow *row, Span at,
                      const Tree *value);  // a number, or a list of them
void set_machine(Program *p, const Tree *name);  // cluster h100 { }
void check_cluster(Program *p);

bool check_lets(Program *p);  // false: there are too many

/* ---- check_schedule.c ---- */

void check_schedules(Program *p);  // after the lets, before the settings

/* A schedule without `order`, and without a formula. */
Schedule *written_schedule(Program *p, const char *name, const char *summary);
const Schedule *schedule_from(Program *p, const char *path);  // of a file

/* ---- check_settings.c ---- */

const char *nearest_schedule(Program *p, const char *name);  // or NULL
/* ---- check_placement.c: placement, virtual, stages ---- */

/* What a list is: `first`, if it is that one; loop, vee, wave or none of them. */
Placement named_list(const Settings *set, Placement first);

/* ---- layout.c ---- */

bool is_layout(const Tree *value);                // of a split: a text, or a list of lists
void read_layout(Program *p, const Tree *value);  // -> set.layout
void take_virtual(Program *p);  // set.virtuals of a layout, unless the file has it

static inline bool is_written(Number number)
{
    return number.at.source >= 0;
}

/* ---- values ---- */

/* After an error the check goes on, so that one run finds all that is wrong.
 * What a wrong call would have returned is a tensor of unknown width, which
 * fits everywhere; a wrong number or name is nothing at all. */
enum { UNKNOWN_WIDTH = -1 };

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

typedef struct CallFrame CallFrame;
struct CallFrame {  // a layer that is being evaluated
    const Tree *layer, *call;
    const CallFrame *outer;
};

typedef struct Reported {
    const char *what;
    const Tree *body;  // that it is about; NULL: all
} Reported;

typedef struct Checker {
    Program *p;
    const char *prefix;  // "h.3"
    bool alone;  // the entry is an op itself: its parameters are PREFIX.weight
    int first_op;            // of this layer
    const CallFrame *frame;  // innermost first
    int levels;              // of expressions inside one another
    int errors;              // before the model
    long evaluations;        // of all expressions so far
    bool over;  // a limit is reached: the rest would say the same again
    const Tree **failed;     // layers whose body is wrong: not evaluated again
    int failed_count;
    const Tree **meant;      // called, but their bodies not evaluated
    int meant_count;
    bool apart;  // such a body is evaluated: those that it calls wait
    int unknown_tensors;     // so far
    Reported *reported;      // what is said once
    int reported_count;
    int *label_op, *label_next;  // hash table of this layer's labels
} Checker;

/* ---- check_op.c ---- */

void open_labels(Checker *c);

int new_tensor(Checker *c, const char *name, TensorKind kind, long seq,
               long width, Span at);
/* Appends an op. `given` is a TREE_LABEL or NULL; `first` is the tensor that
 * the call does not write, as in the model: `ln : layernorm`. */
Value call_op(Checker *c, Scope *scope, const OpKind *kind, const Tree *call,
              const Tree *given, const Value *first);
Value add_op(Checker *c, const Tree *at, Value a, Value b);
/* In place of what a wrong call would have returned. */
Value unknown_tensor(Checker *c, Span at);

/* ---- check_layer.c ---- */

Value eval(Checker *c, Scope *scope, const Tree *at);
bool is_bound(const Scope *scope, const char *name);
/* Evaluates the body with `x` as its input and numbers as the rest. */
Value call_layer(Checker *c, Scope *scope, const Tree *layer, const Tree *call,
                 Value x, const Tree *arguments);
/* The bodies of layers whose calls are wrong: their mistakes are reported with
 * those of the others, not after them. */
void check_meant_layers(Checker *c);
bool is_reported(Checker *c, const char *what, const Tree *body);  // notes it
const Tree *find_layer(const Program *p, const char *name);
/* Reports the call, and what is wrong in its arguments; scope NULL: in the
 * model. */
void unknown_call(Checker *c, Scope *scope, const Tree *call);
/* After an error: the calls that led here. */
void note_calls(Checker *c);

#endif
