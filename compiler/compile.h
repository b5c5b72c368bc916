/* compile.h: the words that the passes share, in the order in which they run.
 *
 *     parse check import graph partition schedule communicate prove memory lower emit
 *
 * One Program holds everything. Its fields are grouped by the pass that fills
 * them; a pass reads earlier groups and writes its own. All memory comes from
 * one arena and goes with it. Things refer to each other by index; -1 is
 * none. */
#ifndef COMPILE_H
#define COMPILE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct Program Program;

/* ---- arena.c: memory that lives as long as the Program ---- */

typedef struct Arena Arena;

Arena *arena_open(void);
void arena_close(Arena *arena);
void *arena_take(Arena *arena, size_t bytes);               // zeroed, 16-byte aligned; exits when memory is out
/* Room for one more element at items[count]; grows by doubling, so `count`
 * alone tells the capacity. */
void *array_grow(Arena *arena, void *items, int count, size_t size);
char *text_copy(Arena *arena, const char *from, size_t length);
char *text_format(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *text_format_list(Arena *arena, const char *format, va_list list);

/* ---- error.c: what is wrong, where else to look, what to type ---- */

enum { SOURCE_SCHEDULE = 1 << 30 };     // the file of `schedule from`

typedef struct Span {           // bytes [begin, end) of one source; source 0 is the file, then each -D
    int source, begin, end;
} Span;

typedef struct Source {
    const char *name;           // "gpt.pipe", or "-D"
    const char *text;           // zero-terminated; may hold zero bytes before `length`
    int length;
} Source;

enum { MAX_ERRORS = 20 };       // of one run; then it stops

void error_at(Program *p, Span at, const char *format, ...) __attribute__((format(printf, 3, 4)));
void warning_at(Program *p, Span at, const char *format, ...) __attribute__((format(printf, 3, 4)));     // the file is accepted
void error_plain(Program *p, const char *format, ...) __attribute__((format(printf, 2, 3)));   // no place in a source
void note_at(Program *p, Span at, const char *format, ...) __attribute__((format(printf, 3, 4)));
void help(Program *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* text.c: the one way in which pipec prints a quantity, in an arena. */
const char *seconds_text(Arena *arena, double seconds);     // "0 s", "17.5 us", "33 ms", "24.46 s"
const char *bytes_text(Arena *arena, double bytes);         // "64 B", "146.9 MB", "249.6 GB"
const char *rate_text(Arena *arena, double bytes);          // "400 kB/s", "25 GB/s"
const char *share_text(Arena *arena, double share);         // 0.0712 -> "7.12 %"; never "-0.00 %"
int line_of(const Program *p, Span at);                     // 1-based
const char *place_text(Program *p, Span at);                // "x.csv:2:8", of a file
const char *file_name(const Program *p);                    // of the .pipe file, without folders
const char *nearest(const char *word, const char *const *known, int count);     // for "did you mean"; or NULL

/* What the programs run on: decides element sizes and how messages travel. */
typedef enum { TARGET_CPU, TARGET_CUDA } Target;

/* How the two ends of a message meet.
 *
 *     blocking  a RECV holds its rank up until its message is there
 *     posted    a RECV is only posted, a TAKE waits; one queue for each direction
 *     pair      posted, and one queue for both directions: how PyTorch's
 *               point-to-point meets, ProcessGroupNCCL with one communicator a pair */
typedef enum { MEET_BY_TARGET, MEET_BLOCKING, MEET_POSTED, MEET_PAIR } Meeting;

/* ---- parse: text -> tree ---- */

typedef enum {
    TREE_FILE,      // items
    TREE_LET,       // text = value
    TREE_LAYER,     // text, TREE_PARAMETERS, statements
    TREE_PARAMETERS,
    TREE_ASSIGN,    // text = value
    TREE_RESULT,    // value
    TREE_MODEL,     // text, inputs and entries
    TREE_INPUT,     // text, dimensions (TREE_LIST), then the vocabulary if `of` was written
    TREE_ENTRY,     // text : callee, [count], [TREE_TIED]
    TREE_TIED,      // text
    TREE_BLOCK,     // text = pipeline, train or cluster; [TREE_NAME, a preset], lines
    TREE_LINE,      // key and values, one after another
    TREE_NUMBER,    // number; unit 's' for seconds
    TREE_STRING,    // text
    TREE_NAME,      // text
    TREE_NEGATE,
    TREE_BINARY,    // text[0] is the operator
    TREE_CALL,      // text(arguments)
    TREE_LABEL,     // text : call
    TREE_ARGUMENT,  // text = value
    TREE_LIST,      // [ values ]
    TREE_SCHEDULE,  // text, TREE_STEPS
    TREE_STEPS,     // TREE_LET, TREE_NAME (a mark), TREE_CALL (an action), TREE_FOR, TREE_IF
    TREE_FOR,       // text in first .. end, TREE_BY, TREE_STEPS
    TREE_BY,        // [step]; text "down" or NULL
    TREE_IF,        // condition, TREE_STEPS, [TREE_STEPS or TREE_IF]
    TREE_COMPARE    // text is == != < <= > >= of numbers; `and`, `or` of conditions
} TreeKind;

typedef struct Tree Tree;
struct Tree {
    TreeKind kind;
    Span at;                    // the whole construct
    Span name;                  // the text's own place
    const char *text;
    double number;
    char unit;                  // 0 or 's'
    int slot;                   // in a schedule block: which number the text stands for, see check_schedule.c
    Tree *child, *last, *next;  // children in order
};

bool parse(Program *p);
Tree *tree(Program *p, TreeKind kind, Span at, Span name);  // for the grammar
Tree *add_child(Tree *parent, Tree *child);                 // returns the parent

/* ---- check: tree -> names and shapes, or an error that says what to type ---- */

typedef struct OpKind OpKind;
typedef struct Schedule Schedule;
typedef struct SearchReport SearchReport;               // search_plan.h

typedef struct Number {         // a setting, and where it was written (span -1: it is the default)
    double value;
    Span at;
} Number;

/* Which rank has a chunk; P = 3, six chunks (twin: three in each of two copies):
 *
 *     loop  0 1 2 0 1 2      chunk mod P
 *     vee   0 1 2 2 1 0      forth and back; two chunks per rank
 *     wave  0 1 2 2 1 0 ...  the same any number of times
 *     twin  0 1 2, 2 1 0     two copies of the model, in opposite directions; the
 *                            first half of the micro-batches passes the first copy
 *     own   [0 0 1 2 0]      a list: any rank, any number of chunks on each
 *
 * A list that is a loop, vee or wave, perhaps with other names for its ranks
 * ([1 0 0 1]), is that placement, with `listed` beside it. */
#define PLACEMENTS(X) X(LOOP, "loop") X(VEE, "vee") X(WAVE, "wave") X(TWIN, "twin")
typedef enum {
#define AS_ENUM(name, text) PLACE_##name,
    PLACEMENTS(AS_ENUM)
#undef AS_ENUM
    PLACEMENT_COUNT,            // those with a name
    PLACE_OWN = PLACEMENT_COUNT
} Placement;
extern const char *const placement_names[PLACEMENT_COUNT];
const char *placement_text(Program *p);                     // "vee"; "[0 0 1 2 0]" of a list
typedef struct Settings Settings;
bool is_renamed(const Settings *set);                       // are the ranks of a loop, vee or wave in another order
void check_list(Program *p);                                // its ranks, and what follows: stages, virtual
void check_placement(Program *p);                           // of the schedule

typedef enum { SPLIT_EVEN, SPLIT_EXPLICIT, SPLIT_BALANCED } SplitKind;

/* The words of Megatron's layouts, in the order in which they stand. */
enum { LAYOUT_EMBEDDING, LAYOUT_BLOCK, LAYOUT_PREDICTION, LAYOUT_LOSS, LAYOUT_WORDS };
typedef struct LayoutStage {    // how often each word stands in a stage
    int of[LAYOUT_WORDS];
} LayoutStage;

typedef enum { DATA_NONE, DATA_BYTES, DATA_UINT16, DATA_UINT32, DATA_NUMBERS } DataKind;
typedef enum { DTYPE_F32, DTYPE_BF16 } Dtype;      // of activations and of what kernels read
typedef enum { OPTIMIZER_SGD, OPTIMIZER_ADAMW } OptimizerKind;

typedef struct Given {          // numbers of the cluster: one for all, or one for each chunk of a copy, or rank
    double *value;              // seconds; operations per second; bytes
    int count;                  // 0: not given
    Span at;
} Given;

enum { MOST_OPTIONS = 5 };      // of a schedule

struct Settings {
    Number stages, virtuals, microbatches, rows;            // P, v, M, rows of one micro-batch
    const Schedule *schedule;
    Span schedule_at;
    Placement placement;
    Span placement_at;
    int *listed, listed_count;                              // rank of each chunk, by a list or a file; else NULL
    Number option[MOST_OPTIONS];                            // the schedule's own, in its order
    const char *schedule_path;                              // schedule from "x.csv"; else NULL
    SplitKind split;
    Span split_at;
    int *sizes, size_count;                                 // split [3 4 4 3]
    LayoutStage *layout;                                    // [size_count] split "Et*2|tL"; else NULL
    bool even_back;                                         // what does not divide goes to the chunks at the end
    Number first, last;                                     // blocks of the first rank and of the last, all chunks; 0: as the others
    Span account_at;                                        // source -1: an even split counts all layers; else blocks, and
    bool account_embedding, account_loss;                   // what stands before them, or behind, as one more
    DataKind data;
    const char *data_path;
    Span data_at;
    Dtype dtype;
    Span dtype_at;
    OptimizerKind optimizer;
    double rate, decay, momentum, beta1, beta2, epsilon;
    Number steps, clip, warmup, cosine, seed;               // clip 0: none; cosine 1: none
    bool deferred;                                          // the norm is waited for a step later
    Span deferred_at;
    bool skip_nonfinite;                                    // a step whose loss or norm is no number; else it ends the job
    Span skip_at;
    bool has_cluster;
    const char *preset;                                     // cluster h100 { }: its name; else NULL
    Given flops, memory;                                    // of each rank, 1/s and bytes; none: unlimited
    Number link, latency;                                   // bytes/s and s between machines; 0: unlimited, none
    Number node, node_link, node_latency;                   // ranks of one machine, and the same inside it
    bool adapter_shared;                                    // what leaves a machine goes one at a time
    Given given[4];                                         // times of [F B I W]; without F none is there
};

typedef enum {
    TENSOR_FLOATS,              // of the job's dtype
    TENSOR_EXACT,               // float32 always: what forward keeps of sums, targets
    TENSOR_IDS
} TensorKind;

typedef struct Tensor {
    const char *name;           // "h.3.q": the user's name, or the op's
    TensorKind kind;
    int layer;
    long seq, width;            // per row of a micro-batch
    size_t values;              // of one micro-batch
    size_t floats;              // what they take in the arena, in words of 4 bytes
    bool differentiable;        // depends on a parameter
    int uses;                   // by forward ops
    Span at;
} Tensor;

typedef struct Parameter {
    const char *name;           // "h.3.linear.weight"
    int op, layer;
    long rows, columns;         // columns 0: one dimension
    double deviation, fill;     // deviation > 0: normal(0, deviation), else the constant
    bool decay;                 // weight decay applies: matrices, not biases
    int tied;                   // the parameter that this one shares its values with
    int copy;                   // of the model, 0 or 1: only the first is saved
} Parameter;

typedef struct Op {             // one forward op
    const OpKind *kind;
    int layer;
    const char *label;          // "h.3.linear"
    int input[2], output;       // tensors; output -1 for a loss
    int stats;                  // tensor kept beside the output
    int weight, bias;           // parameters
    long heads;
    bool causal;
    Span at;
} Op;

typedef struct Layer {          // the unit of partition
    const char *name;           // "h.3"
    const char *callee;         // "block"
    Span at;                    // its entry in the model
    int input, output;          // tensors
    int first_op, op_count;     // in Program.ops
    bool predicts;              // it is an `m` of a layout: of a layer `mtp`, or a stand-in
} Layer;

typedef struct Let {
    const char *name;
    double value;
    Span at;
} Let;

bool check(Program *p);
void check_settings(Program *p);                            // its first half: lets and the three blocks
bool given_fit(Program *p);                                 // numbers of the cluster, to chunks and ranks
int layout_count(const Program *p, int kind);               // layout.c: of the word, in all stages
/* Value of a constant expression; reports and returns false when it is none. */
bool constant(Program *p, const Tree *at, double *value);
const Let *find_let(const Program *p, const char *name);
const Schedule *find_schedule(const Program *p, const char *name);      // ours, or the file's own; or NULL
const Schedule *known_schedule(const Program *p, int index);            // below schedule_count + written_count
typedef struct Numbers {        // of a schedule block that runs
    double *at;                 // [slot - 1] what a name stands for
    double steps;               // taken so far; `evaluate` counts one for each part of an expression
} Numbers;
bool evaluate(Program *p, Numbers *numbers, const Tree *at, double *value);     // as `constant`

/* ---- op table: one row per op (ops.c) ---- */

typedef enum { ENTRY_FORWARD, ENTRY_INPUT, ENTRY_WEIGHT, ENTRY_SUM } Entry;
typedef enum { RESULT_SAME, RESULT_WIDTH, RESULT_THIRD, RESULT_LOSS } ResultShape;

struct OpKind {
    const char *name;
    const char *usage;          // as printed by `pipec --help ops` and in docs/language.md
    int tensors;                // inputs
    bool ids;                   // the input is token ids
    ResultShape result;         // of the same width; of the width given; a third of it; none
    bool heads, causal, bias;   // takes `heads`; `causal`; has a bias unless `nobias`
    enum { WEIGHT_NONE, WEIGHT_VOCABULARY, WEIGHT_POSITION, WEIGHT_MATRIX, WEIGHT_SCALE } weight;
    const char *entry[3];       // operands of _forward, _input, _weight: words, see operands.c; "=": dy itself
    double stats;               // floats kept per position, times heads where the op has heads
    bool loss;
    double (*work)(const Program *p, const Op *op, Entry entry);    // floating-point operations per micro-batch
};

extern const OpKind op_kinds[];
extern const int op_kind_count;
const OpKind *find_op(const char *name);
size_t dtype_floats(const Program *p, size_t values);       // words of 4 bytes that values of the dtype take
long positions(const Program *p, const Op *op);             // n = rows * seq of the op's input
size_t attention_tmp(const Program *p, const Op *op);       // floats; the formula of pp.h
bool mentions(const char *words, const char *word);         // is `word` one of the space-separated words

/* ---- import: the file of an order -> what of stages, virtual, placement and micro-batches it decides ---- */

typedef struct Import Import;                           // order/exchange.h

bool import(Program *p);

/* ---- graph: forward ops -> their gradient, split in I and W ---- */

typedef struct Gradient {       // one backward call
    int op;                     // for ENTRY_SUM: the op whose output gradient is passed on
    Entry entry;
    int dy;                     // tensor; -1 for a loss
    int dx, prev;               // ENTRY_INPUT and ENTRY_SUM: result, what others contributed
} Gradient;

bool graph(Program *p);
/* twin.c: appends a second copy of all layers, ops, tensors and gradients; its
 * parameters are tied to those of the first. */
void copy_model(Program *p);

/* ---- partition: layers -> chunks on ranks ---- */

typedef struct Chunk {
    int first_layer, layer_count, rank;
    int copy;                   // of the model: 0, or 1 for the second of a twin
    int previous, next;         // chunks of the same copy; -1: none
    int first_micro, micro_count;       // the micro-batches that pass through it
    int first_op, op_count;
    int first_gradient, gradient_count;
    int x, y, dx, dy;           // tensors: input, output and their gradients
    int targets;                // tensor, on the last chunk
    double work[3];             // floating-point operations of F, I, W
    long parameters;            // values, shared ones counted at every use
} Chunk;

bool partition(Program *p);
/* blocks.c: the model as Megatron sees it: a row of blocks between two ends. */
typedef struct Blocks {         // numbers of layers
    int before, count, predictions, behind;
} Blocks;
bool count_blocks(const Program *p, Blocks *blocks);        // false: there are none
bool fit_layout(Program *p);                                // set.layout -> set.sizes, of all layers
bool even_blocks(Program *p, int *sizes);                   // `first`, `last`, `account`
bool goes_through(const Program *p, int chunk, int micro);        // does the micro-batch go through the chunk
int chunk_of_layer(const Program *p, int layer);
int placed_rank(Placement placement, int ranks, int chunk);         // of a placement with a name
int *placed_ranks(Program *p);                              // [chunk_count] of the one in use
const char *chunks_text(const Program *p);                        // of a rank, in one copy: "2", "1 to 3"
int gradients_end(const Program *p, int layer);             // behind the layer's gradients
size_t parameter_values(const Parameter *q);                // 0 while a size is not known
/* balance.c: the cut of a chain of layers that leaves the slowest rank as fast
 * as can be. See there for ties. Returns the work: how many sizes and moves it has tried. */
long balanced_sizes(const double *cost, int layers, int chunks, int ranks, const int *rank, int *sizes);
/* No cut is below it. */
double slowest_rank_bound(const double *cost, int layers, int chunks, int ranks, const int *rank);
void layer_costs(const Program *p, double *cost);           // work.c: operations of F, I and W of each layer
double gradient_work(const Program *p, const Gradient *g);  // operations of one backward call

/* ---- schedule: chunks -> compute order per rank ---- */

#include "actions.h"

struct Schedule {               // one file in schedules/ defines one
    const char *name, *summary;
    int least_chunks, most_chunks;      // values of `virtual` that it takes; 0 stands for 1
    Placement placement;        // where its chunks lie ...
    bool any_placement;         // ... unless the file says otherwise
    bool even_stages;           // needs an even number of ranks
    bool searches;              // for seconds: `all` schedules are the others
    int (*least_micros)(int stages);                        // with fewer the list of so many is cut; NULL: any
    const char *option[MOST_OPTIONS];   // names of its own numbers, e.g. "group"
    double fallback[MOST_OPTIONS];      // their defaults
    long most[MOST_OPTIONS];    // their largest values; the least is 1
    const char *chapter_bubble; // the textbook's formula, in words
    double (*bubble)(int stages, int microbatches, int virtuals);   // and as a number
    void (*order)(Program *p, int rank);                    // appends with the calls of order.h
    bool (*orders)(Program *p);                             // or this one, all ranks at once
    const Tree *block;          // of an order that is written in the file: its TREE_SCHEDULE,
    int numbers;                // and how many slots its names take
};

extern const Schedule *const schedules[];                   // written by the Makefile from the folder
extern const int schedule_count;
bool schedule(Program *p);
/* Does the schedule run with so many ranks, and chunks on each; its placement
 * is one of them, too. With one of their own ranks may differ in their chunks. */
bool schedule_takes(const Schedule *s, Placement placement, int stages, int virtuals);

/* ---- communicate: order -> plus SEND, RECV, REDUCE, STEP, in an order that both ends share ---- */

typedef struct Tie {            // one tied parameter with owners on several ranks, or several uses
    int root;                   // parameter
    int *uses, use_count;       // parameters in layer order, the root among them
} Tie;

bool communicate(Program *p);
bool what_comes(const Program *p, Action a, int *peer);     // does a message bring its x or dy, and from where
bool what_goes(const Program *p, Action a, int *peer);      // does one take away what it makes
Meeting meeting_of(const Program *p);                       // never BY_TARGET

/* ---- prove: exactly once, matched, acyclic; times by longest path ---- */

/* Durations in seconds, or in units of one chunk's forward. A boundary is the
 * one before a chunk; what crosses it, either way, takes the same time. */
typedef struct Cost {
    bool unit;
    double *compute[4];         // [F B I W][chunk]
    double *wire;               // [boundary] that a message is on its wire: bytes / link
    double *delay;              // [boundary] from there until it arrives: latency
    const char *source;         // "measured"; NULL: the cluster
} Cost;

/* The graph of a step. Rank r's entries are the nodes first_node[r] ..
 * first_node[r + 1] - 1, in the order of its list, so the entry before one on its
 * rank is the node before it. Other edges lead to nodes; -1: there is none.
 *
 *               data                      post                  freed               wire
 *   F B I W W   maker on its rank, or     -                     -                   -
 *               what brings it: RECV, TAKE
 *   SEND        the compute that made it  posted: its RECV      -                   the SEND before on the wire
 *   RECV        its SEND                  -                     -                   -
 *   TAKE        its SEND                  its RECV              -                   -
 *   WAIT        its SEND                  -                     blocking: the RECV  -
 *                                                               that took it
 *   REDUCE STEP the same of the rank that came last             -                   -
 *
 * A SEND ends when its message arrives and does not hold up its rank, which goes
 * on when it starts; all others end when their rank goes on. */
typedef struct Node {
    int data, post, freed, wire;
    double start, end;
} Node;

typedef struct Message {        // one SEND and its RECV
    int send, receive;          // nodes
    int boundary;               // the chunk behind it: what its length is, and its cost
    int ordinal;                // on its wire, from 0
    int adapter;                // SEND of what the adapter carried before; -1: none, or no shared one
    int settled;                // entries of `linear` before it began to travel
    int release;                // the first entry of the sender's list that may write its buffer again
    double begin, end;          // on the wire
} Message;

typedef struct Place {          // one entry of all lists
    int rank, index;
} Place;

/* In which order a chunk adds the gradients of its micro-batches. */
typedef enum {
    SUMS_ASCEND,                // 0, 1, 2, ...: the bits of every schedule that does
    SUMS_AGREE,                 // another one, the same for all chunks: the bits do not depend on the cut
    SUMS_DIFFER                 // not the same for all chunks
} Sums;

bool prove(Program *p);
bool prove_quietly(Program *p);                             // what is wrong is not said
bool prove_messages(Program *p);                            // of lists without collectives: sound, and matched
void prove_sums(Program *p);                                // of sound lists
bool prove_memory(Program *p);                              // the same for the offsets, once they are chosen

/* cost.c: durations, and what follows from the times that `prove` has found. */
Cost empty_cost(Program *p);
Cost unit_cost(Program *p);                                 // F = I = W = 1, B = 2, messages 0
double input_share(const Chunk *chunk);                     // of a whole backward's time, by operations
Cost cluster_cost(Program *p, double link);                 // from the `cluster` block, with this link; 0: its own
bool has_seconds(const Program *p);                         // does that give times
const char *cost_source(const Program *p);                  // "by the cluster's flops, link and latency"
void choose_cost(Program *p);                               // one of them -> cost, unless it is there
double rank_memory(const Program *p, int rank);             // bytes by `memory`; 0: no limit
int machine_of(const Program *p, int rank);                 // see `node`
double message_bytes(const Program *p, int boundary);       // of one message
double busy_time(const Program *p, int rank);
double span_time(const Program *p, int rank);               // last end - first start of compute
double bubble_of(const Program *p);                         // idle share of ranks x makespan, 0 .. 1
double own_bubble(const Program *p);                        // of each rank's own span, the mean over ranks
int peak_copies(const Program *p, int rank);                // most chunks between forward and the end of backward
typedef struct Traffic {        // of one step: activations, gradients
    long messages[2];
    double bytes[2];
} Traffic;
Traffic traffic_of(const Program *p);
bool has_formula(const Program *p);                         // does the schedule have one for this shape
double formula_bubble(const Program *p);                    // by the textbook, 0 .. 1
double shortest_action(const Program *p);                   // of F and B, by the cost model; at most the makespan

/* ---- memory: tensors -> fixed offsets in one arena per rank; exact peak ---- */

typedef enum {
    BLOCK_PARAMETER, BLOCK_MASTER, BLOCK_GRADIENT, BLOCK_MEAN, BLOCK_VARIANCE, BLOCK_LOSSES, BLOCK_SCRATCH, BLOCK_TMP,
    BLOCK_UNDO,                                                                                 // all along
    BLOCK_KEEP, BLOCK_HOLD, BLOCK_DHOLD, BLOCK_X, BLOCK_Y, BLOCK_DY, BLOCK_DX, BLOCK_TARGETS    // of one micro-batch
} BlockKind;
enum { MICRO_KINDS = BLOCK_TARGETS - BLOCK_KEEP + 1 };
extern const char *const block_words[MICRO_KINDS];          // in programs: keep hold dhold x y dy dx t

typedef struct Block {
    BlockKind kind;
    int rank, chunk, micro;     // parameters: chunk is the parameter
    size_t floats, offset;      // multiples of 16 floats = 64 bytes
    int first, last;            // positions in the rank's list, inclusive
    int slot;                   // which of the chunk's blocks of this kind at another offset, from 0
} Block;

typedef enum { READ_INPUT = 1, READ_WEIGHT = 2 } Readers;       // of I, of W; B is both

typedef struct Frame {          // where a chunk's tensors lie inside its blocks and the scratch
    bool split;                 // some of its backwards are an I and a W
    size_t keep;                // floats of the KEEP block: from F to I
    size_t hold, dhold;         // of what W reads, from F and from I; 0 where no backward is split
    size_t scratch;             // floats, the largest of F, I and B
    int x, y, dy, dx;           // Readers of what crosses the chunk's boundaries
} Frame;

bool memory(Program *p);
/* memory_frame.c: frames, within and inside of all chunks, then of one: `split`
 * when some of its backwards are an I and a W. */
void take_frames(Program *p);
void frame_chunk(Program *p, int chunk, bool split);
size_t aligned(size_t floats);                              // up to 16 floats = 64 bytes
int find_block_of(const Program *p, BlockKind kind, int chunk, int micro);      // index; -1: there is none
/* Does the optimizer write blocks of this kind. */
static inline bool is_updated(BlockKind kind)
{
    return kind == BLOCK_PARAMETER || kind == BLOCK_MASTER || kind == BLOCK_MEAN || kind == BLOCK_VARIANCE;
}
/* The parameter whose storage a rank uses for this one: itself, or the one that
 * it is tied to; -1: none. */
int parameter_home(const Program *p, int rank, int parameter);

/* ---- lower: actions -> rank programs, calls with constant operands ---- */

typedef struct RankProgram RankProgram;                     // rank_program.h

bool lower(Program *p);

/* ---- emit: programs -> rankN.c, then binaries (program/job.h) ---- */

bool emit(Program *p, const char *directory);               // writes the rank programs
void emit_rank(Program *p, FILE *out, int rank);
const char *source_suffix(const Program *p);                // of a rank program: "c" or "cu"

/* ---- the Program ---- */

struct Program {
    Arena *arena;
    FILE *diagnostics;          // errors go here
    int errors;

    Source *sources;            // input: the file, then one per -D
    int source_count;
    Source schedule_source;     // the file of `schedule from`, once it is read

    Target target;              // of the command line
    Meeting meet;               // the same; ask meeting_of
    bool emulate;               // programs whose kernels are sleeps
    double unit_ms;             // emulate: one unit of a plan without seconds

    Tree *file;                 // parse
    Tree **defines;             // [source_count - 1] each a TREE_LINE or TREE_LET

    Let *lets;                  // check
    int let_count;
    const Schedule **written;   // by the schedule blocks of the file
    int written_count;
    Settings set;
    const char *name;           // of the model
    Tensor *tensors;
    int tensor_count;
    Parameter *parameters;
    int parameter_count;
    Op *ops;
    int op_count;
    Layer *layers;              // of every copy of the model
    int layer_count;            // of one
    int stand_ins;              // blocks in the place of `m`, for which the file has no layer: for plans alone
    int input, targets;         // tensors
    long vocabulary;            // 0: the input is numbers

    Import *import;             // import: the file of `schedule from`, as it was read first; else NULL

    Gradient *gradients;        // graph: in the order of a backward pass
    int gradient_count;
    int *gradient_of;           // [tensor] its final gradient, a tensor
    int *layer_gradient;        // [layer] the first of the layer's gradients; they end where the layer before begins

    Chunk *chunks;              // partition
    int chunk_count, ranks, microbatches;       // microbatches: by check
    int copies, copy_chunks;    // of the model: 1, or 2 for a twin; chunks of one

    List *order;                // schedule: [rank] compute only
    SearchReport *search;       // NULL: nothing was searched
    List *rows;                 // [rank] the order with the SENDs and RECVs of a file; NULL: it has none
    Origin (*origin)(Program *p, int rank, int written);    // of an order that a person has written; else NULL

    List *lists;                // communicate, then memory adds WAITs: [rank] all actions
    Tie *ties;
    int tie_count;

    Cost cost;                  // prove
    Node *nodes;                // the graph of the step, rank after rank
    int *first_node;            // [ranks + 1]
    int *node_of[ACT_REDUCE];   // [cell] node; -1; NULL where no action is of the kind
    Message *messages;          // those of a wire one behind another, in the order sent
    int *message_index;         // [node] of a SEND or RECV; -1
    int message_count;
    int *carried;               // messages in the order in which they began to travel
    int *linear;                // all nodes in one order that respects every dependency
    int linear_count;
    double makespan;
    Sums sums;
    Place sums_at;              // unless they ascend: the first entry that adds out of order

    Block *blocks;              // memory
    int block_count;
    int *block_index;           // see find_block_of
    Frame *frames;              // [chunk]
    BlockKind *within;          // [tensor] KEEP, HOLD, DHOLD or SCRATCH; X for those that cross a boundary
    size_t *inside;             // [tensor] offset inside that block or the scratch
    size_t *arena_floats;       // [rank]
    size_t *peak_floats;        // [rank] the most floats alive at one time: a bound that no plan is below

    RankProgram *programs;      // lower: [rank]

    Node *measured;             // measured: the nodes with the times of a run, s from its first begin
    double measured_makespan;   // of the computes
    int measured_step;          // the step of median length ...
    int measured_steps;         // ... of so many
    double measured_bubble;     // mean of all of them but the first of a run
};

/* Tables by chunk and micro-batch: one row of chunks for each micro-batch. */
static inline size_t cell_of(const Program *p, int chunk, int micro)
{
    return (size_t)micro * (size_t)p->chunk_count + (size_t)chunk;
}

#endif
