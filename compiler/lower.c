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
 *     pp_recv_late(&recv_f1, 0, m + taken, 9000);   forward_1(m, 0);   pp_send(&send_f1, 0, m + sent);
 */
#include "compile.h"

#include <string.h>

typedef struct Lowerer {
    Program *p;
    int rank;
    RankProgram *out;
    const char **taken;  // hash table of the constants' names
    size_t taken_size;
    const char **tensor;     // [tensor] its constant
    const char **parameter;  // [parameter] its constant, on this rank
    const char **gradient;   // [parameter] of the use
    const char **moment[2];  // [parameter]
    const char *
        *master;  // [parameter] float32 values, where kernels read others
    int *slots;   // see slot_constant
    int *sent, *received;  // [cell] ordinals of SEND_F, RECV_F, then of _B
} Lowerer;

/* ---- names ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9');
}

char *identifier(Program *p, const char *name)
{
    char *made = text_format(p->arena, "%s%s",
                             name[0] >= '0' && name[0] <= '9' ? "_" : "", name);
    for (char *c = made; *c; c++)
        if (!is_letter(*c))
            *c = '_';
    return made;
}

static const char *const reserved[] = {
    "auto",     "break",      "case",     "char",   "const",   "continue",
    "default",  "do",         "double",   "else",   "enum",    "extern",
    "float",    "for",        "goto",     "if",     "inline",  "int",
    "long",     "register",   "restrict", "return", "short",   "signed",
    "sizeof",   "static",     "struct",   "switch", "typedef", "union",
    "unsigned", "void",       "volatile", "while",  "main",    "m",
    "k",        "h",          "micro",    "keep",   "x",       "y",
    "dx",       "dy",         "t",        "job",    "warmup",  "steady",
    "cooldown", "initialise", "reduce",   "update", "save",    "losses",
    "tmp",      "NULL",       "argc",     "argv",   "errno",   "stdin",
    "stdout",   "stderr",
};

static size_t hash(const char *text)
{
    size_t h = 1469598103934665603u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

/* Enters the name into the set; false when it is there already. */
static bool enter(Lowerer *w, const char *name)
{
    size_t at = hash(name) & (w->taken_size - 1);
    for (; w->taken[at]; at = (at + 1) & (w->taken_size - 1))
        if (strcmp(w->taken[at], name) == 0)
            return false;
    w->taken[at] = name;
    return true;
}

static const char *unique(Lowerer *w, const char *name)
{
    const char *made = identifier(w->p, name);
    for (int i = 2; !enter(w, made); i++)
        made = text_format(w->p->arena, "%s_%d", identifier(w->p, name), i);
    return made;
}

static const char *constant_named(Lowerer *w, const char *name, size_t value,
                                  const char *comment)
{
    RankProgram *out = w->out;
    const char *made = unique(w, name);
    out->constants = array_grow(w->p->arena, out->constants,
                                out->constant_count, sizeof *out->constants);
    out->constants[out->constant_count++] = (Constant){made, comment, value};
    return made;
}

static void section(Lowerer *w, const char *title)
{
    RankProgram *out = w->out;
    out->constants = array_grow(w->p->arena, out->constants,
                                out->constant_count, sizeof *out->constants);
    out->constants[out->constant_count++] = (Constant){NULL, title, 0};
}

/* ---- calls ---- */

static Body *new_body(Lowerer *w, BodyKind kind, int chunk)
{
    RankProgram *out = w->out;
    out->bodies = array_grow(w->p->arena, out->bodies, out->body_count,
                             sizeof *out->bodies);
    out->bodies[out->body_count] = (Body){.kind = kind, .chunk = chunk};
    return &out->bodies[out->body_count++];
}

static Call *new_call(Lowerer *w, Body *body, const char *function)
{
    body->calls = array_grow(w->p->arena, body->calls, body->call_count,
                             sizeof *body->calls);
    body->calls[body->call_count] = (Call){.function = function, .action = -1};
    return &body->calls[body->call_count++];
}

static void push(Call *call, ArgKind kind, const char *name, double number)
{
    call->arg[call->args++] = (Arg){kind, name, number};
}

