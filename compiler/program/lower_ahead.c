/* lower_ahead.c: `clip 1.0 deferred`: what of a step runs before the norm of the
 * step before is known, and what an update that was wrong is undone with.
 *
 * Reads: lists, linear, blocks. Writes: bodies of remember and undo.
 *
 * Each rank runs ahead up to its first backward, which adds to gradients that
 * may still be needed. Where it would wait for a rank that stands there, it
 * stops as well: so all ranks get to where they learn the norm, and none is left
 * waiting for a message that another throws away.
 *
 *     rank 0  F0 F1 F2 F3 | B0 ...        runs ahead | needs the norm
 *     rank 1     F0 F1 F2 | B0 F3 ...     (rank 0 has sent F3, too: forgotten
 *     rank 2        F0 F1 | B0 F2 ...      when the step begins once more)
 *     rank 3           F0 | B0 F1 ...
 */
#include "lower.h"

/* ---- how far ---- */

typedef struct Ahead {
    const Program *p;
    int *entries;       // [rank] that run ahead
    int *sent, *taken;  // [from][to] messages of these entries
    int *ordinal;       // [rank, chunk and micro-batch] of the sends, F then B
} Ahead;

static int *ordinal_of(const Ahead *h, Action a)
{
    const Program *p = h->p;
    size_t cells = (size_t)p->chunk_count * (size_t)p->microbatches;
    bool back = a.kind == ACT_SEND_B || a.kind == ACT_WAIT_B;
    return &h->ordinal[(back ? cells : 0) + cell_of(p, a.chunk, a.micro)];
}

/* Can a rank do this while nobody has begun a backward. */
static bool runs_ahead(Ahead *h, int rank, Action a)
{
    size_t ranks = (size_t)h->p->ranks, own = (size_t)rank;
    size_t out = own * ranks + (size_t)(a.peer < 0 ? 0 : a.peer);
    size_t in = (size_t)(a.peer < 0 ? 0 : a.peer) * ranks + own;
    switch (a.kind) {
    case ACT_F: return true;
    case ACT_SEND_F:
    case ACT_SEND_B: *ordinal_of(h, a) = ++h->sent[out]; return true;
    case ACT_RECV_F:
    case ACT_RECV_B: return h->taken[in] < h->sent[in] && ++h->taken[in];
    case ACT_WAIT_F:
    case ACT_WAIT_B: return *ordinal_of(h, a) <= h->taken[out];
    default: return false;
    }
}

/* One pass is enough, since `linear` has every message's send before its receive
 * and that before the wait. */
int *count_ahead(Program *p)
{
    size_t ranks = (size_t)p->ranks;
    size_t cells = (size_t)p->chunk_count * (size_t)p->microbatches;
    Ahead h = {.p = p};
    h.entries = arena_take(p->arena, sizeof *h.entries * ranks);
    h.sent = arena_take(p->arena, sizeof *h.sent * ranks * ranks);
    h.taken = arena_take(p->arena, sizeof *h.taken * ranks * ranks);
    h.ordinal = arena_take(p->arena, sizeof *h.ordinal * 2 * cells);
    for (int i = 0; i < p->linear_count; i++) {
        Place at = p->linear[i];
        if (at.index == h.entries[at.rank] &&
            runs_ahead(&h, at.rank, p->lists[at.rank].at[at.index]))
            h.entries[at.rank]++;
    }
    return h.entries;
}

/* ---- undo ---- */

static void copy_call(Lowerer *w, BodyKind kind, const Block *first,
                      size_t copy, size_t floats)
{
    Body *body = &w->out->bodies[w->out->body_count - 1];
    Call *call = new_call(w, body, "pp_copy");
    const char *own = lasting_name(w, first);
    if (kind == BODY_UNDO)
        push_at(call, own);
    push(call, ARG_AT, "old", (double)copy);
    if (kind == BODY_REMEMBER)
        push_at(call, own);
    push_number(call, (double)floats);
    call->comment = copy ? "what the optimizer keeps" : "parameters";
}

/* Blocks that stand side by side are copied at once: the parameters, then what
 * the optimizer keeps of them. */
static void copies_body(Lowerer *w, BodyKind kind)
{
    const Program *p = w->p;
    const Block *first = NULL;
    size_t end = 0, copy = 0;
    new_body(w, kind, -1);
    for (int i = 0; i < p->block_count && p->blocks[i].kind < BLOCK_KEEP; i++) {
        const Block *b = &p->blocks[i];
        if (b->rank != w->rank || !is_updated(b->kind))
            continue;
        if (first && b->offset != end) {
            copy_call(w, kind, first, copy, end - first->offset);
            copy += end - first->offset;
        }
        if (!first || b->offset != end)
            first = b;
        end = b->offset + b->floats;
    }
    if (first)
        copy_call(w, kind, first, copy, end - first->offset);
}

void undo_bodies(Lowerer *w)
{
    copies_body(w, BODY_REMEMBER);
    copies_body(w, BODY_UNDO);
}
