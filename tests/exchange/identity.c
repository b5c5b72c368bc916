/* identity.c: what comes in is what went out.
 *
 * The published vectors are read and give their makespans and peaks; every
 * schedule over a grid is written as csv_write writes it and read back to the
 * same order; other spellings of a file are the same file; and a file that was
 * damaged at random is refused, or is a whole order. */
#include "order/csv.h"
#include "plan.h"

#include <stdlib.h>
#include <unistd.h>

static int passed, failed;
static char file[] = "/tmp/pipec-exchange-XXXXXX";
static unsigned long long dice = 1;

static int roll(int below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (unsigned)below);
}

static void verdict(bool good, const char *what)
{
    passed += good;
    failed += !good;
    if (!good)
        printf("not ok %s\n%s", what, plan_said);
}

static void write_file(const char *text, size_t length)
{
    FILE *out = fopen(file, "wb");
    fwrite(text, 1, length, out);
    fclose(out);
}

static const char *placed = "";  // what else the next file's pipeline says

static bool bare;  // it says nothing: the file says it all

static bool plan_bare(Program **out, const char *path, int layers)
{
    static char text[512];
    snprintf(text, sizeof text,
             "model chain {\n    input tokens[2] of 4\n    e : embedding(4)\n"
             "    h : linear(4) * %d\n    loss : cross_entropy\n}\n"
             "pipeline { schedule from \"%s\" }\n",
             layers, path);
    Program *p = *out = open_plan(text);
    for (int i = 0; i < PLAN_PASSES && passes[i].run(p); i++)
        if (passes[i].run == prove)
            return true;
    return false;
}

static bool read_back(Program **p, const char *path, int P, int v, int M)
{
    char text[256];
    if (bare)
        return plan_bare(p, path, P * v > 1 ? P * v - 1 : 1);
    snprintf(text, sizeof text, "from \"%s\"%s%s", path,
             strstr(path, "v-2-4") ? " placement vee" : "", placed);
    return plan_chain(p, P, v, M, text) && prove(*p);
}

static bool same_order(const Program *a, const Program *b)
{
    for (int r = 0; r < a->ranks; r++) {
        if (a->order[r].count != b->order[r].count)
            return false;
        for (int i = 0; i < a->order[r].count; i++) {
            Action x = a->order[r].at[i], y = b->order[r].at[i];
            if (x.kind != y.kind || x.chunk != y.chunk || x.micro != y.micro)
                return false;
        }
    }
    return a->makespan == b->makespan;
}

/* ---- published vectors ---- */

static const struct {
    const char *path;
    int P, v, M;
    const char *named;  // the schedule that it is, or NULL
    double makespan;
    int peak[4];
} vectors[] = {
    {"tests/exchange/1f1b-2-4.csv", 2, 1, 4, "1f1b", 15, {2, 1}},
    {"tests/exchange/1f1b-3-2.csv", 3, 1, 2, "1f1b", 12, {2, 2, 1}},
    {"tests/exchange/interleaved-2-4-2.csv",
     2,
     2,
     4,
     "interleaved",
     27,
     {5, 3}},
    {"tests/exchange/zb1p-2-4.csv", 2, 1, 4, "zbh1", 13, {2, 2}},
    {"tests/exchange/zb1p-2-4-old.csv", 2, 1, 4, NULL, 13, {2, 2}},
    {"tests/exchange/eager-4-8.csv", 4, 1, 8, "eager", 33, {7, 5, 3, 1}},
    {"tests/exchange/bfs-2-2-2.csv", 2, 2, 2, "bfs", 15, {4, 4}},
    {"tests/exchange/dualpipev-2-4.csv", 2, 2, 4, "dualpipev", 25, {5, 5}},
    {"tests/exchange/zbv-2-4.csv", 2, 2, 4, "zbv", 25, {4, 4}},
};
enum { VECTORS = sizeof vectors / sizeof *vectors };

static bool is_the_file(Program *p, const char *path)
{
    static char ours[4096], theirs[4096];
    memset(ours, 0, sizeof ours);
    memset(theirs, 0, sizeof theirs);
    FILE *out = fmemopen(ours, sizeof ours, "w"), *in = fopen(path, "rb");
    csv_write(p, out, false);
    fclose(out);
    size_t length = fread(theirs, 1, sizeof theirs - 1, in);
    fclose(in);
    return length > 0 && strcmp(ours, theirs) == 0;
}

