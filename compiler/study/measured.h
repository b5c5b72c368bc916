/* measured.h: what `run --trace` has recorded, beside the plan. */
#ifndef MEASURED_H
#define MEASURED_H

#include "compile.h"

/* Reads a file of lines `rank step action start_ns end_ns`, in which every
 * action of this plan stands once in each step, and fills p->measured from the
 * step of median length. */
bool measured(Program *p, const char *path);
void inspect_measured(Program *p, FILE *out, bool colour, bool all);
bool picture_measured(Program *p, const char *path);        // both, in the format of the suffix

#endif
