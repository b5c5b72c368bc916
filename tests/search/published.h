/* published.h: the inputs of "Zero Bubble Pipeline Parallelism" (arXiv
 * 2401.10241), tables 3 and 9, those behind its table 8, and what was printed
 * or found for them: tables 5 and 8 of the paper, and its heuristic run at other
 * limits. */
#ifndef PUBLISHED_H
#define PUBLISHED_H

#include "order/search/search.h"

#include <math.h>

typedef struct Published {
    const char *name;
    int ranks, microbatches;
    double forward, input, weight, message;
    double hidden, heads, sequence;
} Published;

enum { PUBLISHED_ROWS = 12, PUBLISHED_CAPS = 9 };

static const Published published[PUBLISHED_ROWS] = {
    {"1.5B", 8, 24, 18.522, 18.086, 9.337, 0.601, 2304, 24, 1024},
    {"1.5B", 8, 32, 18.513, 18.086, 9.331, 0.626, 2304, 24, 1024},
    {"1.5B", 8, 64, 18.546, 18.097, 9.321, 0.762, 2304, 24, 1024},
    {"6.2B", 8, 24, 29.718, 29.444, 19.927, 0.527, 4096, 32, 1024},
    {"6.2B", 8, 32, 29.802, 29.428, 19.530, 0.577, 4096, 32, 1024},
    {"6.2B", 8, 64, 29.935, 29.621, 19.388, 0.535, 4096, 32, 1024},
    {"14.6B", 16, 48, 11.347, 11.248, 8.132, 0.377, 5120, 40, 1024},
    {"14.6B", 16, 64, 11.307, 11.254, 8.101, 0.379, 5120, 40, 1024},
    {"14.6B", 16, 128, 11.325, 11.308, 8.109, 0.378, 5120, 40, 1024},
    {"28.3B", 32, 96, 10.419, 10.207, 7.715, 0.408, 6144, 48, 1024},
    {"28.3B", 32, 128, 10.408, 10.204, 7.703, 0.408, 6144, 48, 1024},
    {"28.3B", 32, 256, 10.402, 10.248, 7.698, 0.460, 6144, 48, 1024},
};

/* The published heuristic at a limit of 1, 1.125, ... 2 times ranks * held. */
static const double published_rate[PUBLISHED_ROWS][PUBLISHED_CAPS] = {
    {.1585, .1339, .1068, .0862, .0719, .0542, .0433, .0433, .0433},
    {.1242, .1043, .0827, .0569, .0456, .0351, .0231, .0039, .0039},
    {.0674, .0563, .0443, .0332, .0270, .0220, .0118, .0026, .0026},
    {.1323, .1038, .0751, .0615, .0475, .0331, .0182, .0029, .0029},
    {.1045, .0820, .0649, .0471, .0366, .0255, .0142, .0022, .0022},
    {.0554, .0431, .0331, .0241, .0185, .0127, .0069, .0010, .0010},
    {.1397, .1115, .0837, .0705, .0571, .0432, .0289, .0142, .0066},
    {.1088, .0863, .0643, .0541, .0437, .0331, .0222, .0110, .0054},
    {.0576, .0452, .0333, .0279, .0224, .0169, .0113, .0057, .0028},
    {.1421, .1121, .0867, .0738, .0604, .0467, .0326, .0180, .0038},
    {.1106, .0876, .0665, .0564, .0468, .0362, .0254, .0144, .0029},
    {.0594, .0463, .0350, .0296, .0242, .0187, .0131, .0075, .0018},
};

enum { PUBLISHED_MORE = 9 };

