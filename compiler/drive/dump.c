/* dump.c: `--dump=PASS`, what a pass has written, as text that a test can
 * compare. */
#include "dump.h"
#include "escape.h"
#include "plan/nodes.h"
#include "program/rank_program.h"

#include <string.h>

/* ---- parse ---- */

static const char *const tree_names[] = {
    "file",   "let",      "layer",   "parameters", "assign", "result",
    "model",  "input",    "entry",   "tied",       "block",  "line",
    "number", "string",   "name",    "negate",     "binary", "call",
    "label",  "argument", "list",    "schedule",   "steps",  "for",
    "by",     "if",       "compare",
};

static void dump_tree(Arena *arena, FILE *out, const Tree *tree, int depth)
{
    fprintf(out, "%*s%s", 2 * depth, "", tree_names[tree->kind]);
    if (tree->text)
        fprintf(out, " %s", shown_text(arena, tree->text));
    if (tree->kind == TREE_NUMBER)
        fprintf(out, " %g%s", tree->number, tree->unit ? " s" : "");
    fprintf(out, "  @%d..%d\n", tree->at.begin, tree->at.end);
    for (const Tree *child = tree->child; child; child = child->next)
        dump_tree(arena, out, child, depth + 1);
}

static void dump_parse(Program *p, FILE *out)
{
    dump_tree(p->arena, out, p->file, 0);
    for (int i = 0; i + 1 < p->source_count; i++)
        if (p->defines[i])
            dump_tree(p->arena, out, p->defines[i], 0);
}

/* ---- check ---- */

static void dump_op(const Program *p, FILE *out, const Op *op)
{
    fprintf(out, "  %s %s:", op->kind->name, op->label);
    for (int i = 0; i < op->kind->tensors; i++)
        fprintf(out, " %s", p->tensors[op->input[i]].name);
    if (op->output >= 0)
        fprintf(out, " -> %s [%ld x %ld]", p->tensors[op->output].name,
                p->tensors[op->output].seq, p->tensors[op->output].width);
    if (op->stats >= 0)
        fprintf(out, ", keeps [%ld x %ld]", p->tensors[op->stats].seq,
                p->tensors[op->stats].width);
    fprintf(out, "%s\n", op->causal ? ", causal" : "");
}

static void dump_check(Program *p, FILE *out)
{
    const Settings *s = &p->set;
    for (int i = 0; i < p->let_count; i++)
        fprintf(out, "let %s = %g\n", p->lets[i].name, p->lets[i].value);
    fprintf(
        out,
        "pipeline stages %g virtual %g microbatches %g rows %g schedule %s\n",
        s->stages.value, s->virtuals.value, s->microbatches.value,
        s->rows.value, s->schedule->name);
    fprintf(
        out,
        "train steps %g clip %g%s warmup %g cosine %g seed %g lr %g decay %g\n",
        s->steps.value, s->clip.value, s->deferred ? " deferred" : "",
        s->warmup.value, s->cosine.value, s->seed.value, s->rate, s->decay);
    for (int l = 0; l < p->layer_count; l++) {
        const Layer *layer = &p->layers[l];
        fprintf(out, "layer %s = %s\n", layer->name, layer->callee);
        for (int i = 0; i < layer->op_count; i++)
            dump_op(p, out, &p->ops[layer->first_op + i]);
    }
    for (int i = 0; i < p->parameter_count; i++) {
        const Parameter *q = &p->parameters[i];
        const char *shape = q->columns ? text_format(p->arena, "%ld x %ld",
                                                     q->rows, q->columns)
                                       : text_format(p->arena, "%ld", q->rows);
        fprintf(out, "parameter %s [%s] normal %g fill %g%s%s\n", q->name,
                shape, q->deviation, q->fill, q->tied >= 0 ? " tied " : "",
                q->tied >= 0 ? p->parameters[q->tied].name : "");
    }
}

/* ---- import, graph, partition ---- */

static void dump_import(Program *p, FILE *out)
{
    const Settings *s = &p->set;
    fprintf(out, "stages %g chunks %g microbatches %d placement %s%s\n",
            s->stages.value,
            s->listed ? s->listed_count : s->stages.value * s->virtuals.value,
            p->microbatches,
            s->placement == PLACE_OWN ? "own" : placement_names[s->placement],
            s->listed ? text_format(p->arena, " %s", placement_text(p)) : "");
}

static const char *tensor_name(const Program *p, int tensor)
{
    return tensor < 0 ? "-" : p->tensors[tensor].name;
}

