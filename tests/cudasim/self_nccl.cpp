/* self_nccl.cpp: NCCL between processes. */
#include "cuda_bf16.h"
#include "nccl.h"
#include "self.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define NCCL(call)                                                                                 \
    do {                                                                                           \
        ncclResult_t result_ = (call);                                                             \
        if (result_)                                                                               \
            fail("%s:%d: %s: %s", __FILE__, __LINE__, #call, ncclGetErrorString(result_));         \
    } while (0)

/* Runs body in `count` processes and ends as the first that did not end well. */
static void processes(int count, void (*body)(int rank, ncclUniqueId id))
{
    ncclUniqueId id;
    int worst = 0, status;
    std::vector<pid_t> children;
    NCCL(ncclGetUniqueId(&id));
    for (int rank = 0; rank < count; rank++) {
        children.push_back(fork());
        if (!children.back()) {
            body(rank, id);
            exit(0);
        }
    }
    for (int left = count; left; left--) {
        pid_t ended = wait(&status);
        int how = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        if (how && !worst) {
            worst = how;
            for (pid_t child : children)  // the others wait for it in vain
                if (child != ended)
                    kill(child, SIGKILL);
        }
    }
    if (!access(id.internal, F_OK))
        fail("%s is left", id.internal);
    if (worst < 0)
        abort();
    _exit(worst);
}

static ncclComm_t communicator(int rank, int ranks, ncclUniqueId id)
{
    ncclComm_t comm;
    int value;
    NCCL(ncclCommInitRank(&comm, ranks, id, rank));
    NCCL(ncclCommUserRank(comm, &value));
    EXPECT(value == rank);
    NCCL(ncclCommCount(comm, &value));
    EXPECT(value == ranks);
    return comm;
}

/* device memory that holds these floats */
static float *holding(size_t count, float first, float step)
{
    std::vector<float> h(count);
    float *x = device<float>(count);
    for (size_t i = 0; i < count; i++)
        h[i] = first + (float)i * step;
    CUDA(cudaMemcpy(x, h.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    return x;
}

static bool holds(const float *x, size_t count, float first, float step)
{
    std::vector<float> h(count);
    CUDA(cudaMemcpy(h.data(), x, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++)
        if (h[i] != first + (float)i * step)
            return false;
    return true;
}

/* ---- point to point ---- */

static const size_t MANY = 100001;  // several parts, the last one short

static void ping_pong(int rank, ncclUniqueId id)
{
    ncclComm_t comm = communicator(rank, 2, id);
    cudaStream_t s = new_stream();
    float *x = holding(MANY, 100.0f * (float)rank, 1), *y = device<float>(MANY);
    for (int i = 0; i < 10; i++) {
        if (rank) {
            NCCL(ncclRecv(y, MANY, ncclFloat, 0, comm, s));
            NCCL(ncclSend(y, MANY, ncclFloat, 0, comm, s));
        } else {
            NCCL(ncclSend(x, MANY, ncclFloat, 1, comm, s));
            NCCL(ncclRecv(y, MANY, ncclFloat, 1, comm, s));
        }
    }
    CUDA(cudaStreamSynchronize(s));
    EXPECT(holds(y, MANY, 0, 1));
    NCCL(ncclCommDestroy(comm));
}

/* Both send first: fine with buffers, a deadlock with NCCL, however short. */
static void facing_sends(int rank, ncclUniqueId id)
{
    ncclComm_t comm = communicator(rank, 2, id);
    cudaStream_t s = new_stream();
    float *x = holding(2, 0, 1);
    NCCL(ncclSend(x, 1, ncclFloat, 1 - rank, comm, s));
    NCCL(ncclRecv(x + 1, 1, ncclFloat, 1 - rank, comm, s));
    CUDA(cudaStreamSynchronize(s));
}

/* In a group, and on two communicators with streams of their own, it works. */
static void exchange(int rank, ncclUniqueId id)
{
    ncclComm_t comm = communicator(rank, 2, id);
    cudaStream_t s = new_stream();
    float *x = holding(MANY, 7.0f * (float)rank, 1), *y = device<float>(MANY);
    NCCL(ncclGroupStart());
    NCCL(ncclSend(x, MANY, ncclFloat, 1 - rank, comm, s));
    NCCL(ncclRecv(y, MANY, ncclFloat, 1 - rank, comm, s));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(s));
    EXPECT(holds(y, MANY, 7.0f * (float)(1 - rank), 1));
}

/* A later operation makes no progress while an earlier one blocks. */
static void blocked_behind(int rank, ncclUniqueId id)
{
    ncclComm_t comm = communicator(rank, 2, id);
    cudaStream_t s = new_stream(), t = new_stream();
    float *x = holding(2, 0, 1);
    if (rank) {
        NCCL(ncclSend(x, 1, ncclFloat, 0, comm, s));
    } else {
        NCCL(ncclSend(x, 1, ncclFloat, 1, comm, s));
        NCCL(ncclRecv(x + 1, 1, ncclFloat, 1, comm, t));
    }
    CUDA(cudaDeviceSynchronize());
}

static void other_count(int rank, ncclUniqueId id)
{
    ncclComm_t comm = communicator(rank, 2, id);
    cudaStream_t s = new_stream();
    float *x = holding(8, 0, 1);
    if (rank)
        NCCL(ncclRecv(x, 6, ncclFloat, 0, comm, s));
    else
        NCCL(ncclSend(x, 8, ncclFloat, 1, comm, s));
    CUDA(cudaStreamSynchronize(s));
}

static void other_type(int rank, ncclUniqueId id)
{
    ncclComm_t comm = communicator(rank, 2, id);
    cudaStream_t s = new_stream();
    float *x = holding(8, 0, 1);
    if (rank)
        NCCL(ncclRecv(x, 8, ncclBfloat16, 0, comm, s));
    else
        NCCL(ncclSend(x, 8, ncclFloat, 1, comm, s));
    CUDA(cudaStreamSynchronize(s));
}

static void many_messages(int rank, ncclUniqueId id)
{
    ncclComm_t comm = communicator(rank, 2, id);
    cudaStream_t s = new_stream();
    float *x = holding(1000, 0, 1), *y = device<float>(1000);
    for (size_t i = 0; i < 1000; i++)
        if (rank)
            NCCL(ncclRecv(y + i, 1, ncclFloat, 0, comm, s));
        else
            NCCL(ncclSend(x + i, 1, ncclFloat, 1, comm, s));
    CUDA(cudaStreamSynchronize(s));
    EXPECT(!rank || holds(y, 1000, 0, 1));
}

/* ---- one process ---- */

static void to_self()
{
    ncclUniqueId id;
    NCCL(ncclGetUniqueId(&id));
    ncclComm_t comm = communicator(0, 1, id);
    cudaStream_t s = new_stream();
    float *x = holding(MANY, 0, 1), *y = device<float>(MANY);
    NCCL(ncclGroupStart());
    NCCL(ncclSend(x, MANY, ncclFloat, 0, comm, s));
    NCCL(ncclRecv(y, MANY, ncclFloat, 0, comm, s));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(s));
    EXPECT(holds(y, MANY, 0, 1));
    EXPECT(ncclSend(x, 1, ncclFloat, 0, comm, s) == ncclInvalidUsage);
    EXPECT(ncclSend(x, 1, ncclFloat, 1, comm, s) == ncclInvalidArgument);
    NCCL(ncclAllReduce(x, y, MANY, ncclFloat, ncclSum, comm, s));
    NCCL(ncclCommFinalize(comm));
    NCCL(ncclCommDestroy(comm));
}

static void two_in_one()
{
    ncclUniqueId id;
    ncclComm_t comm[2];
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclGroupStart());
    NCCL(ncclCommInitRank(&comm[0], 2, id, 0));
    NCCL(ncclCommInitRank(&comm[1], 2, id, 1));
    NCCL(ncclGroupEnd());
    cudaStream_t s = new_stream(), t = new_stream();
    float *x = holding(MANY, 0, 1), *y = device<float>(MANY);
    NCCL(ncclSend(x, MANY, ncclFloat, 1, comm[0], s));
    NCCL(ncclRecv(y, MANY, ncclFloat, 0, comm[1], t));
    CUDA(cudaStreamSynchronize(t));
    EXPECT(holds(y, MANY, 0, 1));
}

static void alone()
{
    ncclUniqueId id;
    NCCL(ncclGetUniqueId(&id));
    communicator(0, 2, id);
}

static void aborted()
{
    ncclUniqueId id;
    ncclComm_t comm[2];
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclGroupStart());
    NCCL(ncclCommInitRank(&comm[0], 2, id, 0));
    NCCL(ncclCommInitRank(&comm[1], 2, id, 1));
    NCCL(ncclGroupEnd());
    cudaStream_t s = new_stream();
    NCCL(ncclSend(holding(1, 0, 1), 1, ncclFloat, 1, comm[0], s));
    NCCL(ncclCommAbort(comm[0]));
    CUDA(cudaStreamSynchronize(s));
}

