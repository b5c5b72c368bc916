/* memory_frame.c: the first part of memory: where a chunk's tensors lie inside
 * its blocks and the scratch.
 *
 * Reads: tensors, gradients, chunks. Writes: frames, within, inside.
 * Guarantees: what a backward reads of its forward is in KEEP or HOLD; what W
 * reads of I is in DHOLD; two tensors that share a byte are never alive at the
 * same call of their action. */
#include "memory.h"

/* Which parts of the chunk's backward read a tensor of its forward, or a
 * gradient. */
static int readers(const Program *p, const Chunk *chunk, int tensor)
{
    int found = 0;
    for (int i = chunk->first_gradient;
         tensor >= 0 && i < chunk->first_gradient + chunk->gradient_count;
         i++) {
        const Gradient *g = &p->gradients[i];
        const Op *op = &p->ops[g->op];
        const char *words = g->entry == ENTRY_SUM ? "dy prev"
                                                  : op->kind->entry[g->entry];
        bool sum = g->entry == ENTRY_SUM;
        if ((!sum && op->input[0] == tensor && mentions(words, "x")) ||
            (!sum && op->input[1] == tensor && mentions(words, "x2")) ||
            (!sum && op->output == tensor && mentions(words, "y")) ||
            (!sum && op->stats == tensor && mentions(words, "stats")) ||
            (g->dy == tensor && mentions(words, "dy")) || g->prev == tensor)
            found |= g->entry == ENTRY_WEIGHT ? READ_WEIGHT : READ_INPUT;
    }
    return found;
}

static int last_forward_use(const Program *p, const Chunk *chunk, int tensor,
                            int from)
{
    int last = from;
    for (int i = from; i < chunk->op_count; i++) {
        const Op *op = &p->ops[chunk->first_op + i];
        if (op->input[0] == tensor || op->input[1] == tensor)
            last = i;
    }
    return last;
}

static int last_gradient_use(const Program *p, const Chunk *chunk, int tensor,
                             int from)
{
    int last = from;
    for (int i = from; i < chunk->gradient_count; i++) {
        const Gradient *g = &p->gradients[chunk->first_gradient + i];
        if (g->dy == tensor || g->prev == tensor)
            last = i;
    }
    return last;
}

/* A tensor that an action makes: it stays in a block, or dies in the scratch. */
static void place_tensor(Program *p, Frame *frame, int tensor, BlockKind block,
                         Item item, Item *items, int *count)
{
    size_t *height = block == BLOCK_KEEP   ? &frame->keep
                     : block == BLOCK_HOLD ? &frame->hold
                                           : &frame->dhold;
    p->within[tensor] = block;
    if (block == BLOCK_SCRATCH) {
        items[(*count)++] = item;
    } else {
        p->inside[tensor] = *height;
        *height += item.floats;
    }
}

static void place_forward_tensor(Program *p, const Chunk *chunk, Frame *frame,
                                 int tensor, int op, Item *items, int *count)
{
    if (tensor < 0 || tensor == chunk->y)
        return;
    int read = readers(p, chunk, tensor);
    BlockKind block = frame->split && (read & READ_WEIGHT) ? BLOCK_HOLD
                      : read                               ? BLOCK_KEEP
                                                           : BLOCK_SCRATCH;
    Item item = {aligned(p->tensors[tensor].floats), 0, op,
                 last_forward_use(p, chunk, tensor, op), tensor};
    place_tensor(p, frame, tensor, block, item, items, count);
}

static void place_gradient(Program *p, const Chunk *chunk, Frame *frame,
                           int index, Item *items, int *count)
{
    int dx = p->gradients[chunk->first_gradient + index].dx;
    if (dx < 0 || dx == chunk->dx)
        return;
    bool held = frame->split && (readers(p, chunk, dx) & READ_WEIGHT);
    Item item = {aligned(p->tensors[dx].floats), 0, index,
                 last_gradient_use(p, chunk, dx, index), dx};
    place_tensor(p, frame, dx, held ? BLOCK_DHOLD : BLOCK_SCRATCH, item, items,
                 count);
}

static void pack_scratch(Program *p, Frame *frame, Item *items, int count)
{
    size_t height = pack(p->arena, items, count);
    for (int i = 0; i < count; i++)
        p->inside[items[i].id] = items[i].offset;
    frame->scratch = height > frame->scratch ? height : frame->scratch;
}

void frame_chunk(Program *p, int c, bool split)
{
    const Chunk *chunk = &p->chunks[c];
    Frame *frame = &p->frames[c];
    Item *items = arena_take(p->arena, sizeof *items *
                                           (size_t)(2 * chunk->op_count +
                                                    chunk->gradient_count + 1));
    int count = 0;
    *frame = (Frame){.split = split};
    for (int i = 0; i < chunk->op_count; i++) {
        const Op *op = &p->ops[chunk->first_op + i];
        place_forward_tensor(p, chunk, frame, op->output, i, items, &count);
        place_forward_tensor(p, chunk, frame, op->stats, i, items, &count);
    }
    pack_scratch(p, frame, items, count);
    count = 0;
    for (int i = 0; i < chunk->gradient_count; i++)
        place_gradient(p, chunk, frame, i, items, &count);
    pack_scratch(p, frame, items, count);
    frame->x = readers(p, chunk, chunk->x);
    frame->y = readers(p, chunk, chunk->y);
    frame->dy = readers(p, chunk, chunk->dy);
    frame->dx = readers(p, chunk, chunk->dx);
}

void take_frames(Program *p)
{
    size_t tensors = (size_t)p->tensor_count;
    p->frames = arena_take(p->arena,
                           sizeof *p->frames * (size_t)p->chunk_count);
    p->inside = arena_take(p->arena, sizeof *p->inside * tensors);
    p->within = arena_take(p->arena, sizeof *p->within * tensors);
    for (size_t i = 0; i < tensors; i++)
        p->within[i] = BLOCK_X;
}
