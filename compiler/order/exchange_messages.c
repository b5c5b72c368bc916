/* exchange_messages.c: what a file has beside computes.
 *
 * Reads: chunks, order. Writes: rows. Guarantees: each SEND meets its RECV, after
 * what makes it and before what reads it. SENDs and RECVs bind: they stand in
 * the plan where they stand in the file. What PyTorch's runtime has for itself
 * is checked against its rules, torch 2.15, schedules.py, and then left out,
 * since `memory` places waits and `communicate` reductions:
 *
 *     WAIT_SEND_F WAIT_SEND_B         one behind each SEND, if there are any
 *     REDUCE_GRAD WAIT_REDUCE_GRAD    once for a stage, behind its last B or W; one
 *                                     at a time on a rank
 *     UNSHARD RESHARD                 in turn; no compute behind a RESHARD */
#include "exchange.h"
#include "written.h"

bool has_messages(const Import *x)
{
    bool any = false;
    for (int kind = ACT_SEND_F; kind <= ACT_WAIT_B; kind++)
        any |= x->seen[kind] > 0;
    return any;
}

/* ---- words of a stage ---- */

static bool wrong_after(Import *x, Cell cell, const char *why, int earlier,
                        const char *what)
{
    wrong_cell(x, cell, why);
    note_at(x->p, cell_at(x->p, earlier), "%s", what);
    return false;
}

static bool take_shard(Import *x, Cell cell, Found f)
{
    Stage *stage = &x->stage[f.stage];
    bool whole = f.kind == CSV_UNSHARD;
    if (stage->shard && stage->whole == whole)
        return wrong_after(x, cell,
                           whole ? "without a RESHARD since the last one"
                                 : "without an UNSHARD since the last one",
                           stage->shard - 1, "the last one");
    if (!stage->shard && !whole)
        return wrong_cell(x, cell, "without an UNSHARD before it");
    stage->whole = whole;
    stage->shard = cell.begin + 1;
    return true;
}

/* The REDUCE_GRAD of another stage of the rank that nothing has waited for. */
static int pending(const Import *x, int stage)
{
    for (int s = 0; s < x->p->chunk_count; s++)
        if (s != stage && x->stage[s].reduce && !x->stage[s].wait &&
            x->owner[s] == x->owner[stage])
            return x->stage[s].reduce;
    return 0;
}

static bool take_reduce(Import *x, Cell cell, Found f)
{
    Stage *stage = &x->stage[f.stage];
    bool waits = f.kind == CSV_WAIT_REDUCE;
    int *own = waits ? &stage->wait : &stage->reduce;
    if (*own)
        return second_time(x, cell, *own - 1);
    if (waits && !stage->reduce)
        return wrong_cell(x, cell, "without a REDUCE_GRAD before it");
    int other = !waits && x->seen[CSV_WAIT_REDUCE] ? pending(x, f.stage) : 0;
    if (other)
        return wrong_after(x, cell, "before the last REDUCE_GRAD is waited for",
                           other - 1, "the last one");
    *own = cell.begin + 1;
    return true;
}

bool take_stage_word(Import *x, Cell cell, Found f)
{
    return f.kind == CSV_UNSHARD || f.kind == CSV_RESHARD
               ? take_shard(x, cell, f)
               : take_reduce(x, cell, f);
}

bool stage_is_there(Import *x, Cell cell, Found f)
{
    const Stage *stage = &x->stage[f.stage];
    if (stage->shard && !stage->whole)
        return wrong_after(x, cell,
                           "while the parameters of its stage are resharded",
                           stage->shard - 1, "from here on");
    if (stage->reduce && f.kind != ACT_F)
        return wrong_after(x, cell,
                           "adds to gradients that have been reduced already",
                           stage->reduce - 1, "here");
    return true;
}

/* ---- messages ---- */

/* A cell does not say with whom a message is exchanged: the boundary does. */
static void name_peers(const Import *x, int rank)
{
    const Program *p = x->p;
    for (int i = 0; i < x->rows[rank].count; i++) {
        Action *a = &x->rows[rank].at[i];
        bool out = is_send(a->kind) || is_wait(a->kind);
        int other = out != is_back(a->kind) ? p->chunks[a->chunk].next
                                            : p->chunks[a->chunk].previous;
        if (is_message(a->kind) && other >= 0)
            a->peer = p->chunks[other].rank;
    }
}

