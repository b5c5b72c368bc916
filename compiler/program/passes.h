/* passes.h: the list of passes, once: for the driver, and for whoever plans a file
 * again. */
#ifndef PASSES_H
#define PASSES_H

#include "compile.h"

typedef struct Pass {
    const char *name;
    bool (*run)(Program *p);
    const char *what;
} Pass;

enum { PASSES = 10, PLAN_PASSES = PASSES - 1 };  // all; all but lower
extern const Pass passes[PASSES];

#endif
