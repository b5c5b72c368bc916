/* bridge.h: what the CUDA files, which are C++, need of the rest of the runtime,
 * which is C11: the job, the memory shared with the launcher, and the words in
 * it that streams write and wait for. */
#ifndef PP_BRIDGE_H
#define PP_BRIDGE_H

#include "../pp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- bridge.c, for the CUDA files ---- */

const PpJob *bridge_job(void);
int bridge_step(void);                          // that runs, from 1
int bridge_local_rank(void);                    // among the ranks of this machine
int bridge_option_graph(void);                  // --graph on / off; -1: as it fits
const char *bridge_option_transport(void);      // --transport nccl / local; NULL: as it fits
void bridge_check_abort(void);                  // leaves when another rank has failed
void bridge_rest(void);                         // a moment, while the device works

/* Into the record of this step. norm NaN: none. */
void bridge_record(const float *losses, int count, float norm);
/* The same: its update was left out, by a loss of some rank or by the norm. Ends
 * the job, unless it is to go on. */
void bridge_left_out(int lost, int worst);
void bridge_name_parameter(int parameter, const char *name);    // of this rank
/* Data of the step into host memory. */
void bridge_tokens(int32_t *to, int micro, int targets);
void bridge_numbers(float *to, int micro, int targets);
void bridge_draw_normal(float *w, size_t count, const char *name, float deviation);
float bridge_rate(float rate, int warmup, float floor);

/* The same 128 bytes on every rank: made by rank 0 with `make`. */
void bridge_share_id(void *id, size_t bytes, void (*make)(void *id));

int bridge_is_launched(void);                   // by pprun, with memory that the ranks share
/* Memory that the ranks of one machine share. */
char *bridge_join(size_t bytes);                // waits for all; this rank's part
char *bridge_part(int rank);
size_t bridge_region(char **region);            // all parts: address and length
uint32_t *bridge_sent(int from, int to);        // counters, see control.h
uint32_t *bridge_taken(int from, int to);
uint32_t *bridge_met(int from, int to);

/* ---- host.cu, for bridge.c ---- */

void host_start(void);
float *host_arena(void);
void host_begin_step(void);
void host_end_step(void);
const float *host_read_back(const float *values, size_t count);
void host_meet(void);
void host_mark_step(void);

#ifdef __cplusplus
}
#endif
#endif
