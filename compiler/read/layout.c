/* layout.c: Megatron's pipeline layouts, read as a split and written of a plan.
 *
 *     split "Et*3|(tt|)*2|tmL"    E: what stands before the blocks
 *                                 t: a block      m: a layer `mtp`
 *     stage 0  E t t t            L: what stands behind, and the loss
 *     stage 1  t t                |: the next stage
 *     stage 2  t t                x*n, (..)*n: n times
 *     stage 3                     ,: nothing
 *     stage 4  t m L
 *
 *     split [["embedding", "decoder"], [], ["decoder"] * 2 + ["loss"]]      the same as a list
 *
 * A stage is a chunk, and may be empty. Letters become numbers per stage as
 * they are read; a repetition is a loop over the same bytes, so nothing is ever
 * as long as what it stands for.
 *
 * What is refused is what Megatron-LM refuses (pipeline_parallel_layer_layout.py,
 * parse_str_to_list and validate_layer_layout), but for two rules about where
 * `m` and `L` stand, of which we only warn; see megatron_rules. */
#include "layout.h"
#include "check.h"

#include <ctype.h>
#include <string.h>

enum { MOST_SYMBOLS = 1 << 20 };

const LayoutWord layout_words[LAYOUT_WORDS] = {
    [LAYOUT_EMBEDDING] = {'E', "embedding", "the embedding"},
    [LAYOUT_BLOCK] = {'t', "decoder", "a block"},
    [LAYOUT_PREDICTION] = {'m', "mtp", "a layer `mtp`"},
    [LAYOUT_LOSS] = {'L', "loss", "the head and the loss"},
};

typedef struct Layout {
    Program *p;
    const char *text;   // NULL: it is a list
    Span at;            // of the text, with its quotes; of the list
    int symbols;        // so far
    LayoutStage stage;  // the one at hand
    int last;           // kind of the last word; -1: none yet
} Layout;

static bool wrong(Layout *l, Span at, const char *why)
{
    error_at(l->p, at, "%s", why);
    return false;
}

static Span piece(const Layout *l, int from, int to)
{
    return (Span){l->at.source, l->at.begin + 1 + from, l->at.begin + 1 + to};
}

/* As the user writes it. */
static const char *name_of(const Layout *l, int kind)
{
    const LayoutWord *word = &layout_words[kind];
    return l->text ? text_format(l->p->arena, "`%c`", word->letter)
                   : text_format(l->p->arena, "\"%s\"", word->word);
}

/* ---- stages ---- */

/* All of it, for what is wrong with no part alone. */
static Span whole(const Layout *l)
{
    return l->text && *l->text ? piece(l, 0, (int)strlen(l->text)) : l->at;
}

static bool too_many(Layout *l)
{
    return wrong(l, whole(l),
                 text_format(l->p->arena, "a layout of more than %d symbols",
                             MOST_SYMBOLS));
}

static bool end_stage(Layout *l)
{
    Settings *set = &l->p->set;
    if (++l->symbols > MOST_SYMBOLS)
        return too_many(l);
    set->layout = array_grow(l->p->arena, set->layout, set->size_count,
                             sizeof *set->layout);
    set->layout[set->size_count++] = l->stage;
    l->stage = (LayoutStage){{0}};
    return true;
}

/* Words come in the order of their kinds. */
static bool add_word(Layout *l, int kind, Span at)
{
    bool begins = l->last < 0 && l->p->set.size_count == 0;
    if (kind == LAYOUT_EMBEDDING && !begins) {
        wrong(l, at,
              text_format(l->p->arena, "%s comes once, at the beginning",
                          name_of(l, kind)));
        help(l->p, "the first stage computes the embedding");
        return false;
    }
    if (kind < l->last) {
        wrong(l, at,
              text_format(l->p->arena, "%s behind %s", name_of(l, kind),
                          name_of(l, l->last)));
        help(l->p, "the order is %s, %s, %s, %s", name_of(l, 0), name_of(l, 1),
             name_of(l, 2), name_of(l, 3));
        return false;
    }
    if (++l->symbols > MOST_SYMBOLS)
        return too_many(l);
    l->last = kind;
    l->stage.of[kind]++;
    return true;
}

