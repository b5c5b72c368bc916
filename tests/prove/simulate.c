/* simulate.c: `prove` against an independent simulation of the step.
 *
 * simulate.h was written from docs/language.md alone. Here it runs the lists of
 * random plans, small ones, of all schedules and of random legal orders, on all
 * placements and on random lists of ranks, with
 * messages that block and messages whose receive is posted, on machines with
 * slow links, latencies, nodes and shared adapters. All its numbers come from
 * the text that this file has written, not from the compiler's costs: widths,
 * rows, splits and times. The makespan and the begin and end of every action
 * must be what the plan says, to 1e-12.
 *
 * So that this cannot pass by saying nothing, each plan is simulated once more
 * without each rule, and every rule must change the makespan of many plans. */
#include "plan.h"
#include "simulate.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

enum { PLANS = 24000, MOST_LAYERS = SIM_CHUNKS + 4, MOST_MICROS = 12 };
enum { LEVELS = 1 };  // does the language know node, adapter and lists of flops

static int passed, failed;
static char order_path[] = "/tmp/simulate-XXXXXX.csv";

static Interval planned(const Program *p, int rank, int entry)
{
    const Node *node = &p->nodes[p->first_node[rank] + entry];
    return (Interval){node->start, node->end};
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b));
}

/* ---- one plan: its numbers, and the text that says them ---- */

typedef struct Draw {
    uint64_t state;  // of the random numbers
    int ranks, virtuals, micros, rows;
    const Schedule *schedule;  // NULL: an order of our own
    bool from_file;
    Placement placement;
    bool listed;           // it is said as a list
    int rank[SIM_CHUNKS];  // of each chunk of all copies
    int chunks, copies;    // of one copy
    int positions, vocabulary, layers;
    int width[MOST_LAYERS + 1];  // of the input, then of what each layer makes
    int sizes[SIM_CHUNKS];       // layers of each chunk
    int empty;                   // chunks without any
    bool bf16;
    bool given[4];  // [F B I W] are there times; without F the cost is a unit
    double time[4][SIM_CHUNKS];
    double flops[SIM_RANKS];  // 0: none
    Machine machine;
    char *text;
    size_t length;
} Draw;

