/* check_schedule.c: the schedules that the file writes itself.
 *
 *     schedule mine {
 *         let w = min(P - 1 - r, M)          w has slot 5, behind r P M v
 *         for m in 0 .. w { F(m) }           m has slot 6, in this loop
 *         steady
 *         for m in w .. M { F(m) B(m - w) }  and this m has it again
 *     }
 *
 * Reads: file, lets. Writes: written, and the slots of the names in each block.
 * Guarantees: every name is known, every action has its arguments, a mark
 * stands once. What depends on numbers, and so on the rank, is found when the
 * block runs: schedule_block.c. */
#include "check.h"

#include <ctype.h>
#include <string.h>

enum {
    MAX_NAMES = 256,  // at one place of a block
    MAX_LEVELS = 32,  // of `for` and `if` inside one another
    OWN = 4           // names that every block has
};

typedef struct Known {
    const char *name;
    Span at;  // source -1: every block has it
} Known;

typedef struct Binder {
    Program *p;
    Schedule *schedule;
    Known names[MAX_NAMES];
    int count;                      // slot s is names[s - 1]
    const Tree *steady, *cooldown;  // the marks, once seen
} Binder;

/* ---- names ---- */

static int find_known(const Binder *b, const char *name)
{
    for (int i = b->count; i-- > 0;)
        if (strcmp(b->names[i].name, name) == 0)
            return i;
    return -1;
}

/* Gives the name of a `let` or a `for` its slot. */
static bool add_name(Binder *b, Tree *from)
{
    int before = find_known(b, from->text);
    if (before >= 0) {
        error_at(b->p, from->name,
                 before < OWN ? "`%s` is a number that every schedule has"
                              : "`%s` is used twice",
                 from->text);
        if (before < OWN)
            help(b->p, "r is the rank, P the stages, M the micro-batches, v "
                       "the chunks of a rank; choose another name");
        else
            note_at(b->p, b->names[before].at, "first here");
        return false;
    }
    if (b->count == MAX_NAMES) {
        error_at(b->p, from->name, "more than %d names in one schedule",
                 MAX_NAMES);
        return false;
    }
    b->names[b->count++] = (Known){from->text, from->name};
    from->slot = b->count;
    if (b->schedule->numbers < b->count)
        b->schedule->numbers = b->count;
    return true;
}

static void bind_name(Binder *b, Tree *at)
{
    Program *p = b->p;
    const char *names[MAX_NAMES];
    int known = find_known(b, at->text);
    const Let *let = known < 0 ? find_let(p, at->text) : NULL;
    at->slot = let ? -1 - (int)(let - p->lets) : known + 1;
    if (at->slot)
        return;
    for (int i = 0; i < b->count; i++)
        names[i] = b->names[i].name;
    unknown_number(p, at, names, b->count);
}

/* 2M: two million, or twice the micro-batches. */
static void check_unit(Binder *b, const Tree *number)
{
    const char *text = b->p->sources[number->at.source].text;
    int unit = number->at.end;
    while (unit > number->at.begin && isalpha((unsigned char)text[unit - 1]))
        unit--;
    const char *name = text_copy(b->p->arena, text + unit,
                                 (size_t)(number->at.end - unit));
    if (find_known(b, name) < 0 && !find_let(b->p, name))
        return;
    int digits = unit - number->at.begin;
    const char *value = number_text(b->p, number->number);
    error_at(b->p, number->at, "`%.*s%s` is %s, but `%s` is a number here",
             digits, text + number->at.begin, name, value, name);
    help(b->p, "write %.*s*%s, or %s", digits, text + number->at.begin, name,
         value);
}

static void bind_names(Binder *b, Tree *at)
{
    switch (at->kind) {
    case TREE_NUMBER: check_unit(b, at); return;
    case TREE_NAME: bind_name(b, at); return;
    case TREE_CALL:
        if (!function_fits(b->p, at))
            return;
        break;
    case TREE_NEGATE:
    case TREE_BINARY:
    case TREE_COMPARE: break;
    default:
        error_at(b->p, at->at, "expected a number, not %s", kind_text(at));
        return;
    }
    for (Tree *child = at->child; child; child = child->next)
        bind_names(b, child);
}

/* ---- steps ---- */

static bool is_action(const char *text)
{
    return strlen(text) == 1 && strchr("FBIW", text[0]);
}

static void check_action(Binder *b, Tree *call)
{
    Program *p = b->p;
    int given = 0;
    for (Tree *at = call->child; at; at = at->next)
        given++;
    if (!is_action(call->text)) {
        error_at(p, call->name, "no action is called `%s`", call->text);
        help(p, "there are F(m), forward; B(m), backward; I(m) and W(m), its "
                "two parts");
    } else if (given < 1 || given > 2) {
        error_at(p, call->at, "`%s` takes a micro-batch, but is given %s",
                 call->text, given ? "more than two numbers" : "none");
        help(p, "%s(m), or %s(m, k) for the rank's chunk k", call->text,
             call->text);
    } else {
        for (Tree *at = call->child; at; at = at->next)
            bind_names(b, at);
        if (given == 2)
            b->schedule->most_chunks = 256;
    }
}

static void unknown_mark(Binder *b, const Tree *mark)
{
    static const char *const marks[] = {"steady", "cooldown"};
    Program *p = b->p;
    const char *near = nearest(mark->text, marks, 2);
    error_at(p, mark->at, "`%s` is neither an action nor a mark", mark->text);
    if (is_action(mark->text))
        help(p, "which micro-batch: %s(m)", mark->text);
    else if (near)
        help(p, "did you mean `%s`", near);
    else
        help(p, "marks are `steady` and `cooldown`; an action is F(m)");
}

