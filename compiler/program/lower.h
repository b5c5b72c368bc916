/* lower.h: what the files of lower share: one rank program in the making.
 *
 *     lower.c         the pass; functions of chunks, made of kernels
 *     lower_names.c   constants: what everything is called and where it lies
 *     lower_step.c    phases, and what a step and a run end with
 *     lower_ahead.c   what runs before the norm of the step before is known
 *     lower_job.c     what the whole job is, and main */
#ifndef LOWER_H
#define LOWER_H

#include "plan/nodes.h"
#include "rank_program.h"

/* Parameters that lie side by side and are updated alike, in one call. */
typedef struct Range {
    int first, last;            // parameters
    size_t floats;
    const char *name;           // constant of `floats`
} Range;

typedef struct Lowerer {
    Program *p;
    int rank;
    RankProgram *out;
    const char **taken;  // hash table of the constants' names
    size_t taken_size;
    const char **tensor;     // [tensor] its constant
    const char **parameter;  // [parameter] its constant, on this rank
    const char **gradient;   // [parameter] of the use
    const char **moment[2];  // [parameter] that a range begins with
    const char *
        *master;  // [parameter] float32 values, where kernels read others
    const Block **place[BLOCK_VARIANCE + 1];    // [kind][parameter] on this rank, or NULL
    Range *ranges;
    int range_count;
    const char *first_gradient, *gradients;     // constants: where all of them begin, and floats; NULL: none
    size_t gradient_floats;
    int *slots;   // see slot_constant
    const int *ahead;  // [rank] entries of its list before pp_settle; or NULL
} Lowerer;

/* ---- lower.c ---- */

Body *new_body(Lowerer *lowerer, BodyKind kind, int chunk);
Call *new_call(Lowerer *lowerer, Body *body, const char *function);
Call *new_form(Lowerer *lowerer, Body *body, Form form, const char *function);
void push(Call *call, ArgKind kind, const char *name, double number);
void push_number(Call *call, double number);
void push_at(Call *call, const char *name);
void push_size(Lowerer *lowerer, Call *call, const char *name, double number);    // by its name, if it has that value
bool has_calls(const Lowerer *lowerer, BodyKind kind);
BodyKind body_of(ActionKind kind);                   // of a compute
/* The rank's block that lives all along, or NULL. */
const Block *lasting(const Lowerer *lowerer, BlockKind kind, int of);

/* ---- lower_names.c ---- */

bool enter(Lowerer *lowerer, const char *name);  // false: it is taken
void enter_reserved(Lowerer *lowerer);
void name_blocks(Lowerer *lowerer);
void name_lasting(Lowerer *lowerer);
void name_ranges(Lowerer *lowerer);
void name_fixed(Lowerer *lowerer);
void name_sizes(Lowerer *lowerer);
const char *lasting_name(const Lowerer *lowerer, const Block *b);
void name_chunk(Lowerer *lowerer, int c, size_t scratch);
const char *block_name(Lowerer *lowerer, int block);
void name_emulated(Lowerer *lowerer, bool sends, bool receives);

/* ---- lower_step.c ---- */

void phase_bodies(Lowerer *lowerer);
void reduce_body(Lowerer *lowerer);
void update_body(Lowerer *lowerer);
void initialise_body(Lowerer *lowerer);
void save_body(Lowerer *lowerer);

/* ---- lower_ahead.c ---- */

/* [rank] the entries of its list that need no norm. */
int *count_ahead(Program *p);
void undo_bodies(Lowerer *lowerer);

/* ---- lower_job.c ---- */

const char *tie_name(const Lowerer *lowerer, const Tie *tie);      // of its record
void tie_owners(Lowerer *lowerer);
void main_body(Lowerer *lowerer);
void job_records(Program *p);                        // of all ranks, once their links are known
/* Fields are pushed in the order of the record. */
Record *new_record(Program *p, const char *type, const char *name);
Field *push_field(Program *p, Record *record, const char *name, ArgKind kind, const char *text, double number);

#endif