static uint64_t draw_bits(Draw *d)
{
    uint64_t z = d->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int draw(Draw *d, int least, int most)
{
    return least + (int)(draw_bits(d) % (uint64_t)(most - least + 1));
}

static bool chance(Draw *d, int percent)
{
    return draw(d, 1, 100) <= percent;
}

/* Mostly eighths, whose sums are exact, so that ends that are equal by the
 * rules are equal to the bit; else a number that goes through the text. */
static double draw_time(Draw *d, bool exact, int most)
{
    if (exact)
        return draw(d, 1, 8 * most) / 8.0;
    return draw(d, 1, 1000000 * most) / 1e6;
}

static void say(Draw *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(Draw *d, const char *format, ...)
{
    static char text[1 << 17];
    va_list arguments;
    if (!d->text)
        d->text = text;
    va_start(arguments, format);
    size_t room = sizeof text - d->length;
    int length = vsnprintf(d->text + d->length, room, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= room) {
        printf("not ok the text of a plan has no room\n");
        exit(1);
    }
    d->length += (size_t)length;
}

/* ---- the shape ---- */

static void shuffle(Draw *d, int *at, int count)
{
    for (int i = count; i-- > 1;) {
        int with = draw(d, 0, i), kept = at[i];
        at[i] = at[with];
        at[with] = kept;
    }
}

/* A list has any rank anywhere, or the places of a loop, vee or wave with other
 * ranks. */
static void draw_ranks(Draw *d)
{
    int name[SIM_RANKS], most = d->ranks * d->virtuals;
    bool own = d->placement == PLACE_OWN;
    d->chunks = own ? draw(d, d->ranks, most) : most;
    d->copies = d->placement == PLACE_TWIN ? 2 : 1;
    d->listed = own || (d->copies == 1 && chance(d, 25));
    for (int r = 0; r < d->ranks; r++)
        name[r] = r;
    if (d->listed)
        shuffle(d, name, d->ranks);
    for (int c = 0; c < d->chunks * d->copies; c++)
        d->rank[c] = !own ? name[placed_rank(d->placement, d->ranks, c)]
                     : c < d->ranks ? c
                                    : draw(d, 0, d->ranks - 1);
    if (own)
        shuffle(d, d->rank, d->chunks);
}

static void draw_schedule(Draw *d)
{
    static const int often[] = {1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 6, 7, 8};
    static const int chunks[] = {1, 1, 2, 2, 2, 3, 4};  // most, of a list
    enum { OFTEN = sizeof often / sizeof *often };
    enum { CHUNKS = sizeof chunks / sizeof *chunks };
    bool takes;
    do {
        d->schedule = chance(d, 25) ? NULL
                                    : schedules[draw(d, 0, schedule_count - 1)];
        d->ranks = often[draw(d, 0, OFTEN - 1)];
        d->virtuals = chunks[draw(d, 0, CHUNKS - 1)];
        d->placement = (Placement)draw(d, 0, PLACE_OWN);
        if (d->schedule && !d->schedule->any_placement)
            d->placement = d->schedule->placement;
        const Schedule *s = d->schedule;
        if (s)
            takes = !s->searches &&
                    schedule_takes(s, d->placement, d->ranks, d->virtuals);
        else
            takes = d->placement == PLACE_LOOP || d->placement == PLACE_OWN ||
                    (d->placement == PLACE_VEE && d->virtuals == 2) ||
                    (d->placement == PLACE_WAVE && d->virtuals % 2 == 0);
    } while (!takes);
    d->micros = chance(d, 20) ? draw(d, 1, MOST_MICROS) : draw(d, 1, 6);
    d->from_file = !d->schedule && chance(d, 50);
    draw_ranks(d);
}

/* Chunks between the first and the last leave their layers to the last one. */
static int empty_some(Draw *d)
{
    int empty = 0;
    for (int c = 1; c < d->chunks - 1; c++) {
        if (!chance(d, 40))
            continue;
        d->sizes[d->chunks - 1] += d->sizes[c];
        d->sizes[c] = 0;
        empty++;
    }
    return empty;
}

static void draw_split(Draw *d, bool even)
{
    int spare = draw(d, 0, 4), first = d->chunks > 1 ? 0 : 1;
    d->layers = d->chunks + spare + first;
    for (int c = 0; c < d->chunks; c++)
        d->sizes[c] = even ? d->layers / d->chunks + (c < d->layers % d->chunks)
                           : 1;
    for (int i = 0; i < spare + first && !even; i++)
        d->sizes[draw(d, 0, d->chunks - 1)]++;
    d->empty = !even && chance(d, 30) ? empty_some(d) : 0;
    say(d, "    split ");
    if (even) {
        say(d, "even\n");
        return;
    }
    say(d, "[");
    for (int c = 0; c < d->chunks; c++)
        say(d, "%s%d", c ? " " : "", d->sizes[c]);
    say(d, "]\n");
}

static void say_ranks(Draw *d)
{
    say(d, " placement [");
    for (int c = 0; c < d->chunks; c++)
        say(d, "%s%d", c ? " " : "", d->rank[c]);
    say(d, "]");
}

static void say_pipeline(Draw *d)
{
    const Schedule *s = d->schedule;
    bool by_file = d->from_file && chance(d, 50);  // it says all of the shape
    say(d, "pipeline {\n    rows %d\n", d->rows = draw(d, 1, 3));
    if (!by_file)
        say(d, "    stages %d microbatches %d\n", d->ranks, d->micros);
    if (!by_file && !d->listed)
        say(d, "    virtual %d\n", d->virtuals);
    draw_split(d, chance(d, 30));
    if (d->from_file)
        say(d, "    schedule from \"%s\"", order_path);
    else
        say(d, "    schedule %s", s ? s->name : "mine");
    if (s && s->option[0] && !strcmp(s->option[0], "atomic") && chance(d, 80))
        say(d, "(atomic = 1)");
    if (s && s->option[1] && !strcmp(s->option[1], "warmup") && chance(d, 50))
        say(d, "(warmup = %d)", draw(d, 1, 2));
    if (d->listed && !by_file)
        say_ranks(d);
    else if ((!s || s->any_placement) && !by_file)
        say(d, " placement %s", placement_names[d->placement]);
    say(d, "\n}\n");
}

/* Layers of unequal widths; now and then the first one has no parameters, so
 * that nothing comes back to it. */
static void say_model(Draw *d)
{
    bool tokens = chance(d, 30), tied = tokens && chance(d, 50);
    bool idle_first = !tokens && d->given[2] && d->given[1] && chance(d, 15);
    int widest = chance(d, 50) ? 12 : 3;
    d->positions = draw(d, 1, 3);
    d->vocabulary = draw(d, 2, 12);
    for (int i = 0; i <= d->layers; i++)
        d->width[i] = draw(d, 1, widest);
    if (tokens)
        d->width[d->layers] = d->vocabulary;
    if (tied)
        d->width[d->layers - 1] = d->width[1];
    if (idle_first)
        d->width[1] = d->width[0];
    say(d, "model m {\n    input x[%d]", d->positions);
    say(d, tokens ? " of %d\n" : "[%d]\n",
        tokens ? d->vocabulary : d->width[0]);
    for (int i = 0; i < d->layers; i++) {
        bool last = i == d->layers - 1;
        if (i == 0 && idle_first)
            say(d, "    l0 : relu\n");
        else
            say(d, "    l%d : %s(%d%s)%s\n", i,
                i == 0 && tokens ? "embedding" : "linear", d->width[i + 1],
                last && tied ? ", nobias" : "", last && tied ? " tied l0" : "");
    }
    say(d, "    loss : %s\n}\n", tokens ? "cross_entropy" : "mse");
}

/* ---- an order of our own: any that the data allows ---- */

typedef struct Orders {
    bool ran[4][SIM_CHUNKS][MOST_MICROS];
    bool split[SIM_CHUNKS][MOST_MICROS];
    Action at[SIM_RANKS][3 * SIM_CHUNKS * MOST_MICROS];
    int count[SIM_RANKS];
} Orders;

static bool can_run(const Draw *d, const Orders *o, int kind, int c, int m)
{
    if (o->ran[kind][c][m] || (kind && o->split[c][m] == (kind == ACT_B)))
        return false;
    if (kind == ACT_F)
        return !c || o->ran[ACT_F][c - 1][m];
    if (kind == ACT_W)
        return o->ran[ACT_I][c][m];
    return o->ran[ACT_F][c][m] &&
           (c == d->chunks - 1 || o->ran[ACT_B][c + 1][m] ||
            o->ran[ACT_I][c + 1][m]);
}

/* Picks among all that can run; false: everything has. */
static bool run_any(Draw *d, Orders *o)
{
    Action pick = {0};
    int found = 0;
    for (int kind = ACT_F; kind <= ACT_W; kind++)
        for (int c = 0; c < d->chunks; c++)
            for (int m = 0; m < d->micros; m++)
                if (can_run(d, o, kind, c, m) && draw(d, 0, found++) == 0)
                    pick = (Action){
                        .kind = (ActionKind)kind, .chunk = c, .micro = m};
    if (!found)
        return false;
    int rank = d->rank[pick.chunk];
    o->ran[pick.kind][pick.chunk][pick.micro] = true;
    o->at[rank][o->count[rank]++] = pick;
    return true;
}

static int chunk_of_rank(const Draw *d, int chunk)
{
    int before = 0;
    for (int c = 0; c < chunk; c++)
        before += d->rank[c] == d->rank[chunk];
    return before;
}

static void draw_orders(Draw *d, Orders *o)
{
    memset(o, 0, sizeof *o);
    int splits = draw(d, 0, 2) * 50;  // percent
    for (int c = 0; c < d->chunks; c++)
        for (int m = 0; m < d->micros; m++)
            o->split[c][m] = chance(d, splits);
    while (run_any(d, o))
        continue;
}

static void say_block(Draw *d, const Orders *o)
{
    say(d, "schedule mine {\n");
    for (int r = 0; r < d->ranks; r++) {
        say(d, "    if r == %d {\n       ", r);
        for (int i = 0; i < o->count[r]; i++) {
            Action a = o->at[r][i];
            say(d, " %s(%d, %d)%s", action_names[a.kind], a.micro,
                chunk_of_rank(d, a.chunk), i % 8 == 7 ? "\n       " : "");
        }
        say(d, "\n    }\n");
    }
    say(d, "}\n");
}

static void write_file(const Draw *d, const Orders *o)
{
    FILE *file = fopen(order_path, "w");
    if (!file) {
        printf("not ok %s cannot be written\n", order_path);
        exit(1);
    }
    for (int r = 0; r < d->ranks; r++)
        for (int i = 0; i < o->count[r]; i++)
            fprintf(file, "%d%s%d%c", o->at[r][i].chunk,
                    action_names[o->at[r][i].kind], o->at[r][i].micro,
                    i + 1 < o->count[r] ? ',' : '\n');
    fclose(file);
}

/* The block is in the text even where the order comes from the file, which is
 * gone when somebody wants to look at the plan. */
static void say_order(Draw *d)
{
    static Orders orders;
    draw_orders(d, &orders);
    say_block(d, &orders);
    if (d->from_file)
        write_file(d, &orders);
}

/* ---- the machine ---- */

static void say_times(Draw *d, bool exact)
{
    static const char *const names[4] = {"forward", "backward",
                                         "input_gradient", "weight_gradient"};
    for (int kind = 0; kind < 4; kind++) {
        if (!d->given[kind])
            continue;
        bool list = chance(d, 60);
        say(d, "    %s %s", names[kind], list ? "[" : "");
        for (int c = 0; c < d->chunks; c++) {
            double time = d->time[kind][c] =
                c && !list ? d->time[kind][0]
                           : draw_time(d, exact, kind == ACT_B ? 4 : 2);
            if (c == 0 || list)
                say(d, "%s%.6fs", c ? " " : "", time);
        }
        say(d, "%s\n", list ? "]" : "");
    }
}

static void draw_given(Draw *d)
{
    if (!chance(d, 88))
        return;
    int parts = draw(d, 0, 2);  // backward alone, its parts alone, both
    d->given[0] = true;
    d->given[1] = parts != 1;
    d->given[2] = d->given[3] = parts != 0;
}

/* Bytes per second that carry a usual message in the time of a few actions. */
static double draw_link(Draw *d, bool exact)
{
    if (exact)
        return 4 << draw(d, 0, 6);
    return draw(d, 4000, 256000) / 1e3;
}

static void say_flops(Draw *d)
{
    bool list = LEVELS && chance(d, 50);
    say(d, "    flops %s", list ? "[" : "");
    for (int r = 0; r < d->ranks; r++) {
        d->flops[r] = r && !list ? d->flops[0] : draw(d, 10, 200);
        if (r == 0 || list)
            say(d, "%s%.0f", r ? " " : "", d->flops[r]);
    }
    say(d, "%s\n", list ? "]" : "");
}

static void say_levels(Draw *d, bool exact)
{
    Machine *machine = &d->machine;
    bool nodes = chance(d, 50);
    if (nodes)
        say(d, "    node %d\n", machine->node = draw(d, 1, d->ranks));
    if (nodes && chance(d, 70))
        say(d, "    node_link %.6f\n",
            machine->node_link = 4 * draw_link(d, exact));
    if (nodes && chance(d, 50))
        say(d, "    node_latency %.6fs\n",
            machine->node_latency = draw_time(d, exact, 1));
    machine->shared = chance(d, 65);
    if (machine->shared || chance(d, 20))
        say(d, "    adapter %s\n", machine->shared ? "shared" : "own");
}

static void say_cluster(Draw *d)
{
    bool exact = chance(d, 70);
    Machine *machine = &d->machine;
    say(d, "cluster {\n");
    say_times(d, exact);
    if (!d->given[0] && chance(d, 60))
        say_flops(d);
    if (chance(d, 80))
        say(d, "    link %.6f\n", machine->link = draw_link(d, exact));
    if (chance(d, 50))
        say(d, "    latency %.6fs\n",
            machine->latency = draw_time(d, exact, 2));
    machine->node = 1;
    machine->node_link = machine->link;
    machine->node_latency = machine->latency;
    if (LEVELS)
        say_levels(d, exact);
    say(d, "}\n");
}

static void draw_plan(Draw *d, int number, Target target, Meeting meet)
{
    *d = (Draw){.state = (uint64_t)number * 0x1234567};
    d->machine.meet = meet;
    draw_schedule(d);
    draw_given(d);
    say_pipeline(d);
    say_model(d);
    if (!d->schedule)
        say_order(d);
    say_cluster(d);
    d->bf16 = target == TARGET_CUDA && chance(d, 50);
    if (target == TARGET_CUDA && !d->bf16)
        say(d, "train { dtype f32 }\n");
}

/* ---- the text's numbers as a machine ---- */

/* `work` is the one thing that the text leaves to the compiler: operations. */
static void take_times(Draw *d, int chunk, int rank, const double work[3])
{
    int c = chunk % d->chunks;
    double flops = d->flops[rank];
    double *time[4];
    for (int kind = 0; kind < 4; kind++)
        time[kind] = &d->machine.compute[kind][chunk];
    if (!d->given[0] && !flops) {
        *time[0] = *time[2] = *time[3] = 1;
        *time[1] = 2;
        return;
    }
    if (!d->given[0]) {
        *time[0] = work[0] / flops;
        *time[1] = (work[1] + work[2]) / flops;
        *time[2] = work[1] / flops;
        *time[3] = work[2] / flops;
        return;
    }
    double both = work[1] + work[2], input = both > 0 ? work[1] / both : 0.5;
    *time[0] = d->time[0][c];
    *time[1] = d->given[1] ? d->time[1][c] : d->time[2][c] + d->time[3][c];
    *time[2] = d->given[2] ? d->time[2][c] : *time[1] * input;
    *time[3] = d->given[3] ? d->time[3][c] : *time[1] * (1 - input);
}

static void take_machine(Draw *d, const Program *p)
{
    Machine *machine = &d->machine;
    machine->ranks = d->ranks;
    if (!d->given[0] && !d->flops[0]) {
        machine->link = machine->latency = 0;
        machine->node_link = machine->node_latency = 0;
    }
    for (int chunk = 0; chunk < d->chunks * d->copies; chunk++) {
        int layer = 0;
        for (int c = 0; c < chunk % d->chunks; c++)
            layer += d->sizes[c];
        long values = (long)d->rows * d->positions * d->width[layer];
        machine->bytes[chunk] = (double)(d->bf16 ? (values + 1) / 2 * 4
                                                 : values * 4);
        take_times(d, chunk, p->chunks[chunk].rank, p->chunks[chunk].work);
    }
}

static bool plan(Program **out, const char *text, Target target, Meeting meet)
{
    plan_target = target;
    Program *p = *out = open_plan(text);
    p->meet = meet;
    return parse(p) && check(p) && import(p) && graph(p) && partition(p) &&
           schedule(p) && communicate(p) && prove(p) && memory(p);
}

/* ---- the comparison ---- */

/* What differs first, in `text`; NULL: nothing. */
static const char *difference(Program *p, const Simulation *s)
{
    for (int r = 0; r < p->ranks; r++) {
        for (int i = 0; i < p->lists[r].count; i++) {
            Interval mine = s->times[r][i], theirs = planned(p, r, i);
            if (is_compute(p->lists[r].at[i].kind) &&
                !(near(mine.start, theirs.start) && near(mine.end, theirs.end)))
                return text_format(p->arena,
                                   "rank %d, %s: planned %.17g to %.17g, "
                                   "simulated %.17g to %.17g",
                                   r, action_text(p, p->lists[r].at[i]),
                                   theirs.start, theirs.end, mine.start,
                                   mine.end);
        }
    }
    if (!near(s->makespan, p->makespan))
        return text_format(p->arena, "makespan %.17g, simulated %.17g",
                           p->makespan, s->makespan);
    return NULL;
}

typedef struct Share {  // of the plans
    const char *what;
    int plans, least;
} Share;

enum {
    POSTED,
    PAIR,
    OWN,
    FROM_FILE,
    LISTED,
    ANYWHERE,
    UNEQUAL,
    NODES,
    ADAPTERS,
    EMPTY,
    FEATURES
};

static Share shares[FEATURES] = {
    [POSTED] = {"receives are posted", 0, PLANS / 3},
    [PAIR] = {"a pair of ranks has one queue", 0, PLANS / 3},
    [OWN] = {"an order of its own", 0, PLANS / 6},
    [FROM_FILE] = {"of these, from a file", 0, PLANS / 12},
    [LISTED] = {"a list of ranks", 0, PLANS / 6},
    [ANYWHERE] = {"of these, no loop, vee or wave", 0, PLANS / 24},
    [UNEQUAL] = {"messages of unequal length", 0, PLANS / 3},
    [NODES] = {"several ranks on a node", 0, LEVELS *PLANS / 8},
    [ADAPTERS] = {"adapters that are shared", 0, LEVELS *PLANS / 8},
    [EMPTY] = {"chunks without layers", 0, PLANS / 10},
};

static Share rules[WITHOUT_COUNT] = {
    [WITHOUT_WIRES] = {"a wire carries one message at a time", 0, 1000},
    [WITHOUT_POSTS] = {"a message waits for its post", 0, 1000},
    [WITHOUT_BLOCKING] = {"a receive blocks", 0, 100},
    [WITHOUT_WAITS] = {"a wait costs time", 0, 300},
    [WITHOUT_NODES] = {"ranks of a node are nearer", 0, LEVELS * 1000},
    [WITHOUT_ADAPTERS] = {"an adapter carries one message at a time", 0,
                          LEVELS * 800},
    [WITHOUT_SHARING] = {"both directions of a pair share one wire", 0, 1000},
};

static bool is_unequal(const Draw *d, const Simulation *s)
{
    for (int i = 1; i < s->message_count; i++)
        if (d->machine.bytes[s->messages[i].boundary] !=
            d->machine.bytes[s->messages[0].boundary])
            return true;
    return false;
}

static void count_features(const Draw *d, const Simulation *s)
{
    const Machine *machine = &d->machine;
    shares[POSTED].plans += machine->meet == MEET_POSTED;
    shares[PAIR].plans += machine->meet == MEET_PAIR;
    shares[OWN].plans += !d->schedule;
    shares[FROM_FILE].plans += d->from_file;
    shares[LISTED].plans += d->listed;
    shares[ANYWHERE].plans += d->placement == PLACE_OWN;
    shares[UNEQUAL].plans += machine->link > 0 && is_unequal(d, s);
    shares[NODES].plans += machine->node > 1 && d->ranks > 1;
    shares[ADAPTERS].plans += machine->shared && d->ranks > 2;
    shares[EMPTY].plans += d->empty > 0;
}

/* Is there anything in the machine that the rule is about. */
static bool applies(const Machine *machine, Without rule)
{
    switch (rule) {
    case WITHOUT_WIRES: return machine->link > 0 || machine->node_link > 0;
    case WITHOUT_POSTS: return machine->meet != MEET_BLOCKING;
    case WITHOUT_BLOCKING: return machine->meet == MEET_BLOCKING;
    case WITHOUT_SHARING: return machine->meet == MEET_PAIR;
    case WITHOUT_NODES: return machine->node > 1;
    case WITHOUT_ADAPTERS: return machine->shared && machine->link > 0;
    default: return true;
    }
}

static void count_rules(const Draw *d, const Program *p, double makespan)
{
    static Simulation other;
    const Machine *machine = &d->machine;
    for (int w = 1; w < WITHOUT_COUNT; w++)
        if (applies(machine, (Without)w) &&
            (!simulate(&other, p->arena, machine, p->lists, (Without)w) ||
             !near(other.makespan, makespan)))
            rules[w].plans++;
}

static const char *const meeting_words[] = {[MEET_BLOCKING] = "blocking",
                                            [MEET_POSTED] = "posted",
                                            [MEET_PAIR] = "pair"};

static void report(const Draw *d, int number, const char *what)
{
    enum { SHOWN = 3 };
    failed++;
    if (failed <= SHOWN)
        printf("not ok plan %d, %s: %s\n%s", number,
               meeting_words[d->machine.meet], what, d->text);
}

static void random_plan(int number)
{
    static Draw d;
    static Simulation s;
    Program *p;
    Target target = number % 2 ? TARGET_CUDA : TARGET_CPU;
    Meeting meet = number % 3 == 0         ? MEET_PAIR
                   : target == TARGET_CUDA ? MEET_POSTED
                                           : MEET_BLOCKING;
    draw_plan(&d, number, target, meet);
    if (!plan(&p, d.text, target, meet)) {
        fflush(p->diagnostics);
        report(&d, number, plan_said);
        close_plan(p);
        return;
    }
    take_machine(&d, p);
    const char *what = "the simulation never ends";
    if (simulate(&s, p->arena, &d.machine, p->lists, WITHOUT_NOTHING)) {
        count_features(&d, &s);
        count_rules(&d, p, s.makespan);
        what = difference(p, &s);
    }
    if (what)
        report(&d, number, what);
    else
        passed++;
    close_plan(p);
}

static void check_share(const Share *share)
{
    bool good = share->plans >= share->least;
    printf("%s%6d plans of %d: %s\n", good ? "" : "not ok ", share->plans,
           PLANS, share->what);
    passed += good;
    failed += !good;
}

/* ---- by hand ---- */

static void golden(const char *text, const Machine *machine, double makespan)
{
    static Simulation s;
    Program *p;
    bool good = plan(&p, text, TARGET_CPU, machine->meet);
    if (!good)
        fputs(plan_said, stdout);
    good = good && simulate(&s, p->arena, machine, p->lists, WITHOUT_NOTHING);
    if (!good || !near(s.makespan, makespan) || !near(p->makespan, makespan)) {
        printf("not ok %.9g s by hand, simulated %.9g, planned %.9g:\n%s",
               makespan, s.makespan, p->makespan, text);
        failed++;
    } else {
        passed++;
    }
    close_plan(p);
}

static Machine equal_chunks(int ranks, double time, double bytes, double link)
{
    Machine machine = {
        .ranks = ranks, .meet = MEET_BLOCKING, .node = 1, .link = link};
    for (int c = 0; c < SIM_CHUNKS; c++) {
        for (int kind = 0; kind < 4; kind++)
            machine.compute[kind][c] = time;
        machine.bytes[c] = bytes;
    }
    return machine;
}

/* 8 messages of 10 ms, one after another, each way; with one queue for both ways
 * 16, of which none has to wait for a rank: the wire is busy from 1 to 161. */
static void link_fills(void)
{
    static const struct {
        Meeting meet;
        const char *schedule;
        double latency, makespan;  // ms
    } rows[] = {
        {MEET_BLOCKING, "gpipe", 0, 164}, {MEET_BLOCKING, "1f1b", 0, 106},
        {MEET_BLOCKING, "eager", 0, 94},  {MEET_BLOCKING, "gpipe", 5, 174},
        {MEET_BLOCKING, "1f1b", 5, 146},  {MEET_BLOCKING, "eager", 5, 112},
        {MEET_PAIR, "gpipe", 0, 164},     {MEET_PAIR, "1f1b", 0, 162},
        {MEET_PAIR, "eager", 0, 162},     {MEET_PAIR, "1f1b", 5, 167},
    };
    Machine machine = equal_chunks(2, 1e-3, 4000, 400e3);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model m { input x[1000]; a : linear(1000) * 2; loss : mse }\n"
                 "pipeline { stages 2 microbatches 8 schedule %s }\n"
                 "cluster { forward 1ms backward 1ms link 400k latency %.0fms "
                 "}\n",
                 rows[i].schedule, rows[i].latency);
        machine.meet = rows[i].meet;
        machine.latency = rows[i].latency * 1e-3;
        golden(text, &machine, rows[i].makespan * 1e-3);
    }
}