/* Behind table 8: of a whole rank, in ms. */
static const Published published_more[PUBLISHED_MORE] = {
    {"6.2B", 16, 48, 28.814, 28.760, 19.352, 1.610, 4096, 32, 1024},
    {"6.2B", 16, 64, 28.824, 28.786, 19.376, 1.621, 4096, 32, 1024},
    {"6.2B", 16, 128, 28.632, 28.612, 19.278, 1.619, 4096, 32, 1024},
    {"14.6B", 24, 72, 13.526, 13.938, 10.502, 0.755, 5120, 40, 1024},
    {"14.6B", 24, 96, 13.566, 13.968, 10.518, 0.758, 5120, 40, 1024},
    {"14.6B", 24, 192, 13.570, 13.980, 10.520, 0.770, 5120, 40, 1024},
    {"28.3B", 32, 96, 18.916, 19.496, 14.576, 0.879, 6144, 48, 1024},
    {"28.3B", 32, 128, 18.938, 19.488, 14.612, 0.892, 6144, 48, 1024},
    {"28.3B", 32, 256, 18.894, 19.288, 14.386, 0.887, 6144, 48, 1024},
};

/* 1F1B, ZB-H1, ZB-H2, ZB-1p, ZB-2p. */
typedef struct PublishedRates {
    double one, h1, h2, limit1, limit2;
} PublishedRates;

static const PublishedRates published_rates[PUBLISHED_ROWS + PUBLISHED_MORE] = {
    {.2431, .1585, .1083, .1585, .0433}, {.1985, .1242, .0837, .1242, .0039},
    {.1240, .0674, .0444, .0674, .0026}, {.2347, .1323, .0698, .1323, .0029},
    {.1898, .1045, .0559, .1045, .0022}, {.1091, .0554, .0294, .0554, .0010},
    {.2552, .1397, .0672, .1397, .0066}, {.2082, .1088, .0516, .1088, .0054},
    {.1251, .0576, .0266, .0576, .0028}, {.2646, .1421, .0641, .1421, .0038},
    {.2168, .1106, .0490, .1106, .0029}, {.1352, .0594, .0257, .0594, .0018},
    {.2668, .1536, .0823, .1536, .0077}, {.2206, .1198, .0630, .1198, .0052},
    {.1390, .0637, .0325, .0637, .0026}, {.2699, .1439, .0628, .1439, .0111},
    {.2229, .1121, .0480, .1121, .0083}, {.1403, .0595, .0247, .0595, .0043},
    {.2676, .1429, .0629, .1429, .0104}, {.2204, .1111, .0478, .1111, .0078},
    {.1362, .0593, .0251, .0593, .0036},
};

enum { MOST_RANKS = 32, MOST_MICROBATCHES = 256 };

/* A Problem and the arrays that it points to. */
typedef struct Uniform {
    Problem problem;
    int rank[MOST_RANKS];
    double time[SEARCH_KINDS][MOST_RANKS], message[MOST_RANKS],
        held[MOST_RANKS], kept[MOST_RANKS], limit[MOST_RANKS];
} Uniform;

/* Held and kept per layer and token: table 1 of the paper. */
static inline void uniform_problem(Uniform *u, const Published *p,
                                   double limit_of_ranks)
{
    for (int r = 0; r < p->ranks; r++) {
        u->rank[r] = r;
        u->time[SEARCH_F][r] = p->forward;
        u->time[SEARCH_I][r] = p->input;
        u->time[SEARCH_W][r] = p->weight;
        u->message[r] = p->message;
        u->held[r] = 34 * p->hidden + 5 * p->heads * p->sequence;
        u->kept[r] = 32 * p->hidden;
        u->limit[r] = limit_of_ranks * p->ranks * u->held[r];
    }
    u->problem = (Problem){
        .ranks = p->ranks, .chunks = p->ranks, .microbatches = p->microbatches,
        .rank = u->rank,
        .time = {u->time[SEARCH_F], u->time[SEARCH_I], u->time[SEARCH_W]},
        .message = u->message, .held = u->held, .kept = u->kept,
        .limit = u->limit, .metric = METRIC_SPAN,
    };
}

/* Of both tables. */
static inline const Published *published_row(int row)
{
    return row < PUBLISHED_ROWS ? &published[row]
                                : &published_more[row - PUBLISHED_ROWS];
}

static inline double published_work(const Published *p)
{
    return p->microbatches * (p->forward + p->input + p->weight);
}

#endif