/* Whether each SEND meets its RECV, after what makes it and before what reads
 * it: as of any lists, so it is `prove` that says it, of the rows as they
 * stand. */
static bool messages_match(Import *x)
{
    Program *p = x->p, rows = *p;
    rows.lists = x->rows;
    rows.meet = MEET_BLOCKING;
    for (int r = 0; r < p->ranks; r++)
        name_peers(x, r);
    bool match = prove_messages(&rows);
    p->errors = rows.errors;
    return match;
}

static bool never_waited(Import *x, int begin)
{
    Program *p = x->p;
    Span at = cell_at(p, begin);
    return wrong_cell(x, (Cell){0, at.begin, at.end}, "is never waited for");
}

static bool all_waited(Import *x)
{
    Program *p = x->p;
    bool waits = x->seen[ACT_WAIT_F] || x->seen[ACT_WAIT_B];
    size_t cells = cell_of(p, 0, x->micros);
    for (size_t i = 0; waits && i < cells; i++) {
        if (x->slot[SLOT_SEND_F][i] && !x->slot[SLOT_WAIT_F][i])
            return never_waited(x, x->slot[SLOT_SEND_F][i] - 1);
        if (x->slot[SLOT_SEND_B][i] && !x->slot[SLOT_WAIT_B][i])
            return never_waited(x, x->slot[SLOT_SEND_B][i] - 1);
    }
    return true;
}

/* Files of before there was WAIT_REDUCE_GRAD have none at all. */
static bool all_reduced(Import *x)
{
    if (!x->seen[CSV_WAIT_REDUCE])
        return true;
    for (int s = 0; s < x->p->chunk_count; s++)
        if (x->stage[s].reduce && !x->stage[s].wait)
            return never_waited(x, x->stage[s].reduce - 1);
    return true;
}

static void say_what_is_placed(const Import *x)
{
    static const struct {
        int kind;
        const char *text;
    } left_out[] = {{ACT_WAIT_F, "WAIT_SEND"},
                    {ACT_WAIT_B, "WAIT_SEND"},
                    {CSV_REDUCE, "REDUCE_GRAD"},
                    {CSV_UNSHARD, "UNSHARD"}};
    Program *p = x->p;
    const char *text = NULL;
    int first = 0;
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        int at = x->seen[left_out[i].kind];
        if (!at || (i == 1 && x->seen[ACT_WAIT_F]))
            continue;
        text = text ? text_format(p->arena, "%s, %s", text, left_out[i].text)
                    : left_out[i].text;
        first = first && first < at ? first : at;
    }
    if (text)
        note_at(p, cell_at(p, first - 1),
                "%s: checked, and left out; pipec places waits and reductions "
                "itself, and a rank keeps its parameters whole",
                text);
}

/* Without the waits. */
static void bind_rows(Import *x)
{
    Program *p = x->p;
    p->rows = arena_take(p->arena, sizeof *p->rows * (size_t)p->ranks);
    for (int r = 0; r < p->ranks; r++)
        for (int i = 0; i < x->rows[r].count; i++)
            if (!is_wait(x->rows[r].at[i].kind))
                push_action(p, &p->rows[r], x->rows[r].at[i]);
}

/* Whoever plans such a file for our own programs may mean to run it in
 * PyTorch. */
static void warn_of_pair(Import *x)
{
    Program *p = x->p, other = *p;
    other.meet = MEET_PAIR;
    if (p->meet == MEET_PAIR || (communicate(&other) && prove_quietly(&other)))
        return;
    warning_at(p, row_at(p, 0),
               "with one queue for both directions of a pair of ranks, as in "
               "PyTorch, these messages would wait for each other");
    help(p, "`--messages pair` says where");
}

bool messages_bind(Import *x)
{
    if (!all_reduced(x))
        return false;
    if (x->rows) {
        if (!messages_match(x) || !all_waited(x))
            return false;
        bind_rows(x);
        warn_of_pair(x);
    }
    say_what_is_placed(x);
    return true;
}
