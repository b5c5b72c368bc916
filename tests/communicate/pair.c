/* pair.c: the lists of `--messages pair`, of every schedule.
 *
 * Whatever the order of messages is, one queue for both directions of a pair
 * must cost nothing and hold nothing up:
 *
 *   - With messages that take no time the makespan is that of the computes
 *     alone, each as early as its order and its inputs allow.
 *   - The lists run to their end where sends and receives are issued without
 *     blocking, each pair of ranks has one in-order channel, and a send
 *     completes together with its receive; and where each rank has one channel
 *     for all others. Lists of `posted` often hang there: the check can fail.
 *   - With latency and links the makespan is no longer than with the messages of
 *     PyTorch's own lowering of the same order, `_add_send_recv` of
 *     torch/distributed/pipelining/schedules.py.
 *
 * Times are those of prove/simulate.h, which was written from the text alone. */
#include "plan.h"
#include "prove/simulate.h"

#include <math.h>
#include <stdlib.h>

enum { MICROS = 12, RANDOM = 2000 };

static int passed, failed;

typedef struct Case {
    uint64_t state;  // of the random numbers
    const Schedule *schedule;
    bool atomic;  // the schedule's option
    int ranks, virtuals, micros;
    int chunks, copies;  // chunks of one copy of the model
    int width[SIM_CHUNKS];
    bool timed;  // is there a cluster; else units
    bool exact;  // times are eighths, whose sums are exact
    Machine machine;
    const char *text;
} Case;

/* ---- the text of a case ---- */

static uint64_t draw_bits(Case *c)
{
    uint64_t z = c->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int draw(Case *c, int least, int most)
{
    return least + (int)(draw_bits(c) % (uint64_t)(most - least + 1));
}

static double draw_time(Case *c, int most)
{
    return c->exact ? draw(c, 1, 8 * most) / 8.0
                    : draw(c, 1, 1000000 * most) / 1e6;
}

/* A chain of layers, one for each chunk; `widths` different ones. */
static void write_model(Case *c, FILE *out, int widths)
{
    fprintf(out, "model m {\n    input x[%d]\n",
            c->width[0] = draw(c, 1, widths));
    for (int i = 0; i < c->chunks; i++) {
        int width = draw(c, 1, widths);
        if (i + 1 < c->chunks)
            c->width[i + 1] = width;
        fprintf(out, "    l%d : linear(%d)\n", i, width);
    }
    fprintf(out, "    loss : mse\n}\n");
    for (int i = 0; i < c->chunks * c->copies; i++)
        c->machine.bytes[i] = 4.0 * c->width[i % c->chunks];
}

static void write_pipeline(const Case *c, FILE *out)
{
    fprintf(out,
            "pipeline {\n    stages %d virtual %d microbatches %d\n"
            "    split even schedule %s%s\n}\n",
            c->ranks, c->virtuals, c->micros, c->schedule->name,
            c->atomic ? "(atomic = 1)" : "");
}

/* Random times of each chunk, or one of each kind for all. */
static void write_times(Case *c, FILE *out, bool equal)
{
    static const char *const names[] = {"forward", "backward", "input_gradient",
                                        "weight_gradient"};
    for (int kind = 0; kind < 4; kind++) {
        fprintf(out, "    %s [", names[kind]);
        double *time = c->machine.compute[kind];
        for (int i = 0; i < c->chunks; i++) {
            time[i] = i && equal ? time[0]
                                 : draw_time(c, kind == ACT_B ? 4 : 2);
            time[i + c->chunks * (c->copies - 1)] = time[i];
            fprintf(out, "%s%.6fs", i ? " " : "", time[i]);
        }
        fprintf(out, "]\n");
    }
}

static void take_units(Case *c)
{
    for (int kind = 0; kind < 4; kind++)
        for (int i = 0; i < SIM_CHUNKS; i++)
            c->machine.compute[kind][i] = kind == ACT_B ? 2 : 1;
}

/* `messages`: 1 there is latency, 2 a link, 3 both. */
static void write_case(Case *c, Arena *arena, int messages)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    c->machine = (Machine){.ranks = c->ranks, .meet = MEET_PAIR, .node = 1};
    c->exact = draw(c, 0, 1);
    write_model(c, out, draw(c, 0, 1) ? 8 : 1);
    write_pipeline(c, out);
    take_units(c);
    if (c->timed) {
        fprintf(out, "cluster {\n");
        write_times(c, out, draw(c, 0, 1));
        if (messages & 1)
            fprintf(out, "    latency %.6fs\n",
                    c->machine.latency = draw_time(c, 2));
        if (messages & 2)
            fprintf(out, "    link %d\n",
                    (int)(c->machine.link = 1 << draw(c, 1, 7)));
        fprintf(out, "}\n");
    }
    fclose(out);
    c->text = text_format(arena, "%s", text);
    free(text);
}

