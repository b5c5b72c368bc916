/* job.h: the programs of one job, in a folder that holds nothing else of pipec's. */
#ifndef JOB_H
#define JOB_H

#include "compile.h"

/* The compiler and what it links against; $CC and $NVCC may hold options. */
typedef struct Toolchain {
    const char *command, *flags, *archive, *header, *libraries;
    const char *version;        // what the compiler says of itself
} Toolchain;

typedef struct Job {
    const char *hash;           // of all that the programs are made from: 16 hexadecimal digits
    const char *folder;         // of the programs
    const char *last;           // a link to it; NULL: the user has named the folder
    int lock;                   // open: nobody else builds here, nor runs what is here if the user has named it
    int run;                    // open, of a folder that he has not: nobody removes what is here
} Job;

/* job.c. `named` is the user's folder, or NULL: then it is BASE/HASH. */
const char *hash_job(Program *p, const Toolchain *t);
bool open_job(Program *p, Job *job, const char *named, const char *base);
bool is_made(Program *p, const Job *job);                   // whole, and from just this
bool clear_folder(Program *p, const Job *job);              // of what pipec has made there earlier
bool mark_made(Program *p, const Job *job);
bool link_last(Program *p, const Job *job);
void remove_old_jobs(Program *p, const Job *job, const char *base);     // but the last ones

/* build.c */
bool make_job(Program *p, Job *job, const char *named, const char *base);
/* Starts the job in place of this process; returns only when that fails.
 * `options` go to every rank. */
bool run(Program *p, const Job *job, char **options, int option_count);
bool data_is_readable(Program *p);                          // the data is named, found and opens

#endif
