/* memory.c: tensors -> fixed offsets in one arena per rank; exact peak.
 *
 * Reads: tensors, gradients, chunks, lists, nodes, messages. Writes: blocks, frames,
 * within, inside, arena_floats, peak_floats; adds WAITs to lists and proves them
 * again. Guarantees: two blocks that share a byte are never alive at the same
 * entry of their rank's list; a sent buffer is written again only after a WAIT.
 *
 *     arena of a rank   | parameters gradients moments losses scratch | KEEP HOLD DHOLD X Y DX DY TARGETS, packed |
 *
 * A KEEP block holds what one forward of one chunk leaves to its backward.
 * Everything else that a forward or a backward computes dies inside it and lies
 * in the scratch, which all actions share. X, Y, DX and DY are what crosses a
 * chunk's boundary: an x that comes from a chunk on the same rank is that
 * chunk's y, the same block.
 *
 * Where a backward is split in I and W, what W reads stays until W and nothing
 * else does: of the forward it lies in HOLD, of the gradients in DHOLD.
 *
 *     F ------- KEEP -------> I
 *     F ------- HOLD -------> I ---------> W
 *                             I -- DHOLD -> W
 *
 * Each block lives over an interval of its rank's list. A sent one lives until
 * the receiver has taken the next message of the same queue, by the linear
 * order of the proof, or until the step ends: so the order survives, and a rank
 * never waits for the message that it has just sent. */
#include "memory.h"
#include "nodes.h"

#include <stdlib.h>
#include <string.h>

/* The blocks that a chunk's function takes, in the order of its parameters. */
const char *const block_words[MICRO_KINDS] = {"keep", "hold", "dhold", "x",
                                              "y",    "dy",   "dx",    "t"};

enum { ALIGN = 16 };

