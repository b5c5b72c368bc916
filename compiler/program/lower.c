/* lower.c: actions -> rank programs, calls with constant operands.
 *
 * Reads: lists, chunks, gradients, blocks, frames, inside. Writes: programs.
 * Guarantees: every operand is a constant or a named offset whose value is
 * here; every call fits its row of calls.h; the printer decides nothing.
 *
 * A rank program has one function for the forward and one for the backward of
 * each of its chunks; their parameters are the offsets of the blocks that
 * differ between micro-batches. The phases call them, with the messages around
 * them:
 *
 *     pp_recv(&recv_f1, 0, m + x1_0);   forward_1(m, 0, keep1_0, x1_0, y1_0);   pp_send(&send_f1, 0, m + y1_0);  // 1F0 @1
 *
 * In an emulation these functions sleep as long as the plan says, and messages
 * are short: the same calls in the same order, without parameters and data.
 *
 *     pp_recv(&recv_f1, 0, m + taken);   forward_1(m, 0);   pp_send_over(&send_f1, 0, m + sent, 9000, 5000, -1);
 */
#include "lower.h"
#include "calls.h"
#include "read/operands.h"

#include <limits.h>
#include <string.h>

/* ---- calls ---- */

Body *new_body(Lowerer *lowerer, BodyKind kind, int chunk)
{
    RankProgram *out = lowerer->out;
    out->bodies = array_grow(lowerer->p->arena, out->bodies, out->body_count,
                             sizeof *out->bodies);
    out->bodies[out->body_count] = (Body){
        .kind = kind,
        .chunk = chunk,
        .name = chunk < 0 ? body_words[kind]
                          : text_format(lowerer->p->arena, "%s_%d",
                                        body_words[kind], chunk)};
    return &out->bodies[out->body_count++];
}

Call *new_call(Lowerer *lowerer, Body *body, const char *function)
{
    body->calls = array_grow(lowerer->p->arena, body->calls, body->call_count,
                             sizeof *body->calls);
    body->calls[body->call_count] = (Call){.function = function};
    return &body->calls[body->call_count++];
}

Call *new_form(Lowerer *lowerer, Body *body, Form form, const char *function)
{
    Call *call = new_call(lowerer, body, function);
    call->form = form;
    return call;
}

bool has_calls(const Lowerer *lowerer, BodyKind kind)
{
    for (int i = 0; i < lowerer->out->body_count; i++)
        if (lowerer->out->bodies[i].kind == kind &&
            lowerer->out->bodies[i].call_count)
            return true;
    return false;
}

void push(Call *call, ArgKind kind, const char *name, double number)
{
    call->arg[call->args++] = (Arg){kind, name, number};
}

void push_number(Call *call, double number)
{
    push(call, ARG_NUMBER, NULL, number);
}

void push_at(Call *call, const char *name)
{
    push(call, ARG_AT, name, 0);
}

static bool has_size(const Lowerer *lowerer, const char *name, double number)
{
    for (int i = 0; i < lowerer->out->size_count; i++)
        if (strcmp(lowerer->out->sizes[i].name, name) == 0)
            return (double)lowerer->out->sizes[i].value == number;
    return false;
}

void push_size(Lowerer *lowerer, Call *call, const char *name, double number)
{
    push(call, ARG_NUMBER, has_size(lowerer, name, number) ? name : NULL,
         number);
}

/* `n * 8` is an int in the program, as its sizes are. */
static void push_count(Lowerer *lowerer, Call *call, long n, double width)
{
    if (has_size(lowerer, "n", (double)n) && (double)n * width <= INT_MAX)
        push(call, ARG_TIMES, "n", width);
    else
        push_number(call, (double)n * width);
}

const Block *lasting(const Lowerer *lowerer, BlockKind kind, int of)
{
    const Program *p = lowerer->p;
    for (int i = 0; i < p->block_count && p->blocks[i].kind < BLOCK_KEEP; i++)
        if (p->blocks[i].kind == kind && p->blocks[i].rank == lowerer->rank &&
            p->blocks[i].chunk == of)
            return &p->blocks[i];
    return NULL;
}

/* ---- kernels ---- */

/* What a tensor is called inside a chunk's function: a parameter of it, a place
 * in the keep block (k), or a place in the arena (m). */
static void push_tensor(Lowerer *lowerer, const Chunk *chunk, Call *call,
                        int tensor)
{
    Program *p = lowerer->p;
    const char *name = tensor == chunk->x         ? "x"
                       : tensor == chunk->y       ? "y"
                       : tensor == chunk->dy      ? "dy"
                       : tensor == chunk->dx      ? "dx"
                       : tensor == chunk->targets ? "t"
                                                  : NULL;
    if (tensor < 0)
        push(call, ARG_NULL, NULL, 0);
    else if (p->tensors[tensor].kind == TENSOR_IDS)
        push(call, ARG_IDS, name, 0);
    else if (name)
        push_at(call, name);
    else
        push(call,
             p->within[tensor] == BLOCK_KEEP    ? ARG_KEEP
             : p->within[tensor] == BLOCK_HOLD  ? ARG_HOLD
             : p->within[tensor] == BLOCK_DHOLD ? ARG_DHOLD
                                                : ARG_AT,
             lowerer->tensor[tensor], 0);
}