static bool is_whole_layout(Layout *l)
{
    const Settings *set = &l->p->set;
    int last = set->size_count - 1;
    const char *first_word = name_of(l, LAYOUT_EMBEDDING),
               *last_word = name_of(l, LAYOUT_LOSS);
    Span at = whole(l);
    if (last < 0 || !set->layout[0].of[LAYOUT_EMBEDDING])
        return wrong(l, at,
                     text_format(l->p->arena,
                                 "the layout does not begin with %s",
                                 first_word));
    if (set->layout[last].of[LAYOUT_LOSS])
        return true;
    if (l->last != LAYOUT_LOSS)
        return wrong(l, at,
                     text_format(l->p->arena, "the layout does not end with %s",
                                 last_word));
    wrong(l, at,
          text_format(l->p->arena,
                      "stage %d, the last one, has no %s, but the loss is "
                      "computed there",
                      last, last_word));
    help(l->p, "end with the stage of %s", last_word);
    return false;
}

/* ---- texts ---- */

static int kind_of(char letter)
{
    int kind = 0;
    while (kind < LAYOUT_WORDS && layout_words[kind].letter != letter)
        kind++;
    return kind;
}

static const char *all_words(Program *p)
{
    const char *list = "";
    for (int i = 0; i < LAYOUT_WORDS; i++)
        list = text_format(p->arena, "%s%c %s%s, ", list,
                           layout_words[i].letter, i ? "" : "is ",
                           layout_words[i].what);
    return list;
}

static bool symbol(Layout *l, int at)
{
    int kind = kind_of(l->text[at]);
    if (l->text[at] == '|')
        return end_stage(l);
    if (kind < LAYOUT_WORDS)
        return add_word(l, kind, piece(l, at, at + 1));
    wrong(l, piece(l, at, at + 1), "a layout has no such symbol");
    help(l->p, "%s| the next stage; t*3 and (tt|)*3 repeat", all_words(l->p));
    return false;
}

static int skip_commas(const Layout *l, int at)
{
    while (l->text[at] == ',')
        at++;
    return at;
}

/* `*n` at `at`, if it is there; moves behind it. */
static bool times(Layout *l, int *at, int *count)
{
    int star = skip_commas(l, *at), i = star + 1, digits = 0;
    *count = 1;
    if (l->text[star] != '*')
        return true;
    *count = 0;
    for (i = skip_commas(l, i); l->text[i] >= '0' && l->text[i] <= '9';
         i = skip_commas(l, i + 1), digits++)
        if (*count <= MOST_SYMBOLS)
            *count = 10 * *count + l->text[i] - '0';
    *at = i;
    if (digits && *count <= MOST_SYMBOLS)
        return true;
    return wrong(l, piece(l, star, digits ? i : star + 1),
                 text_format(l->p->arena,
                             "`*` needs a whole number from 0 to %d behind it",
                             MOST_SYMBOLS));
}

/* The symbols of [from, to), without brackets. */
static bool run_of_symbols(Layout *l, int from, int to)
{
    for (int at = skip_commas(l, from); at < to; at = skip_commas(l, at)) {
        int first = at++, count;
        if (l->text[first] == '*')
            return wrong(l, piece(l, first, at),
                         "`*` has nothing before it to repeat");
        if (!times(l, &at, &count))
            return false;
        if (++l->symbols > MOST_SYMBOLS)  // a step, even without a word
            return too_many(l);
        for (int i = 0; i < count; i++)
            if (!symbol(l, first))
                return false;
    }
    return true;
}

