/* show.h: one plan as a person reads it. */
#ifndef SHOW_H
#define SHOW_H

#include "plan/nodes.h"

void inspect(Program *p, FILE *out, bool colour, bool all);
void balance_lines(Program *p, FILE *out);                  // the heaviest rank, and what it costs
void wire_table(Program *p, FILE *out, bool all);            // what each pair of ranks carries
void op_table(Program *p, FILE *out);                       // operations, bytes and memory of every op
typedef struct Timeline {
    const char *margin;         // each line begins with it
    int marked;                 // rank whose row has a mark; -1: none
    bool colour;
    int bands;                  // of columns that are drawn at most; 0: all
    double column;              // time of one; 0: the shortest action
} Timeline;
void timeline(Program *p, FILE *out, const Timeline *look);     // ranks x time
const char *time_text(Program *p, double time);             // of the plan: "33", or "1.234 ms"
const char *layers_text(Program *p, int chunk);             // "h.0 .. h.2"; "none"

/* ---- megatron.c: the cut as Megatron-LM takes it ---- */

bool has_layout(Program *p);                                // reports why there is none
void layout_file(Program *p, FILE *out);                    // X.layout: a layout, flags, what differs
void layout_table(Program *p, FILE *out);                   // of a split that counts blocks: its stages

#endif
