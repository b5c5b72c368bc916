/* program.h: any bytes as a program of the language, most often a good one. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "compile.h"

/* To be freed. The target is chosen with it. */
char *grow_program(const char *bytes, size_t length, Target *target);

#endif
