/* prove_memory.c: the offsets that `memory` chose, looked at once more.
 *
 * Reads: lists, chunks, frames, blocks. Writes: nothing. Guarantees: whatever an
 * action reads was written last by the action that made it; nothing is written
 * over a buffer that was sent and may not have been taken.
 *
 * It does not believe the lifetimes of the blocks. It walks each rank's list and
 * keeps the set of blocks whose bytes nobody has written over: a write puts its
 * block in and throws out all that overlap it, a read must find its block. */
#include "compile.h"

typedef struct Flight {  // a sent block, until a WAIT covers it
    int block, peer, index;
} Flight;

typedef struct Walk {
    Program *p;
    int rank, index;  // of the entry at hand
    int *valid, valid_count;
    Flight *flights;
    int flight_count;
} Walk;

static bool overlap(const Block *a, const Block *b)
{
    return a->offset < b->offset + b->floats &&
           b->offset < a->offset + a->floats;
}

static bool wrong(Walk *walk, const char *what)
{
    error_plain(
        walk->p, "rank %d, action %d: %s %s", walk->rank, walk->index,
        action_text(walk->p, walk->p->lists[walk->rank].at[walk->index]), what);
    return false;
}

static bool read(Walk *walk, BlockKind kind, Action a)
{
    int block = find_block_of(walk->p, kind, a.chunk, a.micro);
    if (block < 0)
        return true;
    for (int i = 0; i < walk->valid_count; i++)
        if (walk->valid[i] == block)
            return true;
    return wrong(walk, "reads memory that was never written, or written over");
}

static bool write(Walk *walk, BlockKind kind, Action a)
{
    Program *p = walk->p;
    int block = find_block_of(p, kind, a.chunk, a.micro), kept = 0;
    if (block < 0)
        return true;
    const Block *b = &p->blocks[block];
    if (b->offset + b->floats > p->arena_floats[walk->rank])
        return wrong(walk, "writes behind the arena");
    for (int i = 0; i < walk->flight_count; i++) {
        if (!overlap(&p->blocks[walk->flights[i].block], b))
            continue;
        Action sent = p->lists[walk->rank].at[walk->flights[i].index];
        return wrong(walk,
                     text_format(p->arena,
                                 "writes over the buffer of %s, which rank "
                                 "%d may not have taken",
                                 action_text(p, sent), sent.peer));
    }
    for (int i = 0; i < walk->valid_count; i++)
        if (!overlap(&p->blocks[walk->valid[i]], b))
            walk->valid[kept++] = walk->valid[i];
    walk->valid_count = kept;
    walk->valid[walk->valid_count++] = block;
    return true;
}

/* What lives all along lies beside the blocks of micro-batches, on every rank. */
static bool clear_of_lasting(Program *p)
{
    size_t *lasting = arena_take(p->arena, sizeof *lasting * (size_t)p->ranks);
    for (int i = 0; i < p->block_count; i++) {
        const Block *b = &p->blocks[i];
        if (b->kind < BLOCK_KEEP && b->offset + b->floats > lasting[b->rank])
            lasting[b->rank] = b->offset + b->floats;
    }
    for (int i = 0; i < p->block_count; i++) {
        const Block *b = &p->blocks[i];
        if (b->kind < BLOCK_KEEP || b->offset >= lasting[b->rank])
            continue;
        error_plain(p, "rank %d: a block lies over the parameters", b->rank);
        return false;
    }
    return true;
}

/* y may be x itself. */
static bool forward_is_sound(Walk *walk, Action a)
{
    const Program *p = walk->p;
    int x = find_block_of(p, BLOCK_X, a.chunk, a.micro);
    int y = find_block_of(p, BLOCK_Y, a.chunk, a.micro);
    if (p->chunks[a.chunk].previous < 0 && !write(walk, BLOCK_X, a))
        return false;
    return write(walk, BLOCK_TARGETS, a) && read(walk, BLOCK_X, a) &&
           write(walk, BLOCK_KEEP, a) && write(walk, BLOCK_HOLD, a) &&
           (x == y || write(walk, BLOCK_Y, a)) && read(walk, BLOCK_X, a);
}

