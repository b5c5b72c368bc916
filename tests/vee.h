/* vee.h: published problems with two chunks per rank, for tests and benchmarks.
 *
 * Times of tables 8 and 9 of arXiv 2401.10241 (those of table 8 from its
 * authors' evaluation inputs); memory by its table 1, of one layer, per token
 * and micro-batch: 34h + 5as from F to I, of which 32h until W. */
#ifndef VEE_H
#define VEE_H

#include "order/search/search_vee.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct VeeInput {
    const char *model;
    int ranks, microbatches;
    double f, i, w, message;  // of one chunk
    int hidden, heads;
} VeeInput;

// clang-format off
static const VeeInput vee_table8[] = {
    {"6.2B", 16, 48, 14407, 14380, 9676, 1610, 4096, 32},
    {"6.2B", 16, 64, 14412, 14393, 9688, 1621, 4096, 32},
    {"6.2B", 16, 128, 14316, 14306, 9639, 1619, 4096, 32},
    {"14.6B", 24, 72, 6763, 6969, 5251, 755, 5120, 40},
    {"14.6B", 24, 96, 6783, 6984, 5259, 758, 5120, 40},
    {"14.6B", 24, 192, 6785, 6990, 5260, 770, 5120, 40},
    {"28.3B", 32, 96, 9458, 9748, 7288, 879, 6144, 48},
    {"28.3B", 32, 128, 9469, 9744, 7306, 892, 6144, 48},
    {"28.3B", 32, 256, 9447, 9644, 7193, 887, 6144, 48},
};

static const VeeInput vee_table9[] = {      // halves of its stages
    {"1.5B", 8, 24, 18.522 / 2, 18.086 / 2, 9.337 / 2, 0.601, 2304, 24},
    {"1.5B", 8, 32, 18.513 / 2, 18.086 / 2, 9.331 / 2, 0.626, 2304, 24},
    {"1.5B", 8, 64, 18.546 / 2, 18.097 / 2, 9.321 / 2, 0.762, 2304, 24},
    {"6.2B", 8, 24, 29.718 / 2, 29.444 / 2, 19.927 / 2, 0.527, 4096, 32},
    {"6.2B", 8, 32, 29.802 / 2, 29.428 / 2, 19.530 / 2, 0.577, 4096, 32},
    {"6.2B", 8, 64, 29.935 / 2, 29.621 / 2, 19.388 / 2, 0.535, 4096, 32},
    {"14.6B", 16, 48, 11.347 / 2, 11.248 / 2, 8.132 / 2, 0.377, 5120, 40},
    {"14.6B", 16, 64, 11.307 / 2, 11.254 / 2, 8.101 / 2, 0.379, 5120, 40},
    {"14.6B", 16, 128, 11.325 / 2, 11.308 / 2, 8.109 / 2, 0.378, 5120, 40},
    {"28.3B", 32, 96, 10.419 / 2, 10.207 / 2, 7.715 / 2, 0.408, 6144, 48},
    {"28.3B", 32, 128, 10.408 / 2, 10.204 / 2, 7.703 / 2, 0.408, 6144, 48},
    {"28.3B", 32, 256, 10.402 / 2, 10.248 / 2, 7.698 / 2, 0.460, 6144, 48},
};

/* What the authors' scheduler gives with room for 1, 1.5 and 2 whole stages per
 * rank of the pipeline (re-computed, not printed in the paper). */
static const double vee_published_caps[][3] = {
    {.0703, .0128, .0076}, {.0543, .0102, .0059}, {.0298, .0057, .0031},
    {.0403, .0042, .0039}, {.0326, .0046, .0032}, {.0166, .0024, .0015},
    {.0498, .0038, .0038}, {.0381, .0027, .0027}, {.0195, .0013, .0013},
    {.0531, .0019, .0019}, {.0404, .0014, .0014}, {.0220, .0007, .0007},
};

/* The same at 1.25, where known, and what the orders of V-Half and V-Min, made
 * for equal times, come to with these. */
static const double vee_published_quarter[] = {
    .0331, .0256, 0, .0169, 0, 0, 0, 0, 0, 0, 0, 0};
static const double vee_published_half[] = {
    .1702, .1339, .0737, .1447, .1145, .0607,
    .1682, .1318, .0706, .1780, .1398, .0765};
static const double vee_published_min[] = {
    .3353, .3103, .2758, .2721, .2496, .2013,
    .2927, .2615, .2085, .3027, .2712, .2242};

static const double vee_printed[] = {       // table 8, column ZB-V
    .0697, .0533, .0274, .0638, .0483, .0250, .0593, .0451, .0236};
// clang-format on

static const VeeInput vee_unit = {"unit", 0, 0, 1, 1, 1, 0, 0, 0};

/* A problem with the room it needs. Memory: a chunk's M_B is 1. */
typedef struct Vee {
    Problem q;
    int *rank;
    double *numbers;
    Sequence *orders;
    short *entries;
} Vee;

/* limit: in chunks on every rank. */
static inline Vee vee_open(const VeeInput *in, int ranks, int microbatches,
                    double limit)
{
    int chunks = 2 * ranks;
    Vee v = {
        .q = {.ranks = ranks, .chunks = chunks, .microbatches = microbatches}};
    double h = in->hidden,
           kept = h > 0 ? 32 * h / (34 * h + 5.0 * 1024 * in->heads) : 1;
    double one[] = {in->f, in->i, in->w, in->message, 1, kept, limit};
    double *row[7];
    v.rank = malloc((size_t)chunks * sizeof *v.rank);
    v.numbers = malloc(7 * (size_t)chunks * sizeof *v.numbers);
    v.orders = malloc((size_t)ranks * sizeof *v.orders);
    v.entries = malloc((size_t)(3 * chunks * microbatches) * sizeof *v.entries);
    for (int k = 0; k < 7; k++) {
        row[k] = v.numbers + k * chunks;
        for (int c = 0; c < chunks; c++)
            row[k][c] = one[k];
    }
    row[3][0] = row[3][ranks] = 0;
    for (int c = 0; c < chunks; c++)
        v.rank[c] = c < ranks ? c : chunks - 1 - c;
    for (int r = 0; r < ranks; r++)
        v.orders[r].at = v.entries + r * 6 * microbatches;
    v.q.rank = v.rank;
    for (int k = 0; k < SEARCH_KINDS; k++)
        v.q.time[k] = row[k];
    v.q.message = row[3];
    v.q.held = row[4];
    v.q.kept = row[5];
    v.q.limit = row[6];
    return v;
}

static inline void vee_close(Vee *v)
{
    free(v->rank);
    free(v->numbers);
    free(v->orders);
    free(v->entries);
}

/* The share of the time in which the slowest rank idles. */
static inline double vee_rate(const Vee *v, double time)
{
    double work = 0;
    for (int k = 0; k < SEARCH_KINDS; k++)
        work += 2 * v->q.time[k][0] * v->q.microbatches;
    return time > work ? (time - work) / time : 0;
}

#endif