/* A group begins at `at`; moves behind it. */
static bool group(Layout *l, int *at)
{
    int open = *at, close = open + 1 + (int)strcspn(l->text + open + 1, "()");
    int behind = close + 1, count;
    if (l->text[close] == '(') {
        wrong(l, piece(l, close, close + 1), "a group inside a group");
        help(l->p, "write the inner one out: layouts do not nest");
        return false;
    }
    if (!l->text[close])
        return wrong(l, piece(l, open, open + 1), "`(` is not closed");
    if (skip_commas(l, open + 1) == close)
        return wrong(l, piece(l, open, close + 1), "a group of nothing");
    if (l->text[skip_commas(l, behind)] != '*') {
        wrong(l, piece(l, close, close + 1),
              "a group needs a number of repetitions");
        help(l->p, "(tt|)*3");
        return false;
    }
    if (!times(l, &behind, &count))
        return false;
    for (int i = 0; i < count; i++)
        if (!run_of_symbols(l, open + 1, close))
            return false;
    *at = behind;
    return true;
}

static bool all_symbols(Layout *l)
{
    int at = 0;
    while (l->text[at]) {
        int plain = (int)strcspn(l->text + at, "()");
        if (!run_of_symbols(l, at, at + plain))
            return false;
        at += plain;
        if (l->text[at] == ')')
            return wrong(l, piece(l, at, at + 1), "`)` closes no group");
        if (l->text[at] == '(' && !group(l, &at))
            return false;
    }
    return end_stage(l);
}

/* ---- lists ---- */

/* As Megatron reads it: in any case, with white space around it. */
static bool is_word(const char *text, const char *word)
{
    while (isspace((unsigned char)*text))
        text++;
    for (; *word; text++, word++)
        if (tolower((unsigned char)*text) != *word)
            return false;
    while (isspace((unsigned char)*text))
        text++;
    return !*text;
}

static bool list_word(Layout *l, const Tree *at)
{
    const char *names[LAYOUT_WORDS];
    for (int i = 0; at->kind == TREE_STRING && i < LAYOUT_WORDS; i++) {
        if (is_word(at->text, layout_words[i].word))
            return add_word(l, i, at->at);
        names[i] = layout_words[i].word;
    }
    if (at->kind != TREE_STRING) {
        wrong(l, at->at, "a stage of a layout is a list of words in quotes");
        help(l->p, "[\"embedding\", \"decoder\"]");
        return false;
    }
    const char *near = nearest(at->text, names, LAYOUT_WORDS);
    wrong(l, at->at, "a layout has no such word");
    if (near)
        help(l->p, "did you mean \"%s\"", near);
    else
        help(l->p, "the words are %s, %s, %s, %s", name_of(l, 0), name_of(l, 1),
             name_of(l, 2), name_of(l, 3));
    return false;
}

/* ["decoder"] * 3 + ["loss"], as in Python. */
static bool is_list(const Tree *value)
{
    if (value->kind != TREE_BINARY)
        return value->kind == TREE_LIST && !value->text;
    const Tree *left = value->child, *right = left->next;
    return value->text[0] == '+'   ? is_list(left) && is_list(right)
           : value->text[0] == '*' ? is_list(left) != is_list(right)
                                   : false;
}

typedef bool Take(Layout *l, const Tree *item);

static bool each_item(Layout *l, const Tree *list, Take *take)
{
    long times = 1;
    if (list->kind == TREE_LIST) {
        for (const Tree *item = list->child; item; item = item->next)
            if (!take(l, item))
                return false;
        return true;
    }
    const Tree *left = list->child, *right = left->next;
    if (list->text[0] == '+')
        return each_item(l, left, take) && each_item(l, right, take);
    const Tree *inner = is_list(left) ? left : right;
    if (!whole_number(l->p, inner == left ? right : left, "the repetition", 0,
                      MOST_SYMBOLS, &times))
        return false;
    for (long i = 0; i < times; i++) {
        if (++l->symbols > MOST_SYMBOLS)
            return too_many(l);
        if (!each_item(l, inner, take))
            return false;
    }
    return true;
}

