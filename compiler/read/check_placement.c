/* check_placement.c: does the pipeline have the shape that its schedule needs:
 * placement of chunks, chunks per rank, number of ranks.
 *
 * Reads: set. Writes: set.placement; set.stages and set.virtuals where the file
 * leaves them to a list of ranks or to the schedule. Guarantees: the schedule's
 * `order` may divide as it likes; in a list every rank has a chunk.
 *
 *     placement [0 1 1 0]    stages 2, virtual 2: a vee, for zbv too
 *     placement [0 0 1]      ranks of 2 and 1 chunks: PLACE_OWN */
#include "check.h"

const char *const placement_names[PLACEMENT_COUNT] = {
#define AS_TEXT(name, text) text,
    PLACEMENTS(AS_TEXT)
#undef AS_TEXT
};

/* ---- a list of ranks ---- */

const char *placement_text(Program *p)
{
    enum { SHOWN = 32 };  // ranks
    const Settings *set = &p->set;
    if (!set->listed)
        return placement_names[set->placement];
    const char *text = "[";
    for (int c = 0; c < set->listed_count && c < SHOWN; c++)
        text = text_format(p->arena, "%s%s%d", text, c ? " " : "",
                           set->listed[c]);
    return text_format(p->arena, "%s%s]", text,
                       set->listed_count > SHOWN ? " ..." : "");
}

/* The places of the ranks are those of chunks 0 .. P-1, in any order. */
static bool is_list_a(const Settings *set, Placement placement)
{
    int ranks = (int)set->stages.value, count = set->listed_count;
    int legs = count / ranks;
    if (count % ranks || (placement == PLACE_VEE && legs != 2) ||
        (placement == PLACE_WAVE && legs % 2))
        return false;
    for (int c = 0; c < count; c++) {
        bool back = placement != PLACE_LOOP && c / ranks % 2;
        int place = back ? ranks - 1 - c % ranks : c % ranks;
        if (set->listed[c] != set->listed[place])
            return false;
    }
    return true;
}

Placement named_list(const Settings *set, Placement first)
{
    if (first < PLACE_TWIN && is_list_a(set, first))
        return first;
    for (int k = 0; k < PLACE_TWIN; k++)
        if (is_list_a(set, (Placement)k))
            return (Placement)k;
    return PLACE_OWN;
}

bool is_renamed(const Settings *set)
{
    bool renamed = false;
    for (int r = 0; set->listed && r < (int)set->stages.value; r++)
        renamed |= set->listed[r] != r;
    return renamed && set->placement != PLACE_OWN;
}

static bool rank_too_high(Program *p, int chunk)
{
    const Settings *set = &p->set;
    int stages = (int)set->stages.value, most = 0;
    for (int c = 0; c < set->listed_count; c++)
        most = set->listed[c] > most ? set->listed[c] : most;
    error_at(p, set->placement_at, "chunk %d is on rank %d, but `stages` is %d",
             chunk, set->listed[chunk], stages);
    note_at(p, set->stages.at, "from here");
    help(p, "use `stages %d`, or ranks below %d", most + 1, stages);
    return false;
}

/* `used`: ranks up to the highest of the list. */
static bool rank_without(Program *p, int rank, int used)
{
    const Settings *set = &p->set;
    int stages = is_written(set->stages) ? (int)set->stages.value : used;
    error_at(p, set->placement_at, "the placement has no chunk on rank %d",
             rank);
    if (is_written(set->stages))
        note_at(p, set->stages.at, "%d stages, from here", stages);
    if (rank == used)
        help(p, "use `stages %d`, or a chunk on every rank from 0 to %d", used,
             stages - 1);
    else
        help(p, "every rank from 0 to %d has at least one", stages - 1);
    return false;
}

