/* lower_step.c: the phases of a rank program, action by action, and what a step
 * and a run end with.
 *
 * Reads: lists, blocks, ties, set. Writes: links, bodies of the phases and of
 * reduce, update, initialise and save. */
#include "lower.h"

#include <float.h>
#include <string.h>

/* ---- phases ---- */

bool call_uses(const Call *call, const char *parameter)
{
    for (int k = 0; k < call->args; k++) {
        const Arg *arg = &call->arg[k];
        bool inside = arg->kind >= ARG_KEEP && arg->kind <= ARG_DHOLD;
        const char *word = inside ? block_words[arg->kind - ARG_KEEP]
                                  : arg->name;
        if (arg->kind == ARG_LOSS)
            word = "micro";
        if (arg->kind != ARG_TEXT && word && strcmp(word, parameter) == 0)
            return true;
    }
    return false;
}

bool is_address(ArgKind kind)
{
    return kind <= ARG_ARENA || kind == ARG_PARTS;
}

bool uses_arena(const Call *call)
{
    for (int k = 0; k < call->args; k++)
        if (is_address(call->arg[k].kind))
            return true;
    return false;
}

static const Body *chunk_body(const Lowerer *lowerer, BodyKind kind, int chunk)
{
    for (int i = 0; i < lowerer->out->body_count; i++)
        if (lowerer->out->bodies[i].kind == kind &&
            lowerer->out->bodies[i].chunk == chunk)
            return &lowerer->out->bodies[i];
    return NULL;
}

/* When the plan begins an entry of the rank's list: 3 units, or "12.5 ms". */
static const char *planned_start(const Lowerer *lowerer, int index)
{
    const Program *p = lowerer->p;
    double start =
        lowerer->p->nodes[node_at(lowerer->p, lowerer->rank, index)].start;
    return p->cost.unit ? text_format(p->arena, "%.9g", start)
                        : seconds_text(p->arena, start);
}

static void load_call(Lowerer *lowerer, Body *body, Action a, bool targets)
{
    Program *p = lowerer->p;
    bool ids = p->vocabulary > 0;
    int block = find_block_of(p, targets ? BLOCK_TARGETS : BLOCK_X, a.chunk,
                              a.micro);
    Call *call = new_call(lowerer, body,
                          ids ? (targets ? "pp_token_targets" : "pp_tokens")
                              : (targets ? "pp_number_targets" : "pp_numbers"));
    call->column = COLUMN_TAKE;
    push(call, ids ? ARG_IDS : ARG_AT, block_name(lowerer, block), 0);
    push_number(call, a.micro);
}

static void compute_call(Lowerer *lowerer, Body *body, Action a, int index)
{
    Program *p = lowerer->p;
    bool forward = a.kind == ACT_F;
    if (forward && p->chunks[a.chunk].previous < 0 && !p->emulate)
        load_call(lowerer, body, a, false);
    if (forward && p->chunks[a.chunk].targets >= 0 && !p->emulate)
        load_call(lowerer, body, a, true);
    const Body *function = chunk_body(lowerer, body_of(a.kind), a.chunk);
    Call *call = new_call(lowerer, body, function->name);
    call->column = COLUMN_COMPUTE;
    call->comment = text_format(p->arena, "%s @%s", action_text(p, a),
                                planned_start(lowerer, index));
    push(call, ARG_ARENA, "m", 0);
    push_number(call, a.micro);
    for (int i = 0; i < MICRO_KINDS; i++)
        if (function->takes[i])
            push(call, ARG_OFFSET,
                 block_name(lowerer,
                            find_block_of(p, (BlockKind)(BLOCK_KEEP + i),
                                          a.chunk, a.micro)),
                 0);
}

static const char *link_for(Lowerer *lowerer, Action a, bool sending, bool back)
{
    Program *p = lowerer->p;
    RankProgram *out = lowerer->out;
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
        a.peer, p->emulate ? EMULATED_FLOATS : p->tensors[tensor].floats,
        sending};
    return name;
}

/* The adapter that a message goes through: of the sender's machine, or -1. */
static int adapter_of(const Lowerer *lowerer, Action a)
{
    const Program *p = lowerer->p;
    int machine = machine_of(p, lowerer->rank);
    return p->set.adapter_shared && machine != machine_of(p, a.peer) ? machine
                                                                     : -1;
}

