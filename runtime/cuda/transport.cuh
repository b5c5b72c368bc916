/* transport.cuh: what carries messages between CUDA ranks. Each transport is one
 * file that fills this table; host.cu chooses one at the start.
 *
 * Each direction of each pair of ranks is a queue with a stream of its own:
 *
 *     compute  --F0--*--------F1--*------->      * records `ready`, the queue waits
 *     queue         `-send F0--*  `-send F1-->   * records `done`, compute waits
 *                                                  where pp_wait or pp_take stands
 *
 * The host only enqueues. */
#ifndef TRANSPORT_CUH
#define TRANSPORT_CUH

#include "bridge.h"
#include "device.cuh"

struct Lane {                   // one queue, seen from one of its ends
    int peer;
    bool sends;
    int index;                  // in PpJob.queues
    cudaStream_t stream;
    cudaEvent_t *ready, *done;  // [depth] of the k-th message of the step
    int count;                  // messages of this step so far
    uint32_t total;             // messages ever
    void *comm;                 // nccl: its communicator
};

struct Transport {
    const char *name;
    bool graph;                 // its calls can be captured
    void (*start)(void);
    void (*send)(Lane *lane, const float *from, size_t floats);
    void (*receive)(Lane *lane, float *to, size_t floats);
    /* parts[0] = parts[0] + parts[1] + ... over all uses, in order, on all
     * owners; enqueued on the compute stream. */
    void (*reduce)(const PpTie *tie, float *const parts[]);
    void (*sum_squares)(void);  // pp_device.squares over all ranks
    void (*meet)(void);         // all ranks; waits on the host
};

extern const Transport pp_transport_nccl, pp_transport_local;

extern Lane *pp_lanes;          // host.cu: all lanes of this rank
extern int pp_lane_count;
extern float *pp_reduce_scratch;        // PpJob.reduce floats

/* Enqueue on the compute stream, in host.cu: to = a + b, float32. */
void pp_add_floats(float *to, const float *a, const float *b, size_t count);
/* Sums gathered uses (scratch holds use u at u * floats) in order into parts[0]. */
void pp_sum_uses(const PpTie *tie, float *const parts[]);

#endif
