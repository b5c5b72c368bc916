/* mutate.c: the proof is seen to fail.
 *
 * Proved lists are damaged at random: an action is dropped, doubled, swapped
 * with another, renamed, or sent to another rank. The proof must reject the
 * result and name a rank and an action; or else the damage is harmless, which
 * is then shown by running it.
 *
 * The run is an implementation of its own: every rank has an arena of stamps,
 * a kernel stamps the bytes that it writes and checks those that it reads, a
 * receive copies stamps from the sender's arena at that moment, as the real
 * transport does, and the order of the ranks is random. Where receives are
 * posted, the copy happens at any moment after both ends are there. */
#include "plan.h"

#include <stdlib.h>

static unsigned long long dice = 1;
static int passed, failed;
static int rejected, harmless;

static int roll(int below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (unsigned)below);
}

/* ---- a machine that runs lists ---- */

enum { CELL = 16, MAX_RANKS = 8, MAX_QUEUE = 4096 };

typedef struct Machine {
    Program *p;
    int *arena[MAX_RANKS];  // a stamp for every 16 floats
    int next[MAX_RANKS], collectives[MAX_RANKS];
    Action queue[MAX_RANKS][MAX_RANKS][MAX_QUEUE];
    Action posts[MAX_RANKS][MAX_RANKS][MAX_QUEUE];
    int sent[MAX_RANKS][MAX_RANKS], taken[MAX_RANKS][MAX_RANKS];
    int posted[MAX_RANKS][MAX_RANKS];
    int last_added[64];  // [chunk] micro-batch
    int done;
    const char *fault;
} Machine;

static void stamp(Machine *m, int rank, BlockKind kind, Action a)
{
    int block = find_block_of(m->p, kind, a.chunk, a.micro);
    if (block < 0)
        return;
    const Block *b = &m->p->blocks[block];
    for (size_t i = 0; i < b->floats / CELL; i++)
        m->arena[rank][b->offset / CELL + i] = 1 + block;
}

static void expect(Machine *m, int rank, BlockKind kind, Action a)
{
    int block = find_block_of(m->p, kind, a.chunk, a.micro);
    if (block < 0)
        return;
    const Block *b = &m->p->blocks[block];
    if (b->rank != rank)
        m->fault = "another rank's block";
    for (size_t i = 0; i < b->floats / CELL && !m->fault; i++)
        if (m->arena[rank][b->offset / CELL + i] != 1 + block)
            m->fault = "read what was not there";
}

static void run_forward(Machine *m, int rank, Action a)
{
    if (m->p->chunks[a.chunk].previous < 0)
        stamp(m, rank, BLOCK_X, a);
    stamp(m, rank, BLOCK_TARGETS, a);
    expect(m, rank, BLOCK_X, a);
    stamp(m, rank, BLOCK_KEEP, a);
    stamp(m, rank, BLOCK_HOLD, a);
    stamp(m, rank, BLOCK_Y, a);
}

static void expect_for(Machine *m, int rank, Action a, int readers)
{
    const Frame *frame = &m->p->frames[a.chunk];
    if (frame->x & readers)
        expect(m, rank, BLOCK_X, a);
    if (frame->y & readers)
        expect(m, rank, BLOCK_Y, a);
    if (frame->dy & readers)
        expect(m, rank, BLOCK_DY, a);
}

static void run_input(Machine *m, int rank, Action a)
{
    expect(m, rank, BLOCK_KEEP, a);
    expect(m, rank, BLOCK_HOLD, a);
    expect(m, rank, BLOCK_DY, a);
    expect(m, rank, BLOCK_TARGETS, a);
    expect_for(m, rank, a, READ_INPUT);
    stamp(m, rank, BLOCK_DHOLD, a);
    stamp(m, rank, BLOCK_DX, a);
}