static void vector(int i)
{
    Program *p, *named = NULL;
    int P = vectors[i].P, v = vectors[i].v, M = vectors[i].M;
    bool good = read_back(&p, vectors[i].path, P, v, M) &&
                p->makespan == vectors[i].makespan;
    for (int r = 0; good && r < P; r++)
        good = peak_copies(p, r) == vectors[i].peak[r];
    if (good && !strstr(vectors[i].path, "old") &&
        !strstr(vectors[i].path, "dual"))
        good = is_the_file(p, vectors[i].path);
    if (good && vectors[i].named) {
        good = plan_chain(&named, P, v, M, vectors[i].named) && prove(named) &&
               same_order(p, named);
        close_plan(named);
    }
    verdict(good, vectors[i].path);
    close_plan(p);
}

/* Pairs are cells of their own. */
static void pairs(void)
{
    Program *p;
    bool good = plan_chain(&p, 2, 2, 4, "dualpipev(atomic = 1)") && prove(p) &&
                is_the_file(p, "tests/exchange/dualpipev-2-4.csv");
    verdict(good, "dualpipev with pairs is the published file");
    close_plan(p);
}

/* A WAIT may stand inside a pair; the order comes back, though not as pairs. */
static void pairs_back(const char *name, int P, int v, int M, const char *where)
{
    Program *p, *back;
    char what[64];
    snprintf(what, sizeof what, "%s P=%d M=%d", name, P, M);
    bool good = plan_chain(&p, P, v, M, name) && prove(p) && memory(p);
    FILE *out = fopen(file, "wb");
    csv_write(p, out, false);
    fclose(out);
    placed = where;
    good = read_back(&back, file, P, v, M) && good;
    back->makespan = p->makespan;
    verdict(good && same_order(p, back), what);
    placed = "";
    close_plan(p);
    close_plan(back);
}

static void all_pairs_back(void)
{
    for (int P = 2; P <= 6; P += 2)
        for (int M = 2; M <= 11; M++) {
            pairs_back("dualpipe(atomic = 1)", P, 1, M, " placement twin");
            pairs_back("dualpipev(atomic = 1)", P, 2, M, " placement vee");
        }
}

/* ---- our own ---- */

static void there_and_back(const char *name, int P, int v, int M, bool comms)
{
    Program *p, *back;
    char what[128];
    snprintf(what, sizeof what, "%s%s P=%d v=%d M=%d%s",
             plan_target == TARGET_CUDA ? "cuda " : "", name, P, v, M,
             comms ? " with communication" : "");
    bool good = plan_chain(&p, P, v, M, name) && prove(p) && memory(p);
    FILE *out = fopen(file, "wb");
    csv_write(p, out, comms);
    fclose(out);
    good = read_back(&back, file, P, v, M) && good && same_order(p, back);
    verdict(good, what);
    close_plan(back);
    bare = !comms && (p->copies == 1 || M > 1);  // the second copy has no sign
    good = !bare ||
           (read_back(&back, file, P, v, M) && same_order(p, back) &&
            back->microbatches == M && back->ranks == P &&
            back->copies == p->copies && back->chunk_count == p->chunk_count);
    verdict(good, "without another word");
    if (bare)
        close_plan(back);
    bare = false;
    close_plan(p);
}

/* Every schedule, and one with an option; what the pipeline says of the placement
 * holds, and where it says nothing the file does. */
static void grid(void)
{
    for (int i = 0; i <= schedule_count; i++) {
        const Schedule *s = schedules[i % schedule_count];
        const char *name = i < schedule_count ? s->name
                                              : "interleaved(warmup = 1)";
        char words[32];
        snprintf(words, sizeof words, " placement %s",
                 placement_names[s->placement]);
        for (int P = 1; P <= 6; P++)
            for (int v = 1; v <= 3; v++)
                for (int M = 1; plan_allows(s, P, v) && M <= 9; M++)
                    for (int comms = 0; comms < 2; comms++) {
                        placed = words;
                        there_and_back(name, P, v, M, comms);
                        placed = "";
                    }
    }
    there_and_back("interleaved", 16, 4, 32, true);
}

/* ---- the same in other words ---- */