static void push_parameter(Lowerer *lowerer, Call *call, int parameter)
{
    if (parameter < 0)
        push(call, ARG_NULL, NULL, 0);
    else
        push_at(call, lowerer->parameter[parameter_home(
                          lowerer->p, lowerer->rank, parameter)]);
}

static void push_operand(Lowerer *lowerer, const Chunk *chunk, Call *call,
                         const Op *op, const Gradient *g, const Operand *o)
{
    const Program *p = lowerer->p;
    int index = o->index ? o->index(p, op, g) : -1;
    switch (o->kind) {
    case OPERAND_TENSOR: push_tensor(lowerer, chunk, call, index); break;
    case OPERAND_TARGETS:
        push_tensor(lowerer, chunk, call, chunk->targets);
        break;
    case OPERAND_PARAMETER: push_parameter(lowerer, call, index); break;
    case OPERAND_GRADIENT:
        push(call, index < 0 ? ARG_NULL : ARG_AT,
             index < 0 ? NULL : lowerer->gradient[index], 0);
        break;
    case OPERAND_LOSS: push(call, ARG_LOSS, "losses", 0); break;
    case OPERAND_SCRATCH: push_at(call, "tmp"); break;
    case OPERAND_NUMBER:
        push_size(lowerer, call, o->word, o->value(p, op));
        break;
    case OPERAND_COUNT:
        push_count(lowerer, call, positions(p, op), o->value(p, op));
        break;
    case OPERAND_REAL: push(call, ARG_REAL, NULL, o->value(p, op)); break;
    }
}

static const char *layer_comment(Program *p, const Layer *layer)
{
    return text_format(p->arena, "%s: %s, %s:%d", layer->name, layer->callee,
                       file_name(p), line_of(p, layer->at));
}

static void kernel_call(Lowerer *lowerer, const Chunk *chunk, Body *body,
                        const Op *op, Entry entry, const Gradient *g)
{
    static const char *const suffix[] = {"forward", "input", "weight", "sum"};
    Program *p = lowerer->p;
    const Layer *layer = &p->layers[op->layer];
    Call *call = new_call(
        lowerer, body,
        entry == ENTRY_SUM
            ? "pp_sum"
            : text_format(p->arena, "pp_%s_%s", op->kind->name, suffix[entry]));
    call->comment = layer_comment(p, layer);
    call->line = line_of(p, op->at);
    if (entry == ENTRY_SUM) {
        push_tensor(lowerer, chunk, call, g->dx);
        push_tensor(lowerer, chunk, call, g->dy);
        push_tensor(lowerer, chunk, call, g->prev);
        push_number(call, (double)p->tensors[g->dx].values);
        return;
    }
    const char *words = op->kind->entry[entry];
    for (const Operand *o; (o = next_operand(&words));)
        push_operand(lowerer, chunk, call, op, g, o);
}

double emulated_ns(const Program *p, double time)
{
    return (double)(long long)(time * (p->cost.unit ? 1e6 * p->unit_ms : 1e9) +
                               0.5);
}

const char *const body_words[BODY_MAIN + 1] = {
    "forward", "backward", "input",  "weight", "warmup",
    "steady",  "cooldown", "reduce", "update", "initialise",
    "save",    "remember", "undo",   "main"};

BodyKind body_of(ActionKind kind)
{
    static const BodyKind bodies[] = {BODY_FORWARD, BODY_BACKWARD, BODY_INPUT,
                                      BODY_WEIGHT};
    return bodies[kind];
}

static void sleep_call(Lowerer *lowerer, int c, ActionKind kind, Body *body)
{
    Call *call = new_call(lowerer, body, "pp_sleep");
    push_number(call,
                emulated_ns(lowerer->p, lowerer->p->cost.compute[kind][c]));
    call->comment = "the modelled time, ns";
}

/* The calls of a backward that belong to I, or to W, in order. */
static void gradient_calls(Lowerer *lowerer, const Chunk *chunk, Body *body,
                           bool weights)
{
    Program *p = lowerer->p;
    for (int i = 0; i < chunk->gradient_count; i++) {
        const Gradient *g = &p->gradients[chunk->first_gradient + i];
        if ((g->entry == ENTRY_WEIGHT) == weights)
            kernel_call(lowerer, chunk, body, &p->ops[g->op], g->entry, g);
    }
}