/* What the emulation knows of a message: how long it is on its wire, and from
 * there until it arrives. */
static void emulated_costs(Lowerer *lowerer, Action a, int boundary, Call *call)
{
    double wire = lowerer->p->cost.wire[boundary],
           delay = lowerer->p->cost.delay[boundary];
    if (wire <= 0 && delay <= 0)
        return;
    call->function = "pp_send_over";
    push_number(call, emulated_ns(lowerer->p, wire));
    push_number(call, emulated_ns(lowerer->p, delay));
    push_number(call, adapter_of(lowerer, a));
}

static void message_call(Lowerer *lowerer, Body *body, Action a, int index)
{
    const Message *message = message_of(
        lowerer->p, node_at(lowerer->p, lowerer->rank, index));
    bool wait = is_wait(a.kind), take = is_take(a.kind), send = is_send(a.kind),
         back = is_back(a.kind);
    Call *call = new_call(lowerer, body,
                          wait   ? "pp_wait"
                          : take ? "pp_take"
                          : send ? "pp_send"
                                 : "pp_recv");
    call->column = send ? COLUMN_GIVE : COLUMN_TAKE;
    push(call, ARG_LINK, link_for(lowerer, a, send || wait, back), 0);
    push_number(call, a.micro);
    if (wait || take) {
        push_number(call, message->ordinal + 1);
        return;
    }
    if (lowerer->p->emulate) {
        push_at(call, send ? "sent" : "taken");
        if (send)
            emulated_costs(lowerer, a, message->boundary, call);
        return;
    }
    BlockKind kind = send ? (back ? BLOCK_DX : BLOCK_Y)
                          : (back ? BLOCK_DY : BLOCK_X);
    push_at(call, block_name(lowerer, find_block_of(lowerer->p, kind, a.chunk,
                                                    a.micro)));
}

/* The most messages on one of the rank's wires. */
static void find_depth(Lowerer *lowerer)
{
    const Program *p = lowerer->p;
    for (int i = 0; i < p->lists[lowerer->rank].count; i++) {
        int node = node_at(p, lowerer->rank, i);
        if (!is_message(action_of(p, node).kind))
            continue;
        int ordinal = message_of(p, node)->ordinal;
        if (ordinal >= lowerer->out->depth)
            lowerer->out->depth = ordinal + 1;
    }
}

static int later(int a, int b)
{
    return a > b ? a : b;
}

/* Where the norm is waited for in the step, warmup is what comes before. */
void phase_bodies(Lowerer *lowerer)
{
    find_depth(lowerer);
    const List *list = &lowerer->p->lists[lowerer->rank];
    int border[4] = {0, list->steady, list->cooldown, list->count};
    if (lowerer->ahead) {
        border[1] = lowerer->ahead[lowerer->rank];
        border[2] = later(border[1], border[2]);
    }
    for (int phase = 0; phase < 3; phase++) {
        Body *body = new_body(lowerer, (BodyKind)(BODY_WARMUP + phase), -1);
        for (int i = border[phase]; i < border[phase + 1]; i++) {
            Action a = list->at[i];
            if (is_compute(a.kind))
                compute_call(lowerer, body, a, i);
            else if (is_message(a.kind))
                message_call(lowerer, body, a, i);
        }
    }
}

/* ---- the end of a step, and of the run ---- */

static bool is_home(const Lowerer *lowerer, int parameter)
{
    return lowerer->parameter[parameter] != NULL;
}

/* Of the micro-batches that end on this rank. It may have the ends of two copies
 * of the model, whose micro-batches follow each other. */
static void loss_call(Lowerer *lowerer, Body *body)
{
    const Program *p = lowerer->p;
    int first = -1, count = 0;
    for (int c = 0; c < p->chunk_count; c++) {
        const Chunk *chunk = &p->chunks[c];
        if (chunk->rank != lowerer->rank || chunk->next >= 0 ||
            !chunk->micro_count)
            continue;
        first = first < 0 ? chunk->first_micro : first;
        count += chunk->micro_count;
    }
    if (!count)
        return;
    Call *call = new_call(lowerer, body, "pp_loss");
    push(call, ARG_AT, "losses", first);
    push_size(lowerer, call, "microbatches", count);
}