size_t aligned(size_t floats)
{
    return (floats + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- blocks ---- */

static int *index_of(const Program *p, BlockKind kind, int chunk, int micro)
{
    size_t cells = (size_t)p->microbatches * (size_t)p->chunk_count;
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

/* Index in the owner's list; -1: there is none. */
static int entry_of(const Program *p, ActionKind kind, int chunk, int micro)
{
    int node = find_node(p, kind, chunk, micro);
    return node < 0 ? -1 : place_of(p, node).index;
}

/* The entries at which a cell's backward begins and ends: of I and W, or of B
 * for both. */
static int input_entry(const Program *p, int chunk, int micro)
{
    int whole = entry_of(p, ACT_B, chunk, micro);
    return whole >= 0 ? whole : entry_of(p, ACT_I, chunk, micro);
}

static int weight_entry(const Program *p, int chunk, int micro)
{
    int whole = entry_of(p, ACT_B, chunk, micro);
    return whole >= 0 ? whole : entry_of(p, ACT_W, chunk, micro);
}

/* A block that crosses a chunk's boundary lives while the backward reads it. */
static void lives_for(Program *p, int block, int readers, int chunk, int micro)
{
    if (readers & READ_INPUT)
        lives_until(p, block, input_entry(p, chunk, micro));
    if (readers & READ_WEIGHT)
        lives_until(p, block, weight_entry(p, chunk, micro));
}

/* x comes by a message or, for the first chunk, from the data; or it is y of
 * the chunk before, on the same rank. */
static void input_block(Program *p, int c, int m)
{
    const Chunk *chunk = &p->chunks[c];
    int f = entry_of(p, ACT_F, c, m), received = entry_of(p, ACT_RECV_F, c, m);
    if (chunk->previous < 0 || received >= 0)
        add_micro_block(p, BLOCK_X, c, m, p->tensors[chunk->x].floats,
                        received >= 0 ? received : f, f);
    else
        *index_of(p, BLOCK_X, c, m) = find_block_of(p, BLOCK_Y, chunk->previous,
                                                    m);
    int x = find_block_of(p, BLOCK_X, c, m);
    lives_until(p, x, f);
    lives_for(p, x, p->frames[c].x, c, m);
}

/* A chunk without layers hands on what it got: its y is its x, one block. */
static void forward_blocks(Program *p, int c, int m)
{
    const Chunk *chunk = &p->chunks[c];
    const Frame *frame = &p->frames[c];
    int f = entry_of(p, ACT_F, c, m), i = input_entry(p, c, m),
        w = weight_entry(p, c, m);
    add_micro_block(p, BLOCK_KEEP, c, m, frame->keep, f, i);
    add_micro_block(p, BLOCK_HOLD, c, m, frame->hold, f, w);
    add_micro_block(p, BLOCK_DHOLD, c, m, frame->dhold, i, w);
    input_block(p, c, m);
    if (chunk->y >= 0) {
        if (chunk->y == chunk->x)
            *index_of(p, BLOCK_Y, c, m) = find_block_of(p, BLOCK_X, c, m);
        else
            add_micro_block(p, BLOCK_Y, c, m, p->tensors[chunk->y].floats, f,
                            f);
        lives_for(p, find_block_of(p, BLOCK_Y, c, m), frame->y, c, m);
    }
    if (chunk->targets >= 0)
        add_micro_block(p, BLOCK_TARGETS, c, m,
                        p->tensors[chunk->targets].floats, f, i);
}

/* The gradients, from the last chunk to the first: dy is the next chunk's dx
 * when that lies on the same rank, and dx is dy itself when the chunk passes
 * its gradient on. */
static void backward_blocks(Program *p, int c, int m)
{
    const Chunk *chunk = &p->chunks[c];
    int i = input_entry(p, c, m), received = entry_of(p, ACT_RECV_B, c, m);
    if (received >= 0)
        add_micro_block(p, BLOCK_DY, c, m, p->tensors[chunk->dy].floats,
                        received, i);
    else if (chunk->next >= 0)
        *index_of(p, BLOCK_DY, c, m) = find_block_of(p, BLOCK_DX, chunk->next,
                                                     m);
    int dy = find_block_of(p, BLOCK_DY, c, m);
    if (dy >= 0) {
        lives_until(p, dy, i);
        lives_for(p, dy, p->frames[c].dy, c, m);
    }
    if (chunk->dx < 0)
        return;
    if (chunk->dx == chunk->dy)
        *index_of(p, BLOCK_DX, c, m) = dy;
    else
        add_micro_block(p, BLOCK_DX, c, m, p->tensors[chunk->dx].floats, i, i);
    lives_for(p, find_block_of(p, BLOCK_DX, c, m), p->frames[c].dx, c, m);
}

/* The first entry that may write what a SEND has sent. Where a pair has one queue,
 * receives are posted long before, so a message is on its way at once: its buffer
 * is kept until it has arrived, or its rank would wait for that. */
static int free_from(const Program *p, int rank, int send)
{
    const Message *message = message_of(p, node_at(p, rank, send));
    double arrive = p->nodes[message->send].end;
    int entry = message->release;
    while (meeting_of(p) == MEET_PAIR && entry < p->lists[rank].count &&
           p->nodes[node_at(p, rank, entry)].start < arrive)
        entry++;
    return entry;
}

/* A sent block lives until the receiver has taken it, and the next message of
 * the queue as well; the last one of a queue until the step ends. */
static void sent_blocks(Program *p, int rank)
{
    const List *list = &p->lists[rank];
    int *before = arena_take(p->arena,
                             sizeof(int) * (size_t)p->ranks);  // block + 1
    for (int i = 0; i < list->count; i++) {
        Action a = list->at[i];
        if (!is_send(a.kind))
            continue;
        int block = find_block_of(p, is_back(a.kind) ? BLOCK_DX : BLOCK_Y,
                                  a.chunk, a.micro);
        int last = free_from(p, rank, i) - 1;
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

/* [parameter] the rank that has it. */
static int *owners(Program *p)
{
    int *owner = arena_take(p->arena,
                            sizeof *owner * (size_t)(p->parameter_count + 1));
    for (int i = 0; i < p->parameter_count; i++)
        owner[i] = p->chunks[chunk_of_layer(p, p->parameters[i].layer)].rank;
    return owner;
}

/* Clipping a step later: what the update of a step overwrites. */
static size_t undo_floats(const Program *p, int rank)
{
    size_t floats = 0;
    for (int i = 0; i < p->block_count && p->blocks[i].kind < BLOCK_KEEP; i++)
        if (p->blocks[i].rank == rank && is_updated(p->blocks[i].kind))
            floats += p->blocks[i].floats;
    return floats;
}

/* The parameters whose storage a rank has, those that decay first. Of several
 * uses of one it is the first. */
static int *homes_of(Program *p, int rank, const int *owner, int *count)
{
    size_t room = (size_t)p->parameter_count + 1;
    int *homes = arena_take(p->arena, sizeof *homes * room);
    bool *seen = arena_take(p->arena, sizeof *seen * room);
    bool *home = arena_take(p->arena, sizeof *home * room);
    for (int i = 0; i < p->parameter_count; i++) {
        int root = p->parameters[i].tied < 0 ? i : p->parameters[i].tied;
        home[i] = owner[i] == rank && !seen[root];
        seen[root] |= owner[i] == rank;
    }
    for (int decay = 1; decay >= 0; decay--)
        for (int i = 0; i < p->parameter_count; i++)
            if (home[i] && p->parameters[i].decay == (decay == 1))
                homes[(*count)++] = i;
    return homes;
}

static void home_blocks(Program *p, BlockKind kind, int rank, const int *homes,
                        int count, int end)
{
    for (int i = 0; i < count; i++) {
        size_t values = parameter_values(&p->parameters[homes[i]]);
        add_block(p, kind, rank, homes[i], -1,
                  kind == BLOCK_PARAMETER ? dtype_floats(p, values) : values, 0,
                  end);
    }
}

/* All that an update writes or reads stands in one order, so that one call
 * updates many parameters:
 *
 *     parameters | gradients | more gradients | mean     | variance
 *     w1 w2 b1   | w1 w2 b1  | w1, 2nd use    | w1 w2 b1 | w1 w2 b1 */
static void parameter_blocks(Program *p, int rank, const int *owner, int end)
{
    bool adamw = p->set.optimizer == OPTIMIZER_ADAMW;
    int count = 0;
    const int *homes = homes_of(p, rank, owner, &count);
    home_blocks(p, BLOCK_PARAMETER, rank, homes, count, end);
    home_blocks(p, BLOCK_GRADIENT, rank, homes, count, end);
    for (int i = 0; i < p->parameter_count; i++)
        if (owner[i] == rank && parameter_home(p, rank, i) != i)
            add_block(p, BLOCK_GRADIENT, rank, i, -1,
                      parameter_values(&p->parameters[i]), 0, end);
    if (p->set.dtype != DTYPE_F32)
        home_blocks(p, BLOCK_MASTER, rank, homes, count, end);
    if (adamw || p->set.momentum > 0)
        home_blocks(p, BLOCK_MEAN, rank, homes, count, end);
    if (adamw)
        home_blocks(p, BLOCK_VARIANCE, rank, homes, count, end);
}

static void lasting_blocks(Program *p, int rank, const int *owner, int end)
{
    size_t scratch = 0, tmp = 0;
    bool losses = false;
    parameter_blocks(p, rank, owner, end);
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
        losses |= chunk->targets >= 0;
    }
    if (losses)
        add_block(p, BLOCK_LOSSES, rank, -1, -1, (size_t)p->microbatches, 0,
                  end);
    add_block(p, BLOCK_SCRATCH, rank, -1, -1, scratch, 0, end);
    add_block(p, BLOCK_TMP, rank, -1, -1, tmp, 0, end);
    if (p->set.deferred)
        add_block(p, BLOCK_UNDO, rank, -1, -1, undo_floats(p, rank), 0, end);
}

/* ---- the pass ---- */

/* Whether a chunk has an I: then all that its W reads lies apart. */
static void mark_split(const Program *p, bool *split)
{
    for (int r = 0; r < p->ranks; r++)
        for (int i = 0; i < p->lists[r].count; i++)
            if (p->lists[r].at[i].kind == ACT_I)
                split[p->lists[r].at[i].chunk] = true;
}

bool memory(Program *p)
{
    size_t cells = (size_t)p->microbatches * (size_t)p->chunk_count;
    size_t ranks = (size_t)p->ranks;
    bool *split = arena_take(p->arena, sizeof *split * (size_t)p->chunk_count);
    const int *owner = owners(p);
    take_frames(p);
    mark_split(p, split);
    p->arena_floats = arena_take(p->arena, sizeof *p->arena_floats * ranks);
    p->peak_floats = arena_take(p->arena, sizeof *p->peak_floats * ranks);
    p->block_index = arena_take(p->arena, sizeof(int) * MICRO_KINDS * cells);
    for (size_t i = 0; i < MICRO_KINDS * cells; i++)
        p->block_index[i] = -1;
    for (int c = 0; c < p->chunk_count; c++)
        frame_chunk(p, c, split[c]);
    for (int r = 0; r < p->ranks; r++)
        lasting_blocks(p, r, owner, p->lists[r].count - 1);
    for (int m = 0; m < p->microbatches; m++) {
        for (int c = 0; c < p->chunk_count; c++)
            if (goes_through(p, c, m))
                forward_blocks(p, c, m);
        for (int c = p->chunk_count; c-- > 0;)
            if (goes_through(p, c, m))
                backward_blocks(p, c, m);
    }
    for (int r = 0; r < p->ranks; r++)
        sent_blocks(p, r);
    place_blocks(p);
    return prove(p) && prove_memory(p);
}
