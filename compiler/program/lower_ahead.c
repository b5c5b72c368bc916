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

static bool has_run(const Program *p, const int *entries, int node)
{
    Place at = place_of(p, node);
    return at.index < entries[at.rank];
}

/* Can a rank do this while nobody has begun a backward. */
static bool runs_ahead(const Program *p, const int *entries, int node)
{
    const Node *own = &p->nodes[node];
    ActionKind kind = action_of(p, node).kind;
    if (is_receive(kind))
        return has_run(p, entries, own->data);
    if (is_wait(kind))
        return has_run(p, entries, own->freed);
    return kind == ACT_F || is_send(kind);
}

/* One pass is enough, since every edge points back in `linear`. */
int *count_ahead(Program *p)
{
    int *entries = arena_take(p->arena, sizeof *entries * (size_t)p->ranks);
    for (int i = 0; i < p->linear_count; i++) {
        Place at = place_of(p, p->linear[i]);
        if (at.index == entries[at.rank] &&
            runs_ahead(p, entries, p->linear[i]))
            entries[at.rank]++;
    }
    return entries;
}

/* ---- undo ---- */

static void copy_call(Lowerer *lowerer, BodyKind kind, const Block *first,
                      size_t copy, size_t floats)
{
    Body *body = &lowerer->out->bodies[lowerer->out->body_count - 1];
    Call *call = new_call(lowerer, body, "pp_copy");
    const char *own = lasting_name(lowerer, first);
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
static void copies_body(Lowerer *lowerer, BodyKind kind)
{
    const Program *p = lowerer->p;
    const Block *first = NULL;
    size_t end = 0, copy = 0;
    new_body(lowerer, kind, -1);
    for (int i = 0; i < p->block_count && p->blocks[i].kind < BLOCK_KEEP; i++) {
        const Block *b = &p->blocks[i];
        if (b->rank != lowerer->rank || !is_updated(b->kind))
            continue;
        if (first && b->offset != end) {
            copy_call(lowerer, kind, first, copy, end - first->offset);
            copy += end - first->offset;
        }
        if (!first || b->offset != end)
            first = b;
        end = b->offset + b->floats;
    }
    if (first)
        copy_call(lowerer, kind, first, copy, end - first->offset);
}

void undo_bodies(Lowerer *lowerer)
{
    copies_body(lowerer, BODY_REMEMBER);
    copies_body(lowerer, BODY_UNDO);
}