static void push_number(Call *call, double number)
{
    push(call, ARG_NUMBER, NULL, number);
}

static void push_at(Call *call, const char *name)
{
    push(call, ARG_AT, name, 0);
}

static const Block *lasting(const Lowerer *w, BlockKind kind, int of)
{
    const Program *p = w->p;
    for (int i = 0; i < p->block_count && p->blocks[i].kind < BLOCK_KEEP; i++)
        if (p->blocks[i].kind == kind && p->blocks[i].rank == w->rank &&
            p->blocks[i].chunk == of)
            return &p->blocks[i];
    return NULL;
}

/* ---- constants ---- */

static const char *shape_text(Program *p, long rows, long columns)
{
    return columns ? text_format(p->arena, "[%ld x %ld]", rows, columns)
                   : text_format(p->arena, "[%ld]", rows);
}

static const char *tensor_shape(Program *p, int tensor)
{
    const Tensor *t = &p->tensors[tensor];
    return shape_text(p, (long)p->set.rows.value * t->seq, t->width);
}

static const char *lasting_prefix(BlockKind kind)
{
    return kind == BLOCK_GRADIENT   ? "g_"
           : kind == BLOCK_MASTER   ? "master_"
           : kind == BLOCK_MEAN     ? "a_"
           : kind == BLOCK_VARIANCE ? "b_"
                                    : "";
}

static void note_lasting(Lowerer *w, const Block *b, const char *name)
{
    if (b->kind == BLOCK_PARAMETER)
        w->parameter[b->chunk] = name;
    else if (b->kind == BLOCK_GRADIENT)
        w->gradient[b->chunk] = name;
    else if (b->kind == BLOCK_MASTER)
        w->master[b->chunk] = name;
    else
        w->moment[b->kind - BLOCK_MEAN][b->chunk] = name;
}

static void name_lasting(Lowerer *w)
{
    Program *p = w->p;
    const char *title = NULL;
    for (int i = 0; i < p->block_count && p->blocks[i].kind < BLOCK_KEEP; i++) {
        const Block *b = &p->blocks[i];
        if (b->rank != w->rank || b->kind > BLOCK_VARIANCE)
            continue;
        const char *own = b->kind == BLOCK_PARAMETER ? "parameters"
                          : b->kind == BLOCK_GRADIENT
                              ? "their gradients, one for each use"
                              : "what the optimizer keeps of each";
        if (own != title)
            section(w, own);
        title = own;
        const Parameter *q = &p->parameters[b->chunk];
        note_lasting(
            w, b,
            constant_named(
                w,
                text_format(p->arena, "%s%s", lasting_prefix(b->kind), q->name),
                b->offset, shape_text(p, q->rows, q->columns)));
    }
}

/* losses and tmp: names that nothing else may have. */
static void name_fixed(Lowerer *w)
{
    Program *p = w->p;
    const Block *tmp = lasting(w, BLOCK_TMP, -1),
                *losses = lasting(w, BLOCK_LOSSES, p->chunk_count - 1);
    const Block *both[2] = {losses, tmp && tmp->floats ? tmp : NULL};
    static const char *const names[2] = {"losses", "tmp"};
    if (both[0] || both[1])
        section(w, "losses of the micro-batches; scratch inside kernels");
    for (int i = 0; i < 2; i++) {
        if (!both[i])
            continue;
        RankProgram *out = w->out;
        out->constants = array_grow(p->arena, out->constants,
                                    out->constant_count,
                                    sizeof *out->constants);
        out->constants[out->constant_count++] = (Constant){
            names[i], text_format(p->arena, "[%zu]", both[i]->floats),
            both[i]->offset};
    }
}

static void name_tensor(Lowerer *w, int tensor, size_t scratch)
{
    Program *p = w->p;
    w->tensor[tensor] = constant_named(w, p->tensors[tensor].name,
                                       p->inside[tensor] +
                                           (p->kept[tensor] ? 0 : scratch),
                                       tensor_shape(p, tensor));
}

