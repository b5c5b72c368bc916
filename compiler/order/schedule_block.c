/* schedule_block.c: the order that a schedule block of the file writes.
 *
 * Reads: set, chunks, ranks, lets. Writes: order. Guarantees: on every rank
 * each of its chunks has F, and B or I and W, once for each micro-batch; what
 * order they may have is for `prove` to say.
 *
 * The block runs once for each rank, step by step over its tree; its names are
 * an array of numbers, by the slots of check_schedule.c.
 *
 *     numbers   r  P  M  v  w  m ...
 *     chunks    the rank's own along the model: F(m, k) is of chunks[k]
 *
 * Nothing is kept of where an action came from. Whoever has to say it to a
 * person runs the block once more, up to that entry: then the step that it has
 * reached is the place, and the numbers are those that it had. */
#include "order.h"
#include "read/check.h"
#include "written.h"

#include <math.h>
#include <string.h>

enum { MAX_LOOPS = 64 };  // more than check_schedule.c lets pass
/* Of all ranks together, each operation of an expression counted: a block that
 * writes a proper order does not need more, and any other one must end. */
static const double MAX_STEPS = 10e6, MAX_STEPS_OF_ACTION = 64;
static const double MAX_WHOLE = 1e15;

typedef struct Run {
    Program *p;
    const Schedule *schedule;
    int rank;
    int *chunks, chunk_count;  // the rank's own, along the model
    Numbers numbers;
    double most_steps;
    const Tree *loops[MAX_LOOPS];  // those around the step, outermost first
    int loop_count;
    int *entry[3];        // [F, backward, W][cell] 1 + its place in the order
    int count, wanted;    // replay: actions so far, and where to stop
    const Tree *reached;  // the action there
} Run;

/* ---- what is said about a place ---- */

static const char *loop_numbers(Run *x)
{
    const char *text = "";
    for (int i = 0; i < x->loop_count; i++)
        text = text_format(
            x->p->arena, "%s, %s = %s", text, x->loops[i]->text,
            number_text(x->p, x->numbers.at[x->loops[i]->slot - 1]));
    return text;
}

/* Behind every error: for which rank, and what the loops have come to. */
static bool stopped(Run *x)
{
    const Tree *loop = x->loop_count ? x->loops[x->loop_count - 1] : NULL;
    Span at = loop ? loop->at : x->schedule->block->name;
    if (loop)
        at.end = loop->child->next->next->at.end;  // the first line alone
    note_at(x->p, at, "on rank %d%s", x->rank, loop_numbers(x));
    return false;
}

/* ---- numbers ---- */

static bool number(Run *x, const Tree *at, double *value)
{
    return evaluate(x->p, &x->numbers, at, value) || stopped(x);
}

static bool whole(Run *x, const Tree *at, const char *what, double *value)
{
    if (!number(x, at, value))
        return false;
    if (*value == floor(*value) && fabs(*value) <= MAX_WHOLE)
        return true;
    error_at(x->p, at->at, "%s is %s, but must be a whole number", what,
             number_text(x->p, *value));
    stopped(x);
    if (fabs(*value) <= MAX_WHOLE)
        help(x->p, "floor(...) leaves the fraction out");
    return false;
}

static bool compare(const char *operator, double a, double b)
{
    bool or_equal = operator[1] == '=';
    switch (operator[0]) {
    case '=': return a == b;
    case '!': return a != b;
    case '<': return or_equal ? a <= b : a < b;
    default: return or_equal ? a >= b : a > b;
    }
}

static bool condition(Run *x, const Tree *at, bool *holds)
{
    const Tree *a = at->child, *b = a->next;
    double left, right;
    if (a->kind != TREE_COMPARE) {
        if (!number(x, a, &left) || !number(x, b, &right))
            return false;
        *holds = compare(at->text, left, right);
        return true;
    }
    if (!condition(x, a, holds))
        return false;
    bool decided = *holds == (at->text[0] == 'o');
    return decided || condition(x, b, holds);
}

/* ---- actions ---- */

static bool micro_of(Run *x, const Tree *action, int *micro)
{
    Program *p = x->p;
    double value, count = p->microbatches;
    if (!whole(x, action->child, "the micro-batch", &value))
        return false;
    if (value >= 0 && value < count) {
        *micro = (int)value;
        return true;
    }
    error_at(p, action->at, "there is no micro-batch %s",
             number_text(p, value));
    stopped(x);
    help(p,
         count == 1 ? "there is micro-batch 0 alone"
                    : "micro-batches are numbered from 0 to %g",
         count - 1);
    return false;
}