static void run_weight(Machine *m, int rank, Action a)
{
    expect(m, rank, BLOCK_HOLD, a);
    expect(m, rank, BLOCK_DHOLD, a);
    expect_for(m, rank, a, READ_WEIGHT);
    if (m->p->frames[a.chunk].dx & READ_WEIGHT)
        expect(m, rank, BLOCK_DX, a);
    if (a.micro < m->last_added[a.chunk] && m->p->sums == SUMS_ASCEND)
        m->fault = "added out of order";
    m->last_added[a.chunk] = a.micro;
}

static void run_compute(Machine *m, int rank, Action a)
{
    if (a.kind == ACT_F)
        run_forward(m, rank, a);
    if (a.kind == ACT_B || a.kind == ACT_I)
        run_input(m, rank, a);
    if (a.kind == ACT_B || a.kind == ACT_W)
        run_weight(m, rank, a);
    m->done++;
}

/* The oldest open message from one rank to another travels now. */
static void travel(Machine *m, int from, int to)
{
    int k = m->taken[from][to];
    Action s = m->queue[from][to][k], a = m->posts[from][to][k];
    bool back = s.kind == ACT_SEND_B;
    const Chunk *chunk = &m->p->chunks[s.chunk];
    if (back != (a.kind == ACT_RECV_B) || s.micro != a.micro ||
        (back ? chunk->previous : chunk->next) != a.chunk) {
        m->fault = "took another message";
        return;
    }
    expect(m, from, back ? BLOCK_DX : BLOCK_Y, s);  // at this very moment
    stamp(m, to, back ? BLOCK_DY : BLOCK_X, a);
    m->taken[from][to]++;
}

static bool receive(Machine *m, int rank, Action a)
{
    int from = a.peer;
    if (m->p->target == TARGET_CPU &&
        m->taken[from][rank] == m->sent[from][rank])
        return false;
    m->posts[from][rank][m->posted[from][rank]++] = a;
    if (m->p->target == TARGET_CPU)
        travel(m, from, rank);
    return true;
}

static bool travel_somewhere(Machine *m)
{
    int from = roll(m->p->ranks), to = roll(m->p->ranks);
    int k = m->taken[from][to];
    if (k == m->sent[from][to] || k == m->posted[from][to])
        return false;
    travel(m, from, to);
    return true;
}

static bool take_is_over(const Machine *m, int rank, Action a)
{
    ActionKind posted = a.kind == ACT_TAKE_F ? ACT_RECV_F : ACT_RECV_B;
    for (int k = 0; k < m->posted[a.peer][rank]; k++) {
        Action r = m->posts[a.peer][rank][k];
        if (r.kind == posted && r.chunk == a.chunk && r.micro == a.micro)
            return m->taken[a.peer][rank] > k;
    }
    return false;
}

static bool wait_is_over(const Machine *m, int rank, Action a)
{
    ActionKind sent = a.kind == ACT_WAIT_F ? ACT_SEND_F : ACT_SEND_B;
    for (int k = 0; k < m->sent[rank][a.peer]; k++) {
        Action s = m->queue[rank][a.peer][k];
        if (s.kind == sent && s.chunk == a.chunk && s.micro == a.micro)
            return m->taken[rank][a.peer] > k;
    }
    return false;
}

/* All ranks that take part stand at the same collective. */
static bool all_are_here(const Machine *m, Action a)
{
    for (int r = 0; r < m->p->ranks; r++) {
        const List *list = &m->p->lists[r];
        bool takes_part = false;
        for (int i = m->next[r]; i < list->count; i++)
            takes_part |= list->at[i].kind == a.kind &&
                          list->at[i].micro == a.micro;
        bool passed_it = false;
        for (int i = 0; i < m->next[r]; i++)
            passed_it |= list->at[i].kind == a.kind &&
                         list->at[i].micro == a.micro;
        Action here = list->at[m->next[r] < list->count ? m->next[r] : 0];
        if (takes_part && !passed_it &&
            (here.kind != a.kind || here.micro != a.micro))
            return false;
    }
    return true;
}