/* In a list of `virtual` chunks per rank every rank has as many. */
static bool wrong_virtual(Program *p, const int *chunks)
{
    Settings *set = &p->set;
    int rank = 0;
    while (chunks[rank] == (int)set->virtuals.value)
        rank++;
    error_at(p, set->virtuals.at,
             "`virtual` is %g, but the placement has %d chunk%s on rank %d",
             set->virtuals.value, chunks[rank], chunks[rank] > 1 ? "s" : "",
             rank);
    note_at(p,
            set->placement_at.source < 0 ? set->schedule_at : set->placement_at,
            "the placement is %s", placement_text(p));
    help(p, "leave `virtual` out: it follows from the placement");
    return false;
}

static bool list_fits(Program *p)
{
    Settings *set = &p->set;
    int *chunks = arena_take(p->arena, sizeof *chunks * MAX_RANKS), ranks = 0;
    for (int c = 0; c < set->listed_count; c++) {
        int rank = set->listed[c];
        if (is_written(set->stages) && rank >= (int)set->stages.value)
            return rank_too_high(p, c);
        chunks[rank]++;
        ranks = rank >= ranks ? rank + 1 : ranks;
    }
    int used = ranks, least = chunks[0], most = least;
    if (is_written(set->stages))
        ranks = (int)set->stages.value;
    for (int r = 0; r < ranks; r++) {
        if (!chunks[r])
            return rank_without(p, r, used);
        least = chunks[r] < least ? chunks[r] : least;
        most = chunks[r] > most ? chunks[r] : most;
    }
    if (is_written(set->virtuals) &&
        (least != most || most != (int)set->virtuals.value))
        return wrong_virtual(p, chunks);
    if (!is_written(set->stages))
        set->stages = (Number){ranks, set->placement_at};
    set->virtuals.value = most;
    return true;
}

void check_list(Program *p)
{
    if (!p->set.listed || list_fits(p))
        return;
    p->set.listed = NULL;  // go on with something
    p->set.placement_at = (Span){-1, 0, 0};
}

/* ---- what a schedule takes ---- */

/* The values of `virtual` that a placement allows. */
static bool placement_takes(Placement placement, int virtuals)
{
    return placement == PLACE_VEE    ? virtuals == 2
           : placement == PLACE_WAVE ? virtuals % 2 == 0
           : placement == PLACE_TWIN ? virtuals == 1
                                     : true;
}

bool schedule_takes(const Schedule *s, Placement placement, int stages,
                    int virtuals)
{
    int least = s->least_chunks ? s->least_chunks : 1,
        most = s->most_chunks ? s->most_chunks : least;
    bool foreign = placement != s->placement,  // then the placement decides
        range = virtuals >= least && virtuals <= most;
    return (!foreign || s->any_placement) && (foreign || range) &&
           placement_takes(placement, virtuals) &&
           !(s->even_stages && stages % 2);
}

/* An odd number of ranks is seen to later. */
static bool takes_chunks(const Schedule *s, const Settings *set)
{
    int even = 2 * (int)set->stages.value;
    return schedule_takes(s, set->placement, even, (int)set->virtuals.value);
}

static bool choose_placement(Program *p)
{
    Settings *set = &p->set;
    const Schedule *s = set->schedule;
    bool written = set->placement_at.source >= 0;
    if (set->listed)
        set->placement = named_list(set, s->placement);
    else if (!written)
        set->placement = s->placement;
    if (set->listed && s->any_placement && !takes_chunks(s, set))
        set->placement = PLACE_OWN;  // as good as any other
    if (s->any_placement || set->placement == s->placement)
        return true;
    error_at(p, set->placement_at,
             "schedule `%s` has its chunks as a %s, not as %s%s", s->name,
             placement_names[s->placement], set->listed ? "" : "a ",
             placement_text(p));
    note_at(p, set->schedule_at, "the schedule is chosen here");
    help(p, "leave the placement out: the schedule brings its own; bfs, naive "
            "and orders of your own take any");
    return false;
}

