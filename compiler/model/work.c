/* work.c: operations of forward and backward of each layer, by the op table, for
 * `split balanced`.
 *
 * Reads: ops, gradients, tensors. */
#include "compile.h"

void layer_costs(const Program *p, double *cost)
{
    for (int l = 0; l < p->layer_count; l++) {
        const Layer *layer = &p->layers[l];
        cost[l] = 0;
        for (int i = layer->first_op; i < layer->first_op + layer->op_count;
             i++)
            cost[l] += p->ops[i].kind->work(p, &p->ops[i], ENTRY_FORWARD);
        for (int i = p->layer_gradient[l]; i < gradients_end(p, l); i++)
            cost[l] += gradient_work(p, &p->gradients[i]);
    }
}

double gradient_work(const Program *p, const Gradient *g)
{
    const Op *op = &p->ops[g->op];
    return g->entry == ENTRY_SUM ? (double)p->tensors[g->dx].values
                                 : op->kind->work(p, op, g->entry);
}
