/* lower_job.c: what a rank program knows of the whole job, and the order in
 * which it runs.
 *
 * Reads: set, ties, lists, links and bodies of all ranks. Writes: job, routes,
 * ties, body of main. */
#include "lower.h"
#include "hash.h"

#include <string.h>

/* ---- records ---- */

Record *new_record(Program *p, const char *type, const char *name)
{
    Record *record = arena_take(p->arena, sizeof *record);
    *record = (Record){.type = type, .name = name};
    return record;
}

Field *push_field(Program *p, Record *record, const char *name, ArgKind kind,
                  const char *text, double number)
{
    record->fields = array_grow(p->arena, record->fields, record->field_count,
                                sizeof *record->fields);
    Field *field = &record->fields[record->field_count++];
    *field = (Field){.name = name, .value = {kind, text, number}};
    return field;
}

static void number_field(Program *p, Record *record, const char *name,
                         double number, const char *comment)
{
    push_field(p, record, name, ARG_NUMBER, NULL, number)->comment = comment;
}

/* ---- ties ---- */

static int rank_of_use(const Program *p, int parameter)
{
    return p->chunks[chunk_of_layer(p, p->parameters[parameter].layer)].rank;
}

const char *tie_name(const Lowerer *lowerer, const Tie *tie)
{
    Program *p = lowerer->p;
    return text_format(p->arena, "tie_%s",
                       identifier(p, p->parameters[tie->root].name));
}

static bool is_owner(const Program *p, const Tie *tie, int rank)
{
    for (int u = 0; u < tie->use_count; u++)
        if (rank_of_use(p, tie->uses[u]) == rank)
            return true;
    return false;
}

void tie_owners(Lowerer *lowerer)
{
    Program *p = lowerer->p;
    RankProgram *out = lowerer->out;
    for (int t = 0; t < p->tie_count; t++) {
        const Tie *tie = &p->ties[t];
        const Parameter *root = &p->parameters[tie->root];
        if (!is_owner(p, tie, lowerer->rank))
            continue;
        int *ranks = arena_take(p->arena,
                                sizeof *ranks * (size_t)tie->use_count);
        for (int u = 0; u < tie->use_count; u++)
            ranks[u] = rank_of_use(p, tie->uses[u]);
        out->ties = array_grow(p->arena, out->ties, out->tie_count,
                               sizeof *out->ties);
        out->ties[out->tie_count++] = (TieOwners){
            .name = tie_name(lowerer, tie),
            .ranks_name = text_format(p->arena, "owners_%s",
                                      identifier(p, root->name)),
            .parameter = root->name,
            .ranks = ranks,
            .uses = tie->use_count,
            .floats = parameter_values(root)};
    }
}

/* ---- the job's record ---- */

static bool sends_to(const RankProgram *program, int peer)
{
    for (int i = 0; i < program->link_count; i++)
        if (program->links[i].peer == peer && program->links[i].sends)
            return true;
    return false;
}

/* All queues of the job, in one order for all ranks: communicators are made in
 * it. */
static Route *routes_of_job(const Program *p, int *count)
{
    Route *routes = NULL;
    for (int from = 0; from < p->ranks; from++)
        for (int to = 0; to < p->ranks; to++) {
            if (!sends_to(&p->programs[from], to))
                continue;
            routes = array_grow(p->arena, routes, *count, sizeof *routes);
            routes[(*count)++] = (Route){from, to};
        }
    return routes;
}

static size_t longest_message(const Program *p)
{
    size_t longest = 0;
    for (int r = 0; r < p->ranks; r++)
        for (int i = 0; i < p->programs[r].link_count; i++)
            if (p->programs[r].links[i].floats > longest)
                longest = p->programs[r].links[i].floats;
    return longest;
}

/* A rank gathers all uses of a tied parameter before it adds them. */
static size_t reduce_scratch(const Program *p)
{
    size_t most = 0;
    for (int t = 0; t < p->tie_count; t++) {
        size_t floats = parameter_values(&p->parameters[p->ties[t].root]) *
                        (size_t)p->ties[t].use_count;
        most = floats > most ? floats : most;
    }
    return most;
}

