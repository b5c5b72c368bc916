/* check_split.c: the setting `split`, and what an even one counts.
 *
 *     split even back                  what does not divide goes to the last chunks
 *     split first 2 last 1             blocks of the first rank and of the last, the rest even
 *     split balanced
 *     split [3 4 4 3]                  layers of each chunk
 *     split "Et*2|tL"                  a layout, see layout.c
 *     account embedding, loss          what stands before the blocks counts as one, and what stands behind
 *
 * Writes: set. How many there are is seen by partition, when all layers are
 * known. */
#include "check.h"

#include <string.h>

static bool is_name(const Tree *value, const char *word)
{
    return value && value->kind == TREE_NAME && strcmp(value->text, word) == 0;
}

/* first 2 last 1 even back: is there one more word of it here. */
static bool is_end(const Tree *value)
{
    return is_name(value, "first") || is_name(value, "last");
}

static bool is_side(const Tree *value)
{
    return is_name(value, "front") || is_name(value, "back");
}

int split_values(const Tree *value)
{
    int count = 0;
    for (; is_end(value) && value->next; value = value->next->next)
        count += 2;
    if (is_name(value, "even"))
        count += is_side(value->next) ? 2 : 1;
    return count ? count : 1;
}

/* `first 2` at `value`; returns what is behind. */
static const Tree *set_end(Program *p, const Tree *value)
{
    Number *end = is_name(value, "first") ? &p->set.first : &p->set.last;
    const char *what = text_format(p->arena, "`%s`", value->text);
    const Tree *number = value->next;
    long blocks;
    if (!number || is_name(number, "even") || is_end(number)) {
        error_at(p, value->at, "%s needs a number of blocks", what);
        help(p, "split first 2 last 1");
        return number;
    }
    if (is_written(*end)) {
        error_at(p, value->at, "%s is set twice", what);
        note_at(p, end->at, "first here");
    }
    end->at = (Span){value->at.source, value->at.begin, number->at.end};
    if (whole_number(p, number, what, 1, 1 << 20, &blocks))
        end->value = (double)blocks;
    return number->next;
}

static const Tree *set_even(Program *p, const Tree *value)
{
    while (is_end(value))
        value = set_end(p, value);
    if (!is_name(value, "even"))
        return value;
    const Tree *side = value->next;
    if (!is_side(side)) {
        bool other = !side || side->kind != TREE_NAME ||
                     find_setting(NULL, side->text);
        if (other)
            return side;
        error_at(p, side->at, "`even` takes `front`, `back` or nothing");
        help(p, "split even back");
        return side->next;
    }
    p->set.even_back = is_name(side, "back");
    return side->next;
}

static void set_sizes(Program *p, const Tree *list)
{
    p->set.split = SPLIT_EXPLICIT;
    p->set.split_at = list->at;
    for (const Tree *size = list->child; size; size = size->next) {
        long layers = 1;
        whole_number(p, size, "a chunk's number of layers", 0, 1 << 20,
                     &layers);
        p->set.sizes = array_grow(p->arena, p->set.sizes, p->set.size_count,
                                  sizeof *p->set.sizes);
        p->set.sizes[p->set.size_count++] = (int)layers;
    }
}

const Tree *set_split(Program *p, const SettingRow *row, Span at,
                      const Tree *value)
{
    (void)row;
    p->set.split_at = at;
    if (is_name(value, "even") || is_end(value))
        return set_even(p, value);
    if (is_name(value, "balanced"))
        p->set.split = SPLIT_BALANCED;
    else if (is_layout(value))
        read_layout(p, value);
    else if (value->kind == TREE_LIST && value->child)
        set_sizes(p, value);
    else {
        error_at(p, value->at,
                 "a split is `even`, `balanced`, `first 2 last 1`, a list of "
                 "layers per chunk, or a layout");
        help(p, "split balanced");
    }
    return value->next;
}

/* ---- account ---- */

static void account_word(Program *p, const Tree *word, bool alone)
{
    Settings *set = &p->set;
    if (is_name(word, "embedding"))
        set->account_embedding = true;
    else if (is_name(word, "loss"))
        set->account_loss = true;
    else if (!alone || !is_name(word, "none")) {
        error_at(p, word->at,
                 "`account` takes `embedding`, `loss`, both or `none`");
        help(p, "account embedding, loss");
    }
}

/* With `none` blocks are counted, and nothing else. */
const Tree *set_account(Program *p, const SettingRow *row, Span at,
                        const Tree *value)
{
    (void)row;
    bool list = value->kind == TREE_LIST;
    p->set.account_at = at;
    for (const Tree *word = list ? value->child : value; word;
         word = list ? word->next : NULL)
        account_word(p, word, !list);
    return value->next;
}

void check_split(Program *p)
{
    const Settings *set = &p->set;
    bool ends = is_written(set->first) || is_written(set->last);
    if (set->account_at.source < 0 || (set->split == SPLIT_EVEN && !ends))
        return;
    error_at(p, set->account_at,
             ends ? "`account` and `first` or `last` exclude each other"
                  : "only an even split accounts for the ends");
    note_at(p, set->split_at, "the split is here");
    help(p, ends ? "leave one of the two out, as Megatron-LM wants it"
                 : "use `split even`, or leave `account` out");
}
