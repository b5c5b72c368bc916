/* job.h: what the files of the runtime tell each other about the one job of
 * this process.
 *
 * pp.h is for generated programs, this is for job.c, data.c, save.c and the
 * transport. */
#ifndef PP_JOB_H
#define PP_JOB_H

#include "local/control.h"
#include "pp.h"

typedef struct Job {
    PpJob plan;                     // as generated; steps and data.path replaced by the options
    const char *save;               // directory, or NULL
    int64_t delay;                  // most microseconds to sleep before each action and message
    int quiet;
    const char *graph, *transport;  // CUDA alone; NULL: as it fits
    int alone;                      // no launcher: one rank started by hand
    int step;                       // that runs, from 1; 0 before the first
    int64_t blocked;                // ns spent waiting, ever
    Control *control;               // shared with the launcher; private memory if alone
    RankRecord *self;               // control->records[rank]
    StepRecord record;              // of the step that runs
    int deferred;                   // step whose update may have to be undone; 0: none
    StepRecord pending;             // its record, which lacks the norm
    int redo;                       // 1: pp_step and pp_rate are of the deferred step
    Event *event, *event_end;       // --trace: room for the rest of the step; NULL: none
    int emulated;                   // 1: this is an emulation
    int looking;                    // 1: the step runs once more, to find where a number became none
    int bad_norm;                   // 1: the norm of the step is none, its update was left out
} Job;

extern Job pp_job;

/* job.c */
void pp_delay(void);                // sleeps a little under --delay
uint64_t pp_splitmix64(uint64_t x);

void pp_report(int step, const StepRecord *record);         // it is complete: tells the launcher
void pp_add_losses(const float *losses, int microbatches);  // into the record of the step
float pp_rate_at(int step, float rate, int warmup, float floor);

/* Room for one more event of this step? Then the two take 25 ns each. */
static inline int64_t pp_event_time(void)
{
    return pp_job.event < pp_job.event_end ? now_ns() : 0;
}
void pp_note_event(EventKind kind, const char *name, int micro, int peer, int64_t begin,
                   int64_t end);    // nothing where there is no room

/* the device (cpu/host.c, cuda/host.cu), and its pp_device_start */
void pp_begin_step(void);           // pp_job.step is about to run
void pp_look_at_gradients(void);    // the second look: of this rank, behind an action
void pp_end_step(void);             // all that it asked for is done, its record is complete
const float *pp_read_back(const float *values, size_t count);   // of the arena, readable until the next call

/* Has something other than pprun started this rank, with others beside it? */
int pp_is_started_elsewhere(void);

/* the launcher and the other ranks (local/shared.c) */
void pp_attach(void);               // finds the launcher; sets control, self, alone
void pp_progress(void);             // something was done: this rank does not stall
void pp_await(Counter *counter, uint32_t count, Waiting kind, const char *what, int micro,
              int peer);

/* the transport (local/local.c) */
float *pp_join(void);               // waits for all ranks; the arena
void pp_mark_step(void);            // the ordinals of pp_wait and the events count from here
void pp_meet_all(const char *what); // barrier of all ranks

/* look.c */
int pp_loss_is_bad(void);           // one of the step that runs; all ranks know before they update
int pp_look_again(void);            // 1: the step that has ended begins once more

/* data.c, save.c */
void pp_open_data(void);
void pp_read_tokens(int32_t *tokens, int micro);            // into host memory; as in pp.h
void pp_read_token_targets(int32_t *targets, int micro);
void pp_read_numbers(float *values, int micro);
void pp_read_number_targets(float *values, int micro);
void pp_open_save(void);
void pp_write_save(void);
void pp_drop_draft(void);           // before this process leaves for good

#endif