static bool list_stage(Layout *l, const Tree *stage)
{
    if (is_list(stage))
        return each_item(l, stage, list_word) && end_stage(l);
    wrong(l, stage->at, "a layout is a list of lists, one for a stage");
    help(l->p, "[[\"embedding\", \"decoder\"], [\"decoder\", \"loss\"]]");
    return false;
}

/* Also of what is none, but can only be meant as one. */
bool is_layout(const Tree *value)
{
    const Tree *first = value->child;
    if (first && first->kind == TREE_BINARY && first->child->kind == TREE_LIST)
        return true;
    return value->kind == TREE_STRING ||
           (value->kind == TREE_BINARY && is_list(value)) ||
           (value->kind == TREE_LIST && first &&
            (first->kind == TREE_STRING || is_list(first)));
}

void read_layout(Program *p, const Tree *value)
{
    bool text = value->kind == TREE_STRING;
    Layout l = {
        .p = p, .text = text ? value->text : NULL, .at = value->at, .last = -1};
    p->set.split = SPLIT_EXPLICIT;
    p->set.split_at = value->at;
    if (!(text ? all_symbols(&l) : each_item(&l, value, list_stage)) ||
        !is_whole_layout(&l)) {
        p->set.size_count = 0;
        p->set.layout = NULL;
    }
}

/* ---- writing ---- */

static const char *repeated(Arena *arena, const char *text, char letter,
                            int count)
{
    if (count > 2)
        return text_format(arena, "%s%c*%d", text, letter, count);
    for (; count > 0; count--)
        text = text_format(arena, "%s%c", text, letter);
    return text;
}

static const char *stage_text(Arena *arena, const LayoutStage *stage)
{
    const char *text = "";
    for (int i = 0; i < LAYOUT_WORDS; i++)
        text = repeated(arena, text, layout_words[i].letter, stage->of[i]);
    return text;
}

/* Stages that are alike are written once; not the last, which ends in no |. */
const char *layout_text(Arena *arena, const LayoutStage *stages, int count)
{
    const char *text = "";
    for (int i = 0; i < count - 1;) {
        const char *own = stage_text(arena, &stages[i]);
        int alike = 1;
        while (i + alike < count - 1 &&
               memcmp(&stages[i], &stages[i + alike], sizeof *stages) == 0)
            alike++;
        text = alike > 1 ? text_format(arena, "%s(%s|)*%d", text, own, alike)
                         : text_format(arena, "%s%s|", text, own);
        i += alike;
    }
    return text_format(arena, "%s%s", text,
                       stage_text(arena, &stages[count - 1]));
}

/* ---- the layout of the file ---- */

int layout_count(const Program *p, int kind)
{
    int count = 0;
    for (int i = 0; p->set.layout && i < p->set.size_count; i++)
        count += p->set.layout[i].of[kind];
    return count;
}

/* Megatron gives v by the stages of the text. */
void take_virtual(Program *p)
{
    enum { MOST = 256 };
    Settings *set = &p->set;
    int stages = (int)set->stages.value, count = set->size_count;
    if (!set->layout || !count || is_written(set->virtuals) ||
        !is_written(set->stages) || count > MOST * stages)
        return;
    if (count % stages == 0) {
        set->virtuals = (Number){count / stages, set->split_at};
        return;
    }
    error_at(p, set->split_at,
             "the layout has %d stage%s, which is no multiple of `stages`, %d",
             count, count == 1 ? "" : "s", stages);
    note_at(p, set->stages.at, "from here");
    if (count > stages)
        help(p, "use `stages %d`, or a layout of %d or %d stages", count,
             count / stages * stages, (count / stages + 1) * stages);
    else
        help(p, "use `stages %d`, or a layout of %d stages", count, stages);
}