/* The phases of a rank: two places of its whole order. */
static void check_mark(Binder *b, const Tree *mark, int level)
{
    Program *p = b->p;
    bool steady = strcmp(mark->text, "steady") == 0;
    const Tree **seen = steady ? &b->steady : &b->cooldown;
    if (!steady && strcmp(mark->text, "cooldown") != 0) {
        unknown_mark(b, mark);
    } else if (level) {
        error_at(p, mark->at, "`%s` stands inside a `for` or an `if`",
                 mark->text);
        help(p, "it begins a phase of the whole order: put it between them");
    } else if (*seen) {
        error_at(p, mark->at, "a second `%s`", mark->text);
        note_at(p, (*seen)->at, "the first is here");
    } else if (steady && b->cooldown) {
        error_at(p, mark->at, "`steady` stands after `cooldown`");
        note_at(p, b->cooldown->at, "`cooldown` is here");
    } else {
        *seen = mark;
    }
}

static void check_steps(Binder *b, Tree *steps, int level);

static void check_for(Binder *b, Tree *step, int level)
{
    Tree *first = step->child, *end = first->next, *by = end->next;
    bind_names(b, first);
    bind_names(b, end);
    if (by->child)
        bind_names(b, by->child);
    int count = b->count;
    add_name(b, step);
    check_steps(b, by->next, level + 1);
    b->count = count;
}

static void check_step(Binder *b, Tree *step, int level)
{
    switch (step->kind) {
    case TREE_LET:
        bind_names(b, step->child);
        add_name(b, step);
        break;
    case TREE_NAME: check_mark(b, step, level); break;
    case TREE_CALL: check_action(b, step); break;
    case TREE_FOR: check_for(b, step, level); break;
    default:
        bind_names(b, step->child);
        check_steps(b, step->child->next, level + 1);
        if (step->last->kind == TREE_IF)
            check_step(b, step->last, level + 1);
        else if (step->last != step->child->next)
            check_steps(b, step->last, level + 1);
    }
}

static void check_steps(Binder *b, Tree *steps, int level)
{
    int count = b->count;
    if (level > MAX_LEVELS) {
        error_at(b->p, steps->at, "more than %d levels of `for` and `if`",
                 MAX_LEVELS);
        return;
    }
    for (Tree *step = steps->child; step && b->p->errors <= MAX_ERRORS;
         step = step->next)
        check_step(b, step, level);
    b->count = count;
}

/* ---- blocks ---- */

const Schedule *find_schedule(const Program *p, const char *name)
{
    for (int i = 0; i < schedule_count + p->written_count; i++)
        if (strcmp(known_schedule(p, i)->name, name) == 0)
            return known_schedule(p, i);
    return NULL;
}

const Schedule *known_schedule(const Program *p, int index)
{
    return index < schedule_count ? schedules[index]
                                  : p->written[index - schedule_count];
}

static void check_name(Program *p, const Tree *block)
{
    const Schedule *before = find_schedule(p, block->text);
    if (strcmp(block->text, "from") == 0 || strcmp(block->text, "all") == 0) {
        error_at(p, block->name, "a schedule cannot be called `%s`",
                 block->text);
        help(p, "that means something else where a schedule is named");
    } else if (before && before->block) {
        error_at(p, block->name, "schedule `%s` is written twice", block->text);
        note_at(p, before->block->name, "first here");
    } else if (before) {
        error_at(p, block->name, "`%s` is a schedule already", block->text);
        help(p, "choose another name; `pipec --help schedules` lists those "
                "that are taken");
    }
}

Schedule *written_schedule(Program *p, const char *name, const char *summary)
{
    Schedule *made = arena_take(p->arena, sizeof *made);
    made->name = name;
    made->summary = summary;
    return made;
}

/* The name goes into programs and pictures: only what means nothing in any of
 * them, and no folder. */
const Schedule *schedule_from(Program *p, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char *name = text_format(p->arena, "from %s", base);
    for (char *c = name; *c; c++)
        if (!strchr(" -_.+", *c) && !(*c >= '0' && *c <= '9') &&
            !(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z'))
            *c = '_';
    Schedule *made = written_schedule(p, name,
                                      "the order of a file, a row for each "
                                      "rank");
    made->most_chunks = 256;
    made->any_placement = true;
    return made;
}

static void check_block(Program *p, Tree *block)
{
    static const char *const own[OWN] = {"r", "P", "M", "v"};
    Binder b = {.p = p, .count = OWN};
    for (int i = 0; i < OWN; i++)
        b.names[i] = (Known){own[i], {-1, 0, 0}};
    check_name(p, block);
    b.schedule = written_schedule(p, block->text,
                                  "an order that the file "
                                  "writes itself");
    b.schedule->block = block;
    b.schedule->any_placement = true;
    b.schedule->numbers = OWN;
    check_steps(&b, block->child, 0);
    p->written = array_grow(p->arena, p->written, p->written_count,
                            sizeof *p->written);
    p->written[p->written_count++] = b.schedule;
}

void check_schedules(Program *p)
{
    for (Tree *item = p->file->child; item && p->errors <= MAX_ERRORS;
         item = item->next)
        if (item->kind == TREE_SCHEDULE)
            check_block(p, item);
}
