/* output.h: a file that pipec writes appears whole or not at all. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "compile.h"

typedef struct Output {         // a file on its way
    Program *p;
    const char *path;           // as the user named it, for messages
    const char *place;          // where it goes: behind symbolic links
    const char *partial;        // beside it, until it is whole; NULL: a device or a pipe, written as it comes
    FILE *stream;
} Output;

/* Both say what is wrong, with the name of the file. A file that could not be
 * written whole leaves what stood in its place, and nothing beside it. */
bool open_output(Program *p, Output *out, const char *path);
bool close_output(Output *out);

bool make_folders(Program *p, const char *path);        // with those above it; there already: fine

#endif