/* Plans up to the lists, without waits; `out` is closed by the caller. */
static bool plan(Program **out, const Case *c, Meeting meet)
{
    Program *p = *out = open_plan(c->text);
    p->meet = meet;
    return parse(p) && check(p) && import(p) && graph(p) && partition(p) &&
           schedule(p) && communicate(p) && prove(p);
}

static bool is_case(Case *c, const Schedule *schedule, int ranks, int virtuals,
                    int micros, bool atomic)
{
    bool has_atomic = schedule->option[0] &&
                      strcmp(schedule->option[0], "atomic") == 0;
    *c = (Case){.state = (uint64_t)(ranks * 1000 + virtuals * 100 + micros) *
                         0x1234567,
                .schedule = schedule,
                .atomic = atomic,
                .ranks = ranks,
                .virtuals = virtuals,
                .micros = micros,
                .chunks = ranks * virtuals,
                .copies = schedule->placement == PLACE_TWIN ? 2 : 1};
    bool is_quick = !schedule->searches || ranks * micros <= 4;
    return is_quick && (has_atomic || !atomic) &&
           plan_allows(schedule, ranks, virtuals);
}

static void verdict(const Case *c, bool good, const char *what)
{
    enum { SHOWN = 5 };
    passed += good;
    failed += !good;
    if (!good && failed <= SHOWN)
        printf("not ok %s\n%s%s", what, c->text, plan_said);
}

/* ---- what the order says: who needs what ---- */

/* The compute whose result comes over a boundary: F of the chunk before, B or I
 * of the chunk behind; -1: nothing comes. */
static int source_of(const Case *c, Action a)
{
    int at = a.chunk % c->chunks;
    if (a.kind == ACT_F)
        return at > 0 ? a.chunk - 1 : -1;
    return a.kind != ACT_W && at < c->chunks - 1 ? a.chunk + 1 : -1;
}

/* The chunk that wants the result; -1: none. */
static int target_of(const Case *c, Action a)
{
    int at = a.chunk % c->chunks;
    if (a.kind == ACT_F)
        return at < c->chunks - 1 ? a.chunk + 1 : -1;
    return a.kind != ACT_W && at > 0 ? a.chunk - 1 : -1;
}

static int rank_of(const Case *c, const List *order, int chunk)
{
    for (int r = 0; r < c->ranks; r++)
        for (int i = 0; i < order[r].count; i++)
            if (order[r].at[i].chunk == chunk &&
                is_compute(order[r].at[i].kind))
                return r;
    return -1;
}

static void find_ranks(const Case *c, const List *order, int *rank)
{
    for (int chunk = 0; chunk < c->chunks * c->copies; chunk++)
        rank[chunk] = rank_of(c, order, chunk);
}

/* How many actions from i on run as one. */
static int group_size(const List *order, int i)
{
    int size = 1;
    while (order->at[i + size - 1].pair)
        size++;
    return size;
}

typedef struct Progress {  // through all orders
    int next[SIM_RANKS];
    double clock[SIM_RANKS];
    double end[2][SIM_CHUNKS][MICROS];  // [is it a gradient] when it is made
    double makespan;
} Progress;

static bool is_gradient(Action a)
{
    return a.kind == ACT_B || a.kind == ACT_I;
}

/* When what they read is there; infinite: not yet. */
static double inputs_of(const Case *c, const Progress *progress,
                        const Action *group, int size)
{
    double there = 0;
    for (int i = 0; i < size; i++) {
        int source = source_of(c, group[i]);
        if (source >= 0)
            there = fmax(
                there,
                progress->end[is_gradient(group[i])][source][group[i].micro]);
    }
    return there;
}

static bool run_group(const Case *c, Progress *progress, const List *order,
                      int r)
{
    if (progress->next[r] == order[r].count)
        return false;
    const Action *group = &order[r].at[progress->next[r]];
    int size = group_size(&order[r], progress->next[r]);
    double end = fmax(progress->clock[r], inputs_of(c, progress, group, size));
    if (isinf(end))
        return false;
    for (int i = 0; i < size; i++)
        end += c->machine.compute[group[i].kind][group[i].chunk];
    for (int i = 0; i < size; i++)
        if (group[i].kind != ACT_W)
            progress->end[is_gradient(group[i])][group[i].chunk]
                         [group[i].micro] = end;
    progress->clock[r] = end;
    progress->next[r] += size;
    progress->makespan = fmax(progress->makespan, end);
    return true;
}

