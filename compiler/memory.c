/* memory.c: tensors -> fixed offsets in one arena per rank; exact peak.
 *
 * Reads: tensors, gradients, chunks, lists, times. Writes: blocks, frames,
 * inside, kept, arena_floats, peak_floats; adds WAITs to lists and proves them
 * again. Guarantees: two blocks that share a byte are never alive at the same
 * entry of their rank's list; a sent buffer is written again only after a WAIT.
 *
 *     arena of a rank   | parameters gradients moments losses scratch | KEEP X Y DX DY TARGETS, packed |
 *
 * A KEEP block holds what one forward of one chunk leaves to its backward.
 * Everything else that a forward or a backward computes dies inside it and lies
 * in the scratch, which all actions share. X, Y, DX and DY are what crosses a
 * chunk's boundary: an x that comes from a chunk on the same rank is that
 * chunk's y, the same block.
 *
 * Each block lives over an interval of its rank's list. A sent one lives until
 * the receiver has taken the next message of the same queue, by the linear
 * order of the proof, or until the step ends: so the order survives, and a rank
 * never waits for the message that it has just sent. */
#include "compile.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 16, MICRO_KINDS = BLOCK_TARGETS - BLOCK_KEEP + 1 };

typedef struct Planner {
    Program *p;
    int microbatches;
    int *entry[ACTION_KIND_COUNT];  // [cell] index in the owner's list, or -1
} Planner;

