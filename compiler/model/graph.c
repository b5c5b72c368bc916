/* graph.c: forward ops -> their gradient, split in I (for the input) and W (for
 * the weights).
 *
 * Reads: ops, tensors. Writes: gradients, gradient_of, layer_gradient; appends
 * tensors. Guarantees: every parameter gets its gradient once per micro-batch;
 * each gradient tensor is written once.
 *
 * Gradients are in single assignment form. Where a tensor has two users, the
 * second one to run writes a new tensor, its own contribution plus what came
 * before:
 *
 *     a -> f, a -> g        dx_2 = I_f(dy_f) + dx_1,  dx_1 = I_g(dy_g)
 *
 * so no buffer is changed while somebody may still read it, and an op that only
 * passes its gradient on (add, position) costs nothing: the same tensor gets a
 * second name. */
#include "compile.h"

#include <string.h>

static int gradient_tensor(Program *p, int of)
{
    Tensor t = p->tensors[of];
    t.name = text_format(p->arena, "d.%s", t.name);
    t.uses = 0;
    p->tensors = array_grow(p->arena, p->tensors, p->tensor_count,
                            sizeof *p->tensors);
    p->tensors[p->tensor_count] = t;
    return p->tensor_count++;
}

static void append(Program *p, Gradient gradient)
{
    p->gradients = array_grow(p->arena, p->gradients, p->gradient_count,
                              sizeof *p->gradients);
    p->gradients[p->gradient_count++] = gradient;
}

static void input_gradient(Program *p, int *gradient_of, int index, int input,
                           int dy)
{
    const Op *op = &p->ops[index];
    int x = op->input[input], before = gradient_of[x];
    bool passes = strcmp(op->kind->entry[ENTRY_INPUT], "=") == 0;
    if (!p->tensors[x].differentiable)
        return;
    if (passes && before < 0) {
        gradient_of[x] = dy;
        return;
    }
    gradient_of[x] = gradient_tensor(p, x);
    append(p, (Gradient){index, passes ? ENTRY_SUM : ENTRY_INPUT, dy,
                         gradient_of[x], before});
}

static void op_gradient(Program *p, int *gradient_of, int index)
{
    const Op *op = &p->ops[index];
    int dy = op->output < 0 ? -1 : gradient_of[op->output];
    if (op->output >= 0 && !p->tensors[op->output].differentiable)
        return;
    for (int i = 0; i < op->kind->tensors && op->kind->entry[ENTRY_INPUT]; i++)
        input_gradient(p, gradient_of, index, i, dy);
    if (op->weight >= 0)
        append(p, (Gradient){index, ENTRY_WEIGHT, dy, -1, -1});
}

bool graph(Program *p)
{
    int forward_tensors = p->tensor_count;
    p->gradient_of = arena_take(p->arena,
                                sizeof(int) * (size_t)forward_tensors);
    p->layer_gradient = arena_take(p->arena,
                                   sizeof(int) * (size_t)p->layer_count);
    for (int i = 0; i < forward_tensors; i++)
        p->gradient_of[i] = -1;
    for (int l = p->layer_count; l-- > 0;) {
        const Layer *layer = &p->layers[l];
        p->layer_gradient[l] = p->gradient_count;
        for (int i = layer->op_count; i-- > 0;)
            op_gradient(p, p->gradient_of, layer->first_op + i);
    }
    return true;
}
