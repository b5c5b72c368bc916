/* pinned.cu: messages between ranks of one machine through pinned host memory,
 * for ranks that share a GPU, or GPUs without NCCL.
 *
 * Every rank's part of the shared memory holds a ring of places for each rank
 * that it sends to, then room for a collective. Streams write and wait for the
 * counters of control.h themselves: the host only enqueues.
 *
 *     sender    wait taken >= k - 3 | copy to place k % 4   | sent = k + 1
 *     receiver  wait sent >= k + 1  | copy from place k % 4 | taken = k + 1
 *
 * The counters grow with every message, so a captured graph could not replay
 * them: this transport runs every step directly. */
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

#include "transport.cuh"

namespace {

enum { PLACES = 4 };            // of a ring

typedef CUresult (*StreamValue)(CUstream, CUdeviceptr, cuuint32_t, unsigned);

StreamValue write_value, wait_value;
uint32_t *met;                  // [ranks] meetings with each rank so far
double *gathered;               // device [ranks][parameters]

size_t ring_floats()
{
    return PLACES * ((bridge_job()->message + 15) / 16 * 16);
}

/* In floats, inside a rank's part: rings, then what a collective needs. */
size_t collective_at()
{
    return ring_floats() * (size_t)bridge_job()->ranks;
}

StreamValue driver_entry(const char *name)
{
    void *entry = NULL;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion(name, &entry, 12000,
                                           cudaEnableDefault, &found));
    if (!entry || found != cudaDriverEntryPointSuccess)
        pp_fail("the driver has no %s", name);
    return (StreamValue)entry;
}

void check_driver(CUresult status, const char *what)
{
    if (status != CUDA_SUCCESS)
        pp_fail("%s failed: error %d", what, (int)status);
}

void write_counter(cudaStream_t stream, uint32_t *counter, uint32_t value)
{
    void *device = NULL;
    CHECK(cudaHostGetDevicePointer(&device, counter, 0));
    check_driver(write_value((CUstream)stream, (CUdeviceptr)device, value,
                             CU_STREAM_WRITE_VALUE_DEFAULT),
                 "cuStreamWriteValue32");
}

void wait_counter(cudaStream_t stream, uint32_t *counter, uint32_t value)
{
    void *device = NULL;
    CHECK(cudaHostGetDevicePointer(&device, counter, 0));
    check_driver(wait_value((CUstream)stream, (CUdeviceptr)device, value,
                            CU_STREAM_WAIT_VALUE_GEQ),
                 "cuStreamWaitValue32");
}

void start(void)
{
    const PpJob *job = bridge_job();
    size_t squares = ((size_t)job->parameters + 1) * sizeof(double);
    size_t own = squares > job->reduce * sizeof(float)
                     ? squares
                     : job->reduce * sizeof(float);
    bridge_join(collective_at() * sizeof(float) + own + 64);
    char *region = NULL;
    size_t bytes = bridge_region(&region);
    CHECK(cudaHostRegister(region, bytes, cudaHostRegisterMapped));
    write_value = driver_entry("cuStreamWriteValue32");
    wait_value = driver_entry("cuStreamWaitValue32");
    met = (uint32_t *)calloc((size_t)job->ranks, sizeof *met);
    if (!met)
        pp_fail("out of memory");
    CHECK(cudaMalloc((void **)&gathered, (size_t)job->ranks * squares + 8));
}

float *place(int from, int to, uint32_t k)
{
    float *ring = (float *)bridge_part(from) + ring_floats() * (size_t)to;
    return ring + ring_floats() / PLACES * (k % PLACES);
}

void send(Lane *lane, const float *from, size_t floats)
{
    int rank = bridge_job()->rank;
    uint32_t k = lane->total - 1;
    wait_counter(lane->stream, bridge_taken(rank, lane->peer),
                 k + 1 - PLACES);
    CHECK(cudaMemcpyAsync(place(rank, lane->peer, k), from,
                          floats * sizeof(float), cudaMemcpyDeviceToHost,
                          lane->stream));
    write_counter(lane->stream, bridge_sent(rank, lane->peer), k + 1);
}

