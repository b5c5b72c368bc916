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
 * order of the proof: so the order survives, and a rank never waits for the
 * message that it has just sent. */
#include "compile.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 16, MICRO_KINDS = BLOCK_TARGETS - BLOCK_KEEP + 1 };

typedef struct Item {  // something to place: alive over [first, last]
    size_t floats, offset;
    int first, last;
    int id;
} Item;

typedef struct Planner {
    Program *p;
    int microbatches;
    int *entry[ACTION_KIND_COUNT];  // [cell] index in the owner's list, or -1
} Planner;

static size_t aligned(size_t floats)
{
    return (floats + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- packing ---- */

static int larger_then_earlier(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    if (x->floats != y->floats)
        return x->floats > y->floats ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

/* Greedy by size: each item goes to the lowest place that is free over its
 * whole life. Items of one size that come in order of birth use no more places
 * than are alive at once. `placed` is kept sorted by offset. Returns the
 * height. */
static size_t pack(Arena *arena, Item *items, int count)
{
    Item **placed = arena_take(arena, sizeof *placed * (size_t)(count + 1));
    size_t height = 0;
    qsort(items, (size_t)count, sizeof *items, larger_then_earlier);
    for (int i = 0; i < count; i++) {
        Item *item = &items[i];
        size_t offset = 0;
        for (int k = 0; k < i; k++) {
            const Item *other = placed[k];
            if (other->last < item->first || other->first > item->last)
                continue;
            if (other->offset >= offset + item->floats)
                break;
            if (other->offset + other->floats > offset)
                offset = other->offset + other->floats;
        }
        item->offset = offset;
        int k = i;
        for (; k > 0 && placed[k - 1]->offset > offset; k--)
            placed[k] = placed[k - 1];
        placed[k] = item;
        height = offset + item->floats > height ? offset + item->floats
                                                : height;
    }
    return height;
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

static size_t cell(const Program *p, int chunk, int micro)
{
    return (size_t)micro * (size_t)p->chunk_count + (size_t)chunk;
}

static int *index_of(const Program *p, BlockKind kind, int chunk, int micro)
{
    size_t cells = (size_t)p->set.microbatches.value * (size_t)p->chunk_count;
    return &p->block_index[(size_t)(kind - BLOCK_KEEP) * cells +
                           cell(p, chunk, micro)];
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
    return n->entry[kind][cell(n->p, chunk, micro)];
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
                n->entry[p->lists[r].at[i].kind][cell(
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
 * the queue as well. */
static void sent_blocks(const Planner *n, int rank)
{
    Program *p = n->p;
    const List *list = &p->lists[rank];
    int *before = arena_take(
        p->arena, sizeof(int) * (size_t)p->ranks);  // [peer] block + 1
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

static size_t values(const Parameter *q)
{
    return (size_t)q->rows * (size_t)(q->columns ? q->columns : 1);
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
                      values(&p->parameters[i]), 0, end);
    int homes = p->block_count;
    for (int i = 0; i < p->parameter_count; i++)
        if (owns(p, rank, &p->parameters[i]))
            add_block(p, BLOCK_GRADIENT, rank, i, -1, values(&p->parameters[i]),
                      0, end);
    for (int i = first; i < homes; i++) {
        if (momentum)
            add_block(p, BLOCK_MEAN, rank, p->blocks[i].chunk, -1,
                      p->blocks[i].floats, 0, end);
        if (adamw)
            add_block(p, BLOCK_VARIANCE, rank, p->blocks[i].chunk, -1,
                      p->blocks[i].floats, 0, end);
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

/* ---- offsets ---- */

static size_t stack_lasting(Program *p, int rank)
{
    size_t height = 0;
    for (int i = 0; i < p->block_count; i++) {
        Block *b = &p->blocks[i];
        if (b->rank != rank || b->kind >= BLOCK_KEEP)
            continue;
        b->offset = height;
        height += b->floats;
    }
    return height;
}

static size_t most_alive(const Program *p, const Item *items, int count,
                         int entries)
{
    ptrdiff_t *change = arena_take(p->arena,
                                   sizeof *change * (size_t)(entries + 2));
    ptrdiff_t alive = 0, peak = 0;
    for (int i = 0; i < count; i++) {
        change[items[i].first] += (ptrdiff_t)items[i].floats;
        change[items[i].last + 1] -= (ptrdiff_t)items[i].floats;
    }
    for (int i = 0; i <= entries; i++) {
        alive += change[i];
        peak = alive > peak ? alive : peak;
    }
    return (size_t)peak;
}

/* Blocks of one kind and chunk that lie at the same place have the same
 * slot. */
static void number_slots(Program *p, const int *blocks, int count)
{
    for (int i = 0; i < count; i++) {
        Block *b = &p->blocks[blocks[i]];
        b->slot = 0;
        for (int k = i - 1; k >= 0; k--) {
            const Block *other = &p->blocks[blocks[k]];
            if (other->kind != b->kind || other->chunk != b->chunk)
                continue;
            if (other->offset == b->offset) {
                b->slot = other->slot;
                break;
            }
            b->slot = other->slot >= b->slot ? other->slot + 1 : b->slot;
        }
    }
}

static void place_rank(Program *p, int rank)
{
    size_t base = stack_lasting(p, rank);
    Item *items = arena_take(p->arena,
                             sizeof *items * (size_t)(p->block_count + 1));
    int *ids = arena_take(p->arena, sizeof *ids * (size_t)(p->block_count + 1));
    int count = 0;
    for (int i = 0; i < p->block_count; i++) {
        const Block *b = &p->blocks[i];
        if (b->rank != rank || b->kind < BLOCK_KEEP)
            continue;
        ids[count] = i;
        items[count++] = (Item){b->floats, 0, b->first, b->last, i};
    }
    p->peak_floats[rank] = base +
                           most_alive(p, items, count, p->lists[rank].count);
    p->arena_floats[rank] = base + pack(p->arena, items, count);
    for (int i = 0; i < count; i++)
        p->blocks[items[i].id].offset = base + items[i].offset;
    number_slots(p, ids, count);
}

/* ---- waits: before a sent buffer is written again, and before the step ends ---- */

/* The first entry after its life at which another block begins in the same
 * bytes; -1: none. */
static int reused_at(const Program *p, const Block *sent, const int *ids,
                     int count)
{
    int first = -1;
    for (int i = 0; i < count; i++) {
        const Block *b = &p->blocks[ids[i]];
        bool overlap = b->offset < sent->offset + sent->floats &&
                       sent->offset < b->offset + b->floats;
        if (overlap && b->first > sent->last && (first < 0 || b->first < first))
            first = b->first;
    }
    return first;
}

static int by_entry(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

/* For each queue, the messages in order with the entry before which each must
 * be waited for: a wait covers all earlier messages, so one that is due no
 * earlier than a later one's is left out. */
static void queue_waits(Program *p, int rank, int peer, const int *due,
                        int *waits, int *count)
{
    const List *list = &p->lists[rank];
    int earliest = list->count;  // of later messages
    for (int i = list->count; i-- > 0;) {
        Action a = list->at[i];
        if ((a.kind != ACT_SEND_F && a.kind != ACT_SEND_B) || a.peer != peer)
            continue;
        int entry = due[i] < 0 ? list->count - 1 : due[i];  // the STEP
        if (entry < earliest) {
            waits[2 * *count] = entry;
            waits[2 * (*count)++ + 1] = i;
            earliest = entry;
        }
    }
}

static void insert_waits(Program *p, int rank, const int *due)
{
    List *old = &p->lists[rank], list = {NULL, 0, 0, 0};
    int *waits = arena_take(p->arena,
                            sizeof *waits * 2 * (size_t)(old->count + 1)),
        count = 0, next = 0;
    int *moved = arena_take(p->arena, sizeof *moved * (size_t)(old->count + 1));
    for (int peer = 0; peer < p->ranks; peer++)
        if (peer != rank)
            queue_waits(p, rank, peer, due, waits, &count);
    qsort(waits, (size_t)count, 2 * sizeof *waits, by_entry);
    for (int i = 0; i < old->count; i++) {
        if (i == old->steady)
            list.steady = list.count;
        if (i == old->cooldown)
            list.cooldown = list.count;
        for (; next < count && waits[2 * next] == i; next++) {
            Action sent = old->at[waits[2 * next + 1]];
            push_action(
                p, &list,
                (Action){sent.kind == ACT_SEND_F ? ACT_WAIT_F : ACT_WAIT_B,
                         sent.chunk, sent.micro, sent.peer});
        }
        moved[i] = list.count;
        push_action(p, &list, old->at[i]);
    }
    for (int i = 0; i < p->block_count; i++) {
        if (p->blocks[i].rank != rank)
            continue;
        p->blocks[i].first = moved[p->blocks[i].first];
        p->blocks[i].last = moved[p->blocks[i].last];
    }
    *old = list;
}

static void add_waits(Program *p, int rank)
{
    const List *list = &p->lists[rank];
    int *due = arena_take(p->arena, sizeof *due * (size_t)(list->count + 1));
    int *ids = arena_take(p->arena, sizeof *ids * (size_t)(p->block_count + 1)),
        count = 0;
    for (int i = 0; i < p->block_count; i++)
        if (p->blocks[i].rank == rank && p->blocks[i].kind >= BLOCK_KEEP)
            ids[count++] = i;
    for (int i = 0; i < list->count; i++) {
        Action a = list->at[i];
        due[i] = -1;
        if (a.kind == ACT_SEND_F || a.kind == ACT_SEND_B)
            due[i] = reused_at(p,
                               &p->blocks[find_block_of(
                                   p, a.kind == ACT_SEND_F ? BLOCK_Y : BLOCK_DX,
                                   a.chunk, a.micro)],
                               ids, count);
    }
    insert_waits(p, rank, due);
}

/* ---- the pass ---- */

bool memory(Program *p)
{
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
    for (int r = 0; r < p->ranks; r++) {
        sent_blocks(&n, r);
        place_rank(p, r);
        add_waits(p, r);
    }
    return prove(p) && prove_memory(p);
}
