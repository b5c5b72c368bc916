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

Body *new_body(Lowerer *w, BodyKind kind, int chunk)
{
    RankProgram *out = w->out;
    out->bodies = array_grow(w->p->arena, out->bodies, out->body_count,
                             sizeof *out->bodies);
    out->bodies[out->body_count] = (Body){
        .kind = kind,
        .chunk = chunk,
        .name = chunk < 0 ? body_words[kind]
                          : text_format(w->p->arena, "%s_%d", body_words[kind],
                                        chunk)};
    return &out->bodies[out->body_count++];
}

Call *new_call(Lowerer *w, Body *body, const char *function)
{
    body->calls = array_grow(w->p->arena, body->calls, body->call_count,
                             sizeof *body->calls);
    body->calls[body->call_count] = (Call){.function = function};
    return &body->calls[body->call_count++];
}

Call *new_form(Lowerer *w, Body *body, Form form, const char *function)
{
    Call *call = new_call(w, body, function);
    call->form = form;
    return call;
}

bool has_calls(const Lowerer *w, BodyKind kind)
{
    for (int i = 0; i < w->out->body_count; i++)
        if (w->out->bodies[i].kind == kind && w->out->bodies[i].call_count)
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

static bool has_size(const Lowerer *w, const char *name, double number)
{
    for (int i = 0; i < w->out->size_count; i++)
        if (strcmp(w->out->sizes[i].name, name) == 0)
            return (double)w->out->sizes[i].value == number;
    return false;
}

void push_size(Lowerer *w, Call *call, const char *name, double number)
{
    push(call, ARG_NUMBER, has_size(w, name, number) ? name : NULL, number);
}

/* `n * 8` is an int in the program, as its sizes are. */
static void push_count(Lowerer *w, Call *call, long n, double width)
{
    if (has_size(w, "n", (double)n) && (double)n * width <= INT_MAX)
        push(call, ARG_TIMES, "n", width);
    else
        push_number(call, (double)n * width);
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

static void push_operand(Lowerer *w, const Chunk *chunk, Call *call,
                         const Op *op, const Gradient *g, const Operand *o)
{
    const Program *p = w->p;
    int index = o->index ? o->index(p, op, g) : -1;
    switch (o->kind) {
    case OPERAND_TENSOR: push_tensor(w, chunk, call, index); break;
    case OPERAND_TARGETS: push_tensor(w, chunk, call, chunk->targets); break;
    case OPERAND_PARAMETER: push_parameter(w, call, index); break;
    case OPERAND_GRADIENT:
        push(call, index < 0 ? ARG_NULL : ARG_AT,
             index < 0 ? NULL : w->gradient[index], 0);
        break;
    case OPERAND_LOSS: push(call, ARG_LOSS, "losses", 0); break;
    case OPERAND_SCRATCH: push_at(call, "tmp"); break;
    case OPERAND_NUMBER: push_size(w, call, o->word, o->value(p, op)); break;
    case OPERAND_COUNT:
        push_count(w, call, positions(p, op), o->value(p, op));
        break;
    case OPERAND_REAL: push(call, ARG_REAL, NULL, o->value(p, op)); break;
    }
}

static void kernel_call(Lowerer *w, const Chunk *chunk, Body *body,
                        const Op *op, Entry entry, const Gradient *g)
{
    static const char *const suffix[] = {"forward", "input", "weight", "sum"};
    Program *p = w->p;
    const Layer *layer = &p->layers[op->layer];
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
    const char *words = op->kind->entry[entry];
    for (const Operand *o; (o = next_operand(&words));)
        push_operand(w, chunk, call, op, g, o);
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

static void sleep_call(Lowerer *w, int c, ActionKind kind, Body *body)
{
    Call *call = new_call(w, body, "pp_sleep");
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

static void kernel_calls(Lowerer *w, int c, ActionKind kind, Body *body)
{
    Program *p = w->p;
    const Chunk *chunk = &p->chunks[c];
    for (int i = 0; kind == ACT_F && i < chunk->op_count; i++)
        kernel_call(w, chunk, body, &p->ops[chunk->first_op + i], ENTRY_FORWARD,
                    NULL);
    if (kind == ACT_B)
        backward_calls(w, c, body);
    else if (kind != ACT_F)
        gradient_calls(w, chunk, body, kind == ACT_W);
}

static void chunk_body(Lowerer *w, int c, ActionKind kind)
{
    Program *p = w->p;
    Body *body = new_body(w, body_of(kind), c);
    Call *begin = new_call(w, body, "pp_begin");
    push(begin, ARG_TEXT, text_format(p->arena, "%d%s", c, action_names[kind]),
         0);
    push(begin, ARG_MICRO, "micro", 0);
    if (p->emulate)
        sleep_call(w, c, kind, body);
    else
        kernel_calls(w, c, kind, body);
    new_call(w, body, "pp_end");
    for (int i = 0; i < body->call_count; i++)
        for (int k = 0; k < MICRO_KINDS; k++)
            body->takes[k] |= call_uses(&body->calls[i], block_words[k]);
}

/* One function for each kind of action that the rank's list has. */
static void chunk_bodies(Lowerer *w, int c)
{
    bool used[ACT_W + 1] = {false};
    const List *list = &w->p->lists[w->rank];
    for (int i = 0; i < list->count; i++)
        if (is_compute(list->at[i].kind) && list->at[i].chunk == c)
            used[list->at[i].kind] = true;
    for (int kind = 0; kind < COMPUTE_KINDS; kind++)
        if (used[kind])
            chunk_body(w, c, (ActionKind)kind);
}

/* ---- the pass ---- */

static bool has_link(const Lowerer *w, bool sends)
{
    for (int i = 0; i < w->out->link_count; i++)
        if (w->out->links[i].sends == sends)
            return true;
    return false;
}

static void emulated_rank(Lowerer *w)
{
    for (int c = 0; c < w->p->chunk_count; c++)
        if (w->p->chunks[c].rank == w->rank)
            chunk_bodies(w, c);
    phase_bodies(w);
    name_emulated(w, has_link(w, true), has_link(w, false));
    w->out->block_constants = w->out->constant_count;
    main_body(w);
}

/* Names by tensor and parameter, and the set of all names. */
static void take_tables(Lowerer *w)
{
    Program *p = w->p;
    size_t parameters = (size_t)p->parameter_count + 1;
    size_t names = (size_t)p->tensor_count + 4 * parameters +
                   (size_t)p->block_count / 2 + 256;
    for (w->taken_size = 256; w->taken_size < 4 * names;)
        w->taken_size *= 2;
    w->taken = arena_take(p->arena, sizeof *w->taken * w->taken_size);
    w->tensor = arena_take(p->arena,
                           sizeof *w->tensor * (size_t)p->tensor_count);
    const char ***by_parameter[] = {&w->parameter, &w->gradient, &w->moment[0],
                                    &w->moment[1], &w->master};
    for (size_t i = 0; i < sizeof by_parameter / sizeof *by_parameter; i++)
        *by_parameter[i] = arena_take(p->arena, sizeof(char *) * parameters);
    for (int kind = 0; kind <= BLOCK_VARIANCE; kind++)
        w->place[kind] = arena_take(p->arena,
                                    sizeof *w->place[kind] * parameters);
}

static void lower_rank(Program *p, int rank, int *slots, const int *ahead)
{
    Lowerer w = {.p = p,
                 .rank = rank,
                 .out = &p->programs[rank],
                 .slots = slots,
                 .ahead = ahead};
    take_tables(&w);
    enter_reserved(&w);
    name_sizes(&w);
    if (p->emulate) {
        emulated_rank(&w);
        return;
    }
    const Block *scratch = lasting(&w, BLOCK_SCRATCH, -1);
    name_blocks(&w);
    w.out->block_constants = w.out->constant_count;
    name_lasting(&w);
    name_ranges(&w);
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
    tie_owners(&w);
    main_body(&w);
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
    job_records(p);
    for (int r = 0; r < p->ranks; r++)
        check_calls(&p->programs[r]);
    return true;
}
