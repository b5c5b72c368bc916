/* lower.c: actions -> rank programs, calls with constant operands.
 *
 * Reads: lists, chunks, gradients, blocks, frames, inside. Writes: programs.
 * Guarantees: every operand is a constant or a named offset whose value is
 * here; the printer decides nothing.
 *
 * A rank program has one function for the forward and one for the backward of
 * each of its chunks; their parameters are the offsets of the blocks that
 * differ between micro-batches. The phases call them, with the messages around
 * them:
 *
 *     pp_recv(&recv_f1, 0, m + x1_0);   forward_1(m, 0, keep1_0, x1_0, y1_0);   pp_send(&send_f1, 0, m + y1_0);
 *
 * In an emulation these functions sleep as long as the plan says, and messages
 * are short: the same calls in the same order, without parameters and data.
 *
 *     pp_recv(&recv_f1, 0, m + taken);   forward_1(m, 0);   pp_send_over(&send_f1, 0, m + sent, 9000, 5000, -1);
 */
#include "lower.h"

#include <string.h>

/* ---- calls ---- */

Body *new_body(Lowerer *w, BodyKind kind, int chunk)
{
    RankProgram *out = w->out;
    out->bodies = array_grow(w->p->arena, out->bodies, out->body_count,
                             sizeof *out->bodies);
    out->bodies[out->body_count] = (Body){.kind = kind, .chunk = chunk};
    return &out->bodies[out->body_count++];
}

Call *new_call(Lowerer *w, Body *body, const char *function)
{
    body->calls = array_grow(w->p->arena, body->calls, body->call_count,
                             sizeof *body->calls);
    body->calls[body->call_count] = (Call){.function = function, .action = -1};
    return &body->calls[body->call_count++];
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

const Block *lasting(const Lowerer *w, BlockKind kind, int of)
{
    const Program *p = w->p;
    for (int i = 0; i < p->block_count && p->blocks[i].kind < BLOCK_KEEP; i++)
        if (p->blocks[i].kind == kind && p->blocks[i].rank == w->rank &&
            p->blocks[i].chunk == of)
            return &p->blocks[i];
    return NULL;
}

/* ---- kernels ---- */

/* What a tensor is called inside a chunk's function: a parameter of it, a place
 * in the keep block (k), or a place in the arena (m). */
static void push_tensor(Lowerer *w, const Chunk *chunk, Call *call, int tensor)
{
    Program *p = w->p;
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
             w->tensor[tensor], 0);
}

static void push_parameter(Lowerer *w, Call *call, int parameter)
{
    if (parameter < 0)
        push(call, ARG_NULL, NULL, 0);
    else
        push_at(call, w->parameter[parameter_home(w->p, w->rank, parameter)]);
}

static void push_constant(Lowerer *w, Call *call, const Op *op,
                          const char *word)
{
    const Program *p = w->p;
    const Tensor *x = &p->tensors[op->input[0]];
    long width = op->output >= 0 ? p->tensors[op->output].width : x->width,
         n = positions(p, op);
    if (strcmp(word, "n") == 0)
        push_number(call, (double)n);
    else if (strcmp(word, "seq") == 0)
        push_number(call, (double)x->seq);
    else if (strcmp(word, "in") == 0)
        push_number(call, (double)x->width);
    else if (strcmp(word, "width") == 0)
        push_number(call, (double)width);
    else if (strcmp(word, "heads") == 0)
        push_number(call, (double)op->heads);
    else if (strcmp(word, "causal") == 0)
        push_number(call, op->causal);
    else if (strcmp(word, "count") == 0)
        push_number(call, (double)n * (double)width);
    else
        push(call, ARG_REAL, NULL, 1 / ((double)n * p->microbatches));
}

