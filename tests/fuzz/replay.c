/* replay.c: any text at all goes through the compiler, and must come out with
 * programs, pictures and tables or with errors: no crash, no hang, no leak, no
 * silent refusal, and no byte that a terminal or a compiler would take for more
 * than text.
 *
 *     clang -fsanitize=fuzzer,address,undefined     seeks such texts; see `soak`
 *     gcc -fsanitize=address,undefined -DREPLAY     reads the files that it is
 *                                                   given; see replay.sh
 *
 * Each way by which text comes in is a reader: the file, a value of -D, a
 * schedule as CSV, a layout in a split, a trace. READER=NAME chooses one for the
 * fuzzer; the words `READER:` among the files of a replay do.
 *
 * A plan is as large as its schedule is long, and a small text can ask for
 * millions of actions. Such plans are left out: errors are sought here. */
#include "compile.h"
#include "drive/dump.h"
#include "order/csv.h"
#include "show/picture.h"
#include "study/measured.h"
#include "study/whatif.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LONGEST = 1 << 16,
    MOST_ACTIONS = 512,
    MOST_OPS = 1000,
    FEW_ACTIONS = 32,  // of plans that are made again by compare and explain
    FEW_OPS = 40
};

/* Of the file: whatever is written must hold it. */
static const char hostile[] =
    "a\"b'\\c<i>&amp;*/ /* //\x1b[31m?\?/\n#error d.pipe";

/* ---- the output: every byte is looked at ---- */

static ssize_t look(void *unused, const char *text, size_t length)
{
    (void)unused;
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)text[i] < 32 && !strchr("\n\r\t", text[i])) ||
            text[i] == 127)
            abort();  // a control byte gets out
    return (ssize_t)length;
}

static FILE *open_eye(void)
{
    return fopencookie(NULL, "w", (cookie_io_functions_t){.write = look});
}

/* ---- plans ---- */

static bool is_small(const Program *p)
{
    return p->chunk_count * (double)p->microbatches <= MOST_ACTIONS &&
           p->op_count <= MOST_OPS;
}

static bool is_tiny(const Program *p)
{
    return p->chunk_count * (double)p->microbatches <= FEW_ACTIONS &&
           p->op_count <= FEW_OPS;
}

/* A search looks about a little only: its time is a matter of taste. */
static bool be_quick(Program *p)
{
    for (int i = 0; i < 4 && p->set.schedule->option[i]; i++)
        if (strcmp(p->set.schedule->option[i], "effort") == 0)
            p->set.option[i].value = 0.002;
    return true;
}

static bool plan(Program *p)
{
    return parse(p) && check(p) && import(p) && graph(p) && partition(p) &&
           is_small(p) && be_quick(p) && schedule(p) && communicate(p) &&
           prove(p) && memory(p);
}

static void dump_all(Program *p, FILE *out)
{
    static const char *const passes[] = {
        "parse",       "check", "import", "graph", "partition", "schedule",
        "communicate", "prove", "memory", "lower", "emit"};
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        dump(p, passes[i], out);
}

static void draw(Program *p, FILE *out)
{
    inspect(p, out, false, false);
    op_table(p, out);
    picture_svg(&p, 1, out, true);
    picture_html(&p, 1, out);
    picture_trace(&p, 1, out);
    csv_write(p, out, true);
    if (has_layout(p))
        layout_file(p, out);
}

/* What plans the file again. */
static void study(Program *p, FILE *out)
{
    CompareOptions o = {.schedules = "gpipe,1f1b", .virtuals = "1"};
    explain(p, p->ranks > 1 ? "r1@0" : "r0@0", out, false);
    diff(p, p, out, false);
    o.csv = p->microbatches % 3 == 0;
    o.json = p->microbatches % 3 == 1;
    compare(p, &o, out);
}

static void show(Program *p, FILE *out)
{
    draw(p, out);
    if (is_tiny(p) && strcmp(p->set.schedule->name, "auto") != 0)
        study(p, out);
    if (lower(p))
        dump_all(p, out);
}

/* ---- readers ---- */

static Program *open_program(const char *text, size_t length, FILE *out)
{
    Arena *arena = arena_open();
    Program *p = arena_take(arena, sizeof *p);
    *p = (Program){.arena = arena, .diagnostics = out};
    p->sources = arena_take(arena, 2 * sizeof *p->sources);
    p->sources[0] = (Source){hostile, text_copy(arena, text, length),
                             (int)length};
    p->source_count = 1;
    return p;
}

static void close_program(Program *p, bool planned)
{
    bool silent = !planned && !p->errors &&
                  (p->chunk_count == 0 || is_small(p));
    arena_close(p->arena);
    if (silent)
        abort();  // a pass has failed and did not say why
}

static void read_pipe(const char *text, size_t length, FILE *out)
{
    Program *p = open_program(text, length, out);
    bool planned = plan(p);
    if (planned)
        show(p, out);
    close_program(p, planned);
}

