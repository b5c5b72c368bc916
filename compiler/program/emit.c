/* emit.c: programs -> rankN.c.
 *
 * Reads: programs, set. Writes: files. Guarantees: deterministic
 * to the byte; no date, no path; no function longer than 256 actions, since
 * compilers are superlinear in a function's length.
 *
 * It prints what `lower` decided, for a person who wants to see the timeline in
 * it. */
#include "rank_program.h"
#include "output.h"
#include "escape.h"
#include "show/show.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 256, WIDTH = 100 };
enum { FORMAT = 1 };  // of programs: their first line names it

/* ---- one call ---- */

/* The shortest decimal that reads back as the same float. */
static const char *real_text(Program *p, double number)
{
    const char *text = "";
    for (int digits = 1; digits <= 9; digits++) {
        text = text_format(p->arena, "%.*g", digits, (double)(float)number);
        if (strtof(text, NULL) == (float)number)
            break;
    }
    return text_format(p->arena, "%s%s", text,
                       strpbrk(text, ".e") ? "f" : ".0f");
}

/* An address: the arena or the chunk's block, the offset, floats behind it. */
static const char *address_text(Program *p, const Arg *arg)
{
    char base = arg->kind == ARG_KEEP    ? 'k'
                : arg->kind == ARG_HOLD  ? 'w'
                : arg->kind == ARG_DHOLD ? 'd'
                                         : 'm';
    return arg->number ? text_format(p->arena, "%c + %s + %.0f", base,
                                     arg->name, arg->number)
                       : text_format(p->arena, "%c + %s", base, arg->name);
}

static const char *arg_text(Program *p, const Arg *arg)
{
    switch (arg->kind) {
    case ARG_AT:
    case ARG_KEEP:
    case ARG_HOLD:
    case ARG_DHOLD: return address_text(p, arg);
    case ARG_LOSS: return text_format(p->arena, "m + %s + micro", arg->name);
    case ARG_IDS: return text_format(p->arena, "pp_ids(m + %s)", arg->name);
    case ARG_NUMBER:
        return arg->name ? arg->name
                         : text_format(p->arena, "%.0f", arg->number);
    case ARG_TIMES:
        return text_format(p->arena, "%s * %.0f", arg->name, arg->number);
    case ARG_REAL: return real_text(p, arg->number);
    case ARG_DOUBLE: return text_format(p->arena, "%.6f", arg->number);
    case ARG_TEXT: return c_string(p->arena, arg->name);
    case ARG_LINK:
    case ARG_TIE:
    case ARG_RECORD: return text_format(p->arena, "&%s", arg->name);
    case ARG_NULL: return "NULL";
    default: return arg->name;
    }
}

/* Without what ends a statement. */
static char *call_text(Program *p, const Call *call)
{
    const char *args[MOST_ARGS];
    size_t length = strlen(call->function) + 3;
    for (int i = 0; i < call->args; i++) {
        args[i] = arg_text(p, &call->arg[i]);
        length += strlen(args[i]) + 2;
    }
    char *text = arena_take(p->arena, length), *at = text;
    at += sprintf(at, "%s(", call->function);
    for (int i = 0; i < call->args; i++)
        at += sprintf(at, "%s%s", i ? ", " : "", args[i]);
    strcpy(at, ")");
    return text;
}

/* The first comma with a space behind it, where no string is open; or NULL. */
static const char *next_comma(const char *text)
{
    bool quoted = false;
    for (; *text; text++) {
        if (*text == '"')
            quoted = !quoted;
        else if (quoted && *text == '\\')
            text++;
        else if (!quoted && text[0] == ',' && text[1] == ' ')
            return text;
    }
    return NULL;
}

/* A statement or a signature on its own line, broken after a comma when it is
 * too long; `note` goes behind it. */
