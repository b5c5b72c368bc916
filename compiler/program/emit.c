/* emit.c: programs -> rankN.c.
 *
 * Reads: programs, lists, times, set. Writes: files. Guarantees: deterministic
 * to the byte; no date, no path; no function longer than 256 actions, since
 * compilers are superlinear in a function's length.
 *
 * It prints what `lower` decided, for a person who wants to see the timeline in
 * it. */
#include "rank_program.h"
#include "show/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PIECE = 256, WIDTH = 100 };
enum { FORMAT = 1 };  // of programs: their first line names it

/* ---- one call ---- */

/* The shortest decimal that reads back as the same float. */
static const char *real_text(Program *p, double number)
{
    char text[32];
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)(float)number);
        if (strtof(text, NULL) == (float)number)
            break;
    }
    return text_format(p->arena, "%s%s", text,
                       strpbrk(text, ".e") ? "f" : ".0f");
}

static const char *arg_text(Program *p, const Arg *arg)
{
    switch (arg->kind) {
    case ARG_AT: return text_format(p->arena, "m + %s", arg->name);
    case ARG_KEEP: return text_format(p->arena, "k + %s", arg->name);
    case ARG_HOLD: return text_format(p->arena, "w + %s", arg->name);
    case ARG_DHOLD: return text_format(p->arena, "d + %s", arg->name);
    case ARG_IDS: return text_format(p->arena, "pp_ids(m + %s)", arg->name);
    case ARG_NUMBER: return text_format(p->arena, "%.0f", arg->number);
    case ARG_REAL: return real_text(p, arg->number);
    case ARG_TEXT: return text_format(p->arena, "\"%s\"", arg->name);
    case ARG_LINK: return text_format(p->arena, "&%s", arg->name);
    case ARG_NULL: return "NULL";
    case ARG_PARTS: return "parts";
    default: return arg->name;
    }
}

static char *call_text(Program *p, const Call *call)
{
    char text[2048];
    int used = snprintf(text, sizeof text, "%s(", call->function);
    for (int i = 0; i < call->args; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%s",
                         i ? ", " : "", arg_text(p, &call->arg[i]));
    return text_format(p->arena, "%s);", text);
}

/* A call on its own line, broken after a comma when it is too long; `note` goes
 * behind it. */
