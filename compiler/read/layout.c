/* layout.c: Megatron's pipeline layout as a split.
 *
 *     split "Et*3|(tt|)*2tL"      E: what stands before the repeated layers
 *                                 t: one of them    L: what stands behind, and
 *     stage 0  E t t t            the loss          |: the next stage
 *     stage 1  t t                x*n, (..)*n: n times    ,: nothing
 *     stage 2  t t
 *     stage 3  t L
 *
 * A stage is a chunk. The text becomes one number per stage as it is read;
 * a repetition is a loop over the same bytes, so nothing is ever as long as
 * what it stands for. */
#include "compile.h"
#include "check.h"

#include <string.h>

enum { MOST_SYMBOLS = 1 << 20 };

typedef struct Layout {
    Program *p;
    const char *text;
    Span at;            // of the text, with its quotes
    int symbols;        // so far
    int in_stage;       // letters of the stage so far
    int layers;         // of them, t
    bool embeds, ends;  // E, L are there
} Layout;

static bool wrong(Layout *l, int from, int to, const char *why)
{
    Span at = {l->at.source, l->at.begin + 1 + from, l->at.begin + 1 + to};
    error_at(l->p, at, "%s", why);
    return false;
}

static void end_stage(Layout *l)
{
    Settings *set = &l->p->set;
    set->sizes = array_grow(l->p->arena, set->sizes, set->size_count,
                            sizeof *set->sizes);
    set->sizes[set->size_count++] = l->layers;
    l->in_stage = l->layers = 0;
}

static bool next_stage(Layout *l, int at)
{
    if (l->in_stage) {
        end_stage(l);
        return true;
    }
    wrong(l, at, at + 1,
          text_format(l->p->arena, "stage %d of the layout is empty",
                      l->p->set.size_count));
    help(l->p, "a stage has at least one layer; stages are numbered from 0");
    return false;
}

static bool letter(Layout *l, char c, int at)
{
    if (c == 'E' && (l->embeds || l->symbols > 1))
        return wrong(l, at, at + 1, "`E` comes once, at the beginning");
    if (c == 'm') {
        wrong(l, at, at + 1,
              "`m`, multi-token prediction, has no meaning here");
        help(l->p, "leave it out, with its stage");
        return false;
    }
    if (c != 'E' && c != 't' && c != 'L') {
        wrong(l, at, at + 1, "a layout has no such symbol");
        help(l->p, "E is the embedding, t a layer, L the head and the loss, | "
                   "the next stage; t*3 and (tt|)*3 repeat");
        return false;
    }
    l->embeds |= c == 'E';
    l->ends |= c == 'L';
    l->in_stage++;
    l->layers += c == 't';
    return true;
}

static bool symbol(Layout *l, int at)
{
    char c = l->text[at];
    if (l->ends)
        return wrong(l, at, at + 1, "`L` comes once, at the end");
    if (++l->symbols > MOST_SYMBOLS)
        return wrong(l, 0, (int)strlen(l->text),
                     text_format(l->p->arena,
                                 "a layout of more than %d symbols",
                                 MOST_SYMBOLS));
    return c == '|' ? next_stage(l, at) : letter(l, c, at);
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
    int star = skip_commas(l, *at), i = star + 1;
    *count = 1;
    if (l->text[star] != '*')
        return true;
    for (*count = 0; l->text[i] >= '0' && l->text[i] <= '9'; i++)
        if (*count <= MOST_SYMBOLS)
            *count = 10 * *count + l->text[i] - '0';
    *at = i;
    if (*count >= 1 && *count <= MOST_SYMBOLS)
        return true;
    return wrong(l, star, i > star + 1 ? i : star + 1,
                 text_format(l->p->arena,
                             "`*` needs a whole number from 1 to %d behind it",
                             MOST_SYMBOLS));
}

/* The symbols of [from, to), without brackets. */
static bool run_of_symbols(Layout *l, int from, int to)
{
    for (int at = skip_commas(l, from); at < to; at = skip_commas(l, at)) {
        int first = at++, count;
        if (l->text[first] == '*')
            return wrong(l, first, at, "`*` has nothing before it to repeat");
        if (!times(l, &at, &count))
            return false;
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
        wrong(l, close, close + 1, "a group inside a group");
        help(l->p, "write the inner one out: layouts do not nest");
        return false;
    }
    if (!l->text[close])
        return wrong(l, open, open + 1, "`(` is not closed");
    if (skip_commas(l, open + 1) == close)
        return wrong(l, open, close + 1, "a group of nothing");
    if (l->text[skip_commas(l, behind)] != '*') {
        wrong(l, close, close + 1, "a group needs a number of repetitions");
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
            return wrong(l, at, at + 1, "`)` closes no group");
        if (l->text[at] == '(' && !group(l, &at))
            return false;
    }
    return true;
}