static void spelling(const char *what, const char *text)
{
    Program *p, *named;
    write_file(text, strlen(text));
    bool good = read_back(&p, file, 2, 1, 4);
    plan_chain(&named, 2, 1, 4, "1f1b");
    good = good && prove(named) && same_order(p, named);
    verdict(good, what);
    close_plan(named);
    close_plan(p);
}

#define ROW_0 "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3"
#define ROW_1 "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3"

static void spellings(void)
{
    spelling("LF", ROW_0 "\n" ROW_1 "\n");
    spelling("no end of line", ROW_0 "\n" ROW_1);
    spelling("lines behind", ROW_0 "\r\n" ROW_1 "\r\n\r\n  \n");
    spelling("mark of UTF-8", "\xEF\xBB\xBF" ROW_0 "\r\n" ROW_1 "\r\n");
    spelling("spaces", " 0F0 ,\t0F1,0B0,0F2 ,0B1,0F3,0B2,0B3\n" ROW_1 " \n");
    spelling("quotes", "\"0F0\",\" 0F1\",0B0,0F2,0B1,0F3,0B2,0B3\n" ROW_1 "\n");
    spelling("zeros in front", "0F00,00F1,0B0,0F2,0B1,0F3,0B2,0B3\n" ROW_1);
    spelling("idle cells", "0F0,0F1,,,,0B0,,0F2,0B1,0F3,0B2,0B3,,\n"
                           ",1F0,1B0,,1F1,1B1,1F2,1B2,1F3,1B3\n");
    spelling("overlap", "0F0,(0F1;0B0)OVERLAP_F_B,( 0F2 ; 0B1 )OVERLAP_F_B,"
                        "0F3,0B2,0B3\n" ROW_1);
    spelling("shards", "0UNSHARD," ROW_0 ",0RESHARD,0REDUCE_GRAD\n"
                       "1UNSHARD," ROW_1 ",1REDUCE_GRAD,1RESHARD\n");
    spelling("old dialect, full backwards",
             "0F0,0F1,0BW0,0F2,0BW1,0F3,0BW2,0BW3\n"
             "1F0,1BW0,1F1,1BW1,1F2,1BW2,1F3,1BW3\n");
}

/* ---- damage ---- */

static size_t damage(char *text, size_t length)
{
    static const char bytes[] = "0123456789FBIWSENDRCV_,;()\r\n\"  O\xff";
    for (int times = 1 + roll(3); times > 0; times--) {
        size_t at = (size_t)roll((int)length);
        switch (roll(4)) {
        case 0: text[at] = bytes[roll((int)sizeof bytes)]; break;
        case 1:
            memmove(text + at, text + at + 1, length - at - 1);
            length--;
            break;
        case 2: {  // two pieces change places
            size_t other = (size_t)roll((int)length);
            for (int i = 0; i < 4; i++) {
                char kept = text[(at + i) % length];
                text[(at + i) % length] = text[(other + i) % length];
                text[(other + i) % length] = kept;
            }
            break;
        }
        default: length = at + 1;
        }
    }
    return length;
}

/* `prove` says that what was accepted is a whole order, and there is a reason
 * for what was not. */
static void damaged(int rounds)
{
    static char whole[1 << 16], text[1 << 16];
    Program *p;
    int accepted = 0;
    plan_chain(&p, 3, 2, 4, "interleaved");
    for (int comms = 0; comms < 3; comms++) {
        bare = comms == 2;
        FILE *out = fmemopen(whole, sizeof whole, "wb");
        csv_write(p, out, comms == 1);
        size_t length = (size_t)ftell(out);
        fclose(out);
        for (int i = 0; i < rounds; i++) {
            Program *back;
            memcpy(text, whole, length);
            write_file(text, damage(text, length));
            bool good = read_back(&back, file, 3, 2, 4);
            accepted += good;
            fflush(back->diagnostics);
            verdict(good || strstr(plan_said, "error: "), "damage");
            close_plan(back);
        }
    }
    bare = false;
    close_plan(p);
    verdict(accepted > 0 && accepted < rounds, "some damage is harmless");
}

int main(void)
{
    close(mkstemp(file));
    for (int i = 0; i < VECTORS; i++)
        vector(i);
    pairs();
    all_pairs_back();
    grid();
    plan_target = TARGET_CUDA;
    grid();
    plan_target = TARGET_CPU;
    spellings();
    damaged(1500);
    remove(file);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
