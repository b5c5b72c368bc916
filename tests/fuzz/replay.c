/* replay.c: any text at all goes through the passes, and must come out with
 * programs or with errors: no crash, no hang, no leak, no silent refusal.
 *
 *     clang -fsanitize=fuzzer,address,undefined     seeks such texts; see `soak`
 *     gcc -fsanitize=address,undefined -DREPLAY     reads the files that it is
 *                                                   given; see replay.sh
 *
 * A plan is as large as its schedule is long, and a small text can ask for
 * millions of actions. Such plans are left out: errors are sought here. */
#include "compile.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1 << 16, MOST_ACTIONS = 512, MOST_OPS = 2000 };

static bool is_small(const Program *p)
{
    return p->chunk_count * (double)p->microbatches <= MOST_ACTIONS &&
           p->op_count <= MOST_OPS;
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
    return parse(p) && check(p) && graph(p) && partition(p) && is_small(p) &&
           be_quick(p) && schedule(p) && communicate(p) && prove(p) &&
           memory(p) && lower(p);
}

static void show(Program *p, FILE *out)
{
    static const char *const passes[] = {
        "parse",       "check", "graph",  "partition", "schedule",
        "communicate", "prove", "memory", "lower",     "emit"};
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        dump(p, passes[i], out);
    inspect(p, out, false, false);
}

static void compile(const char *text, size_t length, FILE *nowhere)
{
    Program p = {.arena = arena_open(), .diagnostics = nowhere};
    Source source = {"fuzz.pipe", text_copy(p.arena, text, length),
                     (int)length};
    p.sources = &source;
    p.source_count = 1;
    if (plan(&p))
        show(&p, nowhere);
    else if (!p.errors && (p.chunk_count == 0 || is_small(&p)))
        abort();  // a pass has failed and did not say why
    arena_close(p.arena);
}

#ifndef REPLAY
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    if (size <= LONGEST)
        compile((const char *)data, size, nowhere);
    return 0;
}
#else
int main(int argc, char **argv)
{
    static char text[LONGEST];
    FILE *nowhere = fopen("/dev/null", "w");
    int read = 0;
    for (int i = 1; i < argc; i++) {
        FILE *in = fopen(argv[i], "rb");
        if (!in)
            continue;
        fprintf(stderr, "%s\n", argv[i]);  // the last one before a crash
        compile(text, fread(text, 1, LONGEST, in), nowhere);
        fclose(in);
        read++;
    }
    fclose(nowhere);
    printf("%d passed, %d failed\n", read, argc - 1 - read);
    return 0;
}
#endif