/* One entry of one rank; false when it has to wait. */
static bool step(Machine *m, int rank)
{
    Program *p = m->p;
    if (m->next[rank] == p->lists[rank].count)
        return false;
    Action a = p->lists[rank].at[m->next[rank]];
    if (a.kind <= ACT_W) {
        run_compute(m, rank, a);
    } else if (a.kind == ACT_RECV_F || a.kind == ACT_RECV_B) {
        if (!receive(m, rank, a))
            return false;
    } else if (a.kind == ACT_SEND_F || a.kind == ACT_SEND_B) {
        m->queue[rank][a.peer][m->sent[rank][a.peer]++] = a;
    } else if (a.kind == ACT_WAIT_F || a.kind == ACT_WAIT_B) {
        if (!wait_is_over(m, rank, a))
            return false;
    } else if (a.kind == ACT_TAKE_F || a.kind == ACT_TAKE_B) {
        if (!take_is_over(m, rank, a))
            return false;
    } else if (!all_are_here(m, a)) {
        return false;
    }
    m->next[rank]++;
    return true;
}

static const char *run_lists(Program *p)
{
    static Machine m;
    memset(&m, 0, sizeof m);
    m.p = p;
    int total = 0, idle = 0, ran = 0;
    for (int r = 0; r < p->ranks; r++) {
        m.arena[r] = calloc(p->arena_floats[r] / CELL + 1, sizeof(int));
        total += p->lists[r].count;
    }
    while (!m.fault && ran < total && idle < 64 * p->ranks * p->ranks) {
        bool travelled = roll(3) == 0 && travel_somewhere(&m);
        bool stepped = !travelled && step(&m, roll(p->ranks));
        bool moved = travelled || stepped;
        ran += stepped;
        idle = moved ? 0 : idle + 1;
    }
    for (int r = 0; r < p->ranks; r++)
        free(m.arena[r]);
    if (m.fault)
        return m.fault;
    int wanted = 0;
    for (int r = 0; r < p->ranks; r++)
        wanted += p->order[r].count;
    return ran < total ? "hung" : m.done != wanted ? "did not do all" : NULL;
}

/* ---- damage ---- */

static void cut(List *list, int at)
{
    for (int i = at; i + 1 < list->count; i++)
        list->at[i] = list->at[i + 1];
    list->count--;
}

static void put(List *list, int at, Action a)
{
    for (int i = list->count++; i > at; i--)
        list->at[i] = list->at[i - 1];
    list->at[at] = a;
}

static const char *damage(Program *p, char *what)
{
    static const char *const names[] = {"drop",   "double",   "swap",
                                        "rename", "retarget", "move"};
    int kind = roll(6), rank = roll(p->ranks);
    List *list = &p->lists[rank];
    int at = roll(list->count), other = roll(list->count);
    Action *a = &list->at[at], before = *a;
    switch (kind) {
    case 0: cut(list, at); break;
    case 1: put(list, other, before); break;
    case 2:
        if (roll(2) && at + 1 < list->count)
            other = at + 1;
        *a = list->at[other];
        list->at[other] = before;
        break;
    case 3:
        if (roll(3) == 0)
            a->chunk = roll(p->chunk_count);
        else if (roll(2))
            a->micro = roll(p->microbatches);
        else
            a->kind = (ActionKind)roll(ACT_REDUCE);
        break;
    case 4:
        if (a->peer >= 0)
            a->peer = roll(p->ranks);
        break;
    default: cut(list, at); put(list, roll(list->count + 1), before);
    }
    sprintf(what, "%s at rank %d, action %d, %s", names[kind], rank, at,
            action_text(p, before));
    return names[kind];
}

static List *copy_lists(const Program *p)
{
    List *copy = malloc(sizeof *copy * (size_t)p->ranks);
    for (int r = 0; r < p->ranks; r++) {
        copy[r] = p->lists[r];
        copy[r].at = malloc(sizeof(Action) * (size_t)(p->lists[r].count + 1));
        memcpy(copy[r].at, p->lists[r].at,
               sizeof(Action) * (size_t)p->lists[r].count);
    }
    return copy;
}

static void free_lists(const Program *p, List *lists)
{
    for (int r = 0; r < p->ranks; r++)
        free(lists[r].at);
    free(lists);
}