static void name_chunk(Lowerer *w, int c, size_t scratch)
{
    Program *p = w->p;
    const Chunk *chunk = &p->chunks[c];
    for (int kept = 1; kept >= 0; kept--) {
        section(w, text_format(
                       p->arena,
                       kept ? "chunk %d: kept from forward to backward, inside "
                              "its keep block"
                            : "chunk %d: scratch, dead when its action ends",
                       c));
        for (int i = chunk->first_op; i < chunk->first_op + chunk->op_count;
             i++) {
            int own[2] = {p->ops[i].output, p->ops[i].stats};
            for (int k = 0; k < 2; k++)
                if (own[k] >= 0 && own[k] != chunk->y &&
                    p->kept[own[k]] == kept)
                    name_tensor(w, own[k], scratch);
        }
    }
    for (int i = chunk->first_gradient;
         i < chunk->first_gradient + chunk->gradient_count; i++)
        if (p->gradients[i].dx >= 0 && p->gradients[i].dx != chunk->dx)
            name_tensor(w, p->gradients[i].dx, scratch);
}

static const char *block_prefix(BlockKind kind)
{
    switch (kind) {
    case BLOCK_KEEP: return "keep";
    case BLOCK_X: return "x";
    case BLOCK_Y: return "y";
    case BLOCK_DX: return "dx";
    case BLOCK_DY: return "dy";
    default: return "t";
    }
}

static const char *block_name(Lowerer *w, int block)
{
    const Block *b = &w->p->blocks[block];
    return text_format(w->p->arena, "%s%d_%d", block_prefix(b->kind), b->chunk,
                       b->slot);
}

static const char *block_shape(Program *p, const Block *b)
{
    const Chunk *chunk = &p->chunks[b->chunk];
    switch (b->kind) {
    case BLOCK_X: return tensor_shape(p, chunk->x);
    case BLOCK_Y: return tensor_shape(p, chunk->y);
    case BLOCK_DX: return tensor_shape(p, chunk->dx);
    case BLOCK_DY: return tensor_shape(p, chunk->dy);
    case BLOCK_TARGETS: return tensor_shape(p, chunk->targets);
    default: return text_format(p->arena, "[%zu]", b->floats);
    }
}

/* Constants of the blocks: index + 1 by kind, chunk and slot. */
static int *slot_constant(const Lowerer *w, const Block *b)
{
    const Program *p = w->p;
    size_t kind = (size_t)(b->kind - BLOCK_KEEP);
    return &w->slots[(kind * (size_t)p->chunk_count + (size_t)b->chunk) *
                         (size_t)p->set.microbatches.value +
                     (size_t)b->slot];
}

/* The comment of a place lists the micro-batches that pass through it. */
static void add_micro(Program *p, Constant *place, int micro)
{
    size_t length = strlen(place->comment);
    if (length < 60)
        place->comment = text_format(p->arena, "%s %d", place->comment, micro);
    else if (place->comment[length - 1] != '.')
        place->comment = text_format(p->arena, "%s ...", place->comment);
}

static void name_blocks(Lowerer *w)
{
    Program *p = w->p;
    section(w, "blocks of one micro-batch; the last figures are the "
               "micro-batches that use the place");
    for (int i = 0; i < p->block_count; i++) {
        const Block *b = &p->blocks[i];
        if (b->rank != w->rank || b->kind < BLOCK_KEEP)
            continue;
        int *constant = slot_constant(w, b);
        if (*constant) {
            add_micro(p, &w->out->constants[*constant - 1], b->micro);
            continue;
        }
        constant_named(
            w, block_name(w, i), b->offset,
            text_format(p->arena, "%s: %d", block_shape(p, b), b->micro));
        *constant = w->out->constant_count;
    }
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
        push(call, p->kept[tensor] ? ARG_KEEP : ARG_AT, w->tensor[tensor], 0);
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
        push(call, ARG_REAL, NULL, 1 / ((double)n * p->set.microbatches.value));
}