/* What crosses the chunk's boundaries, as far as these readers read it. */
static bool read_for(Walk *walk, Action a, int readers)
{
    const Frame *frame = &walk->p->frames[a.chunk];
    return (!(frame->x & readers) || read(walk, BLOCK_X, a)) &&
           (!(frame->y & readers) || read(walk, BLOCK_Y, a)) &&
           (!(frame->dy & readers) || read(walk, BLOCK_DY, a));
}

/* dx may be dy itself. */
static bool input_is_sound(Walk *walk, Action a)
{
    const Program *p = walk->p;
    int dx = find_block_of(p, BLOCK_DX, a.chunk, a.micro);
    int dy = find_block_of(p, BLOCK_DY, a.chunk, a.micro);
    for (int twice = 0; twice < 2; twice++) {
        if (!read(walk, BLOCK_KEEP, a) || !read(walk, BLOCK_HOLD, a) ||
            !read(walk, BLOCK_DY, a) || !read(walk, BLOCK_TARGETS, a) ||
            !read_for(walk, a, READ_INPUT))
            return false;
        if (twice == 0 && !write(walk, BLOCK_DHOLD, a))
            return false;
        if (twice == 0 && dx != dy && !write(walk, BLOCK_DX, a))
            return false;
    }
    return true;
}

static bool weight_is_sound(Walk *walk, Action a)
{
    bool dx = (walk->p->frames[a.chunk].dx & READ_WEIGHT) != 0;
    return read(walk, BLOCK_HOLD, a) && read(walk, BLOCK_DHOLD, a) &&
           read_for(walk, a, READ_WEIGHT) && (!dx || read(walk, BLOCK_DX, a));
}

static bool send_is_sound(Walk *walk, Action a)
{
    BlockKind kind = a.kind == ACT_SEND_F ? BLOCK_Y : BLOCK_DX;
    if (!read(walk, kind, a))
        return false;
    walk->flights[walk->flight_count++] = (Flight){
        find_block_of(walk->p, kind, a.chunk, a.micro), a.peer, walk->index};
    return true;
}

/* A WAIT covers its message and all earlier ones of the same queue. */
static void wait(Walk *walk, Action a)
{
    ActionKind sent = a.kind == ACT_WAIT_F ? ACT_SEND_F : ACT_SEND_B;
    int until = -1, kept = 0;
    for (int i = 0; i < walk->flight_count; i++) {
        Action other = walk->p->lists[walk->rank].at[walk->flights[i].index];
        if (other.kind == sent && other.chunk == a.chunk &&
            other.micro == a.micro)
            until = walk->flights[i].index;
    }
    for (int i = 0; i < walk->flight_count; i++)
        if (walk->flights[i].peer != a.peer || walk->flights[i].index > until)
            walk->flights[kept++] = walk->flights[i];
    walk->flight_count = kept;
}

static bool entry_is_sound(Walk *walk, Action a)
{
    switch (a.kind) {
    case ACT_F: return forward_is_sound(walk, a);
    case ACT_B: return input_is_sound(walk, a) && weight_is_sound(walk, a);
    case ACT_I: return input_is_sound(walk, a);
    case ACT_W: return weight_is_sound(walk, a);
    case ACT_RECV_F: return write(walk, BLOCK_X, a);
    case ACT_RECV_B: return write(walk, BLOCK_DY, a);
    case ACT_SEND_F:
    case ACT_SEND_B: return send_is_sound(walk, a);
    case ACT_WAIT_F:
    case ACT_WAIT_B: wait(walk, a); return true;
    case ACT_STEP:
        return walk->flight_count == 0 ||
               wrong(walk,
                     "begins while a sent buffer may not have been taken");
    default: return true;
    }
}

bool prove_memory(Program *p)
{
    int longest = 0;
    for (int r = 0; r < p->ranks; r++)
        longest = p->lists[r].count > longest ? p->lists[r].count : longest;
    size_t room = (size_t)(p->block_count + longest + 1);
    int *valid = arena_take(p->arena, sizeof *valid * room);
    Flight *flights = arena_take(p->arena, sizeof *flights * room);
    if (!clear_of_lasting(p))
        return false;
    for (int r = 0; r < p->ranks; r++) {
        Walk walk = {.p = p, .rank = r, .valid = valid, .flights = flights};
        for (; walk.index < p->lists[r].count; walk.index++)
            if (!entry_is_sound(&walk, p->lists[r].at[walk.index]))
                return false;
    }
    return true;
}