/* ---- collectives ---- */

static void all_reduce(int rank, ncclUniqueId id)
{
    ncclComm_t comm = communicator(rank, 3, id);
    cudaStream_t s = new_stream();
    float *x = holding(MANY, (float)rank, 1), *y = device<float>(MANY);
    NCCL(ncclAllReduce(x, y, MANY, ncclFloat, ncclSum, comm, s));
    NCCL(ncclAllReduce(x, x, 5, ncclFloat, ncclSum, comm, s));
    double three[2] = {1.5, 1e300}, *d = device<double>(2);
    CUDA(cudaMemcpy(d, three, sizeof three, cudaMemcpyHostToDevice));
    NCCL(ncclAllReduce(d, d, 2, ncclDouble, ncclSum, comm, s));
    __nv_bfloat16 half[1] = {(float)(rank + 1)}, *b = device<__nv_bfloat16>(1);
    CUDA(cudaMemcpy(b, half, sizeof half, cudaMemcpyHostToDevice));
    NCCL(ncclAllReduce(b, b, 1, ncclBfloat16, ncclSum, comm, s));
    CUDA(cudaStreamSynchronize(s));
    EXPECT(holds(y, MANY, 3, 3) && holds(x, 5, 3, 3) && holds(x + 5, 1, (float)(rank + 5), 0));
    CUDA(cudaMemcpy(three, d, sizeof three, cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(half, b, sizeof half, cudaMemcpyDeviceToHost));
    EXPECT(three[0] == 4.5 && three[1] == 3e300 && (float)half[0] == 6);
}

static void broadcast(int rank, ncclUniqueId id)
{
    ncclComm_t comm = communicator(rank, 3, id);
    cudaStream_t s = new_stream();
    float *x = holding(MANY, (float)rank, 1);
    NCCL(ncclBroadcast(x, x, MANY, ncclFloat, 1, comm, s));
    CUDA(cudaStreamSynchronize(s));
    EXPECT(holds(x, MANY, 1, 1));
}

static void other_collective_count(int rank, ncclUniqueId id)
{
    ncclComm_t comm = communicator(rank, 2, id);
    cudaStream_t s = new_stream();
    float *x = holding(8, 0, 1);
    NCCL(ncclAllReduce(x, x, (size_t)(7 + rank), ncclFloat, ncclSum, comm, s));
    CUDA(cudaStreamSynchronize(s));
}

/* ---- in a graph: compute, send, receive, all-reduce, ten times ---- */

static void double_it(void *x)
{
    for (int i = 0; i < 100; i++)
        ((float *)x)[i] *= 2;
}

static void in_graph(int rank, ncclUniqueId id)
{
    ncclComm_t comm = communicator(rank, 2, id);
    cudaStream_t s = new_stream(), t = new_stream();
    cudaEvent_t e, f;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    float *x = pinned<float>(100);
    for (int i = 0; i < 100; i++)
        x[i] = (float)i;
    CUDA(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&f, cudaEventDisableTiming));
    CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    if (!rank)
        CUDA(cudaLaunchHostFunc(s, double_it, x));
    CUDA(cudaEventRecord(e, s));
    CUDA(cudaStreamWaitEvent(t, e));
    if (rank)
        NCCL(ncclRecv(x, 100, ncclFloat, 0, comm, t));
    else
        NCCL(ncclSend(x, 100, ncclFloat, 1, comm, t));
    CUDA(cudaEventRecord(f, t));
    CUDA(cudaStreamWaitEvent(s, f));
    NCCL(ncclAllReduce(x, x, 100, ncclFloat, ncclSum, comm, s));
    CUDA(cudaStreamEndCapture(s, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 5; i++)
        CUDA(cudaGraphLaunch(exec, s));
    CUDA(cudaStreamSynchronize(s));
    EXPECT(x[3] == 3.0f * 4 * 4 * 4 * 4 * 4);
    NCCL(ncclCommDestroy(comm));
}

/* A rank dies while the others wait: they hang, and say for whom. */
static void peer_dies(int rank, ncclUniqueId id)
{
    ncclComm_t comm = communicator(rank, 2, id);
    if (rank)
        _exit(0);
    NCCL(ncclRecv(device<float>(1), 1, ncclFloat, 1, comm, new_stream()));
    CUDA(cudaDeviceSynchronize());
}

/* What a killed process left goes when the next one asks for a place. */
static void sweeps()
{
    ncclUniqueId other;
    int ends[2];
    EXPECT(!pipe(ends));
    pid_t child = fork();
    if (!child) {
        NCCL(ncclGetUniqueId(&other));
        EXPECT(write(ends[1], &other, sizeof other) == sizeof other);
        pause();
    }
    EXPECT(read(ends[0], &other, sizeof other) == sizeof other);
    EXPECT(!access(other.internal, F_OK));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    ncclUniqueId id;
    NCCL(ncclGetUniqueId(&id));
    EXPECT(access(other.internal, F_OK) && !access(id.internal, F_OK));
}

#define IN_PROCESSES(count, body) [] { processes(count, body); }

const Case nccl_cases[] = {
    {"nccl-ping-pong", IN_PROCESSES(2, ping_pong)},
    {"nccl-ping-pong-shaken", IN_PROCESSES(2, ping_pong), 0, nullptr, "CUDASIM_SHAKE=200"},
    {"nccl-many-messages", IN_PROCESSES(2, many_messages)},
    {"nccl-facing-sends", IN_PROCESSES(2, facing_sends), HANGS, "send of 1 float to rank"},
    {"nccl-exchange-in-group", IN_PROCESSES(2, exchange)},
    {"nccl-blocked-behind", IN_PROCESSES(2, blocked_behind), HANGS, "no receive yet at rank"},
    {"nccl-other-count", IN_PROCESSES(2, other_count), DIES, "mismatch: rank"},
    {"nccl-other-type", IN_PROCESSES(2, other_type), DIES, "mismatch: rank"},
    {"nccl-to-self", to_self, 0, "needs its receive in the same group"},
    {"nccl-two-ranks-in-one-process", two_in_one},
    {"nccl-alone", alone, HANGS, "ncclCommInitRank of rank 0 of 2 waits for rank 1"},
    {"nccl-aborted", aborted},
    {"nccl-all-reduce", IN_PROCESSES(3, all_reduce)},
    {"nccl-broadcast", IN_PROCESSES(3, broadcast)},
    {"nccl-all-reduce-other-count", IN_PROCESSES(2, other_collective_count), DIES, "mismatch"},
    {"nccl-in-graph", IN_PROCESSES(2, in_graph)},
    {"nccl-in-graph-shaken", IN_PROCESSES(2, in_graph), 0, nullptr, "CUDASIM_SHAKE=300"},
    {"nccl-sweeps", sweeps},
    {"nccl-peer-dies", IN_PROCESSES(2, peer_dies), HANGS, "which is gone"},
    {},
};
