/* op_table.c: `inspect --ops`: what each op and layer has to do: operations,
 * bytes, parameters, what is kept.
 *
 * Reads: ops, gradients, tensors, chunks; for what is kept also frames.
 * Operations come from the op table. Bytes moved are what the kernel's operands
 * say (operands.c): every tensor that an entry names is read or written once, a
 * gradient of a weight is read and written. Caches and scratch are not
 * counted. */
#include "show.h"

#include "read/operands.h"

#include <string.h>

/* ---- of one op ---- */

typedef struct Work {
    double operations[3], bytes[3];  // of F, I, W
    long parameters;
    double kept;  // bytes of one micro-batch, forward to backward
} Work;

static double floats_of(const Program *p, int tensor)
{
    return tensor < 0 ? 0 : (double)p->tensors[tensor].floats;
}

static double values_of(const Program *p, int parameter)
{
    if (parameter < 0)
        return 0;
    return (double)parameter_values(&p->parameters[parameter]);
}

/* Bytes that the operands of one call stand for. */
static double bytes_of(const Program *p, const Op *op, const char *words,
                       const Gradient *g)
{
    double element = (double)dtype_floats(p, 2) / 2, floats = 0;
    for (const Operand *o; (o = next_operand(&words));) {
        int index = o->index ? o->index(p, op, g) : -1;
        if (o->kind == OPERAND_TENSOR || o->kind == OPERAND_TARGETS)
            floats += o->moved * floats_of(p, index);
        else if (o->kind == OPERAND_PARAMETER)
            floats += o->moved * element * values_of(p, index);
        else if (o->kind == OPERAND_GRADIENT)
            floats += o->moved * values_of(p, index);
    }
    return 4 * floats;
}

static bool is_kept(const Program *p, int tensor)
{
    if (tensor < 0 || p->within[tensor] == BLOCK_KEEP ||
        p->within[tensor] == BLOCK_HOLD)
        return tensor >= 0;
    for (int c = 0; c < p->chunk_count; c++)
        if ((p->chunks[c].y == tensor && p->frames[c].y) ||
            (p->chunks[c].x == tensor && p->frames[c].x))
            return true;
    return false;
}

static void add_gradient(const Program *p, const Gradient *g, double *work,
                         double *bytes)
{
    const Op *op = &p->ops[g->op];
    Entry entry = g->entry == ENTRY_SUM ? ENTRY_INPUT : g->entry;
    work[entry] += gradient_work(p, g);
    bytes[entry] += g->entry == ENTRY_SUM
                        ? 4 * (floats_of(p, g->dy) + floats_of(p, g->dx) +
                               floats_of(p, g->prev))
                        : bytes_of(p, op, op->kind->entry[g->entry], g);
}

static Work work_of(const Program *p, int index)
{
    const Op *op = &p->ops[index];
    Work w = {.operations = {op->kind->work(p, op, ENTRY_FORWARD)}};
    w.bytes[ENTRY_FORWARD] = bytes_of(p, op, op->kind->entry[ENTRY_FORWARD],
                                      NULL);
    for (int i = p->layer_gradient[op->layer]; i < gradients_end(p, op->layer);
         i++)
        if (p->gradients[i].op == index)
            add_gradient(p, &p->gradients[i], w.operations, w.bytes);
    w.parameters = (long)(values_of(p, op->weight) + values_of(p, op->bias));
    if (is_kept(p, op->output))
        w.kept += 4 * floats_of(p, op->output);
    if (is_kept(p, op->stats))
        w.kept += 4 * floats_of(p, op->stats);
    return w;
}

/* ---- the table ---- */

static bool alike(const Program *p, int a, int b)
{
    const Layer *x = &p->layers[a], *y = &p->layers[b];
    if (strcmp(x->callee, y->callee) != 0 || x->op_count != y->op_count)
        return false;
    for (int i = 0; i < x->op_count; i++) {
        Work u = work_of(p, x->first_op + i), w = work_of(p, y->first_op + i);
        if (memcmp(&u, &w, sizeof u) != 0)
            return false;
    }
    return true;
}

static void work_line(const char *label, const char *kind, const Work *w,
                      FILE *out)
{
    fprintf(out,
            "  %-24s %-14s %12.3f %11.3f %11.3f %13.0f %13.0f %13.0f %11ld "
            "%13.0f\n",
            label, kind, w->operations[0] / 1e6, w->operations[1] / 1e6,
            w->operations[2] / 1e6, w->bytes[0], w->bytes[1], w->bytes[2],
            w->parameters, w->kept);
}

static void add_work(Work *sum, const Work *w)
{
    for (int e = 0; e < 3; e++) {
        sum->operations[e] += w->operations[e];
        sum->bytes[e] += w->bytes[e];
    }
    sum->parameters += w->parameters;
    sum->kept += w->kept;
}

static Work layer_lines(Program *p, int layer, int same, FILE *out)
{
    const Layer *l = &p->layers[layer];
    Work sum = {0};
    if (same > 1)
        fprintf(out, "%s .. %s, %d alike, each:\n", l->name,
                p->layers[layer + same - 1].name, same);
    else
        fprintf(out, "%s:\n", l->name);
    for (int i = l->first_op; i < l->first_op + l->op_count; i++) {
        Work w = work_of(p, i);
        work_line(p->ops[i].label, p->ops[i].kind->name, &w, out);
        add_work(&sum, &w);
    }
    if (l->op_count > 1)
        work_line("", "together", &sum, out);
    return sum;
}

void op_table(Program *p, FILE *out)
{
    Work all = {0};
    fprintf(out,
            "of one micro-batch; a backward is I and W\n"
            "  %-24s %-14s %12s %11s %11s %13s %13s %13s %11s %13s\n",
            "", "op", "F Mflop", "I Mflop", "W Mflop", "F bytes moved",
            "I bytes moved", "W bytes moved", "parameters", "bytes kept");
    for (int l = 0; l < p->layer_count;) {
        int same = 1;
        while (l + same < p->layer_count && alike(p, l, l + same))
            same++;
        Work sum = layer_lines(p, l, same, out);
        for (int i = 0; i < same; i++)
            add_work(&all, &sum);
        l += same;
    }
    work_line("", "the model", &all, out);
    fputs("bytes kept: outputs and statistics that the op's own backward or a "
          "later one reads; shared parameters count at every use\n",
          out);
}
