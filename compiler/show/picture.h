/* picture.h: pictures of a plan, and what they share.
 *
 * A picture shows the lists, times and blocks of a Program; nothing here plans
 * or estimates. `picture_of` turns them round once: where an action stands,
 * what it waits for, how many bytes are alive when. */
#ifndef PICTURE_H
#define PICTURE_H

#include "plan/nodes.h"
#include "show.h"

typedef struct Look {  // what the command line asks of a picture
    bool arrows;       // svg: messages as arrows
    bool comms;        // csv: with SEND, RECV and REDUCE_GRAD
    bool all;          // txt: a long timeline whole
    Program **others;  // further plans: to switch to, or beside it; csv, txt: none
    int other_count;
    void (*text)(Program *p, FILE *out, bool colour, bool all);  // txt; NULL: inspect
} Look;

/* Is the suffix one of ours; reports when it is none. */
bool can_picture(Program *p, const char *path);
/* Writes the plan to a file, in the format of its suffix, whole or not at all.
 * `look` may be NULL. */
bool picture(Program *p, const char *path, const Look *look);

/* ---- picture_facts.c ---- */

typedef struct Level {  // bytes alive from `time` on
    double time;
    size_t floats;
} Level;

typedef struct Curve {  // of one rank: piecewise constant
    Level *at;
    int count;
    size_t lasting;  // floats alive all along: weights, scratch
} Curve;

typedef struct Picture {
    Program *p;
    int *ordinal;            // [chunk] its place among the chunks of its rank
    int most_chunks;         // of one rank
    bool used[ACT_W + 1];    // kinds of compute that occur
    Curve *curves;           // [rank]
    size_t highest;          // arena, in floats
    double scale;            // of times, for a person: shown = time * scale
    const char *unit;        // what is shown: "forwards of one chunk", "ms"
} Picture;

Picture picture_of(Program *p);
/* First start and last end of the compute in a phase, 0 warmup, 1 steady, 2
 * cooldown; false: it is empty. */
bool phase_span(const Picture *k, int rank, int phase, double *from,
                double *to);

const char *title_line(const Picture *k);          // model, schedule, P, v, M
const char *lighter_line(const Picture *k);        // what the lighter colours are
const char *cost_line(const Picture *k);           // the cost model
const char *result_line(const Picture *k);         // makespan and bubbles
/* At most two decimals, no trailing zeros. */
void put_number(FILE *out, double value);
double power_of_ten(double most);  // the largest that is not above it

/* ---- picture_colour.c ---- */

int shades_of(const Picture *k);              // how many there are of a kind
int shade_of(const Picture *k, int chunk);    // 0 for the first of its rank
const char *shade_colour(const Picture *k, int kind, int shade);  // "#2d2f8c"
const char *number_colour(int kind);  // of a number on any shade of a kind

/* ---- one file each ---- */

/* Several plans stand one above the other, or side by side in time. */
void picture_svg(Program **plans, int count, FILE *out, bool arrows);
/* The first plan is shown, the others can be chosen. */
void picture_html(Program **plans, int count, FILE *out);
void picture_trace(Program **plans, int count, FILE *out);  // Chrome trace events
#endif