/* Ranks that leave a step out must all know that its norm is no number. */
static bool needs_norm(const Program *p)
{
    return p->set.clip.value > 0 || p->set.skip_nonfinite;
}

/* A tied parameter counts once in the norm: on the rank of its first use. */
static void square_calls(Lowerer *lowerer, Body *body)
{
    const Program *p = lowerer->p;
    for (int i = 0; needs_norm(p) && i < p->parameter_count; i++) {
        if (!is_home(lowerer, i) || p->parameters[i].tied >= 0)
            continue;
        Call *call = new_call(lowerer, body, "pp_square");
        push(call, ARG_TEXT, p->parameters[i].name, 0);
        push_number(call, i);
        push_at(call, lowerer->gradient[i]);
        push_number(call, (double)parameter_values(&p->parameters[i]));
    }
}

static void reduce_call(Lowerer *lowerer, Body *body, const Tie *tie)
{
    Program *p = lowerer->p;
    const char **parts = arena_take(p->arena,
                                    sizeof *parts * (size_t)tie->use_count);
    int count = 0;
    for (int u = 0; u < tie->use_count; u++)
        if (lowerer->gradient[tie->uses[u]])
            parts[count++] = lowerer->gradient[tie->uses[u]];
    if (!count)
        return;
    Call *call = new_call(lowerer, body, "pp_reduce");
    push(call, ARG_TIE, tie_name(lowerer, tie), 0);
    push(call, ARG_PARTS, "parts", 0);
    call->parts = parts;
    call->part_count = count;
}

void reduce_body(Lowerer *lowerer)
{
    Program *p = lowerer->p;
    Body *body = new_body(lowerer, BODY_REDUCE, -1);
    loss_call(lowerer, body);
    for (int t = 0; t < p->tie_count; t++)
        reduce_call(lowerer, body, &p->ties[t]);
    if (lowerer->ahead)  // an update may run twice; its squares are noted once
        square_calls(lowerer, body);
}

/* What kernels read is made anew from what the optimizer has changed. */
static void narrow_call(Lowerer *lowerer, Body *body, int parameter)
{
    if (!lowerer->master[parameter])
        return;
    Call *call = new_call(lowerer, body, "pp_narrow");
    push_at(call, lowerer->parameter[parameter]);
    push_at(call, lowerer->master[parameter]);
    push_number(call,
                (double)parameter_values(&lowerer->p->parameters[parameter]));
}

static const char *master_of(const Lowerer *lowerer, int parameter)
{
    return lowerer->master[parameter] ? lowerer->master[parameter]
                                      : lowerer->parameter[parameter];
}

static Call *result_of(Program *p, const char *function)
{
    Call *call = arena_take(p->arena, sizeof *call);
    call->function = function;
    return call;
}

static void real_field(Program *p, Record *record, const char *name,
                       double value)
{
    push_field(p, record, name, ARG_REAL, NULL, value);
}

static void rate_field(Program *p, Record *record)
{
    const Settings *s = &p->set;
    Field *rate = push_field(p, record, "rate", ARG_NULL, NULL, 0);
    Call *call = result_of(p, "pp_rate");
    push(call, ARG_REAL, NULL, s->rate);
    push_number(call, s->warmup.value);
    push(call, ARG_REAL, NULL, s->cosine.value);
    rate->call = call;
    rate->comment = "highest, steps up to it, share of it at the end";
}

static void scale_field(Program *p, Record *record)
{
    Field *scale = push_field(p, record, "scale", ARG_REAL, NULL, 1);
    if (!needs_norm(p) && p->target == TARGET_CPU)
        scale->call = result_of(p, "pp_scale");
    if (!needs_norm(p))
        return;
    Call *call = result_of(p, p->set.deferred ? "pp_defer" : "pp_clip");
    push(call, ARG_REAL, NULL,
         p->set.clip.value > 0 ? p->set.clip.value : (double)FLT_MAX);
    scale->call = call;
}