void receive(Lane *lane, float *to, size_t floats)
{
    int rank = bridge_job()->rank;
    uint32_t k = lane->total - 1;
    wait_counter(lane->stream, bridge_sent(lane->peer, rank), k + 1);
    CHECK(cudaMemcpyAsync(to, place(lane->peer, rank, k),
                          floats * sizeof(float), cudaMemcpyHostToDevice,
                          lane->stream));
    write_counter(lane->stream, bridge_taken(lane->peer, rank), k + 1);
}

/* On the compute stream: goes on when every member has come as often. */
void meet_on_stream(const bool *members)
{
    int rank = bridge_job()->rank, ranks = bridge_job()->ranks;
    for (int r = 0; r < ranks; r++)
        if (members[r] && r != rank)
            write_counter(pp_device.compute, bridge_met(rank, r), ++met[r]);
    for (int r = 0; r < ranks; r++)
        if (members[r] && r != rank)
            wait_counter(pp_device.compute, bridge_met(r, rank), met[r]);
}

float *collective(int rank)
{
    return (float *)bridge_part(rank) + collective_at();
}

/* Between the two meetings nobody writes: all read each other's part. */
void reduce(const PpTie *tie, float *const parts[])
{
    int rank = bridge_job()->rank, own = 0;
    bool *members = (bool *)calloc((size_t)bridge_job()->ranks, sizeof(bool));
    if (!members)
        pp_fail("out of memory");
    for (int u = 0; u < tie->uses; u++)
        members[tie->ranks[u]] = true;
    for (int u = 0; members[rank] && u < tie->uses; u++)
        if (tie->ranks[u] == rank)
            CHECK(cudaMemcpyAsync(collective(rank) + (size_t)u * tie->floats,
                                  parts[own++], tie->floats * sizeof(float),
                                  cudaMemcpyDeviceToHost, pp_device.compute));
    if (members[rank]) {
        meet_on_stream(members);
        for (int u = 0; u < tie->uses; u++) {
            size_t at = (size_t)u * tie->floats;
            CHECK(cudaMemcpyAsync(pp_reduce_scratch + at,
                                  collective(tie->ranks[u]) + at,
                                  tie->floats * sizeof(float),
                                  cudaMemcpyHostToDevice, pp_device.compute));
        }
        meet_on_stream(members);
        pp_sum_uses(tie, parts);
    }
    free(members);
}

__global__ void add_rows(double *to, const double *rows, int ranks, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0;
    for (int r = 0; i < count && r < ranks; r++)
        sum += rows[(size_t)r * count + i];
    if (i < count)
        to[i] = sum;
}

void sum_squares(void)
{
    const PpJob *job = bridge_job();
    int squares = job->parameters + 1;
    size_t bytes = (size_t)squares * sizeof(double);
    bool *members = (bool *)malloc((size_t)job->ranks * sizeof(bool));
    if (!members)
        pp_fail("out of memory");
    memset(members, 1, (size_t)job->ranks * sizeof(bool));
    CHECK(cudaMemcpyAsync(collective(job->rank), pp_device.squares, bytes,
                          cudaMemcpyDeviceToHost, pp_device.compute));
    meet_on_stream(members);
    for (int r = 0; r < job->ranks; r++)
        CHECK(cudaMemcpyAsync(gathered + (size_t)r * squares,
                              collective(r), bytes, cudaMemcpyHostToDevice,
                              pp_device.compute));
    meet_on_stream(members);
    free(members);
    launch(add_rows, dim3(blocks((size_t)squares, 128)), 128, 0,
           pp_device.squares, (const double *)gathered, job->ranks, squares);
}

void meet(void)
{
    const PpJob *job = bridge_job();
    bool *members = (bool *)malloc((size_t)job->ranks * sizeof(bool));
    if (!members)
        pp_fail("out of memory");
    memset(members, 1, (size_t)job->ranks * sizeof(bool));
    meet_on_stream(members);
    free(members);
    CHECK(cudaStreamSynchronize(pp_device.compute));
}

}  // namespace

const Transport pp_transport_local = {"local", false,  start,       send,
                                      receive, reduce, sum_squares, meet};
