/* options.h: the command line.
 *
 *     option_table.c   one row for each command and each option
 *     options.c        reads the words by those rows
 *     help.c           prints the rows as help
 *     manual.c         prints the rows as docs/pipec.1 */
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
    CompareOptions compare;
    const char *measured;  // inspect: a file of `run --trace`
    bool ops, all, arrows, comms, help, version;
    const char *topic;  // of --help
    char **runtime;     // options for the rank programs
    int runtime_count;
} Options;

/* ---- option_table.c ---- */

typedef struct CommandRow {
    const char *name;
    const char *usage[3];     // what stands behind the name; NULL ends them
    const char *words[2];     // what the words are, for who leaves them out; NULL: there is no such word
    bool optional;            // the second may be missing
    const char *summary;      // one line
    const char *description;  // sentences; `...` is bold in the man page
} CommandRow;

extern const CommandRow command_rows[COMMAND_COUNT];

/* A condition on another option is that option as it is typed, with the values
 * that count behind it: "--emulate", "--dump lower|emit", "-o FILE.svg|FILE.txt". */
typedef struct Exclusion {
    const char *option, *why;
} Exclusion;

/* An option that means different things to different commands has a row for
 * each; those of one name take all an argument, or none. */
typedef struct OptionRow OptionRow;
struct OptionRow {
    const char *name;         // "steps"; NULL: it has only a letter
    char letter;              // 'o'; 0: it has only a name
    const char *argument;     // "N"; "cpu|cuda": one of these words; NULL: it takes none
    unsigned commands;        // FOR(COMMAND_RUN) | ...
    bool (*take)(Program *p, Options *o, const OptionRow *row, char *value);
    size_t offset;            // where `take` puts it, in Options
    const char *needs;        // a condition without which it has no effect, or NULL
    Exclusion without[3];     // conditions with which it has none
    const char *instead;      // what to type where it is refused, or NULL
    const char *summary;      // sentences, as in CommandRow
};

#define FOR(command) (1u << (command))

extern const OptionRow option_rows[];
extern const int option_row_count;
const char *option_text(Arena *arena, const OptionRow *row);    // "--steps", "-o"
const char *commands_text(Arena *arena, const OptionRow *row);  // "build, run"; "every command"
const char *summary_text(Arena *arena, const OptionRow *row);   // and what it needs
bool same_option(const OptionRow *a, const OptionRow *b);

/* ---- options.c ---- */

/* Reads the words into the options, the file and each -D into p->sources.
 * Returns -1, or the exit status for an error that was reported. */
int read_command_line(Program *p, Options *o, int argc, char **argv);
/* Says what is wrong, then what to type; returns USAGE. */
int wrong_usage(const char *advice, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool read_file(Program *p, const char *path);  // as its next source; reports
int end_output(void);                          // 1 if stdout could not be written

/* How an option is stored: see OptionRow. False: it was reported. */
bool take_flag(Program *p, Options *o, const OptionRow *row, char *value);
bool take_text(Program *p, Options *o, const OptionRow *row, char *value);
bool take_plot(Program *p, Options *o, const OptionRow *row, char *value);
bool take_passed(Program *p, Options *o, const OptionRow *row, char *value);  // to the rank programs
bool take_define(Program *p, Options *o, const OptionRow *row, char *value);
bool take_target(Program *p, Options *o, const OptionRow *row, char *value);
bool take_messages(Program *p, Options *o, const OptionRow *row, char *value);
bool take_emulate(Program *p, Options *o, const OptionRow *row, char *value);
bool take_milliseconds(Program *p, Options *o, const OptionRow *row, char *value);

/* ---- help.c, manual.c, main.c ---- */

typedef struct Topic {
    const char *name, *summary;
    void (*print)(Arena *arena);
} Topic;

extern const Topic topics[];
extern const int topic_count;
int print_help(Program *p, const Options *o);  // returns the exit status
void print_manual(Arena *arena);
void print_passes(Arena *arena);

#endif