/* What all parameters share, in the order of PpAdamw or PpSgd. */
static void optimizer_record(Lowerer *lowerer, Body *body)
{
    Program *p = lowerer->p;
    const Settings *s = &p->set;
    bool adamw = s->optimizer == OPTIMIZER_ADAMW;
    Record *h = new_record(p, adamw ? "PpAdamw" : "PpSgd", "h");
    rate_field(p, h);
    if (adamw) {
        real_field(p, h, "beta1", s->beta1);
        real_field(p, h, "beta2", s->beta2);
        real_field(p, h, "epsilon", s->epsilon);
    } else {
        real_field(p, h, "momentum", s->momentum);
    }
    scale_field(p, h);
    if (adamw)
        push_field(p, h, "step", ARG_NULL, NULL, 0)->call = result_of(
            p, "pp_step");
    new_form(lowerer, body, FORM_RECORD, NULL)->record = h;
}

static void range_call(Lowerer *lowerer, Body *body, const Range *range)
{
    const Program *p = lowerer->p;
    int i = range->first;
    bool adamw = p->set.optimizer == OPTIMIZER_ADAMW;
    Call *call = new_call(lowerer, body, adamw ? "pp_adamw" : "pp_sgd");
    push_at(call, master_of(lowerer, i));
    push_at(call, lowerer->gradient[i]);
    push(call, lowerer->moment[0][i] ? ARG_AT : ARG_NULL, lowerer->moment[0][i],
         0);
    if (lowerer->moment[1][i])
        push_at(call, lowerer->moment[1][i]);
    push(call, ARG_NUMBER, range->name, (double)range->floats);
    push(call, ARG_RECORD, "h", 0);
    push(call, ARG_REAL, NULL, p->parameters[i].decay ? p->set.decay : 0);
}

/* Every rank calls pp_clip or pp_defer, with parameters or without. */
void update_body(Lowerer *lowerer)
{
    Program *p = lowerer->p;
    Body *body = new_body(lowerer, BODY_UPDATE, -1);
    if (!lowerer->ahead)
        square_calls(lowerer, body);
    if (lowerer->range_count || needs_norm(p))
        optimizer_record(lowerer, body);
    for (int i = 0; i < lowerer->range_count; i++)
        range_call(lowerer, body, &lowerer->ranges[i]);
    for (int i = 0; i < p->parameter_count; i++)
        if (is_home(lowerer, i))
            narrow_call(lowerer, body, i);
}

/* A second copy of a tied parameter starts from the first one's name, so all
 * copies are equal. */
void initialise_body(Lowerer *lowerer)
{
    Program *p = lowerer->p;
    Body *body = new_body(lowerer, BODY_INITIALISE, -1);
    for (int i = 0; i < p->parameter_count; i++) {
        const Parameter *q =
            &p->parameters[p->parameters[i].tied < 0 ? i
                                                     : p->parameters[i].tied];
        if (!is_home(lowerer, i) || (q->deviation == 0 && q->fill == 0))
            continue;
        Call *call = new_call(lowerer, body,
                              q->deviation > 0 ? "pp_normal" : "pp_fill");
        push_at(call, master_of(lowerer, i));
        push_number(call, (double)parameter_values(q));
        if (q->deviation > 0)
            push(call, ARG_TEXT, q->name, 0);
        push(call, ARG_REAL, NULL, q->deviation > 0 ? q->deviation : q->fill);
        narrow_call(lowerer, body, i);
    }
}

/* Every use is saved under its own name, by the rank that has it: the names do
 * not depend on the cut. */
void save_body(Lowerer *lowerer)
{
    Program *p = lowerer->p;
    Body *body = new_body(lowerer, BODY_SAVE, -1);
    for (int i = 0; i < p->parameter_count; i++) {
        if (!lowerer->gradient[i] || p->parameters[i].copy)
            continue;
        Call *call = new_call(lowerer, body, "pp_save");
        push(call, ARG_TEXT, p->parameters[i].name, 0);
        push_at(call, master_of(lowerer, parameter_home(p, lowerer->rank, i)));
        push_number(call, (double)p->parameters[i].rows);
        push_number(call, (double)p->parameters[i].columns);
    }
}
