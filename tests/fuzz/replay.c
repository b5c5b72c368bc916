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
 * schedule as CSV, a layout in a split, a trace; and bytes as choices among what
 * the language has, see program.c. READER=NAME chooses one for the
 * fuzzer; the words `READER:` among the files of a replay do.
 *
 * A text goes through all that can be made of it, up to the text of programs. With
 * DEPTH=reader the fuzzer stops behind the passes that read it, and what does not
 * depend on the text is made once: many times as many texts in the same time.
 *
 * A plan is as large as its schedule is long, and a small text can ask for
 * millions of actions. Such plans are left out: errors are sought here. */
#include "compile.h"
#include "drive/dump.h"
#include "order/csv.h"
#include "program.h"
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

/* Is there a program. */
static bool show(Program *p, FILE *out)
{
    draw(p, out);
    if (is_tiny(p) && strcmp(p->set.schedule->name, "auto") != 0)
        study(p, out);
    if (!lower(p))
        return false;
    dump_all(p, out);
    return true;
}

/* ---- readers ---- */

static bool whole = true;    // the depth
static long texts, emitted;  // read; that came through emit

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

static void close_program(Program *p, bool good)
{
    bool silent = !good && !p->errors && (p->chunk_count == 0 || is_small(p));
    arena_close(p->arena);
    if (silent)
        abort();  // a pass has failed and did not say why
}

/* The passes that read: a layout is part of what `check` takes. */
static bool read_sources(Program *p, FILE *out)
{
    if (!parse(p) || !check(p))
        return false;
    dump(p, "check", out);
    return true;
}

/* All that is made of the sources, and the end of the Program. */
static void follow(Program *p, FILE *out)
{
    bool good = whole ? plan(p) : read_sources(p, out);
    if (good && whole)
        emitted += show(p, out);
    close_program(p, good);
}

static void read_pipe(const char *text, size_t length, FILE *out)
{
    follow(open_program(text, length, out), out);
}

/* Bytes that choose a program: through emit, nothing is drawn. */
static void read_program(const char *bytes, size_t length, FILE *out)
{
    Target target;
    char *text = grow_program(bytes, length, &target);
    Program *p = open_program(text, strlen(text), out);
    p->target = target;
    bool good = plan(p) && lower(p);
    if (good) {
        dump(p, "lower", out);
        dump(p, "emit", out);
        emitted++;
    }
    close_program(p, good);
    free(text);
}

/* For a word or a text of the pipeline, which few layers are enough to read. */
static const char small[] =
    "let n = 3\nmodel m {\n input x[2]\n e : linear(2)\n"
    " h : linear(2) * 3\n t : linear(8)\n loss : mse\n}\n";
static const char model[] =
    "let n = 3\nlayer b(k) { x + linear(gelu(x), k) }\n"
    "model m {\n input x[2] of 8\n e : embedding(4)\n"
    " h : b(4) * n\n t : linear(8) tied e\n loss : cross_entropy\n}\n";

/* The model and, unless NULL, a word behind -D. */
static Program *open_model(const char *define, bool few, FILE *out)
{
    Arena *arena = arena_open();
    const char *text = text_format(
        arena,
        "%spipeline { stages 2 microbatches 4 rows 2 }\n"
        "train { data %s \"d\" steps 2 }\n"
        "cluster { flops 1T link 1G latency 1us }\n",
        few ? small : model, few ? "numbers" : "bytes");
    Program *p = open_program(text, strlen(text), out);
    arena_close(arena);
    if (define)
        p->sources[p->source_count++] = (Source){
            "-D", text_copy(p->arena, define, strlen(define)),
            (int)strlen(define)};
    return p;
}

/* NAME=VALUE behind -D; the command line takes nothing else. */
static void read_define(const char *text, size_t length, FILE *out)
{
    const char *equals = strchr(text, '=');
    (void)length;
    if (!equals || equals == text || !equals[1])
        return;
    follow(open_model(text, !whole, out), out);
}

static void read_split(const char *text, size_t length, FILE *out)
{
    Arena *arena = arena_open();
    const char *file = text_format(
        arena,
        "%spipeline { stages 2 virtual 2 microbatches 4 "
        "schedule interleaved split \"%.*s\" }\n",
        whole ? model : small, (int)length, text);
    read_pipe(file, strlen(file), out);
    arena_close(arena);
}

/* ---- readers of other files ---- */

/* A file that lies nowhere, with this text: its path. */
static const char *keep(const char *text, size_t length)
{
    static char path[40];
    static int file = -1;
    if (file < 0)
        file = memfd_create("fuzz", 0);
    if (file < 0 || ftruncate(file, 0) != 0 ||
        pwrite(file, text, length, 0) != (ssize_t)length)
        exit(1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return path;
}

/* A Program that is as far as a text needs it is the same for every text: a copy
 * of it takes its memory elsewhere, and is closed behind the text. */
static Program *copy_program(const Program *made)
{
    Arena *arena = arena_open();
    Program *p = arena_take(arena, sizeof *p);
    *p = *made;
    p->arena = arena;
    return p;
}

static const char *schedule_from(const char *path)
{
    static char setting[64];
    snprintf(setting, sizeof setting, "schedule=from \"%s\"", path);
    return setting;
}

/* Up to its messages, which the file may hold. */
static bool read_order(Program *p, FILE *out)
{
    bool good = parse(p) && check(p) && import(p) && graph(p) && partition(p) &&
                schedule(p) && communicate(p);
    if (good)
        dump(p, "communicate", out);
    return good;
}

static void read_csv(const char *text, size_t length, FILE *out)
{
    Program *p = open_model(schedule_from(keep(text, length)), !whole, out);
    if (whole)
        follow(p, out);
    else
        close_program(p, read_order(p, out));
}

/* In a format that the length of the trace chooses. */
static void draw_measured(Program *p, size_t length, FILE *out)
{
    static const char *const endings[] = {"svg", "json", "html", "txt"};
    const char *path = text_format(p->arena, "/tmp/pipec-fuzz-%ld.%s",
                                   (long)getpid(), endings[length % 4]);
    inspect_measured(p, out, false, false);
    if (!picture_measured(p, path))
        abort();
    remove(path);
}

static void read_trace(const char *text, size_t length, FILE *out)
{
    static Program *made;
    if (!made) {
        made = open_model(NULL, false, out);
        if (!plan(made))
            exit(1);
    }
    Program *p = copy_program(made);
    bool good = measured(p, keep(text, length));
    if (good && whole)
        draw_measured(p, length, out);
    close_program(p, good);
}

static const struct {
    const char *name;
    void (*read)(const char *text, size_t length, FILE *out);
} readers[] = {{"pipe", read_pipe},   {"define", read_define},
               {"csv", read_csv},     {"layout", read_split},
               {"trace", read_trace}, {"program", read_program}};
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
    texts++;
}

#ifndef REPLAY
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count(void)
{
    fprintf(stderr, "%ld texts, %ld through emit\n", texts, emitted);
}

/* What the environment chooses. */
static int chosen_reader(void)
{
    const char *name = getenv("READER"), *depth = getenv("DEPTH");
    int reader = find_reader(name ? name : "pipe",
                             strlen(name ? name : "pipe"));
    if (reader < 0)
        exit(1);
    whole = !depth || strcmp(depth, "reader") != 0;
    atexit(count);
    return reader;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int reader = -1;
    if (reader < 0)
        reader = chosen_reader();
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