static void print_broken(FILE *out, int tab, const char *text, const char *note)
{
    size_t margin = (size_t)tab, indent = margin + strcspn(text, "({") + 1;
    size_t column = margin;
    bool first = true;
    fprintf(out, "%*s", tab, "");
    for (; *text; first = false) {
        const char *comma = next_comma(text);
        size_t piece = comma ? (size_t)(comma - text) + 1 : strlen(text);
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

/* ---- records ---- */

static const char *field_text(Program *p, const Field *field);

static const char *record_text(Program *p, const Record *record)
{
    const char *text = "{";
    for (int i = 0; i < record->field_count; i++)
        text = text_format(p->arena, "%s%s%s", text, i ? ", " : "",
                           field_text(p, &record->fields[i]));
    return text_format(p->arena, "%s}", text);
}

static const char *field_text(Program *p, const Field *field)
{
    return text_format(p->arena, ".%s = %s", field->name,
                       field->call     ? call_text(p, field->call)
                       : field->record ? record_text(p, field->record)
                                       : arg_text(p, &field->value));
}

/* One field a line, their comments in one column. */
static void print_record(Program *p, FILE *out, const char *storage, int tab,
                         const Record *record)
{
    fprintf(out, "%*s%sconst %s %s = {\n", tab, "", storage, record->type,
            record->name);
    for (int i = 0; i < record->field_count; i++) {
        const Field *field = &record->fields[i];
        const char *text = text_format(p->arena, "%s,", field_text(p, field));
        if (field->comment)
            fprintf(out, "%*s%-40s  // %s\n", tab + 4, "", text,
                    c_comment(p->arena, field->comment));
        else
            print_broken(out, tab + 4, text, "");
    }
    fprintf(out, "%*s};\n", tab, "");
}

/* ---- top of the file ---- */

static void print_header(Program *p, FILE *out, int rank)
{
    fprintf(out,
            "/* pipec program %d: rank %d of %d of `%s`, from %s.\n"
            " * Change that file, not this one.\n *\n",
            FORMAT, rank, p->ranks, c_comment(p->arena, p->name),
            c_comment(p->arena, file_name(p)));
    fprintf(out,
            " * Schedule %s: stages %d, chunks per rank %s, micro-batches %d, "
            "rows of each %d.\n",
            c_comment(p->arena, p->set.schedule->name), p->ranks,
            chunks_text(p), p->microbatches, (int)p->set.rows.value);
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

static void print_sizes(const RankProgram *program, Program *p, FILE *out)
{
    fprintf(out, "enum {\n");
    for (int i = 0; i < program->size_count; i++)
        fprintf(out, "    %-26s // %s\n",
                text_format(p->arena, "%s = %zu,", program->sizes[i].name,
                            program->sizes[i].value),
                c_comment(p->arena, program->sizes[i].comment));
    fprintf(out, "};\n\n");
}

static void print_job(Program *p, FILE *out, const RankProgram *program)
{
    if (program->route_count) {
        fprintf(out, "/* From, to: all queues of the job, in one order for all "
                     "ranks. */\nstatic const PpQueue queues[] = {");
        for (int i = 0; i < program->route_count; i++)
            fprintf(out, "%s{%d, %d}", i ? ", " : "", program->routes[i].from,
                    program->routes[i].to);
        fprintf(out, "};\n\n");
    }
    print_record(p, out, "static ", 0, &program->job);
    fputc('\n', out);
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
        const char *comment = c_comment(p->arena, c->comment);
        if (!c->name)
            fprintf(out, "%s// %s\n", i > from ? "\n" : "", comment);
        else
            fprintf(out, "%-62s // %s\n",
                    text_format(p->arena, "static const size_t %s = %zu;",
                                c->name, c->value),
                    comment);
    }
    fputc('\n', out);
}

static void print_links(const RankProgram *program, Program *p, FILE *out)
{
    if (program->link_count)
        fprintf(out, "/* Messages. */\n");
    for (int i = 0; i < program->link_count; i++) {
        const Link *link = &program->links[i];
        fprintf(out,
                "static const PpLink %s = {.peer = %d, .floats = %zu, .name = "
                "%s};\n",
                link->name, link->peer, link->floats,
                c_string(p->arena, link->action));
    }
    if (program->link_count)
        fputc('\n', out);
}

static void print_tie(Program *p, FILE *out, const TieOwners *tie)
{
    fprintf(out,
            "/* %s is used %d times, by these ranks. */\n"
            "static const int %s[] = {",
            c_comment(p->arena, tie->parameter), tie->uses, tie->ranks_name);
    for (int u = 0; u < tie->uses; u++)
        fprintf(out, "%s%d", u ? ", " : "", tie->ranks[u]);
    fprintf(out,
            "};\nstatic const PpTie %s = {\n    .name = %s, .uses = %d, "
            ".ranks = %s, .floats = %zu,\n};\n\n",
            tie->name, c_string(p->arena, tie->parameter), tie->uses,
            tie->ranks_name, tie->floats);
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

/* That of the calls [from, to) of a chunk's function. */
static const char *signature(Program *p, const Body *body, const char *name,
                             int from, int to, bool micro)
{
    const char *text = text_format(p->arena, "static void %s(float *m%s", name,
                                   micro ? ", int micro" : "");
    for (int i = 0; i < MICRO_KINDS; i++)
        if (range_uses(body, from, to, block_words[i]))
            text = text_format(p->arena, "%s, size_t %s", text, block_words[i]);
    return text_format(p->arena, "%s)", text);
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
            fprintf(out, "    // %s\n", c_comment(p->arena, call->comment));
        layer = call->comment;
        print_broken(out, 4, text_format(p->arena, "%s;", call_text(p, call)),
                     call->line ? text_format(p->arena, "  // :%d", call->line)
                                : "");
    }
}

static void print_prototype(Program *p, FILE *out, const Body *body)
{
    print_broken(
        out, 0,
        text_format(p->arena, "%s;",
                    signature(p, body, body->name, 0, body->call_count, true)),
        "");
}

/* Where the piece that begins at `from` ends: before pp_end. */
static int piece_end(const Body *body, int from)
{
    int last = body->call_count - 1;
    return from + PIECE < last ? from + PIECE : last;
}

static void print_pieces(Program *p, FILE *out, const Body *body)
{
    for (int from = 1; from < body->call_count - 1; from += PIECE) {
        int to = piece_end(body, from);
        const char *name = text_format(p->arena, "%s_part%d", body->name,
                                       from / PIECE);
        print_broken(out, 0,
                     signature(p, body, name, from, to,
                               range_uses(body, from, to, "micro")),
                     "");
        fprintf(out, "{\n");
        print_kernels(p, out, body, from, to);
        fprintf(out, "}\n\n");
    }
}

static void print_piece_calls(FILE *out, const Body *body)
{
    for (int from = 1; from < body->call_count - 1; from += PIECE) {
        int to = piece_end(body, from);
        fprintf(out, "    %s_part%d(m", body->name, from / PIECE);
        if (range_uses(body, from, to, "micro"))
            fprintf(out, ", micro");
        for (int i = 0; i < MICRO_KINDS; i++)
            if (range_uses(body, from, to, block_words[i]))
                fprintf(out, ", %s", block_words[i]);
        fprintf(out, ");\n");
    }
}

static bool touches_arena(const Call *calls, int count)
{
    for (int i = 0; i < count; i++)
        if (uses_arena(&calls[i]))
            return true;
    return false;
}

/* Between pp_begin and pp_end, its first call and its last one. */
static void print_chunk(Program *p, FILE *out, const Body *body)
{
    const Chunk *chunk = &p->chunks[body->chunk];
    int last = body->call_count - 1;
    bool pieces = last - 1 > PIECE;
    if (pieces)
        print_pieces(p, out, body);
    if (chunk->layer_count)
        fprintf(out, "/* Chunk %d: %s to %s. */\n", body->chunk,
                p->layers[chunk->first_layer].name,
                p->layers[chunk->first_layer + chunk->layer_count - 1].name);
    else
        fprintf(out, "/* Chunk %d: no layers; it hands on what it gets. */\n",
                body->chunk);
    print_broken(out, 0,
                 signature(p, body, body->name, 0, body->call_count, true), "");
    fprintf(out, "{\n    %s;\n", call_text(p, &body->calls[0]));
    if (!touches_arena(body->calls, body->call_count))
        fprintf(out, "    (void)m;\n");
    if (pieces)
        print_piece_calls(out, body);
    else
        print_kernels(p, out, body, 1, last);
    fprintf(out, "    %s;\n}\n\n", call_text(p, &body->calls[last]));
}

/* ---- phases: one line per action, in the columns take, compute, give ---- */

typedef struct Line {
    const char *column[3];
    const char *comment;
    bool arena;  // is it used
} Line;

/* A line takes what its action needs, computes, and gives: the next take or
 * compute behind a compute or a give begins the next line. */
static bool fits_line(const Line *line, Column column)
{
    if (column == COLUMN_GIVE)
        return true;
    return !line->column[COLUMN_COMPUTE] && !line->column[COLUMN_GIVE];
}

static int gather_lines(Program *p, const Body *body, Line *lines)
{
    int count = 0;
    for (int i = 0; i < body->call_count; i++) {
        const Call *call = &body->calls[i];
        if (!count || !fits_line(&lines[count - 1], call->column))
            lines[count++] = (Line){.arena = false};
        Line *line = &lines[count - 1];
        const char *before = line->column[call->column];
        line->column[call->column] = text_format(
            p->arena, "%s%s%s;", before ? before : "", before ? "  " : "",
            call_text(p, call));
        line->arena |= uses_arena(call);
        if (call->column == COLUMN_COMPUTE)
            line->comment = c_comment(p->arena, call->comment);
    }
    return count;
}

static void print_line(FILE *out, const Line *line, const size_t *width)
{
    int last = line->comment     ? 3
               : line->column[2] ? 2
               : line->column[1] ? 1
                                 : 0;
    fprintf(out, "    ");
    for (int c = 0; c < 3; c++)
        fprintf(out, "%-*s%s", c < last ? (int)width[c] : 0,
                line->column[c] ? line->column[c] : "",
                c < last && c < 2 ? "  " : "");
    if (line->comment)
        fprintf(out, "  // %s", line->comment);
    fputc('\n', out);
}

static void print_lines(FILE *out, const Line *lines, int count)
{
    static const char *const titles[] = {"take", "compute", "give"};
    size_t width[3] = {4, 7, 4};
    bool arena = false;
    for (int i = 0; i < count; i++) {
        arena |= lines[i].arena;
        for (int c = 0; c < 3; c++)
            if (lines[i].column[c] && strlen(lines[i].column[c]) > width[c])
                width[c] = strlen(lines[i].column[c]);
    }
    fprintf(out, "{   // %-*s  %-*s  %-*s  // action @start\n",
            (int)width[0] - 3, titles[0], (int)width[1], titles[1],
            (int)width[2], titles[2]);
    if (!arena)
        fprintf(out, "    (void)m;\n");
    for (int i = 0; i < count; i++)
        print_line(out, &lines[i], width);
    fprintf(out, "}\n\n");
}

static void print_phase(Program *p, FILE *out, const Body *body)
{
    const char *name = body->name;
    Line *lines = arena_take(p->arena,
                             sizeof *lines * (size_t)(body->call_count + 1));
    int count = gather_lines(p, body, lines);
    if (count == 0)
        return;
    for (int from = 0; count > PIECE && from < count; from += PIECE) {
        fprintf(out, "static void %s_%d(float *m)\n", name, from / PIECE);
        print_lines(out, lines + from,
                    count - from < PIECE ? count - from : PIECE);
    }
    fprintf(out, "static void %s(float *m)\n", name);
    if (count <= PIECE) {
        print_lines(out, lines, count);
        return;
    }
    fprintf(out, "{\n");
    for (int from = 0; from < count; from += PIECE)
        fprintf(out, "    %s_%d(m);\n", name, from / PIECE);
    fprintf(out, "}\n\n");
}

/* ---- the rest ---- */

/* The gradients of a tied parameter's uses stand in an array of their own. */
static void print_parts(Program *p, FILE *out, int tab, const Call *call)
{
    const char *parts = "";
    for (int i = 0; i < call->part_count; i++)
        parts = text_format(p->arena, "%s%sm + %s", parts, i ? ", " : "",
                            call->parts[i]);
    fprintf(out, "%*s{\n%*sfloat *const parts[] = {%s};\n", tab, "", tab + 4,
            "", parts);
    print_broken(out, tab + 4, text_format(p->arena, "%s;", call_text(p, call)),
                 "");
    fprintf(out, "%*s}\n", tab, "");
}

static const char *statement_text(Program *p, const Call *call)
{
    static const struct {
        const char *before, *behind;
    } forms[] = {
        [FORM_CALL] = {"", ";"},           [FORM_ARENA] = {"float *m = ", ";"},
        [FORM_WHILE] = {"while (", ") {"}, [FORM_IF] = {"if (", ") {"},
        [FORM_RETURN] = {"return ", ";"},
    };
    return text_format(p->arena, "%s%s%s", forms[call->form].before,
                       call_text(p, call), forms[call->form].behind);
}

static void print_statements(Program *p, FILE *out, const Body *body)
{
    int tab = 4;
    for (int i = 0; i < body->call_count; i++) {
        const Call *call = &body->calls[i];
        if (call->form == FORM_END)
            tab -= 4;
        if (call->form == FORM_END)
            fprintf(out, "%*s}\n", tab, "");
        else if (call->form == FORM_RECORD)
            print_record(p, out, "", tab, call->record);
        else if (call->part_count)
            print_parts(p, out, tab, call);
        else
            print_broken(out, tab, statement_text(p, call),
                         call->comment
                             ? text_format(p->arena, "  // %s",
                                           c_comment(p->arena, call->comment))
                             : "");
        if (call->form == FORM_WHILE || call->form == FORM_IF)
            tab += 4;
    }
}

/* A rank without parameters takes part in the norm, and has no use for it. */
static void print_plain(Program *p, FILE *out, const Body *body)
{
    const Call *last = &body->calls[body->call_count - 1];
    fprintf(out, "static void %s(float *m)\n{\n", body->name);
    print_statements(p, out, body);
    if (!touches_arena(body->calls, body->call_count))
        fprintf(out, "    (void)m;\n");
    if (last->form == FORM_RECORD)
        fprintf(out, "    (void)%s;\n", last->record->name);
    fprintf(out, "}\n\n");
}

/* What a step and a run begin and end with, and main. */
static void print_rest(Program *p, FILE *out, const Body *body)
{
    if (body->kind == BODY_MAIN) {
        fprintf(out, "int main(int argc, char **argv)\n{\n");
        print_statements(p, out, body);
        fprintf(out, "}\n");
    } else if (body->kind >= BODY_REDUCE && body->call_count) {
        print_plain(p, out, body);
    }
}

/* The step comes first, since it is what a reader looks for; then what it is
 * made of. */
void emit_rank(Program *p, FILE *out, int rank)
{
    const RankProgram *program = &p->programs[rank];
    print_header(p, out, rank);
    print_sizes(program, p, out);
    print_job(p, out, program);
    fprintf(out, "/* Offsets in the arena m, in floats. */\n\n");
    print_constants(p, out, program, 0, program->block_constants);
    print_links(program, p, out);
    for (int i = 0; i < program->body_count; i++)
        if (program->bodies[i].kind <= BODY_WEIGHT)
            print_prototype(p, out, &program->bodies[i]);
    fputc('\n', out);
    for (int i = 0; i < program->body_count; i++)
        if (program->bodies[i].kind >= BODY_WARMUP &&
            program->bodies[i].kind <= BODY_COOLDOWN)
            print_phase(p, out, &program->bodies[i]);
    print_constants(p, out, program, program->block_constants,
                    program->constant_count);
    for (int i = 0; i < program->body_count; i++)
        if (program->bodies[i].kind <= BODY_WEIGHT)
            print_chunk(p, out, &program->bodies[i]);
    for (int i = 0; i < program->tie_count; i++)
        print_tie(p, out, &program->ties[i]);
    for (int i = 0; i < program->body_count; i++)
        print_rest(p, out, &program->bodies[i]);
}

/* ---- files ---- */

const char *source_suffix(const Program *p)
{
    return p->target == TARGET_CUDA ? "cu" : "c";
}

bool emit(Program *p, const char *directory)
{
    for (int r = 0; r < p->ranks; r++) {
        Output out;
        if (!open_output(p, &out,
                         text_format(p->arena, "%s/rank%d.%s", directory, r,
                                     source_suffix(p)))) {
            help(p, "choose another folder: -o FOLDER");
            return false;
        }
        emit_rank(p, out.stream, r);
        if (!close_output(&out))
            return false;
    }
    return true;
}