/* Each compute as early as it can, and messages take no time. */
static double compute_only(const Case *c, const List *order)
{
    static Progress progress;
    progress = (Progress){.makespan = 0};
    for (int chunk = 0; chunk < SIM_CHUNKS; chunk++)
        for (int m = 0; m < MICROS; m++)
            progress.end[0][chunk][m] = progress.end[1][chunk][m] = INFINITY;
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < c->ranks; r++)
            while (run_group(c, &progress, order, r))
                moved = true;
    }
    for (int r = 0; r < c->ranks; r++)
        if (progress.next[r] < order[r].count)
            return INFINITY;
    return progress.makespan;
}

/* ---- one in-order channel for each pair, rendezvous ---- */

typedef struct Channels {
    const List *lists;
    bool one;               // each rank has one queue for all others
    int issued[SIM_RANKS];  // entries that the rank has got over
    bool *done[SIM_RANKS];  // [rank][entry] of SENDs and RECVs
} Channels;

/* The RECV that brings what a compute reads; -1: its list has none. */
static int receive_of(const List *list, Action a)
{
    ActionKind kind = a.kind == ACT_F ? ACT_RECV_F : ACT_RECV_B;
    for (int i = 0; i < list->count; i++)
        if (list->at[i].kind == kind && list->at[i].chunk == a.chunk &&
            list->at[i].micro == a.micro)
            return i;
    return -1;
}

static bool issue(const Case *c, Channels *channels, const int *rank, int r)
{
    const List *list = &channels->lists[r];
    if (channels->issued[r] == list->count)
        return false;
    Action a = list->at[channels->issued[r]];
    int source = is_compute(a.kind) ? source_of(c, a) : -1;
    if (source >= 0 && rank[source] != r) {
        int receive = receive_of(list, a);
        if (receive < 0 || !channels->done[r][receive])
            return false;
    }
    channels->issued[r]++;
    return true;
}

/* The first that is issued and not complete, of those with the peer or of all;
 * -1: none is. */
static int head_of(const Channels *channels, int r, int peer)
{
    for (int i = 0; i < channels->issued[r]; i++) {
        Action a = channels->lists[r].at[i];
        bool queued = is_end(a) && (channels->one || a.peer == peer);
        if (queued && !channels->done[r][i])
            return i;
    }
    return -1;
}

static bool are_ends_of_one(const Channels *channels, int a, int first, int b,
                            int second)
{
    Action mine = channels->lists[a].at[first];
    Action other = channels->lists[b].at[second];
    return mine.peer == b && other.peer == a &&
           is_send(mine.kind) != is_send(other.kind) &&
           mine.micro == other.micro &&
           goes_back(mine.kind) == goes_back(other.kind) &&
           boundary_of(mine) == boundary_of(other);
}

static bool complete(Channels *channels, int a, int b)
{
    int first = head_of(channels, a, b), second = head_of(channels, b, a);
    if (first < 0 || second < 0 ||
        !are_ends_of_one(channels, a, first, b, second))
        return false;
    channels->done[a][first] = channels->done[b][second] = true;
    return true;
}

static bool all_done(const Case *c, const Channels *channels)
{
    for (int r = 0; r < c->ranks; r++) {
        if (channels->issued[r] < channels->lists[r].count)
            return false;
        for (int peer = 0; peer < c->ranks; peer++)
            if (head_of(channels, r, peer) >= 0)
                return false;
    }
    return true;
}

static bool meet_in_channels(const Case *c, Arena *arena, const List *lists,
                             bool one)
{
    Channels channels = {.lists = lists, .one = one};
    int rank[SIM_CHUNKS];
    find_ranks(c, lists, rank);
    for (int r = 0; r < c->ranks; r++)
        channels.done[r] = arena_take(arena, (size_t)lists[r].count + 1);
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < c->ranks; r++)
            while (issue(c, &channels, rank, r))
                moved = true;
        for (int a = 0; a < c->ranks; a++)
            for (int b = a + 1; b < c->ranks; b++)
                while (complete(&channels, a, b))
                    moved = true;
    }
    return all_done(c, &channels);
}

/* ---- PyTorch's lowering ---- */

