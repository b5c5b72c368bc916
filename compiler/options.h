/* options.h: the command line, for main.c, options.c and help.c. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "compile.h"

enum { USAGE = 2 };  // exit status

typedef enum {
    COMMAND_NONE,
    COMMAND_CHECK,
    COMMAND_INSPECT,
    COMMAND_BUILD,
    COMMAND_RUN,
    COMMAND_COUNT
} Command;

typedef struct Options {
    Command command;
    const char *file, *output, *dump;
    bool all, arrows, comms, help, version;
    const char *topic;  // of --help
    char **runtime;     // options for the rank programs
    int runtime_count;
} Options;

extern const char *const command_names[COMMAND_COUNT];

/* Reads the words into the options, the file and each -D into p->sources.
 * Returns -1, or the exit status for an error that was reported. */
int read_command_line(Program *p, Options *o, int argc, char **argv);
int wrong_usage(const char *format, const char *word);  // returns USAGE
int print_help(const Options *o);                       // returns the exit status
int end_output(void);                                   // the same, of stdout

#endif
