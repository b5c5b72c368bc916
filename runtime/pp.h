/* pp.h: everything that a generated rank program may call.
 *
 * One process is one rank. Its program is static: every address is an offset
 * into one arena, every peer, shape and micro-batch number is a constant. The
 * runtime only moves bytes and runs kernels.
 *
 *     pp_start  ->  initialise  ->  { pp_next_step  warmup steady cooldown reduce update }  ->  pp_finish
 *
 * Any call that cannot succeed ends the process (exit 1) after it has told the
 * launcher why, in one line that names the rank, the action and the message; so
 * none of them returns an error code. Shapes are row-major; n = rows * seq of
 * one micro-batch. Nothing is allocated after pp_start.
 */
#ifndef PP_H
#define PP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the job: constants of one rank program ---- */

typedef enum { PP_NO_DATA, PP_BYTES, PP_UINT16, PP_UINT32, PP_NUMBERS } PpFormat;

typedef struct PpData {
    PpFormat format;            // what the file holds: bytes, little-endian token ids, numbers as text
    const char *path;           // one file or a glob pattern, as the .pipe file spells it; --data replaces it
    int rows, seq;              // of one micro-batch
    int input_width;            // numbers only: values per position of the input, else 0
    int target_width;           // numbers only: values per position of the target, else 0
    int vocabulary;             // tokens only: every id must be below it, else 0
} PpData;

typedef struct PpQueue {        // an ordered pair of ranks between which messages travel
    int from, to;
} PpQueue;

typedef struct PpJob {
    const char *name;           // "gpt"
    const char *schedule;       // "interleaved"
    int rank, ranks;
    int microbatches;           // M, per step
    int steps;                  // --steps replaces it
    int parameters;             // of the whole model: length of the vector of squares
    int depth;                  // most messages on one queue in one step
    int actions;                // computes, messages and waits of one step; --trace keeps room for them
    size_t arena;               // bytes
    uint64_t seed;              // --seed replaces it
    double bubble;              // predicted idle share of the makespan, 0 .. 1
    PpData data;
    /* CUDA alone: all queues of the job, in one order for all ranks; floats of
     * the longest message; floats of scratch that pp_reduce needs. */
    const PpQueue *queues;
    int queue_count;
    size_t message, reduce;
    const char *model;          // hash of its names, shapes, ops and optimizer: for saves; NULL: made by hand
    int skip;                   // 1: a step whose loss or norm is no number is left out; 0: it ends the job
    const char *hash;           // of all that the programs of the job are made from; NULL: made by hand
} PpJob;

float *pp_start(const PpJob *job, int argc, char **argv);   // the arena, zeroed, 64-byte aligned
int pp_next_step(void);         // 1: run one more step; 0: all steps are done, or a stop was asked for
/* CUDA alone. pp_capture: 1 when the calls of the step have to be made, to run
 * or to be recorded; 0 when a recorded graph stands for them. pp_launch starts
 * the step. */
int pp_capture(void);
void pp_launch(void);
int pp_step(void);              // the step that runs, from 1
int pp_finish(void);            // leaves the job; the exit status of the process

/* ---- actions and messages ---- */

typedef struct PpLink {         // one kind of message: activations into a chunk, gradients out of it
    int peer;                   // the other rank
    size_t floats;              // length
    const char *name;           // "1RECV_F": printed with the micro-batch, "1RECV_F0"
} PpLink;

void pp_begin(const char *action, int micro);               // "2F", 3: this rank now computes 2F3
void pp_end(void);                                          // the compute of the current action is done

/* Messages from one rank to another are matched in order: the k-th send meets
 * the k-th receive. pp_send returns at once and the buffer must not be written
 * until pp_wait; pp_recv blocks. */
void pp_send(const PpLink *link, int micro, const float *from);
void pp_recv(const PpLink *link, int micro, float *to);
/* CUDA alone: pp_recv only posts the buffer; pp_take makes the compute stream
 * wait for the `arrived`-th message (1-based) of this step from the peer, as
 * pp_wait makes it wait until one was taken. The host never waits. */
void pp_take(const PpLink *link, int micro, int arrived);
/* Blocks until the peer has taken `taken` messages (1-based) of this step from
 * this rank. */
void pp_wait(const PpLink *link, int micro, int taken);