/* 16,000 bytes hold up 1,000 that are wanted earlier. */
static void unequal_messages(void)
{
    Machine machine = equal_chunks(2, 20e-3, 16000, 50e3);
    machine.bytes[3] = 1000;
    golden("model m {\n    input x[250]\n    l0 : linear(4000)\n"
           "    l1 : linear(4000)\n    l2 : linear(250)\n"
           "    l3 : linear(1000)\n    loss : mse\n}\n"
           "pipeline { stages 2 virtual 2 microbatches 3 schedule vhalf }\n"
           "cluster { forward 20ms input_gradient 20ms weight_gradient 20ms "
           "link 50k }\n",
           &machine, 2060e-3);
}

/* Messages of 2 s, or what `words` of the cluster make of them. */
static void level(const Machine *machine, int microbatches,
                  const char *schedule, const char *words, double makespan)
{
    char text[512];
    snprintf(text, sizeof text,
             "model m { input x[8]; a : linear(8) * 4; loss : mse }\n"
             "pipeline { stages %d microbatches %d schedule %s }\n"
             "cluster { forward 1s backward 1s link 16 %s }\n",
             machine->ranks, microbatches, schedule, words);
    golden(text, machine, makespan);
}

/* Rank 1 of 3 has the gradient of 0 and the activation of 2 to send: the
 * adapter is busy with the first from 11 to 13 s, and then takes the second,
 * ready at 12, before the gradient of 1, ready at 13. On two nodes of two ranks
 * a message takes 1.25 s inside and 3 s between them. */