typedef struct Lowering {
    const Case *c;
    const List *order;
    int rank[SIM_CHUNKS];
    List *lists;
    int next[SIM_RANKS];
    bool received[2][SIM_CHUNKS][MICROS];  // [gradient] is the RECV in its list
    bool made[2][SIM_CHUNKS][MICROS];      // is the compute in its list
} Lowering;

/* May it be put into the list: what it reads is there, or will be received. */
static bool is_placeable(const Lowering *l, Action a)
{
    int source = source_of(l->c, a);
    if (source < 0)
        return true;
    bool back = is_gradient(a);
    return l->rank[source] == l->rank[a.chunk]
               ? l->made[back][source][a.micro]
               : l->received[back][a.chunk][a.micro];
}

static void put(Lowering *l, int rank, ActionKind kind, int chunk, int micro,
                int peer)
{
    List *list = &l->lists[rank];
    list->at[list->count++] = (Action){
        .kind = kind, .chunk = chunk, .micro = micro, .peer = peer};
}

/* PyTorch has no TAKE: a compute waits for what it reads. */
static void put_take(Lowering *l, Action a)
{
    int source = source_of(l->c, a), r = l->rank[a.chunk];
    if (source >= 0 && l->rank[source] != r)
        put(l, r, is_gradient(a) ? ACT_TAKE_B : ACT_TAKE_F, a.chunk, a.micro,
            l->rank[source]);
}

/* The SEND behind what it sends, and at the same moment the RECV at the end of
 * the other list. */
static void put_message(Lowering *l, Action a)
{
    int target = target_of(l->c, a), r = l->rank[a.chunk];
    bool back = is_gradient(a);
    if (a.kind != ACT_W)
        l->made[back][a.chunk][a.micro] = true;
    if (target < 0 || l->rank[target] == r)
        return;
    put(l, r, back ? ACT_SEND_B : ACT_SEND_F, a.chunk, a.micro,
        l->rank[target]);
    put(l, l->rank[target], back ? ACT_RECV_B : ACT_RECV_F, target, a.micro, r);
    l->received[back][target][a.micro] = true;
}

static bool take_turn(Lowering *l, int r)
{
    if (l->next[r] == l->order[r].count)
        return false;
    const Action *group = &l->order[r].at[l->next[r]];
    int size = group_size(&l->order[r], l->next[r]);
    for (int i = 0; i < size; i++)
        if (!is_placeable(l, group[i]))
            return false;
    for (int i = 0; i < size; i++)
        put_take(l, group[i]);
    for (int i = 0; i < size; i++)
        put(l, r, group[i].kind, group[i].chunk, group[i].micro, -1);
    for (int i = 0; i < size; i++)
        put_message(l, group[i]);
    l->next[r] += size;
    return true;
}

static List *lower_as_pytorch(const Case *c, Arena *arena, const List *order)
{
    static Lowering l;
    l = (Lowering){.c = c, .order = order};
    find_ranks(c, order, l.rank);
    l.lists = arena_take(arena, SIM_RANKS * sizeof *l.lists);
    size_t all = 0;
    for (int r = 0; r < c->ranks; r++)
        all += (size_t)order[r].count;
    for (int r = 0; r < c->ranks; r++)
        l.lists[r].at = arena_take(arena, 4 * all * sizeof(Action));
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < c->ranks; r++)
            moved |= take_turn(&l, r);
    }
    return l.lists;
}

/* ---- the checks ---- */

static bool same_computes(const Case *c, const List *order, const List *lists)
{
    for (int r = 0; r < c->ranks; r++) {
        int n = 0;
        for (int i = 0; i < lists[r].count; i++) {
            Action a = lists[r].at[i], *b = &order[r].at[n];
            if (!is_compute(a.kind))
                continue;
            if (n == order[r].count || a.kind != b->kind ||
                a.chunk != b->chunk || a.micro != b->micro)
                return false;
            n++;
        }
        if (n < order[r].count)
            return false;
    }
    return true;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b));
}

static int hanging;  // lists of `posted`, in channels of pairs

static void free_messages(Case *c, bool timed)
{
    static Simulation s;
    Arena *arena = arena_open();
    c->timed = timed;
    write_case(c, arena, 0);
    Program *p;
    bool good = plan(&p, c, MEET_PAIR);
    verdict(c, good, "it cannot be planned");
    if (good) {
        double bound = compute_only(c, p->order);
        verdict(c, same_computes(c, p->order, p->lists),
                "computes in another order");
        verdict(c,
                simulate(&s, arena, &c->machine, p->lists, WITHOUT_NOTHING) &&
                    near(s.makespan, bound) && near(p->makespan, bound),
                "messages that take no time cost time");
        verdict(c, meet_in_channels(c, arena, p->lists, false),
                "it hangs where a pair has one channel");
        verdict(c, meet_in_channels(c, arena, p->lists, true),
                "it hangs where a rank has one queue for all others");
        verdict(c, memory(p) && near(p->makespan, bound),
                "its waits cost time");
    }
    close_plan(p);
    if (plan(&p, c, MEET_POSTED))
        hanging += !meet_in_channels(c, arena, p->lists, false);
    close_plan(p);
    arena_close(arena);
}