static void default_virtual(Settings *set)
{
    const Schedule *s = set->schedule;
    bool legs = set->placement == PLACE_VEE || set->placement == PLACE_WAVE;
    if (!is_written(set->virtuals) && !set->listed)
        set->virtuals.value = s->least_chunks ? s->least_chunks : legs ? 2 : 1;
}

static const char *needed_chunks(Program *p)
{
    const Schedule *s = p->set.schedule;
    switch (p->set.placement) {
    case PLACE_VEE: return "two chunks per rank";
    case PLACE_WAVE: return "an even number of chunks per rank";
    case PLACE_TWIN:
        return "one chunk per rank of each of two copies of the model";
    default:
        return s->least_chunks > 1
                   ? text_format(p->arena, "at least %d chunks per rank",
                                 s->least_chunks)
                   : "one chunk per rank";
    }
}

static bool is_by_layout(const Settings *set)
{
    return set->layout && set->virtuals.at.begin == set->split_at.begin &&
           set->virtuals.at.source == set->split_at.source;
}

static void help_chunks(Program *p, int virtuals)
{
    const Settings *set = &p->set;
    const Schedule *s = set->schedule;
    int even = 2 * (int)set->stages.value, ranks = (int)set->stages.value;
    bool one = schedule_takes(s, set->placement, even, 1) &&
               set->placement != PLACE_TWIN;
    int fitting = one || set->placement == PLACE_TWIN ? 1
                  : set->placement == PLACE_WAVE      ? virtuals + 1
                                                      : 2;
    if (one && s->block)
        help(p, "name the rank's chunk in its actions: F(m, k), with k from 0 "
                "to v - 1");
    else if (is_by_layout(set) || set->listed)
        help(p, "use %sa %s of %d %s", one ? "`schedule interleaved`, or " : "",
             set->listed ? "placement" : "layout", ranks * fitting,
             set->listed ? "chunks" : "stages");
    else if (one)
        help(p, s->any_placement && s->orders
                    ? "use `virtual 1`, or `placement vee`"
                    : "use `virtual 1`, or `schedule interleaved`");
    else
        help(p, "use `virtual %d`", fitting);
}

static bool fits_chunks(Program *p)
{
    Settings *set = &p->set;
    const Schedule *s = set->schedule;
    int virtuals = (int)set->virtuals.value;
    bool foreign = set->placement != s->placement;
    if (takes_chunks(s, set))
        return true;
    const char *found = is_by_layout(set)
                            ? text_format(p->arena,
                                          "the layout has %d stages for %d "
                                          "ranks",
                                          set->size_count,
                                          (int)set->stages.value)
                            : text_format(p->arena, "%s %d",
                                          set->listed ? "the placement has"
                                                      : "`virtual` is",
                                          virtuals);
    error_at(p,
             is_written(set->virtuals) ? set->virtuals.at
             : set->listed             ? set->placement_at
                                       : set->schedule_at,
             "%s `%s` runs %s, but %s", foreign ? "placement" : "schedule",
             foreign ? placement_names[set->placement] : s->name,
             needed_chunks(p), found);
    note_at(p, set->schedule_at, "the schedule is chosen here");
    help_chunks(p, virtuals);
    return false;
}

static bool fits_stages(Program *p)
{
    Settings *set = &p->set;
    int stages = (int)set->stages.value;
    if (!set->schedule->even_stages || stages % 2 == 0)
        return true;
    error_at(p, is_written(set->stages) ? set->stages.at : set->schedule_at,
             "schedule `%s` needs an even number of stages, but `stages` is %d",
             set->schedule->name, stages);
    note_at(p, set->schedule_at, "the schedule is chosen here");
    help(p, "use `stages %d`: the two directions mirror each other",
         stages + 1);
    return false;
}

void check_placement(Program *p)
{
    if (!p->set.schedule || !choose_placement(p))
        return;
    default_virtual(&p->set);
    if (fits_chunks(p))
        fits_stages(p);
}