static void levels(void)
{
    Machine machine = equal_chunks(3, 1, 32, 16);
    level(&machine, 3, "1f1b", "", 22);
    if (!LEVELS)
        return;
    machine.shared = true;
    level(&machine, 3, "1f1b", "adapter shared", 23);
    machine = equal_chunks(4, 1, 32, 16);
    machine.node = 2;
    machine.node_link = 32;
    machine.latency = 1;
    machine.node_latency = 0.25;
    level(&machine, 1, "gpipe",
          "latency 1s node 2 node_link 32 node_latency 250ms", 19);
}

/* Ranks 2 and 3 of one machine have a message for the other machine ready at
 * 26, and rank 2's goes first, though the pair of rank 3 is that of rank 0. */
static void equal_at_adapter(void)
{
    static const Meeting ways[] = {MEET_POSTED, MEET_PAIR};
    Machine machine = equal_chunks(4, 1, 4, 4);
    machine.node = 2;
    machine.node_link = 4;
    machine.shared = true;
    for (int c = 0; c < SIM_CHUNKS; c++)
        machine.compute[ACT_F][c] = 2;
    for (int i = 0; i < 2; i++) {
        machine.meet = ways[i];
        golden("model m { input x[1]; a : linear(1) * 8; loss : mse }\n"
               "schedule mine {\n"
               "    F(0, 0)\n"
               "    if r < 3 { F(1, 0) F(0, 1) B(0, 1) F(1, 1) }\n"
               "    if r == 3 { F(0, 1) B(0, 1) F(1, 0) F(1, 1) }\n"
               "    B(1, 1) B(0, 0) B(1, 0)\n"
               "}\n"
               "pipeline { stages 4 virtual 2 microbatches 2 schedule mine }\n"
               "cluster { forward 2s backward 1s link 4 node 2 adapter shared "
               "}\n",
               &machine, 56);
    }
}

int main(void)
{
    link_fills();
    unequal_messages();
    levels();
    equal_at_adapter();
    int file = mkstemps(order_path, 4);
    if (file < 0) {
        printf("not ok %s cannot be made\n", order_path);
        return 1;
    }
    close(file);
    for (int number = 0; number < PLANS; number++)
        random_plan(number);
    unlink(order_path);
    for (int i = 0; i < FEATURES; i++)
        check_share(&shares[i]);
    for (int w = 1; w < WITHOUT_COUNT; w++)
        check_share(&rules[w]);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
