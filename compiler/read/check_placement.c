/* check_placement.c: does the pipeline have the shape that its schedule needs:
 * placement of chunks, chunks per rank, number of ranks.
 *
 * Reads: set. Writes: set.placement, and set.virtuals where the file leaves it
 * to the schedule. Guarantees: the schedule's `order` may divide as it likes. */
#include "check.h"

const char *const placement_names[PLACEMENT_COUNT] = {
#define AS_TEXT(name, text) text,
    PLACEMENTS(AS_TEXT)
#undef AS_TEXT
};

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

static bool choose_placement(Program *p)
{
    Settings *set = &p->set;
    const Schedule *s = set->schedule;
    bool written = set->placement_at.source >= 0;
    if (!written)
        set->placement = s->placement;
    if (s->any_placement || set->placement == s->placement)
        return true;
    error_at(p, set->placement_at,
             "schedule `%s` has its chunks as a %s, not as a %s", s->name,
             placement_names[s->placement], placement_names[set->placement]);
    note_at(p, set->schedule_at, "the schedule is chosen here");
    help(p, "leave the placement out: the schedule brings its own");
    return false;
}

static void default_virtual(Settings *set)
{
    const Schedule *s = set->schedule;
    bool legs = set->placement == PLACE_VEE || set->placement == PLACE_WAVE;
    if (!is_written(set->virtuals))
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
    else if (is_by_layout(set))
        help(p, "use %sa layout of %d stages",
             one ? "`schedule interleaved`, or " : "", ranks * fitting);
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
    int even = 2 * (int)set->stages.value;  // that is seen to later
    if (schedule_takes(s, set->placement, even, virtuals))
        return true;
    const char *found = is_by_layout(set)
                            ? text_format(p->arena,
                                          "the layout has %d stages for %d "
                                          "ranks",
                                          set->size_count,
                                          (int)set->stages.value)
                            : text_format(p->arena, "`virtual` is %d",
                                          virtuals);
    error_at(p, is_written(set->virtuals) ? set->virtuals.at : set->schedule_at,
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