static bool chunk_of(Run *x, const Tree *action, int *chunk)
{
    Program *p = x->p;
    const Tree *at = action->child->next;
    double value = 0;
    if (at && !whole(x, at, "the chunk", &value))
        return false;
    if (!at && x->chunk_count > 1) {
        error_at(p, action->at,
                 "`%s` does not say which of the rank's %d chunks",
                 action->text, x->chunk_count);
        stopped(x);
        help(p, "%s(m, k), with k from 0 to %d", action->text,
             x->chunk_count - 1);
        return false;
    }
    if (value < 0 || value >= x->chunk_count) {
        error_at(p, (at ? at : action)->at, "there is no chunk %s",
                 number_text(p, value));
        stopped(x);
        help(p,
             x->chunk_count == 1 ? "the rank has chunk 0 alone"
                                 : "a rank's chunks are numbered from 0 to %d",
             x->chunk_count - 1);
        return false;
    }
    *chunk = x->chunks[(int)value];
    return true;
}

static ActionKind kind_of(const Tree *action)
{
    switch (action->text[0]) {
    case 'F': return ACT_F;
    case 'B': return ACT_B;
    case 'I': return ACT_I;
    default: return ACT_W;
    }
}

static bool second(Run *x, const Tree *action, Action a, int before)
{
    Program *p = x->p;
    Action first = p->order[x->rank].at[before];
    Origin origin = origin_of(p, x->rank, first);
    error_at(p, action->at, "rank %d runs %s a second time", x->rank,
             action_text(p, a));
    stopped(x);
    note_at(p, origin.at, "it has run %s here%s", action_text(p, first),
            origin.text);
    return false;
}

static bool run_action(Run *x, const Tree *action)
{
    Program *p = x->p;
    List *order = &p->order[x->rank];
    Action a = {kind_of(action), -1, -1, -1, 0, order->count + 1};
    if (!micro_of(x, action, &a.micro) || !chunk_of(x, action, &a.chunk))
        return false;
    if (x->wanted >= 0) {
        x->reached = action;
        return x->count++ != x->wanted;
    }
    int part = a.kind == ACT_F ? 0 : a.kind == ACT_W ? 2 : 1;
    int *entry = &x->entry[part][cell_of(p, a.chunk, a.micro)];
    if (*entry)
        return second(x, action, a, *entry - 1);
    *entry = order->count + 1;
    push_action(p, order, a);
    return true;
}

/* ---- steps: false stops the run, after an error or at the entry wanted ---- */

static bool run_steps(Run *x, const Tree *steps);

/* A loop without actions in it must end as well. */
static bool another_step(Run *x, const Tree *at)
{
    if (++x->numbers.steps <= x->most_steps)
        return true;
    error_at(x->p, at->at, "schedule `%s` takes more than %.3g million steps",
             x->schedule->name, x->most_steps / 1e6);
    stopped(x);
    help(x->p, "every round of a loop counts, also one without actions");
    return false;
}

/* for m in first .. end by step down: the same numbers as without `down`, the
 * last one first. */
static bool run_for(Run *x, const Tree *loop)
{
    const Tree *by = loop->child->next->next;
    double first, end, step = 1;
    if (!whole(x, loop->child, "where the loop begins", &first) ||
        !whole(x, loop->child->next, "where the loop ends", &end) ||
        (by->child && !whole(x, by->child, "the step", &step)))
        return false;
    if (step < 1) {
        error_at(x->p, by->child->at, "a loop goes by 1 or more, not by %s",
                 number_text(x->p, step));
        stopped(x);
        help(x->p, "`down` takes the same numbers, the last one first");
        return false;
    }
    double rounds = ceil((end - first) / step);
    x->loops[x->loop_count++] = loop;
    for (double i = 0; i < rounds; i++) {
        x->numbers.at[loop->slot - 1] = first +
                                        step * (by->text ? rounds - 1 - i : i);
        if (!another_step(x, loop) || !run_steps(x, by->next))
            return false;
    }
    x->loop_count--;
    return true;
}

static bool run_if(Run *x, const Tree *step)
{
    const Tree *then = step->child->next, *otherwise = then->next;
    bool holds;
    if (!condition(x, step->child, &holds))
        return false;
    if (holds)
        return run_steps(x, then);
    if (!otherwise)
        return true;
    return otherwise->kind == TREE_IF ? run_if(x, otherwise)
                                      : run_steps(x, otherwise);
}