static void push_word(Lowerer *w, const Chunk *chunk, Call *call, const Op *op,
                      const Gradient *g, const char *word)
{
    if (strcmp(word, "y") == 0)
        push_tensor(w, chunk, call, op->output);
    else if (strcmp(word, "x") == 0)
        push_tensor(w, chunk, call, op->input[0]);
    else if (strcmp(word, "x2") == 0)
        push_tensor(w, chunk, call, op->input[1]);
    else if (strcmp(word, "stats") == 0)
        push_tensor(w, chunk, call, op->stats);
    else if (strcmp(word, "targets") == 0)
        push_tensor(w, chunk, call, chunk->targets);
    else if (strcmp(word, "dx") == 0)
        push_tensor(w, chunk, call, g->dx);
    else if (strcmp(word, "dy") == 0)
        push_tensor(w, chunk, call, g->dy);
    else if (strcmp(word, "prev") == 0)
        push_tensor(w, chunk, call, g->prev);
    else if (strcmp(word, "tmp") == 0)
        push_at(call, "tmp");
    else if (strcmp(word, "loss") == 0)
        push_at(call, "losses + micro");
    else if (strcmp(word, "weight") == 0)
        push_parameter(w, call, op->weight);
    else if (strcmp(word, "bias") == 0)
        push_parameter(w, call, op->bias);
    else if (strcmp(word, "dweight") == 0)
        push_at(call, w->gradient[op->weight]);
    else if (strcmp(word, "dbias") == 0)
        push(call, op->bias < 0 ? ARG_NULL : ARG_AT,
             op->bias < 0 ? NULL : w->gradient[op->bias], 0);
    else
        push_constant(w, call, op, word);
}

static void kernel_call(Lowerer *w, const Chunk *chunk, Body *body,
                        const Op *op, Entry entry, const Gradient *g)
{
    static const char *const suffix[] = {"forward", "input", "weight", "sum"};
    Program *p = w->p;
    const Layer *layer = &p->layers[op->layer];
    char word[16];
    Call *call = new_call(
        w, body,
        entry == ENTRY_SUM
            ? "pp_sum"
            : text_format(p->arena, "pp_%s_%s", op->kind->name, suffix[entry]));
    call->comment = text_format(p->arena, "%s: %s, %s:%d", layer->name,
                                layer->callee, file_name(p),
                                line_of(p, layer->at));
    call->line = line_of(p, op->at);
    if (entry == ENTRY_SUM) {
        push_tensor(w, chunk, call, g->dx);
        push_tensor(w, chunk, call, g->dy);
        push_tensor(w, chunk, call, g->prev);
        push_number(call, (double)p->tensors[g->dx].values);
        return;
    }
    for (const char *words = op->kind->entry[entry]; *words;
         words += *words == ' ') {
        size_t length = strcspn(words, " ");
        memcpy(word, words, length);
        word[length] = 0;
        push_word(w, chunk, call, op, g, word);
        words += length;
    }
}

double emulated_ns(const Program *p, double time)
{
    return (double)(long long)(time * (p->cost.unit ? 1e6 * p->unit_ms : 1e9) +
                               0.5);
}

const char *const body_words[BODY_UNDO + 1] = {
    "forward", "backward", "input",  "weight", "warmup",
    "steady",  "cooldown", "reduce", "update", "initialise",
    "save",    "remember", "undo"};

BodyKind body_of(ActionKind kind)
{
    static const BodyKind bodies[] = {BODY_FORWARD, BODY_BACKWARD, BODY_INPUT,
                                      BODY_WEIGHT};
    return bodies[kind];
}

static void sleeping_body(Lowerer *w, int c, ActionKind kind)
{
    Call *call = new_call(w, new_body(w, body_of(kind), c), "pp_sleep");
    push_number(call, emulated_ns(w->p, w->p->cost.compute[kind][c]));
    call->comment = "the modelled time, ns";
}

/* The calls of a backward that belong to I, or to W, in order. */
static void gradient_calls(Lowerer *w, const Chunk *chunk, Body *body,
                           bool weights)
{
    Program *p = w->p;
    for (int i = 0; i < chunk->gradient_count; i++) {
        const Gradient *g = &p->gradients[chunk->first_gradient + i];
        if ((g->entry == ENTRY_WEIGHT) == weights)
            kernel_call(w, chunk, body, &p->ops[g->op], g->entry, g);
    }
}

/* A whole backward frees what it can on the way; on a chunk that is also split
 * it is I, then W. */
static void backward_calls(Lowerer *w, int c, Body *body)
{
    Program *p = w->p;
    const Chunk *chunk = &p->chunks[c];
    if (p->frames[c].split) {
        gradient_calls(w, chunk, body, false);
        gradient_calls(w, chunk, body, true);
        return;
    }
    for (int i = 0; i < chunk->gradient_count; i++) {
        const Gradient *g = &p->gradients[chunk->first_gradient + i];
        kernel_call(w, chunk, body, &p->ops[g->op], g->entry, g);
    }
}