/* Computes, messages and waits of one step. */
static int count_actions(const Program *p, int rank)
{
    int count = 0;
    for (int i = 0; i < p->lists[rank].count; i++)
        count += p->lists[rank].at[i].kind < ACT_REDUCE;
    return count;
}

/* Nothing is learned in an emulation: a few steps show all. */
static int steps_of(const Program *p)
{
    enum { EMULATED_STEPS = 5 };
    int steps = (int)p->set.steps.value;
    return p->emulate && steps > EMULATED_STEPS ? EMULATED_STEPS : steps;
}

/* Only the ranks of the first and the last chunk read the data. */
static bool reads_data(const Program *p, int rank)
{
    bool reads = false;
    for (int c = 0; c < p->chunk_count; c++)
        reads |= p->chunks[c].rank == rank &&
                 (p->chunks[c].previous < 0 || p->chunks[c].next < 0);
    return reads && !p->emulate;
}

static const Record *data_record(Program *p, int rank)
{
    static const char *const formats[] = {"PP_NO_DATA", "PP_BYTES", "PP_UINT16",
                                          "PP_UINT32", "PP_NUMBERS"};
    const Tensor *x = &p->tensors[p->input], *t = &p->tensors[p->targets];
    DataKind kind = reads_data(p, rank) ? p->set.data : DATA_NONE;
    bool ids = p->vocabulary > 0;
    Record *data = new_record(p, "PpData", "data");
    push_field(p, data, "format", ARG_NAME, formats[kind], 0);
    push_field(p, data, "path", ARG_TEXT,
               kind == DATA_NONE ? "" : p->set.data_path, 0);
    number_field(p, data, "rows", p->set.rows.value, NULL);
    number_field(p, data, "seq", (double)x->seq, NULL);
    number_field(p, data, "input_width", ids ? 0 : (double)x->width, NULL);
    number_field(p, data, "target_width", ids ? 0 : (double)t->width, NULL);
    number_field(p, data, "vocabulary", (double)p->vocabulary, NULL);
    return data;
}

static void cuda_fields(Program *p, Record *job, int queues)
{
    push_field(p, job, "queues", queues ? ARG_NAME : ARG_NULL, "queues", 0);
    number_field(p, job, "queue_count", queues, NULL);
    number_field(p, job, "message", (double)longest_message(p),
                 "floats of the longest one");
    number_field(p, job, "reduce", (double)reduce_scratch(p),
                 "floats of scratch");
}

/* In the order of PpJob. */
static void job_record(Program *p, int rank)
{
    RankProgram *out = &p->programs[rank];
    Record *job = &out->job;
    size_t arena = p->emulate ? 2 * EMULATED_FLOATS : p->arena_floats[rank];
    *job = (Record){.type = "PpJob", .name = "job"};
    push_field(p, job, "name", ARG_TEXT, p->name, 0);
    push_field(p, job, "schedule", ARG_TEXT, p->set.schedule->name, 0);
    number_field(p, job, "rank", rank, NULL);
    number_field(p, job, "ranks", p->ranks, NULL);
    push_field(p, job, "microbatches", ARG_NUMBER, "microbatches",
               p->microbatches);
    number_field(p, job, "steps", steps_of(p), "--steps replaces it");
    number_field(p, job, "parameters", p->emulate ? 0 : p->parameter_count,
                 "of the whole model");
    number_field(p, job, "depth", out->depth,
                 "most messages on one queue in a step");
    number_field(p, job, "actions", count_actions(p, rank),
                 "computes, messages and waits of a step");
    number_field(p, job, "arena", 4 * (double)arena, "bytes");
    number_field(p, job, "seed", p->set.seed.value, "--seed replaces it");
    push_field(p, job, "bubble", ARG_DOUBLE, NULL, bubble_of(p))->comment =
        "planned idle share of the step";
    push_field(p, job, "data", ARG_NULL, NULL, 0)->record = data_record(p,
                                                                        rank);
    bool cuda = p->target == TARGET_CUDA;  // where C++ wants every field
    if (cuda)
        cuda_fields(p, job, out->route_count);
    if (!p->emulate)
        push_field(p, job, "model", ARG_TEXT, hash_model(p), 0)->comment =
            "of its names, shapes, ops and optimizer";
    if (cuda || p->set.skip_nonfinite)
        number_field(p, job, "skip", p->set.skip_nonfinite,
                     "a step whose loss or norm is no number");
}