#define MODEL                                                                  \
    "let n = 3\nlayer b(k) { x + linear(gelu(x), k) }\n"                       \
    "model m {\n input x[2] of 8\n e : embedding(4)\n"                         \
    " h : b(4) * n\n t : linear(8) tied e\n loss : cross_entropy\n}\n"
static const char model[] = MODEL
    "pipeline { stages 2 microbatches 4 rows 2 }\n"
    "train { data bytes \"d\" steps 2 }\n"
    "cluster { flops 1T link 1G latency 1us }\n";

/* NAME=VALUE behind -D; the command line takes nothing else. */
static void read_define(const char *text, size_t length, FILE *out)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return;
    Program *p = open_program(model, strlen(model), out);
    p->sources[p->source_count++] = (Source){
        "-D", text_copy(p->arena, text, length), (int)strlen(text)};
    bool planned = plan(p);
    if (planned)
        show(p, out);
    close_program(p, planned);
}

/* A file that lies nowhere: its path. */
static char *keep(Program *p, int *file, const char *text, size_t length)
{
    *file = memfd_create("fuzz", 0);
    if (*file < 0 || write(*file, text, length) != (ssize_t)length)
        exit(1);
    return text_format(p->arena, "/proc/self/fd/%d", *file);
}

static void read_csv(const char *text, size_t length, FILE *out)
{
    int file;
    Program *p = open_program(model, strlen(model), out);
    const char *path = keep(p, &file, text, length);
    const char *setting = text_format(p->arena, "schedule=from \"%s\"", path);
    p->sources[p->source_count++] = (Source){"-D", setting,
                                             (int)strlen(setting)};
    bool planned = plan(p);
    if (planned)
        show(p, out);
    close(file);
    close_program(p, planned);
}

static void read_split(const char *text, size_t length, FILE *out)
{
    Arena *arena = arena_open();
    const char *file = text_format(
        arena,
        MODEL "pipeline { stages 2 virtual 2 microbatches 4 "
              "schedule interleaved split \"%.*s\" }\n",
        (int)length, text);
    read_pipe(file, strlen(file), out);
    arena_close(arena);
}

/* In a format that the length of the trace chooses. */
static void draw_measured(Program *p, size_t length)
{
    static const char *const endings[] = {"svg", "json", "html", "txt"};
    const char *path = text_format(p->arena, "/tmp/pipec-fuzz-%ld.%s",
                                   (long)getpid(), endings[length % 4]);
    if (!picture_measured(p, path))
        abort();
    remove(path);
}

static void read_trace(const char *text, size_t length, FILE *out)
{
    int file;
    Program *p = open_program(model, strlen(model), out);
    const char *path = keep(p, &file, text, length);
    bool planned = plan(p);
    if (planned && measured(p, path)) {
        inspect_measured(p, out, false, false);
        draw_measured(p, length);
    } else if (!p->errors) {
        abort();
    }
    close(file);
    close_program(p, planned);
}

static const struct {
    const char *name;
    void (*read)(const char *text, size_t length, FILE *out);
} readers[] = {{"pipe", read_pipe},
               {"define", read_define},
               {"csv", read_csv},
               {"layout", read_split},
               {"trace", read_trace}};
enum { READERS = sizeof readers / sizeof *readers };

static int find_reader(const char *name, size_t length)
{
    for (int i = 0; i < READERS; i++)
        if (strlen(readers[i].name) == length &&
            strncmp(readers[i].name, name, length) == 0)
            return i;
    return -1;
}

/* The text ends with a zero here, as that of a source does. */
static void read_text(int reader, const char *bytes, size_t length)
{
    static FILE *eye;
    if (!eye)
        eye = open_eye();
    char *text = calloc(1, length + 1);
    memcpy(text, bytes, length);
    readers[reader].read(text, length, eye);
    free(text);
}

#ifndef REPLAY
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int reader = -1;
    const char *name = getenv("READER");
    if (reader < 0)
        reader = find_reader(name ? name : "pipe",
                             strlen(name ? name : "pipe"));
    if (reader < 0)
        exit(1);
    if (size <= LONGEST)
        read_text(reader, (const char *)data, size);
    return 0;
}
#else
int main(int argc, char **argv)
{
    static char text[LONGEST];
    int read = 0, files = 0, reader = 0;
    for (int i = 1; i < argc; i++) {
        size_t length = strlen(argv[i]);
        if (argv[i][length - 1] == ':') {
            reader = find_reader(argv[i], length - 1);
            continue;
        }
        FILE *in = fopen(argv[i], "rb");
        files++;
        if (!in || reader < 0)
            continue;
        fprintf(stderr, "%s\n", argv[i]);  // the last one before a crash
        read_text(reader, text, fread(text, 1, LONGEST, in));
        fclose(in);
        read++;
    }
    printf("%d passed, %d failed\n", read, files - read);
    return 0;
}
#endif