static bool names_rank_and_action(void)
{
    return strstr(plan_said, "rank ") &&
           (strstr(plan_said, "action ") || strstr(plan_said, "never runs") ||
            strstr(plan_said, "STEP") || strstr(plan_said, "never reduces"));
}

/* The lists as proved run in random orders; damaged ones are rejected, or run. */
static void attack(Program *p, const char *what, int times)
{
    List *sound = p->lists;
    for (int i = 0; i < 20; i++) {
        const char *fault = run_lists(p);
        passed += !fault;
        failed += fault != NULL;
        if (fault)
            printf("not ok %s as proved: %s\n", what, fault);
    }
    for (int i = 0; i < times; i++) {
        char done[128];
        p->lists = copy_lists(p);
        damage(p, done);
        p->errors = 0;
        memset(plan_said, 0, sizeof plan_said);
        rewind(p->diagnostics);
        bool accepted = prove(p) && prove_memory(p);
        fflush(p->diagnostics);
        const char *fault = NULL;
        for (int k = 0; accepted && k < 5 && !fault; k++)
            fault = run_lists(p);
        bool good = accepted ? !fault : names_rank_and_action();
        rejected += !accepted;
        harmless += accepted && !fault;
        passed += good;
        failed += !good;
        if (!good)
            printf("not ok %s, %s: %s\n%s", what, done,
                   accepted ? fault : "rejected without rank and action",
                   plan_said);
        free_lists(p, p->lists);
        p->lists = sound;
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *schedule;
        int P, v, M;
        Target target;
    } cases[] = {
        {"naive", 3, 1, 3, TARGET_CPU},
        {"gpipe", 4, 1, 5, TARGET_CPU},
        {"1f1b", 2, 1, 4, TARGET_CPU},
        {"1f1b", 4, 1, 8, TARGET_CPU},
        {"interleaved", 2, 2, 4, TARGET_CPU},
        {"interleaved", 4, 2, 6, TARGET_CPU},
        {"interleaved", 3, 3, 4, TARGET_CPU},
        {"bfs", 3, 2, 3, TARGET_CPU},
        {"zbh1", 4, 1, 6, TARGET_CPU},
        {"zbh1", 2, 2, 4, TARGET_CPU},
        {"zbh2", 3, 1, 6, TARGET_CPU},
        {"dualpipev", 3, 2, 5, TARGET_CPU},
        {"dualpipe(atomic = 1)", 4, 1, 7, TARGET_CPU},
        {"chimera", 4, 1, 4, TARGET_CPU},
        {"hanayo", 3, 4, 4, TARGET_CPU},
        {"zbv", 3, 2, 5, TARGET_CPU},
        {"vmin", 4, 2, 6, TARGET_CPU},
        {"gpipe", 1, 1, 3, TARGET_CPU},
        {"1f1b", 4, 1, 6, TARGET_CUDA},
        {"gpipe", 3, 1, 4, TARGET_CUDA},
        {"interleaved", 2, 2, 4, TARGET_CUDA},
        {"interleaved", 4, 2, 6, TARGET_CUDA},
        {"zbh1", 4, 1, 6, TARGET_CUDA},
        {"dualpipev", 2, 2, 4, TARGET_CUDA},
        {"dualpipe(atomic = 1)", 4, 1, 6, TARGET_CUDA},
    };
    int times = argc > 1 ? atoi(argv[1]) : 500;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Program *p;
        plan_target = cases[i].target;
        if (!plan_chain(&p, cases[i].P, cases[i].v, cases[i].M,
                        cases[i].schedule) ||
            !prove(p) || !memory(p)) {
            printf("not ok %s cannot be planned\n%s", cases[i].schedule,
                   plan_said);
            failed++;
        } else {
            attack(p, cases[i].schedule, times);
        }
        close_plan(p);
    }
    printf("%d damaged lists rejected, %d shown harmless\n", rejected,
           harmless);
    if (rejected < harmless)
        printf("not ok the proof rejects too little\n"), failed++;
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