typedef struct Tally {  // of random cases, ours beside PyTorch's lowering
    int cases, longer, shorter;
    double most, least;  // ours over theirs
} Tally;

static Tally tallies[4];  // [1 latency, 2 link, 3 both]

static bool compare(Tally *tally, double ours, double theirs)
{
    bool longer = ours > theirs && !near(ours, theirs);
    tally->cases++;
    tally->longer += longer;
    tally->shorter += ours < theirs && !near(ours, theirs);
    tally->most = fmax(tally->most, ours / theirs);
    tally->least = tally->least > 0 ? fmin(tally->least, ours / theirs)
                                    : ours / theirs;
    return !longer;
}

static Case draw_shape(int number)
{
    static const int ranks[] = {2, 2, 3, 4, 4, 5, 6, 8};
    Case random = {.state = (uint64_t)number * 0x2545f491u}, c;
    bool good;
    do {
        int n = draw(&random, 0, schedule_count - 1);
        int P = ranks[draw(&random, 0, 7)], v = draw(&random, 1, 4);
        int M = draw(&random, 1, MICROS);
        good = is_case(&c, schedules[n], P, v, M, draw(&random, 0, 1));
    } while (!good || c.copies == 2);
    c.state = draw_bits(&random);
    c.timed = true;
    return c;
}

/* Both lists run, and ours as the plan says. */
static bool time_both(Case *c, Arena *arena, const Program *p, double *ours,
                      double *theirs)
{
    static Simulation s;
    List *lowered = lower_as_pytorch(c, arena, p->order);
    bool good = simulate(&s, arena, &c->machine, p->lists, WITHOUT_NOTHING) &&
                near(s.makespan, p->makespan);
    *ours = s.makespan;
    good = good && same_computes(c, p->order, lowered) &&
           simulate(&s, arena, &c->machine, lowered, WITHOUT_NOTHING);
    *theirs = s.makespan;
    return good && meet_in_channels(c, arena, p->lists, false) &&
           meet_in_channels(c, arena, p->lists, true) &&
           meet_in_channels(c, arena, lowered, false);
}

static void random_case(int number)
{
    static Case c;
    c = draw_shape(number);
    Arena *arena = arena_open();
    int messages = draw(&c, 1, 3);
    write_case(&c, arena, messages);
    Program *p;
    double ours, theirs;
    bool good = plan(&p, &c, MEET_PAIR) &&
                time_both(&c, arena, p, &ours, &theirs);
    verdict(&c, good, "it does not run");
    if (good)
        verdict(&c, compare(&tallies[messages], ours, theirs),
                text_format(arena, "%.9g s, with PyTorch's lowering %.9g", ours,
                            theirs));
    close_plan(p);
    arena_close(arena);
}

static void grid(void)
{
    static const int stages[] = {2, 3, 4, 8}, micros[] = {1, 2, 4, 8, 12};
    static Case c;
    for (int n = 0; n < schedule_count; n++)
        for (int i = 0; i < 4 * 5 * 4 * 2; i++)
            if (is_case(&c, schedules[n], stages[i % 4], i / 20 % 4 + 1,
                        micros[i / 4 % 5], i / 80))
                for (int timed = 0; timed < 2; timed++)
                    free_messages(&c, timed);
}

static void print_tally(const char *what, const Tally *tally)
{
    printf("%5d cases with %s: %d longer than with PyTorch's lowering, at most "
           "%.4f of it; %d shorter, down to %.4f\n",
           tally->cases, what, tally->longer, tally->most, tally->shorter,
           tally->least);
}

int main(void)
{
    grid();
    printf("%s%d lists of `posted` hang in one channel for each pair\n",
           hanging > 500 ? "" : "not ok only ", hanging);
    failed += hanging <= 500;
    for (int number = 0; number < RANDOM; number++)
        random_case(number);
    print_tally("latency", &tallies[1]);
    print_tally("a link", &tallies[2]);
    print_tally("both", &tallies[3]);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