static void push_word(Lowerer *w, const Chunk *chunk, Call *call, const Op *op,
                      const Gradient *g, const char *word)
{
    const Program *p = w->p;
    if (strcmp(word, "y") == 0)
        push_tensor(w, chunk, call, op->output);
    else if (strcmp(word, "x") == 0)
        push_tensor(w, chunk, call, op->input[0]);
    else if (strcmp(word, "x2") == 0)
        push_tensor(w, chunk, call, op->input[1]);
    else if (strcmp(word, "stats") == 0)
        push_tensor(w, chunk, call, op->stats);
    else if (strcmp(word, "targets") == 0)
        push_tensor(w, chunk, call, p->targets);
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

static void sleeping_bodies(Lowerer *w, int c)
{
    for (int back = 0; back < 2; back++) {
        Body *body = new_body(w, back ? BODY_BACKWARD : BODY_FORWARD, c);
        Call *call = new_call(w, body, "pp_sleep");
        double time = w->p->cost.compute[back ? ACT_B : ACT_F][c];
        push_number(call, emulated_ns(w->p, time));
        call->comment = "the modelled time, ns";
    }
}

static void chunk_bodies(Lowerer *w, int c)
{
    Program *p = w->p;
    const Chunk *chunk = &p->chunks[c];
    Body *body = new_body(w, BODY_FORWARD, c);
    for (int i = 0; i < chunk->op_count; i++)
        kernel_call(w, chunk, body, &p->ops[chunk->first_op + i], ENTRY_FORWARD,
                    NULL);
    body = new_body(w, BODY_BACKWARD, c);
    for (int i = 0; i < chunk->gradient_count; i++) {
        const Gradient *g = &p->gradients[chunk->first_gradient + i];
        kernel_call(w, chunk, body, &p->ops[g->op], g->entry, g);
    }
}

/* ---- phases ---- */

/* The blocks that a chunk's function takes, in the order of its parameters. */
static const BlockKind block_order[] = {BLOCK_KEEP, BLOCK_X,  BLOCK_Y,
                                        BLOCK_DY,   BLOCK_DX, BLOCK_TARGETS};
static const char *const block_words[] = {"keep", "x", "y", "dy", "dx", "t"};
enum { BLOCK_ORDER = 6 };

bool call_uses(const Call *call, const char *parameter)
{
    for (int k = 0; k < call->args; k++) {
        const Arg *arg = &call->arg[k];
        bool keep = arg->kind == ARG_KEEP && strcmp(parameter, "keep") == 0;
        bool micro = arg->name && strcmp(parameter, "micro") == 0 &&
                     strcmp(arg->name, "losses + micro") == 0;
        if (keep || micro ||
            (arg->kind != ARG_KEEP && arg->name &&
             strcmp(arg->name, parameter) == 0))
            return true;
    }
    return false;
}

static bool body_uses(const Body *body, int which)
{
    for (int i = 0; i < body->call_count; i++)
        if (call_uses(&body->calls[i], block_words[which]))
            return true;
    return false;
}

static const Body *chunk_body(const Lowerer *w, BodyKind kind, int chunk)
{
    for (int i = 0; i < w->out->body_count; i++)
        if (w->out->bodies[i].kind == kind && w->out->bodies[i].chunk == chunk)
            return &w->out->bodies[i];
    return NULL;
}

static void load_call(Lowerer *w, Body *body, Action a, bool targets, int index)
{
    Program *p = w->p;
    bool ids = p->vocabulary > 0;
    int block = find_block_of(p, targets ? BLOCK_TARGETS : BLOCK_X, a.chunk,
                              a.micro);
    Call *call = new_call(w, body,
                          ids ? (targets ? "pp_token_targets" : "pp_tokens")
                              : (targets ? "pp_number_targets" : "pp_numbers"));
    call->column = COLUMN_TAKE;
    call->action = index;
    push(call, ids ? ARG_IDS : ARG_AT, block_name(w, block), 0);
    push_number(call, a.micro);
}

static void compute_call(Lowerer *w, Body *body, Action a, int index)
{
    Program *p = w->p;
    bool forward = a.kind == ACT_F;
    if (forward && a.chunk == 0 && !p->emulate)
        load_call(w, body, a, false, index);
    if (forward && p->chunks[a.chunk].targets >= 0 && !p->emulate)
        load_call(w, body, a, true, index);
    const Body *function = chunk_body(w, forward ? BODY_FORWARD : BODY_BACKWARD,
                                      a.chunk);
    Call *call = new_call(w, body,
                          text_format(p->arena, "%s_%d",
                                      forward ? "forward" : "backward",
                                      a.chunk));
    call->column = COLUMN_COMPUTE;
    call->action = index;
    push(call, ARG_NAME, "m", 0);
    push_number(call, a.micro);
    for (int i = 0; i < BLOCK_ORDER; i++)
        if (body_uses(function, i))
            push(call, ARG_OFFSET,
                 block_name(w,
                            find_block_of(p, block_order[i], a.chunk, a.micro)),
                 0);
}

static const char *link_for(Lowerer *w, Action a, bool sending, bool back)
{
    Program *p = w->p;
    RankProgram *out = w->out;
    const char *name = text_format(p->arena, "%s_%c%d",
                                   sending ? "send" : "recv", back ? 'b' : 'f',
                                   a.chunk);
    for (int i = 0; i < out->link_count; i++)
        if (strcmp(out->links[i].name, name) == 0)
            return out->links[i].name;
    const Chunk *chunk = &p->chunks[a.chunk];
    int tensor = sending ? (back ? chunk->dx : chunk->y)
                         : (back ? chunk->dy : chunk->x);
    out->links = array_grow(p->arena, out->links, out->link_count,
                            sizeof *out->links);
    out->links[out->link_count++] = (Link){
        name,
        text_format(p->arena, "%d%s_%c", a.chunk, sending ? "SEND" : "RECV",
                    back ? 'B' : 'F'),
        a.peer, p->emulate ? EMULATED_FLOATS : p->tensors[tensor].floats};
    return name;
}

static bool is_kind(Action a, ActionKind forth, ActionKind back)
{
    return a.kind == forth || a.kind == back;
}

static size_t message_cell(const Program *p, Action a, bool back)
{
    size_t cells = (size_t)p->chunk_count * (size_t)p->set.microbatches.value;
    return (back ? cells : 0) + (size_t)a.micro * (size_t)p->chunk_count +
           (size_t)a.chunk;
}

static void message_call(Lowerer *w, Body *body, Action a, int index)
{
    bool receive = is_kind(a, ACT_RECV_F, ACT_RECV_B);
    bool take = is_kind(a, ACT_TAKE_F, ACT_TAKE_B);
    bool wait = is_kind(a, ACT_WAIT_F, ACT_WAIT_B);
    bool send = is_kind(a, ACT_SEND_F, ACT_SEND_B);
    bool back = a.kind == ACT_SEND_B || a.kind == ACT_RECV_B ||
                a.kind == ACT_WAIT_B || a.kind == ACT_TAKE_B;
    Call *call = new_call(w, body,
                          wait      ? "pp_wait"
                          : take    ? "pp_take"
                          : receive ? "pp_recv"
                                    : "pp_send");
    call->column = send ? COLUMN_GIVE : COLUMN_TAKE;
    call->action = index;
    push(call, ARG_LINK, link_for(w, a, send || wait, back), 0);
    push_number(call, a.micro);
    if (wait || take) {
        const int *ordinals = wait ? w->sent : w->received;
        push_number(call, ordinals[message_cell(w->p, a, back)]);
        return;
    }
    if (w->p->emulate) {
        double latency = w->p->cost.message[a.chunk + (receive && back)];
        push_at(call, receive ? "taken" : "sent");
        if (!receive || latency == 0)
            return;
        call->function = "pp_recv_late";
        push_number(call, emulated_ns(w->p, latency));
        return;
    }
    BlockKind kind = receive ? (back ? BLOCK_DY : BLOCK_X)
                             : (back ? BLOCK_DX : BLOCK_Y);
    push_at(call, block_name(w, find_block_of(w->p, kind, a.chunk, a.micro)));
}

/* Numbers the messages of each queue: what a WAIT or a TAKE counts up to. */
static int *number_messages(Lowerer *w, ActionKind forth, ActionKind back)
{
    Program *p = w->p;
    const List *list = &p->lists[w->rank];
    size_t cells = (size_t)p->set.microbatches.value * (size_t)p->chunk_count;
    int *count = arena_take(p->arena, sizeof *count * (size_t)p->ranks);
    int *ordinals = arena_take(p->arena, sizeof *ordinals * 2 * cells);
    for (int i = 0; i < list->count; i++) {
        Action a = list->at[i];
        if (!is_kind(a, forth, back))
            continue;
        ordinals[message_cell(p, a, a.kind == back)] = ++count[a.peer];
        if (count[a.peer] > w->out->depth)
            w->out->depth = count[a.peer];
    }
    return ordinals;
}

static void phase_bodies(Lowerer *w)
{
    const List *list = &w->p->lists[w->rank];
    int border[4] = {0, list->steady, list->cooldown, list->count};
    for (int phase = 0; phase < 3; phase++) {
        Body *body = new_body(w, (BodyKind)(BODY_WARMUP + phase), -1);
        for (int i = border[phase]; i < border[phase + 1]; i++) {
            Action a = list->at[i];
            if (a.kind <= ACT_W)
                compute_call(w, body, a, i);
            else if (a.kind < ACT_REDUCE)
                message_call(w, body, a, i);
        }
    }
}

/* ---- the end of a step, and of the run ---- */

static bool is_home(const Lowerer *w, int parameter)
{
    return w->parameter[parameter] != NULL;
}

static void reduce_body(Lowerer *w)
{
    Program *p = w->p;
    Body *body = new_body(w, BODY_REDUCE, -1);
    int last = p->chunk_count - 1;
    if (p->chunks[last].rank == w->rank) {
        Call *call = new_call(w, body, "pp_loss");
        push_at(call, "losses");
        push_number(call, p->set.microbatches.value);
    }
    for (int t = 0; t < p->tie_count; t++) {
        char *uses = text_format(p->arena, "%s", "");
        for (int u = 0; u < p->ties[t].use_count; u++)
            if (w->gradient[p->ties[t].uses[u]])
                uses = text_format(p->arena, "%s%sm + %s", uses,
                                   *uses ? ", " : "",
                                   w->gradient[p->ties[t].uses[u]]);
        if (!*uses)
            continue;
        Call *call = new_call(w, body, "pp_reduce");
        push(call, ARG_LINK,
             text_format(p->arena, "tie_%s",
                         identifier(p, p->parameters[p->ties[t].root].name)),
             0);
        push(call, ARG_PARTS, uses, 0);
    }
}

/* What kernels read is made anew from what the optimizer has changed. */
static void narrow_call(Lowerer *w, Body *body, int parameter)
{
    if (!w->master[parameter])
        return;
    Call *call = new_call(w, body, "pp_narrow");
    push_at(call, w->parameter[parameter]);
    push_at(call, w->master[parameter]);
    push_number(call, (double)parameter_values(&w->p->parameters[parameter]));
}

static const char *master_of(const Lowerer *w, int parameter)
{
    return w->master[parameter] ? w->master[parameter]
                                : w->parameter[parameter];
}

/* A tied parameter counts once in the norm: on the rank of its first use. */
static void update_body(Lowerer *w)
{
    Program *p = w->p;
    Body *body = new_body(w, BODY_UPDATE, -1);
    bool adamw = p->set.optimizer == OPTIMIZER_ADAMW;
    for (int i = 0; p->set.clip.value > 0 && i < p->parameter_count; i++) {
        if (!is_home(w, i) || p->parameters[i].tied >= 0)
            continue;
        Call *call = new_call(w, body, "pp_square");
        push_number(call, i);
        push_at(call, w->gradient[i]);
        push_number(call, (double)parameter_values(&p->parameters[i]));
    }
    for (int i = 0; i < p->parameter_count; i++) {
        if (!is_home(w, i))
            continue;
        Call *call = new_call(w, body, adamw ? "pp_adamw" : "pp_sgd");
        push_at(call, master_of(w, i));
        push_at(call, w->gradient[i]);
        push(call, w->moment[0][i] ? ARG_AT : ARG_NULL, w->moment[0][i], 0);
        if (w->moment[1][i])
            push_at(call, w->moment[1][i]);
        push_number(call, (double)parameter_values(&p->parameters[i]));
        push(call, ARG_LINK, "h", 0);
        push(call, ARG_REAL, NULL, p->parameters[i].decay ? p->set.decay : 0);
        narrow_call(w, body, i);
    }
}

/* A second copy of a tied parameter starts from the first one's name, so all
 * copies are equal. */
static void initialise_body(Lowerer *w)
{
    Program *p = w->p;
    Body *body = new_body(w, BODY_INITIALISE, -1);
    for (int i = 0; i < p->parameter_count; i++) {
        const Parameter *q =
            &p->parameters[p->parameters[i].tied < 0 ? i
                                                     : p->parameters[i].tied];
        if (!is_home(w, i) || (q->deviation == 0 && q->fill == 0))
            continue;
        Call *call = new_call(w, body,
                              q->deviation > 0 ? "pp_normal" : "pp_fill");
        push_at(call, master_of(w, i));
        push_number(call, (double)parameter_values(q));
        if (q->deviation > 0)
            push(call, ARG_TEXT, q->name, 0);
        push(call, ARG_REAL, NULL, q->deviation > 0 ? q->deviation : q->fill);
        narrow_call(w, body, i);
    }
}

/* Every use is saved under its own name, by the rank that has it: the names do
 * not depend on the cut. */
static void save_body(Lowerer *w)
{
    Program *p = w->p;
    Body *body = new_body(w, BODY_SAVE, -1);
    for (int i = 0; i < p->parameter_count; i++) {
        if (!w->gradient[i])
            continue;
        Call *call = new_call(w, body, "pp_save");
        push(call, ARG_TEXT, p->parameters[i].name, 0);
        push_at(call, master_of(w, parameter_home(p, w->rank, i)));
        push_number(call, (double)p->parameters[i].rows);
        push_number(call, (double)p->parameters[i].columns);
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
            sleeping_bodies(w, c);
    w->sent = number_messages(w, ACT_SEND_F, ACT_SEND_B);
    w->received = number_messages(w, ACT_RECV_F, ACT_RECV_B);
    phase_bodies(w);
    const char *shape = text_format(w->p->arena, "[%d]", EMULATED_FLOATS);
    section(w, "messages, all of one length");
    if (has_link(w, 's'))
        constant_named(w, "sent", 0, shape);
    if (has_link(w, 'r'))
        constant_named(w, "taken", EMULATED_FLOATS, shape);
    w->out->block_constants = w->out->constant_count;
}

static void lower_rank(Program *p, int rank, int *slots)
{
    size_t names = (size_t)p->tensor_count + 4 * (size_t)p->parameter_count +
                   (size_t)p->block_count / 2 + 256;
    Lowerer w = {.p = p,
                 .rank = rank,
                 .out = &p->programs[rank],
                 .slots = slots,
                 .taken_size = 256};
    while (w.taken_size < 4 * names)
        w.taken_size *= 2;
    w.taken = arena_take(p->arena, sizeof *w.taken * w.taken_size);
    w.tensor = arena_take(p->arena, sizeof *w.tensor * (size_t)p->tensor_count);
    w.parameter = arena_take(p->arena, sizeof *w.parameter *
                                           (size_t)(p->parameter_count + 1));
    w.gradient = arena_take(p->arena, sizeof *w.gradient *
                                          (size_t)(p->parameter_count + 1));
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        enter(&w, reserved[i]);
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
    w.sent = number_messages(&w, ACT_SEND_F, ACT_SEND_B);
    w.received = number_messages(&w, ACT_RECV_F, ACT_RECV_B);
    phase_bodies(&w);
    reduce_body(&w);
    update_body(&w);
    initialise_body(&w);
    save_body(&w);
}

bool lower(Program *p)
{
    p->programs = arena_take(p->arena, sizeof *p->programs * (size_t)p->ranks);
    size_t places = (BLOCK_TARGETS - BLOCK_KEEP + 1) * (size_t)p->chunk_count *
                    (size_t)p->set.microbatches.value;
    int *slots = arena_take(p->arena, sizeof *slots * places);
    for (int r = 0; r < p->ranks; r++)
        lower_rank(p, r, slots);
    return true;
}