/* ---- emulation: kernels that only take time ----
 *
 * Each rank has a clock of model time: where its last action ended by the plan.
 * pp_sleep moves it on by the length of the action and sleeps until then, so a
 * process that wakes late is not late ever after. A step begins on all ranks at
 * one time.
 *
 * Every ordered pair of ranks is a wire, which carries one message at a time, in
 * the order sent. pp_send_over says how long a message is on it (`wire` ns) and
 * how long it is under way behind it (`delay` ns: the wire is free again):
 *
 *     begin  = max(the sender's clock, end of the message before on this wire)
 *     end    = begin + wire         arrive = end + delay
 *
 * pp_send is the same with 0 and 0. Nobody knows when the plan wants a message:
 * pp_recv moves the receiver's clock to `arrive`, and pp_wait the sender's to
 * where that receive ended, if they are not later already.
 *
 * Messages with the same `adapter`, 0 .. ranks - 1, also share that one, which
 * carries one at a time, of all wires, in the order in which they are ready (at
 * the `begin` above), of equal ones that of the smallest sender, then receiver
 * first: begin = max(ready, end of what the adapter has carried). -1: none. This
 * is exact, too, whatever the speed of the processes. */
void pp_emulate(int64_t step);  // right after pp_start: ns that the plan gives a step
void pp_sleep(int64_t nanoseconds);
void pp_send_over(const PpLink *link, int micro, const float *from, int64_t wire, int64_t delay, int adapter);

/* ---- collectives: every owner calls, in the same order ---- */

typedef struct PpTie {          // one tied parameter
    const char *name;           // "wte.weight"
    int uses;                   // how often the model uses it
    const int *ranks;           // [uses] the rank of each use, in layer order
    size_t floats;
} PpTie;

/* grads[i]: the gradients of this rank's own uses, in layer order. Afterwards
 * grads[0] holds, on every owner, ((use0 + use1) + use2) + ...: the same bits
 * for any placement. */
void pp_reduce(const PpTie *tie, float *const grads[]);

void pp_square(const char *name, int parameter, const float *grad, size_t count);   // notes the sum of squares, in double
float pp_clip(float limit);     // global norm over all parameters of all ranks; the factor min(1, limit / norm)
                                // NaN: the step is left out
/* The same without waiting, on the CPU alone: pp_defer gives the scale 1, and
 * pp_settle, in the next step before its first gradient or after the last step,
 * says whether the norm allowed that. 1: the update has to be undone and made
 * again. Then pp_defer, pp_rate and pp_step are those of its step, until
 * pp_restart begins the running step once more on all ranks: what was sent in
 * it is forgotten. Where the update before had to be clipped, pp_defer waits. */
float pp_defer(float limit);
int pp_settle(float limit);
void pp_restart(void);
void pp_copy(float *to, const float *from, size_t count);   // parameters and moments, to undo an update
/* losses[micro]: mean loss of each micro-batch. Adds them in order and reports
 * the mean of the step. */
void pp_loss(const float *losses, int microbatches);

/* CPU alone: of a step whose loss or norm is no number. pp_check_loss stands
 * before the gradient of the loss: no rank can update without that. pp_scale is
 * 1, and NaN once a loss of the step was none. The step is then run once more,
 * and the first pp_look whose values are no numbers ends the job; until then it
 * returns at once. */
void pp_check_loss(const char *layer, const float *loss, int micro);
float pp_scale(void);
void pp_look(const char *layer, const float *values, size_t count);     // what the layer has put out

/* Token ids live in the arena too: 32-bit words, like its floats. */
static inline int32_t *pp_ids(float *at)
{
    return (int32_t *)at;
}

/* ---- data: sample (step, micro, row) is the same on every rank and for every schedule ---- */

void pp_tokens(int32_t *tokens, int micro);                 // [rows x seq]
void pp_token_targets(int32_t *targets, int micro);         // [rows x seq], one position later
void pp_numbers(float *values, int micro);                  // [rows x seq x input_width]
void pp_number_targets(float *values, int micro);           // [rows x seq x target_width]

/* ---- parameters ---- */

/* Values depend on the seed, the name and the index alone, never on the
 * rank. */
void pp_normal(float *w, size_t count, const char *name, float deviation);
void pp_fill(float *w, size_t count, float value);
/* cuda: the compute copy of a parameter, in the program's dtype, from its float master copy. */
void pp_narrow(float *to, const float *from, size_t count);
/* --save DIR: adds one parameter to this rank's safetensors file. columns = 0:
 * one dimension. */
void pp_save(const char *name, const float *w, size_t rows, size_t columns);

/* Learning rate of the current step: linear over `warmup` steps, then, if floor
 * < 1, a cosine from rate to floor * rate at the last step. */