void job_records(Program *p)
{
    int count = 0;
    Route *routes = p->target == TARGET_CUDA ? routes_of_job(p, &count) : NULL;
    for (int r = 0; r < p->ranks; r++) {
        p->programs[r].routes = routes;
        p->programs[r].route_count = count;
        job_record(p, r);
    }
}

/* ---- main ---- */

static void body_call(Lowerer *lowerer, Body *body, BodyKind kind)
{
    if (has_calls(lowerer, kind))
        push(new_call(lowerer, body, body_words[kind]), ARG_ARENA, "m", 0);
}

static void zero_call(Lowerer *lowerer, Body *body)
{
    if (!lowerer->first_gradient)
        return;
    Call *call = new_call(lowerer, body, "pp_zero");
    push_at(call, lowerer->first_gradient);
    push(call, ARG_NUMBER, lowerer->gradients,
         (double)lowerer->gradient_floats);
}

/* The update that a norm beyond the limit, known too late, should have scaled;
 * inside a step its warmup was in vain as well. */
static void settle_calls(Lowerer *lowerer, Body *body, bool inside)
{
    Call *call = new_form(lowerer, body, FORM_IF, "pp_settle");
    push(call, ARG_REAL, NULL, lowerer->p->set.clip.value);
    call->comment = "the last update was beyond it";
    body_call(lowerer, body, BODY_UNDO);
    body_call(lowerer, body, BODY_UPDATE);
    if (inside) {
        new_call(lowerer, body, "pp_restart");
        body_call(lowerer, body, BODY_WARMUP);
    }
    new_form(lowerer, body, FORM_END, NULL);
}

/* Clipping a step later: warmup runs before the last update is known to be
 * right, and the gradients that it was made of stay until then. */
static void step_calls(Lowerer *lowerer, Body *body)
{
    if (lowerer->ahead) {
        body_call(lowerer, body, BODY_WARMUP);
        settle_calls(lowerer, body, true);
        body_call(lowerer, body, BODY_REMEMBER);
    }
    zero_call(lowerer, body);
    for (int kind = lowerer->ahead ? BODY_STEADY : BODY_WARMUP;
         kind <= BODY_UPDATE; kind++)
        body_call(lowerer, body, (BodyKind)kind);
}

static void loop_calls(Lowerer *lowerer, Body *body)
{
    bool cuda = lowerer->p->target == TARGET_CUDA;
    new_form(lowerer, body, FORM_WHILE, "pp_next_step");
    if (cuda)
        new_form(lowerer, body, FORM_IF, "pp_capture");
    step_calls(lowerer, body);
    if (cuda) {
        new_form(lowerer, body, FORM_END, NULL);
        new_call(lowerer, body, "pp_launch");
    }
    new_form(lowerer, body, FORM_END, NULL);
}

void main_body(Lowerer *lowerer)
{
    const Program *p = lowerer->p;
    Body *body = new_body(lowerer, BODY_MAIN, -1);
    Call *start = new_form(lowerer, body, FORM_ARENA, "pp_start");
    push(start, ARG_RECORD, "job", 0);
    push(start, ARG_NAME, "argc", 0);
    push(start, ARG_NAME, "argv", 0);
    if (p->emulate) {
        Call *emulate = new_call(lowerer, body, "pp_emulate");
        push_number(emulate, emulated_ns(p, p->makespan));
        emulate->comment = "what the plan gives a step, ns";
    }
    body_call(lowerer, body, BODY_INITIALISE);
    loop_calls(lowerer, body);
    if (lowerer->ahead)
        settle_calls(lowerer, body, false);
    body_call(lowerer, body, BODY_SAVE);
    new_form(lowerer, body, FORM_RETURN, "pp_finish");
}