static size_t aligned(size_t floats)
{
    return (floats + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- inside a chunk: what is kept, what is scratch ---- */

static bool needed_backward(const Program *p, const Chunk *chunk, int tensor)
{
    for (int i = chunk->first_gradient;
         i < chunk->first_gradient + chunk->gradient_count; i++) {
        const Gradient *g = &p->gradients[i];
        const Op *op = &p->ops[g->op];
        if (g->entry == ENTRY_SUM)
            continue;
        const char *words = op->kind->entry[g->entry];
        if ((op->input[0] == tensor && mentions(words, "x")) ||
            (op->input[1] == tensor && mentions(words, "x2")) ||
            (op->output == tensor && mentions(words, "y")) ||
            (op->stats == tensor && mentions(words, "stats")))
            return true;
    }
    return false;
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

static void place_forward_tensor(Program *p, const Chunk *chunk, Frame *frame,
                                 int tensor, int op, Item *items, int *count)
{
    if (tensor < 0 || tensor == chunk->y)
        return;
    if (needed_backward(p, chunk, tensor)) {
        p->kept[tensor] = true;
        p->inside[tensor] = frame->keep;
        frame->keep += aligned(p->tensors[tensor].floats);
    } else {
        items[(*count)++] = (Item){aligned(p->tensors[tensor].floats), 0, op,
                                   last_forward_use(p, chunk, tensor, op),
                                   tensor};
    }
}

static void place_inside(Program *p, int c)
{
    const Chunk *chunk = &p->chunks[c];
    Frame *frame = &p->frames[c];
    Item *items = arena_take(p->arena, sizeof *items *
                                           (size_t)(2 * chunk->op_count +
                                                    chunk->gradient_count + 1));
    int count = 0;
    for (int i = 0; i < chunk->op_count; i++) {
        place_forward_tensor(p, chunk, frame,
                             p->ops[chunk->first_op + i].output, i, items,
                             &count);
        place_forward_tensor(p, chunk, frame, p->ops[chunk->first_op + i].stats,
                             i, items, &count);
    }
    frame->scratch = pack(p->arena, items, count);
    for (int i = 0; i < count; i++)
        p->inside[items[i].id] = items[i].offset;
    count = 0;
    for (int i = 0; i < chunk->gradient_count; i++) {
        int dx = p->gradients[chunk->first_gradient + i].dx;
        if (dx >= 0 && dx != chunk->dx)
            items[count++] = (Item){aligned(p->tensors[dx].floats), 0, i,
                                    last_gradient_use(p, chunk, dx, i), dx};
    }
    size_t backward = pack(p->arena, items, count);
    for (int i = 0; i < count; i++)
        p->inside[items[i].id] = items[i].offset;
    frame->scratch = backward > frame->scratch ? backward : frame->scratch;
    frame->x_backward = needed_backward(p, chunk, chunk->x);
    frame->y_backward = chunk->y >= 0 && needed_backward(p, chunk, chunk->y);
}

/* ---- blocks ---- */

static int *index_of(const Program *p, BlockKind kind, int chunk, int micro)
{
    size_t cells = (size_t)p->set.microbatches.value * (size_t)p->chunk_count;
    return &p->block_index[(size_t)(kind - BLOCK_KEEP) * cells +
                           cell_of(p, chunk, micro)];
}

int find_block_of(const Program *p, BlockKind kind, int chunk, int micro)
{
    return *index_of(p, kind, chunk, micro);
}

static int add_block(Program *p, BlockKind kind, int rank, int chunk, int micro,
                     size_t floats, int first, int last)
{
    p->blocks = array_grow(p->arena, p->blocks, p->block_count,
                           sizeof *p->blocks);
    p->blocks[p->block_count] = (Block){
        kind, rank, chunk, micro, aligned(floats), 0, first, last, 0};
    return p->block_count++;
}

static void add_micro_block(Program *p, BlockKind kind, int chunk, int micro,
                            size_t floats, int first, int last)
{
    if (floats)
        *index_of(p, kind, chunk, micro) = add_block(
            p, kind, p->chunks[chunk].rank, chunk, micro, floats, first, last);
}

static void lives_until(Program *p, int block, int last)
{
    if (p->blocks[block].last < last)
        p->blocks[block].last = last;
}

static int entry_of(const Planner *n, ActionKind kind, int chunk, int micro)
{
    return n->entry[kind][cell_of(n->p, chunk, micro)];
}

static void index_entries(Planner *n)
{
    Program *p = n->p;
    size_t cells = (size_t)n->microbatches * (size_t)p->chunk_count;
    for (int kind = 0; kind < ACT_REDUCE; kind++) {
        n->entry[kind] = arena_take(p->arena, sizeof(int) * cells);
        for (size_t i = 0; i < cells; i++)
            n->entry[kind][i] = -1;
    }
    for (int r = 0; r < p->ranks; r++)
        for (int i = 0; i < p->lists[r].count; i++)
            if (p->lists[r].at[i].kind < ACT_REDUCE)
                n->entry[p->lists[r].at[i].kind][cell_of(
                    p, p->lists[r].at[i].chunk, p->lists[r].at[i].micro)] = i;
}

static int last_use_of_x(const Planner *n, int chunk, int micro)
{
    return entry_of(n, n->p->frames[chunk].x_backward ? ACT_B : ACT_F, chunk,
                    micro);
}

/* A tensor that leaves forward: y is the next chunk's x when that lies on the
 * same rank. */
static void forward_blocks(const Planner *n, int c, int m)
{
    Program *p = n->p;
    const Chunk *chunk = &p->chunks[c];
    int f = entry_of(n, ACT_F, c, m), b = entry_of(n, ACT_B, c, m);
    bool remote = c > 0 && p->chunks[c - 1].rank != chunk->rank;
    add_micro_block(p, BLOCK_KEEP, c, m, p->frames[c].keep, f, b);
    if (c == 0 || remote)
        add_micro_block(p, BLOCK_X, c, m, p->tensors[chunk->x].floats,
                        remote ? entry_of(n, ACT_RECV_F, c, m) : f,
                        last_use_of_x(n, c, m));
    else
        *index_of(p, BLOCK_X, c, m) = find_block_of(p, BLOCK_Y, c - 1, m);
    if (c > 0 && !remote)
        lives_until(p, find_block_of(p, BLOCK_X, c, m), last_use_of_x(n, c, m));
    if (chunk->y >= 0) {
        add_micro_block(p, BLOCK_Y, c, m, p->tensors[chunk->y].floats, f, f);
        if (p->frames[c].y_backward)
            lives_until(p, find_block_of(p, BLOCK_Y, c, m), b);
    }
    if (chunk->targets >= 0)
        add_micro_block(p, BLOCK_TARGETS, c, m,
                        p->tensors[chunk->targets].floats, f, b);
}

/* The gradients, from the last chunk to the first: dy is the next chunk's dx
 * when that lies on the same rank, and dx is dy itself when the chunk passes
 * its gradient on. */
static void backward_blocks(const Planner *n, int c, int m)
{
    Program *p = n->p;
    const Chunk *chunk = &p->chunks[c];
    int b = entry_of(n, ACT_B, c, m), received = entry_of(n, ACT_RECV_B, c, m);
    if (received >= 0)
        add_micro_block(p, BLOCK_DY, c, m, p->tensors[chunk->dy].floats,
                        received, b);
    else if (c + 1 < p->chunk_count)
        *index_of(p, BLOCK_DY, c, m) = find_block_of(p, BLOCK_DX, c + 1, m);
    int dy = find_block_of(p, BLOCK_DY, c, m);
    if (dy >= 0)
        lives_until(p, dy, b);
    if (chunk->dx < 0)
        return;
    if (chunk->dx == chunk->dy)
        *index_of(p, BLOCK_DX, c, m) = dy;
    else
        add_micro_block(p, BLOCK_DX, c, m, p->tensors[chunk->dx].floats, b, b);
}

/* A sent block lives until the receiver has taken it, and the next message of
 * the queue as well; the last one of a queue until the step ends. */
static void sent_blocks(const Planner *n, int rank)
{
    Program *p = n->p;
    const List *list = &p->lists[rank];
    int *before = arena_take(p->arena,
                             sizeof(int) * (size_t)p->ranks);  // block + 1
    for (int i = 0; i < list->count; i++) {
        Action a = list->at[i];
        if (a.kind != ACT_SEND_F && a.kind != ACT_SEND_B)
            continue;
        int block = find_block_of(p, a.kind == ACT_SEND_F ? BLOCK_Y : BLOCK_DX,
                                  a.chunk, a.micro);
        int last = p->times[rank].release[i] - 1;
        lives_until(p, block, last);
        if (before[a.peer])
            lives_until(p, before[a.peer] - 1, last);
        before[a.peer] = block + 1;
    }
    for (int peer = 0; peer < p->ranks; peer++)
        if (before[peer])
            lives_until(p, before[peer] - 1, list->count - 1);
}

/* ---- what lives all along ---- */

int parameter_home(const Program *p, int rank, int parameter)
{
    int root = p->parameters[parameter].tied < 0
                   ? parameter
                   : p->parameters[parameter].tied;
    for (int i = 0; i < p->block_count && p->blocks[i].kind < BLOCK_KEEP; i++) {
        const Block *b = &p->blocks[i];
        if (b->kind != BLOCK_PARAMETER || b->rank != rank)
            continue;
        int other = p->parameters[b->chunk].tied < 0
                        ? b->chunk
                        : p->parameters[b->chunk].tied;
        if (other == root)
            return b->chunk;
    }
    return -1;
}

static bool owns(const Program *p, int rank, const Parameter *q)
{
    for (int c = rank; c < p->chunk_count; c++)
        if (p->chunks[c].rank == rank && q->layer >= p->chunks[c].first_layer &&
            q->layer < p->chunks[c].first_layer + p->chunks[c].layer_count)
            return true;
    return false;
}

static void lasting_blocks(Program *p, int rank, int end)
{
    bool adamw = p->set.optimizer == OPTIMIZER_ADAMW,
         momentum = adamw || p->set.momentum > 0;
    size_t scratch = 0, tmp = 0;
    int first = p->block_count;
    for (int i = 0; i < p->parameter_count; i++)
        if (owns(p, rank, &p->parameters[i]) && parameter_home(p, rank, i) < 0)
            add_block(p, BLOCK_PARAMETER, rank, i, -1,
                      dtype_floats(p, parameter_values(&p->parameters[i])), 0,
                      end);
    int homes = p->block_count;
    for (int i = 0; i < p->parameter_count; i++)
        if (owns(p, rank, &p->parameters[i]))
            add_block(p, BLOCK_GRADIENT, rank, i, -1,
                      parameter_values(&p->parameters[i]), 0, end);
    for (int i = first; i < homes; i++) {
        int parameter = p->blocks[i].chunk;
        size_t floats = parameter_values(&p->parameters[parameter]);
        if (p->set.dtype != DTYPE_F32)
            add_block(p, BLOCK_MASTER, rank, parameter, -1, floats, 0, end);
        if (momentum)
            add_block(p, BLOCK_MEAN, rank, parameter, -1, floats, 0, end);
        if (adamw)
            add_block(p, BLOCK_VARIANCE, rank, parameter, -1, floats, 0, end);
    }
    for (int c = 0; c < p->chunk_count; c++) {
        const Chunk *chunk = &p->chunks[c];
        if (chunk->rank != rank)
            continue;
        scratch = p->frames[c].scratch > scratch ? p->frames[c].scratch
                                                 : scratch;
        for (int i = chunk->first_op; i < chunk->first_op + chunk->op_count;
             i++) {
            size_t own = mentions(p->ops[i].kind->entry[ENTRY_FORWARD], "tmp")
                             ? attention_tmp(p, &p->ops[i])
                             : 0;
            tmp = own > tmp ? own : tmp;
        }
        if (chunk->targets >= 0)
            add_block(p, BLOCK_LOSSES, rank, c, -1,
                      (size_t)p->set.microbatches.value, 0, end);
    }
    add_block(p, BLOCK_SCRATCH, rank, -1, -1, scratch, 0, end);
    add_block(p, BLOCK_TMP, rank, -1, -1, tmp, 0, end);
}

/* ---- the pass ---- */

/* A backward in two parts is proved and timed, which is shown, but no program
 * comes of it. */
static bool backward_is_whole(Program *p)
{
    enum { SHOWN = 16 };  // ranks
    bool whole = true;
    for (int r = 0; r < p->ranks; r++)
        for (int i = 0; i < p->lists[r].count; i++)
            whole &= p->lists[r].at[i].kind != ACT_I &&
                     p->lists[r].at[i].kind != ACT_W;
    if (whole)
        return true;
    error_at(p, p->set.schedule_at,
             "split backward (I, W) cannot be compiled yet");
    fprintf(p->diagnostics,
            "  the order itself is proved: makespan %g, bubble %.2f %%; "
            "peak chunks of each rank:",
            p->makespan, 100 * bubble_of(p));
    for (int r = 0; r < p->ranks && r < SHOWN; r++)
        fprintf(p->diagnostics, " %d", peak_copies(p, r));
    fputc('\n', p->diagnostics);
    if (p->ranks <= SHOWN)
        timeline(p, p->diagnostics, "", -1, false, 1);
    help(p, "write B for each I, and leave each W out");
    return false;
}

bool memory(Program *p)
{
    if (!backward_is_whole(p))
        return false;
    Planner n = {.p = p, .microbatches = (int)p->set.microbatches.value};
    size_t cells = (size_t)n.microbatches * (size_t)p->chunk_count;
    size_t ranks = (size_t)p->ranks;
    p->frames = arena_take(p->arena,
                           sizeof *p->frames * (size_t)p->chunk_count);
    p->inside = arena_take(p->arena,
                           sizeof *p->inside * (size_t)p->tensor_count);
    p->kept = arena_take(p->arena, sizeof *p->kept * (size_t)p->tensor_count);
    p->arena_floats = arena_take(p->arena, sizeof *p->arena_floats * ranks);
    p->peak_floats = arena_take(p->arena, sizeof *p->peak_floats * ranks);
    p->block_index = arena_take(p->arena, sizeof(int) * MICRO_KINDS * cells);
    for (size_t i = 0; i < MICRO_KINDS * cells; i++)
        p->block_index[i] = -1;
    for (int c = 0; c < p->chunk_count; c++)
        place_inside(p, c);
    for (int r = 0; r < p->ranks; r++)
        lasting_blocks(p, r, p->lists[r].count - 1);
    index_entries(&n);
    for (int m = 0; m < n.microbatches; m++) {
        for (int c = 0; c < p->chunk_count; c++)
            forward_blocks(&n, c, m);
        for (int c = p->chunk_count; c-- > 0;)
            backward_blocks(&n, c, m);
    }
    for (int r = 0; r < p->ranks; r++)
        sent_blocks(&n, r);
    place_blocks(p);
    return prove(p) && prove_memory(p);
}
