/* schedules.c: how much of its arena a rank has really written.
 *
 * Linked into rank programs with --wrap. The arena comes zeroed; at the end the
 * last word that is not zero tells how far writes have reached. Into the folder
 * $PEAK goes a file for each rank: bytes planned, bytes reached, rounded up to
 * the 64 bytes that every block is a multiple of. */
#include "pp.h"

#include <stdio.h>
#include <stdlib.h>

float *__real_pp_start(const PpJob *job, int argc, char **argv);
float *__wrap_pp_start(const PpJob *job, int argc, char **argv);
int __real_pp_finish(void);
int __wrap_pp_finish(void);

static const PpJob *job_of_rank;
static const uint32_t *arena;

float *__wrap_pp_start(const PpJob *job, int argc, char **argv)
{
    float *m = __real_pp_start(job, argc, argv);
    job_of_rank = job;
    arena = (const uint32_t *)(const void *)m;
    return m;
}

int __wrap_pp_finish(void)
{
    char path[512];
    size_t words = job_of_rank->arena / 4;
    while (words > 0 && arena[words - 1] == 0)
        words--;
    snprintf(path, sizeof path, "%s/%d", getenv("PEAK"), job_of_rank->rank);
    FILE *out = fopen(path, "w");
    if (out) {
        fprintf(out, "%zu %zu\n", job_of_rank->arena,
                (4 * words + 63) / 64 * 64);
        fclose(out);
    }
    return __real_pp_finish();
}
