/* typed.h: published problems as a person types them: a .pipe file, `pipec inspect`,
 * and what it prints. For tests and benchmarks, from the root of the repository.
 *
 * A chunk holds, from F to I, one vector for each gelu, and of these, until W, the
 * gradient of each position's result; so `holds` gelus, of which `keeps` stand
 * behind a position, have the memory of a chunk of Problems with held and kept in
 * that proportion. */
#ifndef TYPED_H
#define TYPED_H

#include "published.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Typed {
    int ranks, virtuals, microbatches;
    double forward, input, weight, message;  // ms of a chunk
    int holds, keeps;                        // vectors
} Typed;

typedef struct Said {
    double idle;     // the largest share of its own span that a rank is idle
    double bubble;   // the same of the makespan, of the average rank
    bool best;       // "so this is the best"
    char text[4000];  // the line of the search
} Said;

/* A number of layers, called in each other by powers of two: a8(a2(x)). */
static void write_calls(FILE *out, const char *name, int count)
{
    for (int bit = 128; bit > 0; bit /= 2)
        if (count & bit)
            fprintf(out, "%s%d(", name, bit);
}

static void write_layers(FILE *out, const char *name, const char *one)
{
    fprintf(out, "layer %s1 { %s }\n", name, one);
    for (int bit = 2; bit <= 128; bit *= 2)
        fprintf(out, "layer %s%d { %s%d(%s%d(x)) }\n", name, bit, name, bit / 2,
                name, bit / 2);
}

static bool write_typed(const Typed *t, const char *path, const char *schedule)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return false;
    write_layers(out, "a", "gelu(position(x))");
    write_layers(out, "b", "gelu(x)");
    fputs("layer chunk { ", out);
    write_calls(out, "b", t->holds - t->keeps);
    write_calls(out, "a", t->keeps);
    fputc('x', out);
    for (int left = t->holds - t->keeps, i = 0; i < 2; i++, left = t->keeps)
        for (; left > 0; left &= left - 1)
            fputc(')', out);
    fprintf(out, " }\nmodel m { input x[16]; h : chunk * %d; loss : mse }\n",
            t->ranks * t->virtuals);
    fprintf(out,
            "pipeline { stages %d virtual %d microbatches %d schedule %s%s }\n",
            t->ranks, t->virtuals, t->microbatches, schedule,
            t->virtuals > 1 ? " placement vee" : "");
    fprintf(out,
            "cluster { forward %.6gms input_gradient %.6gms weight_gradient "
            "%.6gms latency %.6gms }\n",
            t->forward, t->input, t->weight, t->message);
    return fclose(out) == 0;
}

static void read_line(const char *line, Said *said)
{
    double makespan, span;
    int rank, at = 0;
    if (strncmp(line, "searched: ", 10) == 0) {
        snprintf(said->text, sizeof said->text, "%s", line);
        said->best = strstr(line, "so this is the best") != NULL;
    } else if (sscanf(line, "bubble of the makespan: %lf %%", &makespan) == 1) {
        said->bubble = makespan / 100;
    } else if (sscanf(line, " %d %*f %*s %*f %*s %lf %% %lf %% %n", &rank,
                      &makespan, &span, &at) == 3 &&
               at > 0) {
        said->idle = fmax(said->idle, span / 100);
    }
}

/* A row of published.h. */
static Typed typed_row(int row)
{
    const Published *p = published_row(row);
    // 34 h + 5 a s to 32 h
    bool small = p->hidden == 2304;
    return (Typed){p->ranks, 1, p->microbatches, p->forward, p->input,
                   p->weight, p->message, small ? 131 : 37, small ? 48 : 16};
}

/* False: pipec fails, or prints no ranks. */
static bool inspect_typed(const Typed *t, const char *schedule, Said *said)
{
    char path[] = "/tmp/typed-XXXXXX.pipe", command[200], line[4000];
    int file = mkstemps(path, 5);
    *said = (Said){.idle = -1};
    if (file < 0 || !write_typed(t, path, schedule))
        return false;
    fclose(fdopen(file, "r"));
    snprintf(command, sizeof command, "build/bin/pipec inspect %s 2>&1", path);
    FILE *in = popen(command, "r");
    while (in && fgets(line, sizeof line, in))
        read_line(line, said);
    int status = in ? pclose(in) : -1;
    remove(path);
    return status == 0 && said->idle >= 0;
}

#endif