/* A whole backward frees what it can on the way; on a chunk that is also split
 * it is I, then W. */
static void backward_calls(Lowerer *lowerer, int c, Body *body)
{
    Program *p = lowerer->p;
    const Chunk *chunk = &p->chunks[c];
    if (p->frames[c].split) {
        gradient_calls(lowerer, chunk, body, false);
        gradient_calls(lowerer, chunk, body, true);
        return;
    }
    for (int i = 0; i < chunk->gradient_count; i++) {
        const Gradient *g = &p->gradients[chunk->first_gradient + i];
        kernel_call(lowerer, chunk, body, &p->ops[g->op], g->entry, g);
    }
}

/* Is it the op that puts out what its layer does? A loss belongs to the layer
 * before it. */
static bool ends_layer(const Program *p, const Op *op)
{
    const Layer *layer = &p->layers[op->layer];
    const Op *last = &p->ops[layer->first_op + layer->op_count - 1];
    return op->output >= 0 && (op == last || op[1].output < 0);
}

/* What a layer has put out, for the look at a step whose loss is no number. */
static void look_call(Lowerer *lowerer, const Chunk *chunk, Body *body,
                      const Op *op)
{
    Program *p = lowerer->p;
    const Layer *layer = &p->layers[op->layer];
    Call *call = new_call(lowerer, body, "pp_look");
    call->comment = layer_comment(p, layer);
    push(call, ARG_TEXT, layer->name, 0);
    push_tensor(lowerer, chunk, call, op->output);
    push_count(lowerer, call, positions(p, op),
               (double)p->tensors[op->output].width);
}

static void forward_calls(Lowerer *lowerer, const Chunk *chunk, Body *body)
{
    Program *p = lowerer->p;
    for (int i = 0; i < chunk->op_count; i++) {
        const Op *op = &p->ops[chunk->first_op + i];
        kernel_call(lowerer, chunk, body, op, ENTRY_FORWARD, NULL);
        if (p->target == TARGET_CPU && ends_layer(p, op))
            look_call(lowerer, chunk, body, op);
    }
}

/* Before the gradient of the loss. */
static void check_loss_call(Lowerer *lowerer, const Chunk *chunk, Body *body)
{
    Program *p = lowerer->p;
    if (p->target != TARGET_CPU || !chunk->op_count)
        return;
    const Op *op = &p->ops[chunk->first_op + chunk->op_count - 1];
    if (op->output >= 0)
        return;
    const Layer *layer = &p->layers[op->layer];
    Call *call = new_call(lowerer, body, "pp_check_loss");
    call->comment = layer_comment(p, layer);
    push(call, ARG_TEXT, op->label, 0);
    push(call, ARG_LOSS, "losses", 0);
    push(call, ARG_MICRO, "micro", 0);
}

static void kernel_calls(Lowerer *lowerer, int c, ActionKind kind, Body *body)
{
    const Chunk *chunk = &lowerer->p->chunks[c];
    if (kind == ACT_F)
        forward_calls(lowerer, chunk, body);
    if (kind == ACT_B || kind == ACT_I)
        check_loss_call(lowerer, chunk, body);
    if (kind == ACT_B)
        backward_calls(lowerer, c, body);
    else if (kind != ACT_F)
        gradient_calls(lowerer, chunk, body, kind == ACT_W);
}

static void chunk_body(Lowerer *lowerer, int c, ActionKind kind)
{
    Program *p = lowerer->p;
    Body *body = new_body(lowerer, body_of(kind), c);
    Call *begin = new_call(lowerer, body, "pp_begin");
    push(begin, ARG_TEXT, text_format(p->arena, "%d%s", c, action_names[kind]),
         0);
    push(begin, ARG_MICRO, "micro", 0);
    if (p->emulate)
        sleep_call(lowerer, c, kind, body);
    else
        kernel_calls(lowerer, c, kind, body);
    new_call(lowerer, body, "pp_end");
    for (int i = 0; i < body->call_count; i++)
        for (int k = 0; k < MICRO_KINDS; k++)
            body->takes[k] |= call_uses(&body->calls[i], block_words[k]);
}

/* One function for each kind of action that the rank's list has. */
static void chunk_bodies(Lowerer *lowerer, int c)
{
    bool used[ACT_W + 1] = {false};
    const List *list = &lowerer->p->lists[lowerer->rank];
    for (int i = 0; i < list->count; i++)
        if (is_compute(list->at[i].kind) && list->at[i].chunk == c)
            used[list->at[i].kind] = true;
    for (int kind = 0; kind < COMPUTE_KINDS; kind++)
        if (used[kind])
            chunk_body(lowerer, c, (ActionKind)kind);
}

/* ---- the pass ---- */

