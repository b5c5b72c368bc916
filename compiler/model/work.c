/* work.c: what each op, layer and rank has to do: operations, bytes,
 * parameters, what is kept.
 *
 * Reads: ops, gradients, tensors, chunks; for what is kept also frames.
 * Operations come from the op table. Bytes moved are what the kernel's operands
 * say (operands.c): every tensor that an entry names is read or written once, a
 * gradient of a weight is read and written. Caches and scratch are not
 * counted. */
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
    const Parameter *q = &p->parameters[parameter];
    return (double)q->rows * (double)(q->columns ? q->columns : 1);
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
    if (g->entry == ENTRY_SUM) {
        work[entry] += (double)p->tensors[g->dx].values;
        bytes[entry] += 4 * (floats_of(p, g->dy) + floats_of(p, g->dx) +
                             floats_of(p, g->prev));
    } else {
        work[entry] += op->kind->work(p, op, g->entry);
        bytes[entry] += bytes_of(p, op, op->kind->entry[g->entry], g);
    }
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

/* ---- of layers, for `split balanced`, and of ranks ---- */

void layer_costs(const Program *p, double *cost)
{
    for (int l = 0; l < p->layer_count; l++) {
        double work[3] = {0}, bytes[3] = {0};
        const Layer *layer = &p->layers[l];
        for (int i = layer->first_op; i < layer->first_op + layer->op_count;
             i++)
            work[ENTRY_FORWARD] += p->ops[i].kind->work(p, &p->ops[i],
                                                        ENTRY_FORWARD);
        for (int i = p->layer_gradient[l]; i < gradients_end(p, l); i++)
            add_gradient(p, &p->gradients[i], work, bytes);
        cost[l] = work[0] + work[1] + work[2];
    }
}

/* Of one micro-batch; each of two copies takes every second one. */
static double rank_work(const Program *p, int rank)
{
    double work = 0;
    for (int c = 0; c < p->chunk_count; c++)
        for (int e = 0; e < 3 && p->chunks[c].rank == rank; e++)
            work += p->chunks[c].work[e];
    return work / p->copies;
}

static double slowest_of_sizes(const Program *p, const double *cost,
                               const int *sizes)
{
    double slowest = 0;
    for (int r = 0; r < p->ranks; r++) {
        double load = 0;
        for (int c = 0, layer = 0; c < p->chunk_count; c++) {
            int size = sizes[c % p->copy_chunks];
            for (int i = 0; p->chunks[c].rank == r && i < size; i++)
                load += cost[layer + i];
            layer = (layer + size) % p->layer_count;
        }
        slowest = load > slowest ? load : slowest;
    }
    return slowest / p->copies;
}

static const char *work_text(Program *p, double operations)
{
    static const char *const units[] = {"flop",  "Kflop", "Mflop",
                                        "Gflop", "Tflop", "Pflop"};
    double shown = operations;
    int unit = 0;
    for (; shown >= 1e4 && unit < 5; unit++)
        shown /= 1e3;
    const char *flop = text_format(p->arena, "%.4g %s", shown, units[unit]);
    if (!p->set.has_cluster || p->set.flops.value <= 0)
        return flop;
    return text_format(p->arena, "%s, %.4g ms by the cluster's flops", flop,
                       1e3 * operations / p->set.flops.value);
}

/* Another split is only worth a line when its slowest rank is faster. */
static void better_split(Program *p, double most, double mean, FILE *out)
{
    double *cost = arena_take(p->arena, sizeof *cost * (size_t)p->layer_count);
    int *sizes = arena_take(p->arena, sizeof *sizes * (size_t)p->chunk_count);
    layer_costs(p, cost);
    balanced_sizes(cost, p->layer_count, p->copy_chunks, p->ranks,
                   p->set.placement, sizes);
    double best = slowest_of_sizes(p, cost, sizes),
           bound = p->copies > 1 ? mean
                                 : slowest_rank_bound(cost, p->layer_count,
                                                      p->copy_chunks, p->ranks);
    if (best < most * 0.995) {
        fprintf(out,
                "`split balanced` would bring it to %.2f times the mean: [",
                best / mean);
        for (int c = 0; c < p->copy_chunks; c++)
            fprintf(out, "%s%d", c ? " " : "", sizes[c]);
        fputs("]\n", out);
    } else if (most <= bound * 1.005 || p->layer_count == p->copy_chunks) {
        fputs("no split of whole layers has a faster slowest rank\n", out);
    } else {
        fprintf(out,
                "no split is known that is better; none can bring it below "
                "%.2f times the mean\n",
                bound / mean);
    }
}

void balance_lines(Program *p, FILE *out)
{
    double most = 0, sum = 0, microbatches = p->microbatches;
    int heaviest = 0;
    for (int r = 0; r < p->ranks; r++) {
        double work = rank_work(p, r);
        sum += work;
        if (work > most) {
            most = work;
            heaviest = r;
        }
    }
    double mean = sum / p->ranks;
    if (p->ranks == 1 || mean <= 0)
        return;
    if (most <= mean * (1 + 1e-9)) {
        fputs("every rank has the same work\n", out);
        return;
    }
    fprintf(out,
            "heaviest rank: %d, with %.2f times the mean work; in a step of "
            "%g micro-batches that costs %s\n",
            heaviest, most / mean, microbatches,
            work_text(p, (most - mean) * microbatches));
    better_split(p, most, mean, out);
}