float pp_rate(float rate, int warmup, float floor);
/* scale NaN: nothing is updated */
typedef struct PpSgd { float rate, momentum, scale; } PpSgd;
typedef struct PpAdamw { float rate, beta1, beta2, epsilon, scale; int step; } PpAdamw;      // step: 1-based
/* velocity NULL: no momentum. The gradient is multiplied by scale; decay is decoupled (adamw) or added to
 * the gradient (sgd). */
void pp_sgd(float *w, const float *grad, float *velocity, size_t count, const PpSgd *h, float decay);
void pp_adamw(float *w, const float *grad, float *mean, float *variance, size_t count, const PpAdamw *h,
              float decay);

/* ---- kernels: _forward, _input (gradient for the input), _weight (gradient for the weights) ----
 *
 * _input writes dx = own contribution + prev, where prev (same shape, may be NULL, never overlaps dx)
 * is what other users of x have contributed. _weight adds to its gradients. */

void pp_zero(float *x, size_t count);
void pp_sum(float *dx, const float *dy, const float *prev, size_t count);   // dx = dy + prev

/* y[n][width] = weight[token[i]] ; weight [vocabulary][width] */
void pp_embedding_forward(float *y, const int32_t *tokens, const float *weight, int n, int width);
void pp_embedding_weight(float *dweight, const int32_t *tokens, const float *dy, int n, int width);

/* y[r][s] = x[r][s] + weight[s] ; weight [seq][width] */
void pp_position_forward(float *y, const float *x, const float *weight, int n, int seq, int width);
void pp_position_weight(float *dweight, const float *dy, int n, int seq, int width);

/* y[n][out] = x[n][in] weight[out][in]^T + bias[out] ; bias, dbias may be
 * NULL */
void pp_linear_forward(float *y, const float *x, const float *weight, const float *bias, int n, int in, int out);
void pp_linear_input(float *dx, const float *dy, const float *weight, const float *prev, int n, int in, int out);
void pp_linear_weight(float *dweight, float *dbias, const float *x, const float *dy, int n, int in, int out);

/* stats [n][2]: mean and 1 / sqrt(variance + 1e-5) of each position */
void pp_layernorm_forward(float *y, float *stats, const float *x, const float *weight, const float *bias, int n,
                          int width);
void pp_layernorm_input(float *dx, const float *dy, const float *x, const float *stats, const float *weight,
                        const float *prev, int n, int width);
void pp_layernorm_weight(float *dweight, float *dbias, const float *dy, const float *x, const float *stats, int n,
                         int width);

/* gelu: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as GPT-2 */
void pp_gelu_forward(float *y, const float *x, size_t count);
void pp_gelu_input(float *dx, const float *dy, const float *x, const float *prev, size_t count);
void pp_relu_forward(float *y, const float *x, size_t count);
void pp_relu_input(float *dx, const float *dy, const float *x, const float *prev, size_t count);
void pp_add_forward(float *y, const float *a, const float *b, size_t count);

/* x [n][3 width]: queries, keys, values; y [n][width]; scores are scaled by 1 /
 * sqrt(width / heads). No seq x seq matrix is stored: lse [n / seq][heads][seq]
 * keeps the log of each row's sum of exp. tmp: scratch of pp_attention_tmp(seq,
 * width, heads) floats. */
void pp_attention_forward(float *y, float *lse, const float *x, float *tmp, int n, int seq, int width, int heads,
                          int causal);
void pp_attention_input(float *dx, const float *dy, const float *x, const float *y, const float *lse, float *tmp,
                        const float *prev, int n, int seq, int width, int heads, int causal);
/* tmp floats, the same for both: 5 * S * D + 96 * D + 64 * (S + 16), where S =
 * (seq + 31) / 32 * 32 and D = (width / heads + 31) / 32 * 32, in whole
 * numbers */

/* loss = mean over n of (lse - x[target]) ; lse [n] ; _input: dx = (softmax(x)
 * - onehot) * scale, where scale is 1 / (n * microbatches) */
void pp_cross_entropy_forward(float *loss, float *lse, const float *x, const int32_t *targets, int n, int width);
void pp_cross_entropy_input(float *dx, const float *x, const float *lse, const int32_t *targets, int n, int width,
                            float scale);
/* loss = mean over n * width of (x - t)^2 ; _input: dx = 2 (x - t) * scale /
 * width */
void pp_mse_forward(float *loss, const float *x, const float *targets, int n, int width);
void pp_mse_input(float *dx, const float *x, const float *targets, int n, int width, float scale);

#ifdef __cplusplus
}
#endif

#endif