static bool has_link(const Lowerer *lowerer, bool sends)
{
    for (int i = 0; i < lowerer->out->link_count; i++)
        if (lowerer->out->links[i].sends == sends)
            return true;
    return false;
}

static void emulated_rank(Lowerer *lowerer)
{
    for (int c = 0; c < lowerer->p->chunk_count; c++)
        if (lowerer->p->chunks[c].rank == lowerer->rank)
            chunk_bodies(lowerer, c);
    phase_bodies(lowerer);
    name_emulated(lowerer, has_link(lowerer, true), has_link(lowerer, false));
    lowerer->out->block_constants = lowerer->out->constant_count;
    main_body(lowerer);
}

/* Names by tensor and parameter, and the set of all names. */
static void take_tables(Lowerer *lowerer)
{
    Program *p = lowerer->p;
    size_t parameters = (size_t)p->parameter_count + 1;
    size_t names = (size_t)p->tensor_count + 4 * parameters +
                   (size_t)p->block_count / 2 + 256;
    for (lowerer->taken_size = 256; lowerer->taken_size < 4 * names;)
        lowerer->taken_size *= 2;
    lowerer->taken = arena_take(p->arena,
                                sizeof *lowerer->taken * lowerer->taken_size);
    lowerer->tensor = arena_take(p->arena, sizeof *lowerer->tensor *
                                               (size_t)p->tensor_count);
    const char ***by_parameter[] = {&lowerer->parameter, &lowerer->gradient,
                                    &lowerer->moment[0], &lowerer->moment[1],
                                    &lowerer->master};
    for (size_t i = 0; i < sizeof by_parameter / sizeof *by_parameter; i++)
        *by_parameter[i] = arena_take(p->arena, sizeof(char *) * parameters);
    for (int kind = 0; kind <= BLOCK_VARIANCE; kind++)
        lowerer->place[kind] = arena_take(
            p->arena, sizeof *lowerer->place[kind] * parameters);
}

static void lower_rank(Program *p, int rank, int *slots, const int *ahead)
{
    Lowerer lowerer = {.p = p,
                       .rank = rank,
                       .out = &p->programs[rank],
                       .slots = slots,
                       .ahead = ahead};
    take_tables(&lowerer);
    enter_reserved(&lowerer);
    name_sizes(&lowerer);
    if (p->emulate) {
        emulated_rank(&lowerer);
        return;
    }
    const Block *scratch = lasting(&lowerer, BLOCK_SCRATCH, -1);
    name_blocks(&lowerer);
    lowerer.out->block_constants = lowerer.out->constant_count;
    name_lasting(&lowerer);
    name_ranges(&lowerer);
    name_fixed(&lowerer);
    for (int c = 0; c < p->chunk_count; c++) {
        if (p->chunks[c].rank != rank)
            continue;
        name_chunk(&lowerer, c, scratch->offset);
        chunk_bodies(&lowerer, c);
    }
    phase_bodies(&lowerer);
    reduce_body(&lowerer);
    update_body(&lowerer);
    initialise_body(&lowerer);
    save_body(&lowerer);
    if (ahead)
        undo_bodies(&lowerer);
    tie_owners(&lowerer);
    main_body(&lowerer);
}

/* Programs have their target's way only. */
static bool can_be_run(Program *p)
{
    Program own = {.target = p->target};
    if (meeting_of(p) == meeting_of(&own))
        return true;
    error_plain(p, "programs for %s do not meet in the way of --messages",
                p->target == TARGET_CUDA ? "cuda" : "the cpu");
    help(p, "leave --messages out; it is for `check`, `inspect`, `compare`, "
            "`explain` and `diff`");
    return false;
}

/* A block in the place of a layer that the file does not have is right for a
 * plan, and wrong for a model. An emulation computes nothing. */
static bool is_trainable(Program *p)
{
    if (!p->stand_ins || p->emulate)
        return true;
    error_at(p, p->set.split_at,
             "`m` of the layout weighs as much as a block, which is for plans "
             "alone: the model has no layer `mtp` to train");
    help(p, "define `layer mtp { ... }` and put `mtp : mtp` behind the blocks, "
            "or leave `m` out");
    return false;
}

bool lower(Program *p)
{
    if (!can_be_run(p) || !is_trainable(p))
        return false;
    p->programs = arena_take(p->arena, sizeof *p->programs * (size_t)p->ranks);
    size_t places = MICRO_KINDS * (size_t)p->chunk_count *
                    (size_t)p->microbatches;
    int *slots = arena_take(p->arena, sizeof *slots * places);
    const int *ahead = p->set.deferred && !p->emulate ? count_ahead(p) : NULL;
    for (int r = 0; r < p->ranks; r++)
        lower_rank(p, r, slots, ahead);
    job_records(p);
    for (int r = 0; r < p->ranks; r++)
        check_calls(&p->programs[r]);
    return true;
}