static bool read_text(Layout *l)
{
    int length = (int)strlen(l->text);
    if (!all_symbols(l))
        return false;
    if (!l->embeds)
        return wrong(l, 0, length, "the layout does not begin with `E`");
    if (!l->ends)
        return wrong(l, 0, length, "the layout does not end with `L`");
    return true;
}

void read_layout(Program *p, const Tree *value)
{
    Layout l = {.p = p, .text = value->text, .at = value->at};
    p->set.split = SPLIT_EXPLICIT;
    p->set.split_at = value->at;
    p->set.layout = value->text;
    if (read_text(&l))
        end_stage(&l);
    else
        p->set.size_count = 0;
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
             "the layout has %d stages, which is no multiple of `stages`, %d",
             count, stages);
    note_at(p, set->stages.at, "from here");
    if (count > stages)
        help(p, "use `stages %d`, or a layout of %d or %d stages", count,
             count / stages * stages, (count / stages + 1) * stages);
    else
        help(p, "use `stages %d`, or a layout of %d stages", count, stages);
}

/* ---- with the layers of the model ---- */

static bool is_repeated(const Layer *layer)
{
    return strchr(layer->name, '.') != NULL;
}

static bool has_all_layers(Program *p, int first, int last)
{
    int layers = 0;
    for (int i = 0; i < p->set.size_count; i++)
        layers += p->set.sizes[i];
    if (layers == last - first + 1)
        return true;
    error_at(p, p->set.split_at,
             "the layout has %d `t`, but the model has %d layers from %s to %s",
             layers, last - first + 1, p->layers[first].name,
             p->layers[last].name);
    note_at(p, p->layers[first].at, "they are repeated here");
    return false;
}

/* A stage of the layout is a chunk. */
static void help_count(Program *p)
{
    const Settings *set = &p->set;
    if (set->listed)
        help(p,
             "use a layout of %d stages: one for each chunk of the placement",
             set->listed_count);
    else if (!is_written(set->stages))
        help(p, "use `stages %d`", set->size_count);
    else if (set->size_count % p->ranks == 0)
        help(p, "use `virtual %d`, or leave it out",
             set->size_count / p->ranks);
    else
        help(p, "use a layout of %d stages: stages times virtual",
             p->copy_chunks);
}

/* The layers before and behind belong to E, in the first stage, and to L, in
 * the last. */
bool fit_layout(Program *p)
{
    Settings *set = &p->set;
    int first = 0, last = p->layer_count - 1;
    while (first < p->layer_count && !is_repeated(&p->layers[first]))
        first++;
    while (last > first && !is_repeated(&p->layers[last]))
        last--;
    if (first == p->layer_count) {
        error_at(p, set->split_at,
                 "no entry of the model is repeated, so a "
                 "layout has no `t`");
        help(p, "split even, or a list of layers per chunk");
        return false;
    }
    if (set->size_count != p->copy_chunks) {
        error_at(p, set->split_at, "the layout has %d stages for %d chunk%s",
                 set->size_count, p->copy_chunks,
                 p->copy_chunks == 1 ? "" : "s");
        if (set->listed)
            note_at(p, set->placement_at, "the chunks are placed here");
        else
            note_at(p, set->stages.at, "%g stages, from here",
                    set->stages.value);
        help_count(p);
        return false;
    }
    if (!has_all_layers(p, first, last))
        return false;
    set->sizes[0] += first;
    set->sizes[set->size_count - 1] += p->layer_count - 1 - last;
    int empty = !set->sizes[0] ? 0 : set->size_count - 1;
    if (set->sizes[empty])
        return true;
    error_at(p, set->split_at,
             empty ? "stage %d has `L` alone, but no layer stands behind %s"
                   : "stage %d has `E` alone, but no layer stands before %s",
             empty, p->layers[empty ? last : first].name);
    help(p, "a stage has at least one layer; the loss is not one of them");
    return false;
}