static void chunk_body(Lowerer *w, int c, ActionKind kind)
{
    Program *p = w->p;
    const Chunk *chunk = &p->chunks[c];
    Body *body = new_body(w, body_of(kind), c);
    for (int i = 0; kind == ACT_F && i < chunk->op_count; i++)
        kernel_call(w, chunk, body, &p->ops[chunk->first_op + i], ENTRY_FORWARD,
                    NULL);
    if (kind == ACT_B)
        backward_calls(w, c, body);
    else if (kind != ACT_F)
        gradient_calls(w, chunk, body, kind == ACT_W);
}

/* One function for each kind of action that the rank's list has. */
static void chunk_bodies(Lowerer *w, int c)
{
    bool used[ACT_W + 1] = {false};
    const List *list = &w->p->lists[w->rank];
    for (int i = 0; i < list->count; i++)
        if (list->at[i].kind <= ACT_W && list->at[i].chunk == c)
            used[list->at[i].kind] = true;
    for (int kind = 0; kind <= ACT_W; kind++) {
        if (used[kind] && w->p->emulate)
            sleeping_body(w, c, (ActionKind)kind);
        else if (used[kind])
            chunk_body(w, c, (ActionKind)kind);
    }
}

/* ---- the pass ---- */

static bool has_link(const Lowerer *w, char first)
{
    for (int i = 0; i < w->out->link_count; i++)
        if (w->out->links[i].name[0] == first)
            return true;
    return false;
}

static void emulated_rank(Lowerer *w)
{
    for (int c = 0; c < w->p->chunk_count; c++)
        if (w->p->chunks[c].rank == w->rank)
            chunk_bodies(w, c);
    phase_bodies(w);
    name_emulated(w, has_link(w, 's'), has_link(w, 'r'));
    w->out->block_constants = w->out->constant_count;
}

static void lower_rank(Program *p, int rank, int *slots, const int *ahead)
{
    size_t names = (size_t)p->tensor_count + 4 * (size_t)p->parameter_count +
                   (size_t)p->block_count / 2 + 256;
    Lowerer w = {.p = p,
                 .rank = rank,
                 .out = &p->programs[rank],
                 .slots = slots,
                 .ahead = ahead,
                 .taken_size = 256};
    while (w.taken_size < 4 * names)
        w.taken_size *= 2;
    w.taken = arena_take(p->arena, sizeof *w.taken * w.taken_size);
    w.tensor = arena_take(p->arena, sizeof *w.tensor * (size_t)p->tensor_count);
    w.parameter = arena_take(p->arena, sizeof *w.parameter *
                                           (size_t)(p->parameter_count + 1));
    w.gradient = arena_take(p->arena, sizeof *w.gradient *
                                          (size_t)(p->parameter_count + 1));
    enter_reserved(&w);
    for (int i = 0; i < 2; i++)
        w.moment[i] = arena_take(
            p->arena, sizeof *w.moment[i] * (size_t)(p->parameter_count + 1));
    w.master = arena_take(p->arena,
                          sizeof *w.master * (size_t)(p->parameter_count + 1));
    if (p->emulate) {
        emulated_rank(&w);
        return;
    }
    const Block *scratch = lasting(&w, BLOCK_SCRATCH, -1);
    name_blocks(&w);
    w.out->block_constants = w.out->constant_count;
    name_lasting(&w);
    name_fixed(&w);
    for (int c = 0; c < p->chunk_count; c++) {
        if (p->chunks[c].rank != rank)
            continue;
        name_chunk(&w, c, scratch->offset);
        chunk_bodies(&w, c);
    }
    phase_bodies(&w);
    reduce_body(&w);
    update_body(&w);
    initialise_body(&w);
    save_body(&w);
    if (ahead)
        undo_bodies(&w);
}

bool lower(Program *p)
{
    p->programs = arena_take(p->arena, sizeof *p->programs * (size_t)p->ranks);
    size_t places = MICRO_KINDS * (size_t)p->chunk_count *
                    (size_t)p->microbatches;
    int *slots = arena_take(p->arena, sizeof *slots * places);
    const int *ahead = p->set.deferred && !p->emulate ? count_ahead(p) : NULL;
    for (int r = 0; r < p->ranks; r++)
        lower_rank(p, r, slots, ahead);
    return true;
}
