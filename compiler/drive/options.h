/* options.h: the command line, for main.c, options.c and help.c. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "study/whatif.h"

enum { USAGE = 2 };  // exit status

typedef enum {
    COMMAND_NONE,
    COMMAND_CHECK,
    COMMAND_INSPECT,
    COMMAND_COMPARE,
    COMMAND_EXPLAIN,
    COMMAND_DIFF,
    COMMAND_BUILD,
    COMMAND_RUN,
    COMMAND_COUNT
} Command;

typedef struct Options {
    Command command;
    const char *file, *output, *dump;
    const char *second;  // of diff: the other file; of explain: the place
    bool ops;            // of inspect
    CompareOptions compare;
    const char *measured;  // inspect: a file of `run --trace`
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
bool read_file(Program *p, const char *path);           // as its next source; reports
int end_output(void);                                   // the same, of stdout

#endif
