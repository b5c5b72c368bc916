/* dump.h: `--dump=PASS`. */
#ifndef DUMP_H
#define DUMP_H

#include "compile.h"

bool dump(Program *p, const char *pass, FILE *out);         // false: no such pass

#endif
