/* twin.c: a second copy of the model, for pipelines that run it in both
 * directions.
 *
 * Reads and appends: layers, ops, tensors, parameters, gradients. The copies
 * stand behind the originals, in the same order, so an index of the copy is the
 * original's plus a constant. Parameters of the copy are tied to the originals:
 * all that holds for ties, the reduction of their gradients in one order, the
 * equal start, the norm that counts them once, holds for copies. */
#include "compile.h"

static int moved(int index, int by)
{
    return index < 0 ? index : index + by;
}

static void copy_tensors(Program *p)
{
    int count = p->tensor_count;
    for (int i = 0; i < count; i++) {
        Tensor t = p->tensors[i];
        t.layer = moved(t.layer, p->layer_count);
        p->tensors = array_grow(p->arena, p->tensors, p->tensor_count,
                                sizeof *p->tensors);
        p->tensors[p->tensor_count++] = t;
    }
}

static void copy_parameters(Program *p, int ops)
{
    int count = p->parameter_count;
    for (int i = 0; i < count; i++) {
        Parameter q = p->parameters[i];
        q.op += ops;
        q.layer += p->layer_count;
        q.tied = q.tied < 0 ? i : q.tied;
        q.copy = 1;
        p->parameters = array_grow(p->arena, p->parameters, p->parameter_count,
                                   sizeof *p->parameters);
        p->parameters[p->parameter_count++] = q;
    }
}

static void copy_ops(Program *p, int ops, int tensors, int parameters)
{
    for (int i = 0; i < ops; i++) {
        Op op = p->ops[i];
        op.layer += p->layer_count;
        op.input[0] = moved(op.input[0], tensors);
        op.input[1] = moved(op.input[1], tensors);
        op.output = moved(op.output, tensors);
        op.stats = moved(op.stats, tensors);
        op.weight = moved(op.weight, parameters);
        op.bias = moved(op.bias, parameters);
        p->ops = array_grow(p->arena, p->ops, p->op_count, sizeof *p->ops);
        p->ops[p->op_count++] = op;
    }
}

static void copy_layers(Program *p, int ops, int tensors)
{
    int count = p->layer_count;
    Layer *layers = arena_take(p->arena, sizeof *layers * 2 * (size_t)count);
    for (int i = 0; i < count; i++) {
        layers[i] = layers[count + i] = p->layers[i];
        layers[count + i].input += tensors;
        layers[count + i].output = moved(layers[i].output, tensors);
        layers[count + i].first_op += ops;
    }
    p->layers = layers;
}

static void copy_gradients(Program *p, int ops, int tensors)
{
    int count = p->gradient_count, layers = p->layer_count;
    int *first = arena_take(p->arena, sizeof *first * 2 * (size_t)layers);
    for (int i = 0; i < count; i++) {
        Gradient g = p->gradients[i];
        g.op += ops;
        g.dy = moved(g.dy, tensors);
        g.dx = moved(g.dx, tensors);
        g.prev = moved(g.prev, tensors);
        p->gradients = array_grow(p->arena, p->gradients, p->gradient_count,
                                  sizeof *p->gradients);
        p->gradients[p->gradient_count++] = g;
    }
    for (int l = 0; l < layers; l++) {
        first[l] = p->layer_gradient[l];
        first[layers + l] = p->layer_gradient[l] + count;
    }
    p->layer_gradient = first;
}

/* Only outputs of layers are looked up from now on. */
static void copy_gradient_of(Program *p, int tensors)
{
    int *of = arena_take(p->arena, sizeof *of * 2 * (size_t)tensors);
    for (int l = 0; l < p->layer_count; l++) {
        int y = p->layers[l].output;
        if (y < 0)
            continue;
        of[y] = p->gradient_of[y];
        of[tensors + y] = moved(of[y], tensors);
    }
    p->gradient_of = of;
}

void copy_model(Program *p)
{
    int ops = p->op_count, tensors = p->tensor_count,
        parameters = p->parameter_count;
    copy_tensors(p);
    copy_parameters(p, ops);
    copy_ops(p, ops, tensors, parameters);
    copy_gradient_of(p, tensors);
    copy_layers(p, ops, tensors);
    copy_gradients(p, ops, tensors);
}
