/* nccl.cu: messages over NCCL.
 *
 * One communicator of two ranks for each queue, made before the first step in
 * the one order that all ranks share, so that no two ranks wait for each other
 * in different ones. Within a queue the k-th send meets the k-th receive; what
 * one queue does never holds up another. A communicator of all ranks carries the
 * collectives, on the compute stream. */
#include <nccl.h>
#include <stdlib.h>

#include "transport.cuh"

#define CHECK_NCCL(call)                                                       \
    do {                                                                       \
        ncclResult_t status_ = (call);                                         \
        if (status_ != ncclSuccess)                                            \
            pp_fail("%s:%d: %s: %s", __FILE__, __LINE__, #call,                \
                    ncclGetErrorString(status_));                              \
    } while (0)

namespace {

ncclComm_t world;
float *token;  // device: what a meeting exchanges

void make_id(void *id)
{
    CHECK_NCCL(ncclGetUniqueId((ncclUniqueId *)id));
}

/* Rank 0 makes the ids of all queues; the world brings them to everybody. */
ncclUniqueId *share_queue_ids(int count)
{
    size_t bytes = (size_t)count * sizeof(ncclUniqueId);
    ncclUniqueId *ids = (ncclUniqueId *)calloc(1, bytes);
    void *device = NULL;
    if (!ids)
        pp_fail("out of memory");
    for (int i = 0; bridge_job()->rank == 0 && i < count; i++)
        CHECK_NCCL(ncclGetUniqueId(&ids[i]));
    CHECK(cudaMalloc(&device, bytes));
    CHECK(cudaMemcpy(device, ids, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());  // the stream does not wait for the copy
    CHECK_NCCL(ncclBroadcast(device, device, bytes, ncclChar, 0, world,
                             pp_device.compute));
    CHECK(cudaStreamSynchronize(pp_device.compute));
    CHECK(cudaMemcpy(ids, device, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device));
    return ids;
}

void start(void)
{
    const PpJob *job = bridge_job();
    ncclUniqueId id;
    bridge_share_id(&id, sizeof id, make_id);
    CHECK_NCCL(ncclCommInitRank(&world, job->ranks, id, job->rank));
    CHECK(cudaMalloc((void **)&token, sizeof *token));
    CHECK(cudaMemset(token, 0, sizeof *token));
    CHECK(cudaDeviceSynchronize());
    if (job->queue_count == 0)
        return;
    ncclUniqueId *ids = share_queue_ids(job->queue_count);
    for (int i = 0; i < pp_lane_count; i++) {       // in order of the queues
        Lane *lane = &pp_lanes[i];
        CHECK_NCCL(ncclCommInitRank((ncclComm_t *)&lane->comm, 2,
                                    ids[lane->index], lane->sends ? 0 : 1));
    }
    free(ids);
}

void send(Lane *lane, const float *from, size_t floats)
{
    CHECK_NCCL(ncclSend(from, floats, ncclFloat, 1, (ncclComm_t)lane->comm,
                        lane->stream));
}

void receive(Lane *lane, float *to, size_t floats)
{
    CHECK_NCCL(ncclRecv(to, floats, ncclFloat, 0, (ncclComm_t)lane->comm,
                        lane->stream));
}

bool owns(const PpTie *tie, int rank)
{
    for (int u = 0; u < tie->uses; u++)
        if (tie->ranks[u] == rank)
            return true;
    return false;
}

/* Every owner gets every use, then adds them in the order of the layers: the
 * same bits everywhere, for any placement. */
void reduce(const PpTie *tie, float *const parts[])
{
    int rank = bridge_job()->rank, ranks = bridge_job()->ranks, own = 0;
    if (!owns(tie, rank))
        return;
    CHECK_NCCL(ncclGroupStart());
    for (int u = 0; u < tie->uses; u++) {
        float *place = pp_reduce_scratch + (size_t)u * tie->floats;
        if (tie->ranks[u] != rank) {
            CHECK_NCCL(ncclRecv(place, tie->floats, ncclFloat, tie->ranks[u],
                                world, pp_device.compute));
            continue;
        }
        for (int r = 0; r < ranks; r++)
            if (r != rank && owns(tie, r))
                CHECK_NCCL(ncclSend(parts[own], tie->floats, ncclFloat, r,
                                    world, pp_device.compute));
        own++;
    }
    CHECK_NCCL(ncclGroupEnd());
    own = 0;
    for (int u = 0; u < tie->uses; u++)
        if (tie->ranks[u] == rank)
            CHECK(cudaMemcpyAsync(pp_reduce_scratch + (size_t)u * tie->floats,
                                  parts[own++], tie->floats * sizeof(float),
                                  cudaMemcpyDeviceToDevice,
                                  pp_device.compute));
    pp_sum_uses(tie, parts);
}

/* Each parameter's square is noted by one rank and zero on the others, so the
 * sum is exact in any order; behind them NaN for a loss that is none. */
void sum_squares(void)
{
    CHECK_NCCL(ncclAllReduce(pp_device.squares, pp_device.squares,
                             (size_t)bridge_job()->parameters + 1, ncclDouble,
                             ncclSum, world, pp_device.compute));
}

void meet(void)
{
    CHECK_NCCL(ncclAllReduce(token, token, 1, ncclFloat, ncclSum, world,
                             pp_device.compute));
    CHECK(cudaStreamSynchronize(pp_device.compute));
}

}  // namespace

const Transport pp_transport_nccl = {"nccl",  true,   start,       send,
                                     receive, reduce, sum_squares, meet};