static void dump_graph(Program *p, FILE *out)
{
    static const char *const entries[] = {"F", "I", "W", "sum"};
    for (int i = 0; i < p->gradient_count; i++) {
        const Gradient *g = &p->gradients[i];
        fprintf(out, "%s %s: dy %s", entries[g->entry], p->ops[g->op].label,
                tensor_name(p, g->dy));
        if (g->dx >= 0)
            fprintf(out, " prev %s -> %s", tensor_name(p, g->prev),
                    tensor_name(p, g->dx));
        fputc('\n', out);
    }
}

static void dump_partition(Program *p, FILE *out)
{
    for (int c = 0; c < p->chunk_count; c++) {
        const Chunk *k = &p->chunks[c];
        fprintf(out,
                "chunk %d on rank %d: layers [%d, %d) %s -> %s, gradient %s -> "
                "%s, parameters %ld\n",
                c, k->rank, k->first_layer, k->first_layer + k->layer_count,
                tensor_name(p, k->x), tensor_name(p, k->y),
                tensor_name(p, k->dy), tensor_name(p, k->dx), k->parameters);
    }
}

/* ---- schedule, communicate, prove ---- */

static void dump_lists(Program *p, FILE *out, const List *lists)
{
    for (int r = 0; r < p->ranks; r++) {
        fprintf(out, "rank %d:", r);
        for (int i = 0; i < lists[r].count; i++)
            fprintf(out, "%s %s",
                    i && i == lists[r].steady     ? " |"
                    : i && i == lists[r].cooldown ? " |"
                                                  : "",
                    action_text(p, lists[r].at[i]));
        fputc('\n', out);
    }
}

static void dump_schedule(Program *p, FILE *out)
{
    dump_lists(p, out, p->order);
}

static void dump_communicate(Program *p, FILE *out)
{
    dump_lists(p, out, p->lists);
}

static void dump_prove(Program *p, FILE *out)
{
    fprintf(out, "makespan %g\n", p->makespan);
    for (int i = 0; i < p->linear_count; i++) {
        int node = p->linear[i];
        fprintf(out, "%g .. %g rank %d %s\n", p->nodes[node].start,
                p->nodes[node].end, place_of(p, node).rank,
                action_text(p, action_of(p, node)));
    }
}

/* ---- memory, lower ---- */

static void dump_memory(Program *p, FILE *out)
{
    static const char *const kinds[] = {
        "parameter", "master", "gradient", "mean", "variance", "losses",
        "scratch",   "tmp",    "undo",     "keep", "hold",     "dhold",
        "x",         "y",      "dy",       "dx",   "targets"};
    dump_lists(p, out, p->lists);
    for (int r = 0; r < p->ranks; r++) {
        fprintf(out, "rank %d: arena %zu floats, alive at most %zu\n", r,
                p->arena_floats[r], p->peak_floats[r]);
        for (int i = 0; i < p->block_count; i++) {
            const Block *b = &p->blocks[i];
            if (b->rank == r)
                fprintf(out, "  %s %d %d: [%zu, %zu) alive %d .. %d\n",
                        kinds[b->kind], b->chunk, b->micro, b->offset,
                        b->offset + b->floats, b->first, b->last);
        }
    }
}

static void dump_lower(Program *p, FILE *out)
{
    for (int r = 0; r < p->ranks; r++) {
        const RankProgram *program = &p->programs[r];
        fprintf(out, "rank %d: depth %d\n", r, program->depth);
        for (int i = 0; i < program->constant_count; i++)
            if (program->constants[i].name)
                fprintf(out, "  %s = %zu\n", program->constants[i].name,
                        program->constants[i].value);
        for (int b = 0; b < program->body_count; b++)
            fprintf(out, "  %s of chunk %d: %d calls\n",
                    body_words[program->bodies[b].kind],
                    program->bodies[b].chunk, program->bodies[b].call_count);
    }
}

static void dump_emit(Program *p, FILE *out)
{
    for (int r = 0; r < p->ranks; r++)
        emit_rank(p, out, r);
}

bool dump(Program *p, const char *pass, FILE *out)
{
    static const struct {
        const char *pass;
        void (*print)(Program *p, FILE *out);
    } dumps[] = {
        {"parse", dump_parse},
        {"check", dump_check},
        {"import", dump_import},
        {"graph", dump_graph},
        {"partition", dump_partition},
        {"schedule", dump_schedule},
        {"communicate", dump_communicate},
        {"prove", dump_prove},
        {"memory", dump_memory},
        {"lower", dump_lower},
        {"emit", dump_emit},
    };
    for (size_t i = 0; i < sizeof dumps / sizeof *dumps; i++) {
        if (strcmp(dumps[i].pass, pass) != 0)
            continue;
        dumps[i].print(p, out);
        return true;
    }
    return false;
}