static void print_call(FILE *out, const char *text, const char *note)
{
    size_t indent = strcspn(text, "(") + 5, column = 4;
    fputs("    ", out);
    while (*text) {
        const char *comma = strstr(text, ", ");
        size_t piece = comma ? (size_t)(comma - text) + 1 : strlen(text);
        bool first = column <= indent;
        if (!first && column + 1 + piece + (comma ? 0 : strlen(note)) > WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", (int)piece, text);
        column += piece;
        text += piece + (comma ? 1 : 0);
    }
    fprintf(out, "%s\n", note);
}

/* ---- top of the file ---- */

static void print_header(Program *p, FILE *out, int rank)
{
    fprintf(out,
            "/* pipec program %d: rank %d of %d of `%s`, from %s: "
            "change that file, not this one.\n *\n",
            FORMAT, rank, p->ranks, p->name, file_name(p));
    fprintf(out,
            " * Schedule %s: stages %d, chunks per rank %d, micro-batches %d, "
            "rows of each %d.\n",
            p->set.schedule->name, p->ranks, (int)p->set.virtuals.value,
            p->microbatches, (int)p->set.rows.value);
    fprintf(out,
            " * Planned idle time: %.2f %% of all ranks' time. This rank's "
            "arena: %zu bytes.\n *\n",
            100 * bubble_of(p), 4 * p->arena_floats[rank]);
    if (p->emulate)
        fprintf(out, " * An emulation: kernels sleep as long as the plan says, "
                     "the arena is not used.\n *\n");
    timeline(p, out, &(Timeline){" * ", rank, false, 4, 0});
    fprintf(out, " */\n#include \"pp.h\"\n\n");
}

static const char *data_format(DataKind kind)
{
    static const char *const names[] = {"PP_NO_DATA", "PP_BYTES", "PP_UINT16",
                                        "PP_UINT32", "PP_NUMBERS"};
    return names[kind];
}

static void print_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 32 || c > 126)
            fprintf(out, "\\%03o", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

/* Only the ranks of the first and the last chunk read the data. */
static void print_data(Program *p, FILE *out, int rank)
{
    const Tensor *x = &p->tensors[p->input], *t = &p->tensors[p->targets];
    bool reads = false;
    for (int c = 0; c < p->chunk_count; c++)
        reads |= p->chunks[c].rank == rank &&
                 (p->chunks[c].previous < 0 || p->chunks[c].next < 0);
    DataKind kind = reads && !p->emulate ? p->set.data : DATA_NONE;
    fprintf(out, "    .data = {.format = %s, .path = ", data_format(kind));
    print_string(out, kind == DATA_NONE ? "" : p->set.data_path);
    fprintf(out,
            ",\n             .rows = %d, .seq = %ld, .input_width = %ld, "
            ".target_width = %ld, .vocabulary = %ld},\n",
            (int)p->set.rows.value, x->seq, p->vocabulary ? 0 : x->width,
            p->vocabulary ? 0 : t->width, p->vocabulary);
}

static bool sends_to(const Program *p, int from, int to)
{
    const RankProgram *program = &p->programs[from];
    for (int i = 0; i < program->link_count; i++)
        if (program->links[i].peer == to && program->links[i].name[0] == 's')
            return true;
    return false;
}

/* All queues of the job, in one order for all ranks: communicators are made in
 * it. */
static void print_queues(Program *p, FILE *out)
{
    int count = 0;
    for (int from = 0; from < p->ranks; from++)
        for (int to = 0; to < p->ranks; to++)
            if (sends_to(p, from, to))
                fprintf(out, "%s{%d, %d}", count++ ? ", " : "", from, to);
}

static int count_queues(const Program *p)
{
    int count = 0;
    for (int from = 0; from < p->ranks; from++)
        for (int to = 0; to < p->ranks; to++)
            count += sends_to(p, from, to);
    return count;
}

static void print_cuda_job(Program *p, FILE *out)
{
    size_t message = 0, reduce = 0;
    for (int r = 0; r < p->ranks; r++)
        for (int i = 0; i < p->programs[r].link_count; i++)
            if (p->programs[r].links[i].floats > message)
                message = p->programs[r].links[i].floats;
    for (int t = 0; t < p->tie_count; t++) {
        const Parameter *q = &p->parameters[p->ties[t].root];
        size_t floats = (size_t)q->rows *
                        (size_t)(q->columns ? q->columns : 1) *
                        (size_t)p->ties[t].use_count;
        reduce = floats > reduce ? floats : reduce;
    }
    int queues = count_queues(p);
    fprintf(out,
            "    .queues = %s, .queue_count = %d, .message = %zu, .reduce = "
            "%zu,\n",
            queues ? "queues" : "NULL", queues, message, reduce);
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

static void print_job(Program *p, FILE *out, int rank)
{
    size_t arena = p->emulate ? 2 * EMULATED_FLOATS : p->arena_floats[rank];
    if (p->target == TARGET_CUDA && count_queues(p) > 0) {
        fprintf(out, "static const PpQueue queues[] = {");
        print_queues(p, out);
        fprintf(out, "};\n\n");
    }
    fprintf(out,
            "static const PpJob job = {\n    .name = \"%s\", .schedule = "
            "\"%s\", .rank = %d, .ranks = %d,\n",
            p->name, p->set.schedule->name, rank, p->ranks);
    fprintf(
        out,
        "    .microbatches = %d, .steps = %d, .parameters = %d, .depth = %d,\n",
        p->microbatches, steps_of(p), p->emulate ? 0 : p->parameter_count,
        p->programs[rank].depth);
    fprintf(out,
            "    .actions = %d, .arena = %zu, .seed = %.0f, .bubble = %.6f,\n",
            count_actions(p, rank), 4 * arena, p->set.seed.value, bubble_of(p));
    print_data(p, out, rank);
    if (p->target == TARGET_CUDA)
        print_cuda_job(p, out);
    fprintf(out, "};\n\n");
}

/* The constants [from, to), headings among them, with their comments in one
 * column. */
static void print_constants(Program *p, FILE *out, const RankProgram *program,
                            int from, int to)
{
    for (int i = from; i < to; i++) {
        const Constant *c = &program->constants[i];
        bool empty = !c->name &&
                     (i + 1 == to || !program->constants[i + 1].name);
        if (empty)
            continue;
        if (!c->name)
            fprintf(out, "%s// %s\n", i > from ? "\n" : "", c->comment);
        else
            fprintf(out, "%-62s // %s\n",
                    text_format(p->arena, "static const size_t %s = %zu;",
                                c->name, c->value),
                    c->comment);
    }
    fputc('\n', out);
}

static void print_links(const RankProgram *program, FILE *out)
{
    if (program->link_count)
        fprintf(out, "/* Messages: the other rank, floats, name. */\n");
    for (int i = 0; i < program->link_count; i++) {
        const Link *link = &program->links[i];
        fprintf(out, "static const PpLink %s = {%d, %zu, \"%s\"};\n",
                link->name, link->peer, link->floats, link->action);
    }
    if (program->link_count)
        fputc('\n', out);
}

static int rank_of_layer(const Program *p, int layer)
{
    return p->chunks[chunk_of_layer(p, layer)].rank;
}

static void print_ties(Program *p, FILE *out, int rank)
{
    for (int t = 0; t < p->tie_count && !p->emulate; t++) {
        const Tie *tie = &p->ties[t];
        const Parameter *root = &p->parameters[tie->root];
        bool mine = false;
        for (int u = 0; u < tie->use_count; u++)
            mine |= rank_of_layer(p, p->parameters[tie->uses[u]].layer) == rank;
        if (!mine)
            continue;
        const char *name = identifier(p, root->name);
        fprintf(out,
                "/* %s is used %d times, by these ranks. */\nstatic const int "
                "owners_%s[] = {",
                root->name, tie->use_count, name);
        for (int u = 0; u < tie->use_count; u++)
            fprintf(out, "%s%d", u ? ", " : "",
                    rank_of_layer(p, p->parameters[tie->uses[u]].layer));
        fprintf(
            out,
            "};\nstatic const PpTie tie_%s = {\"%s\", %d, owners_%s, %ld};\n\n",
            name, root->name, tie->use_count, name,
            root->rows * (root->columns ? root->columns : 1));
    }
}

/* ---- functions of a chunk ---- */

static bool range_uses(const Body *body, int from, int to,
                       const char *parameter)
{
    for (int i = from; i < to; i++)
        if (call_uses(&body->calls[i], parameter))
            return true;
    return false;
}

static void print_signature(FILE *out, const Body *body, const char *name,
                            int from, int to, bool micro)
{
    fprintf(out, "static void %s(float *m", name);
    if (micro)
        fprintf(out, ", int micro");
    for (int i = 0; i < MICRO_KINDS; i++)
        if (range_uses(body, from, to, block_words[i]))
            fprintf(out, ", size_t %s", block_words[i]);
    fputc(')', out);
}

static void print_kernels(Program *p, FILE *out, const Body *body, int from,
                          int to)
{
    const char *layer = NULL;
    for (int i = 0; i < 3; i++)
        if (range_uses(body, from, to, block_words[i]))
            fprintf(out, "    float *const %c = m + %s;\n", "kwd"[i],
                    block_words[i]);
    for (int i = from; i < to; i++) {
        const Call *call = &body->calls[i];
        if (!layer || strcmp(layer, call->comment) != 0)
            fprintf(out, "    // %s\n", call->comment);
        layer = call->comment;
        print_call(out, call_text(p, call),
                   call->line ? text_format(p->arena, "  // :%d", call->line)
                              : "");
    }
}

static const char *body_name(Program *p, const Body *body)
{
    return text_format(p->arena, "%s_%d", body_words[body->kind], body->chunk);
}

static void print_prototype(Program *p, FILE *out, const Body *body)
{
    print_signature(out, body, body_name(p, body), 0, body->call_count, true);
    fprintf(out, ";\n");
}

static void print_piece_calls(FILE *out, const Body *body, const char *name)
{
    for (int from = 0; from < body->call_count; from += PIECE) {
        int to = from + PIECE < body->call_count ? from + PIECE
                                                 : body->call_count;
        fprintf(out, "    %s_part%d(m", name, from / PIECE);
        if (range_uses(body, from, to, "micro"))
            fprintf(out, ", micro");
        for (int i = 0; i < MICRO_KINDS; i++)
            if (range_uses(body, from, to, block_words[i]))
                fprintf(out, ", %s", block_words[i]);
        fprintf(out, ");\n");
    }
}

static void print_chunk(Program *p, FILE *out, const Body *body)
{
    const char *name = body_name(p, body);
    const Chunk *chunk = &p->chunks[body->chunk];
    bool pieces = body->call_count > PIECE;
    for (int from = 0; pieces && from < body->call_count; from += PIECE) {
        int to = from + PIECE < body->call_count ? from + PIECE
                                                 : body->call_count;
        print_signature(out, body,
                        text_format(p->arena, "%s_part%d", name, from / PIECE),
                        from, to, range_uses(body, from, to, "micro"));
        fprintf(out, "\n{\n");
        print_kernels(p, out, body, from, to);
        fprintf(out, "}\n\n");
    }
    fprintf(out, "/* Chunk %d: %s to %s. */\n", body->chunk,
            p->layers[chunk->first_layer].name,
            p->layers[chunk->first_layer + chunk->layer_count - 1].name);
    print_signature(out, body, name, 0, body->call_count, true);
    fprintf(out, "\n{\n    pp_begin(\"%d%s\", micro);\n", body->chunk,
            action_names[body->kind]);
    if (body->call_count == 0 || p->emulate)
        fprintf(out, "    (void)m;\n");
    if (pieces)
        print_piece_calls(out, body, name);
    else
        print_kernels(p, out, body, 0, body->call_count);
    fprintf(out, "    pp_end();\n}\n\n");
}

/* ---- phases: one line per action, in the columns take, compute, give ---- */

typedef struct Line {
    const char *column[3];
    int action;
} Line;

static int gather_lines(Program *p, const Body *body, Line *lines)
{
    int count = 0;
    bool open = false;  // may the current line still get a compute or a give
    for (int i = 0; i < body->call_count; i++) {
        const Call *call = &body->calls[i];
        const char *text = call_text(p, call);
        bool fresh =
            !open || lines[count - 1].column[call->column] ||
            (call->column == COLUMN_TAKE &&
             (lines[count - 1].column[1] || lines[count - 1].column[2])) ||
            (call->column == COLUMN_COMPUTE && lines[count - 1].column[2]);
        if (fresh)
            lines[count++] = (Line){{NULL, NULL, NULL}, -1};
        open = true;
        lines[count - 1].column[call->column] = text;
        if (call->column == COLUMN_COMPUTE)
            lines[count - 1].action = call->action;
    }
    return count;
}

static bool touches_arena(const Line *lines, int count)
{
    for (int i = 0; i < count; i++)
        for (int c = 0; c < 3; c++)
            if (lines[i].column[c] && (strstr(lines[i].column[c], "m + ") ||
                                       strstr(lines[i].column[c], "(m,")))
                return true;
    return false;
}

static void print_lines(Program *p, FILE *out, int rank, const Line *lines,
                        int count)
{
    static const char *const titles[] = {"take", "compute", "give"};
    size_t width[3] = {4, 7, 4};
    for (int i = 0; i < count; i++)
        for (int c = 0; c < 3; c++)
            if (lines[i].column[c] && strlen(lines[i].column[c]) > width[c])
                width[c] = strlen(lines[i].column[c]);
    fprintf(out, "{   // %-*s  %-*s  %s\n", (int)width[0] - 3, titles[0],
            (int)width[1], titles[1], titles[2]);
    if (!touches_arena(lines, count))
        fprintf(out, "    (void)m;\n");
    for (int i = 0; i < count; i++) {
        int last = lines[i].action >= 0 ? 3
                   : lines[i].column[2] ? 2
                   : lines[i].column[1] ? 1
                                        : 0;
        fprintf(out, "    ");
        for (int c = 0; c < 3; c++) {
            const char *text = lines[i].column[c] ? lines[i].column[c] : "";
            fprintf(out, "%-*s%s", c < last ? (int)width[c] : 0, text,
                    c < last && c < 2 ? "  " : "");
        }
        if (lines[i].action >= 0)
            fprintf(out, "  // %s",
                    action_text(p, p->lists[rank].at[lines[i].action]));
        fputc('\n', out);
    }
    fprintf(out, "}\n\n");
}

static void print_phase(Program *p, FILE *out, int rank, const Body *body)
{
    const char *name = body_words[body->kind];
    Line *lines = arena_take(p->arena,
                             sizeof *lines * (size_t)(body->call_count + 1));
    int count = gather_lines(p, body, lines);
    if (count == 0)
        return;
    for (int from = 0; count > PIECE && from < count; from += PIECE) {
        fprintf(out, "static void %s_%d(float *m)\n", name, from / PIECE);
        print_lines(p, out, rank, lines + from,
                    count - from < PIECE ? count - from : PIECE);
    }
    fprintf(out, "static void %s(float *m)\n", name);
    if (count <= PIECE) {
        print_lines(p, out, rank, lines, count);
        return;
    }
    fprintf(out, "{\n");
    for (int from = 0; from < count; from += PIECE)
        fprintf(out, "    %s_%d(m);\n", name, from / PIECE);
    fprintf(out, "}\n\n");
}

/* ---- the rest ---- */

static void print_optimizer_state(Program *p, FILE *out)
{
    const Settings *s = &p->set;
    bool adamw = s->optimizer == OPTIMIZER_ADAMW;
    fprintf(out, "    const %s h = {\n        .rate = pp_rate(%s, %.0f, %s),\n",
            adamw ? "PpAdamw" : "PpSgd", real_text(p, s->rate), s->warmup.value,
            real_text(p, s->cosine.value));
    if (adamw)
        fprintf(out, "        .beta1 = %s, .beta2 = %s, .epsilon = %s,\n",
                real_text(p, s->beta1), real_text(p, s->beta2),
                real_text(p, s->epsilon));
    else
        fprintf(out, "        .momentum = %s,\n", real_text(p, s->momentum));
    if (s->clip.value > 0)
        fprintf(out, "        .scale = %s(%s),\n",
                s->deferred ? "pp_defer" : "pp_clip",
                real_text(p, s->clip.value));
    else
        fprintf(out, "        .scale = 1.0f,\n");
    fprintf(out, "%s    };\n", adamw ? "        .step = pp_step(),\n" : "");
}

/* The gradients of a tied parameter's uses stand in an array of their own. */
static void print_reduce(Program *p, FILE *out, const Call *call)
{
    fprintf(out,
            "    {\n        float *const parts[] = {%s};\n        %s\n    }\n",
            call->arg[1].name, call_text(p, call));
}

static void print_plain(Program *p, FILE *out, const Body *body)
{
    bool update = body->kind == BODY_UPDATE;
    if (body->call_count == 0 && !(update && p->set.clip.value > 0))
        return;
    fprintf(out, "static void %s(float *m)\n{\n", body_words[body->kind]);
    int i = 0;
    for (; i < body->call_count &&
           strcmp(body->calls[i].function, "pp_square") == 0;
         i++)
        print_call(out, call_text(p, &body->calls[i]), "");
    if (update)
        print_optimizer_state(p, out);
    for (; i < body->call_count; i++) {
        const Call *call = &body->calls[i];
        if (strcmp(call->function, "pp_reduce") == 0)
            print_reduce(p, out, call);
        else
            print_call(out, call_text(p, call),
                       call->comment
                           ? text_format(p->arena, "  // %s", call->comment)
                           : "");
    }
    if (body->call_count == 0)
        fprintf(out, "    (void)m, (void)h;\n");
    fprintf(out, "}\n\n");
}

static bool is_printed(const Program *p, const Body *body)
{
    return body->call_count > 0 ||
           (body->kind == BODY_UPDATE && p->set.clip.value > 0);
}

static void print_if(Program *p, FILE *out, const RankProgram *program,
                     BodyKind kind, const char *line)
{
    for (int i = 0; i < program->body_count; i++)
        if (program->bodies[i].kind == kind &&
            is_printed(p, &program->bodies[i]))
            fputs(line, out);
}

static void print_zero(Program *p, FILE *out, int rank, const char *indent)
{
    size_t first = 0, floats = 0;
    for (int i = 0; i < p->block_count; i++) {
        const Block *b = &p->blocks[i];
        if (b->rank != rank || b->kind != BLOCK_GRADIENT || p->emulate)
            continue;
        first = floats ? first : b->offset;
        floats = b->offset + b->floats - first;
    }
    if (floats)
        fprintf(out, "%spp_zero(m + %zu, %zu);  // the gradients\n", indent,
                first, floats);
}

static void print_bodies(Program *p, FILE *out, const RankProgram *program,
                         BodyKind first, const char *indent)
{
    for (BodyKind kind = first; kind <= BODY_UPDATE; kind++)
        print_if(p, out, program, kind,
                 text_format(p->arena, "%s%s(m);\n", indent, body_words[kind]));
}

/* The update that a norm beyond the limit, known too late, should have scaled;
 * inside a step its warmup was in vain as well. */
static void print_settle(Program *p, FILE *out, const RankProgram *program,
                         bool inside)
{
    const char *tab = inside ? "        " : "    ";
    fprintf(out, "%sif (pp_settle(%s)) {  // the last update was beyond it\n",
            tab, real_text(p, p->set.clip.value));
    print_if(p, out, program, BODY_UNDO,
             text_format(p->arena, "%s    undo(m);\n", tab));
    print_if(p, out, program, BODY_UPDATE,
             text_format(p->arena, "%s    update(m);\n", tab));
    if (inside) {
        fprintf(out, "%s    pp_restart();\n", tab);
        print_if(p, out, program, BODY_WARMUP,
                 text_format(p->arena, "%s    warmup(m);\n", tab));
    }
    fprintf(out, "%s}\n", tab);
}

/* Clipping a step later: warmup runs before the last update is known to be
 * right, and the gradients that it was made of stay until then. */
static void print_step(Program *p, FILE *out, const RankProgram *program,
                       int rank, const char *indent)
{
    bool deferred = p->set.deferred && !p->emulate;
    if (deferred) {
        print_if(p, out, program, BODY_WARMUP, "        warmup(m);\n");
        print_settle(p, out, program, true);
        print_if(p, out, program, BODY_REMEMBER, "        remember(m);\n");
    }
    print_zero(p, out, rank, indent);
    print_bodies(p, out, program, deferred ? BODY_STEADY : BODY_WARMUP, indent);
}

static void print_main(Program *p, FILE *out, const RankProgram *program,
                       int rank)
{
    bool cuda = p->target == TARGET_CUDA;
    fprintf(out, "int main(int argc, char **argv)\n{\n    float *m = "
                 "pp_start(&job, argc, argv);\n");
    if (p->emulate)
        fprintf(out,
                "    pp_emulate(%.0f);  // what the plan gives a step, ns\n",
                emulated_ns(p, p->makespan));
    print_if(p, out, program, BODY_INITIALISE, "    initialise(m);\n");
    fprintf(out, "    while (pp_next_step()) {\n");
    if (cuda)
        fprintf(out, "        if (pp_capture()) {\n");
    print_step(p, out, program, rank, cuda ? "            " : "        ");
    if (cuda)
        fprintf(out, "        }\n        pp_launch();\n");
    fprintf(out, "    }\n");
    if (p->set.deferred && !p->emulate)
        print_settle(p, out, program, false);
    print_if(p, out, program, BODY_SAVE, "    save(m);\n");
    fprintf(out, "    return pp_finish();\n}\n");
}

/* The step comes first, since it is what a reader looks for; then what it is
 * made of. */
void emit_rank(Program *p, FILE *out, int rank)
{
    const RankProgram *program = &p->programs[rank];
    print_header(p, out, rank);
    print_job(p, out, rank);
    fprintf(out, "/* Offsets in the arena m, in floats. */\n\n");
    print_constants(p, out, program, 0, program->block_constants);
    print_links(program, out);
    for (int i = 0; i < program->body_count; i++)
        if (program->bodies[i].kind <= BODY_WEIGHT)
            print_prototype(p, out, &program->bodies[i]);
    fputc('\n', out);
    for (int i = 0; i < program->body_count; i++)
        if (program->bodies[i].kind >= BODY_WARMUP &&
            program->bodies[i].kind <= BODY_COOLDOWN)
            print_phase(p, out, rank, &program->bodies[i]);
    print_constants(p, out, program, program->block_constants,
                    program->constant_count);
    for (int i = 0; i < program->body_count; i++)
        if (program->bodies[i].kind <= BODY_WEIGHT)
            print_chunk(p, out, &program->bodies[i]);
    print_ties(p, out, rank);
    for (int i = 0; i < program->body_count; i++)
        if (program->bodies[i].kind >= BODY_REDUCE)
            print_plain(p, out, &program->bodies[i]);
    print_main(p, out, program, rank);
}

/* ---- files ---- */

static bool make_folders(Program *p, const char *directory)
{
    char *path = text_copy(p->arena, directory, strlen(directory));
    for (char *c = path + 1;; c++) {
        if (*c && *c != '/')
            continue;
        char kept = *c;
        *c = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            error_plain(p, "cannot make the folder %s: %s", path,
                        strerror(errno));
            help(p, "choose another one: -o FOLDER");
            return false;
        }
        *c = kept;
        if (!kept)
            return true;
    }
}

static bool same_content(const char *one, const char *other)
{
    FILE *a = fopen(one, "r"), *b = fopen(other, "r");
    bool same = a && b;
    for (int c = 0; same && c != EOF;) {
        c = fgetc(a);
        same = c == fgetc(b);
    }
    if (a)
        fclose(a);
    if (b)
        fclose(b);
    return same;
}

static bool write_rank(Program *p, const char *directory, int rank)
{
    char *path = text_format(p->arena, "%s/rank%d.%s", directory, rank,
                             source_suffix(p));
    char *partial = text_format(p->arena, "%s.partial", path);
    FILE *out = fopen(partial, "w");
    if (!out) {
        error_plain(p, "cannot write %s: %s", path, strerror(errno));
        help(p, "choose another folder: -o FOLDER");
        return false;
    }
    emit_rank(p, out, rank);
    bool failed = ferror(out) != 0;
    failed |= fclose(out) != 0;
    if (!failed && same_content(partial, path)) {
        remove(partial);  // an unchanged file keeps its time: no new build
        return true;
    }
    if (!failed && rename(partial, path) == 0)
        return true;
    error_plain(p, "cannot write %s: %s", path, strerror(errno));
    remove(partial);
    return false;
}

const char *source_suffix(const Program *p)
{
    return p->target == TARGET_CUDA ? "cu" : "c";
}

bool emit(Program *p, const char *directory)
{
    if (!make_folders(p, directory))
        return false;
    for (int r = 0; r < p->ranks; r++)
        if (!write_rank(p, directory, r))
            return false;
    return true;
}