static void run_mark(Run *x, const Tree *mark)
{
    if (x->wanted >= 0)
        return;
    if (strcmp(mark->text, "steady") == 0)
        begin_steady(x->p, x->rank);
    else
        begin_cooldown(x->p, x->rank);
}

static bool run_steps(Run *x, const Tree *steps)
{
    for (const Tree *step = steps->child; step; step = step->next) {
        if (!another_step(x, step))
            return false;
        switch (step->kind) {
        case TREE_LET:
            if (!number(x, step->child, &x->numbers.at[step->slot - 1]))
                return false;
            break;
        case TREE_NAME: run_mark(x, step); break;
        case TREE_CALL:
            if (!run_action(x, step))
                return false;
            break;
        case TREE_FOR:
            if (!run_for(x, step))
                return false;
            break;
        default:
            if (!run_if(x, step))
                return false;
        }
    }
    return true;
}

/* ---- the pass ---- */

static Run start_run(Program *p, int wanted)
{
    Run x = {.p = p, .schedule = p->set.schedule, .wanted = wanted};
    size_t cells = cell_of(p, 0, p->microbatches);
    x.numbers.at = arena_take(p->arena,
                              sizeof(double) * (size_t)x.schedule->numbers);
    x.most_steps = MAX_STEPS + MAX_STEPS_OF_ACTION * 2 * (double)cells;
    x.chunks = arena_take(p->arena, sizeof(int) * (size_t)p->chunk_count);
    for (int part = 0; wanted < 0 && part < 3; part++)
        x.entry[part] = arena_take(p->arena, sizeof(int) * cells);
    return x;
}

static bool run_rank(Run *x, int rank)
{
    const Program *p = x->p;
    x->rank = rank;
    x->chunk_count = x->loop_count = 0;
    for (int c = 0; c < p->chunk_count; c++)
        if (p->chunks[c].rank == rank)
            x->chunks[x->chunk_count++] = c;
    x->numbers.at[0] = rank;
    x->numbers.at[1] = p->set.stages.value;
    x->numbers.at[2] = p->microbatches;
    x->numbers.at[3] = p->copies > 1 ? 1 : x->chunk_count;
    return run_steps(x, x->schedule->block->child);
}

/* What a chunk leaves out of one micro-batch; NULL: nothing. */
static const char *left_out(Run *x, int chunk, int micro)
{
    Program *p = x->p;
    size_t cell = cell_of(p, chunk, micro);
    int backward = x->entry[1][cell];
    if (!x->entry[0][cell])
        return "F";
    if (!backward)
        return "B";
    bool whole = p->order[p->chunks[chunk].rank].at[backward - 1].kind == ACT_B;
    return whole || x->entry[2][cell] ? NULL : "W";
}

/* Names the first action that no rank runs, and counts the others. */
static bool is_complete(Run *x)
{
    Program *p = x->p;
    long missing = 0;
    const char *first = NULL;
    for (int m = 0; m < p->microbatches; m++) {
        for (int c = 0; c < p->chunk_count; c++) {
            const char *what = goes_through(p, c, m) ? left_out(x, c, m) : NULL;
            if (what && !missing++)
                first = text_format(p->arena, "rank %d never runs %d%s%d",
                                    p->chunks[c].rank, c, what, m);
        }
    }
    if (!missing)
        return true;
    error_at(p, x->schedule->block->name, "%s", first);
    if (missing > 1)
        help(p,
             "%ld actions are missing; each chunk needs F(m), and B(m) or "
             "both I(m) and W(m), for every micro-batch m",
             missing);
    else
        help(p, "each chunk needs F(m), and B(m) or both I(m) and W(m), for "
                "every micro-batch m");
    return false;
}

static bool has_marks(const Schedule *s)
{
    for (const Tree *step = s->block->child->child; step; step = step->next)
        if (step->kind == TREE_NAME)
            return true;
    return false;
}

static Origin block_origin(Program *p, int rank, int entry)
{
    Run x = start_run(p, entry);
    run_rank(&x, rank);
    return (Origin){x.reached->at,
                    text_format(p->arena, " (%s, line %d%s)", x.schedule->name,
                                line_of(p, x.reached->at), loop_numbers(&x))};
}

bool run_block(Program *p)
{
    p->origin = block_origin;
    Run x = start_run(p, -1);
    for (int r = 0; r < p->ranks; r++) {
        if (!run_rank(&x, r))
            return false;
        if (!has_marks(x.schedule))
            find_phases(&p->order[r]);
    }
    return is_complete(&x);
}
