/* nccl.cpp: NCCL's calls. All that was called between ncclGroupStart and
 * ncclGroupEnd for one communicator becomes one operation on its stream; a call
 * outside a group is a group of one. The operations of a communicator run one
 * after the other, whatever their streams (Chain), so a blocked one blocks the
 * stream and the communicator.
 */
#include "nccl_shared.h"
#include <algorithm>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct ncclComm {
    std::shared_ptr<sim::Communicator> state;
};

namespace sim
{

struct Call {
    ncclComm *comm;
    cudaStream_t stream;
    Transfer transfer;
};

static thread_local int depth;
static thread_local std::vector<Call> calls;
static thread_local std::vector<std::shared_ptr<Communicator>> joining;
static thread_local ncclResult_t group_result = ncclSuccess;
static thread_local char message[256];

static ncclResult_t refused(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static ncclResult_t refused(ncclResult_t result, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    fprintf(stderr, "cudasim: nccl: %s\n", message);
    if (depth)
        group_result = result;
    return result;
}

/* ---- groups ---- */

static int to_self(const Communicator *c, const std::vector<Transfer> &transfers, int kind)
{
    return (int)std::count_if(transfers.begin(), transfers.end(), [=](const Transfer &t) {
        return t.what.kind == kind && t.peer == c->rank;
    });
}

static std::string title(const Communicator *c, const std::vector<Transfer> &transfers)
{
    std::string text = describe(c, &transfers[0]);
    return transfers.size() == 1
               ? text
               : text + " and " + std::to_string(transfers.size() - 1) + " more in one group";
}

/* Everything of this communicator, taken out of the calls. */
static ncclResult_t launch(ncclComm *comm)
{
    std::shared_ptr<Communicator> c = comm->state;
    std::vector<Transfer> transfers;
    std::vector<cudaStream_t> streams;
    for (const Call &call : calls) {
        if (call.comm != comm)
            continue;
        transfers.push_back(call.transfer);
        if (std::find(streams.begin(), streams.end(), call.stream) == streams.end())
            streams.push_back(call.stream);
    }
    std::erase_if(calls, [=](const Call &call) { return call.comm == comm; });
    if (to_self(c.get(), transfers, SEND) != to_self(c.get(), transfers, RECV))
        return refused(ncclInvalidUsage, "a send to oneself needs its receive in the same group");
    cudaStream_t stream = streams[0];
    streams.erase(streams.begin());
    Work work = {"nccl", title(c.get(), transfers), [=] { run_transfers(c.get(), transfers); },
                 c->chain, streams};
    return submit("nccl", stream, std::move(work)) ? ncclUnhandledCudaError : ncclSuccess;
}

static ncclResult_t end_group()
{
    ncclResult_t result = group_result;
    group_result = ncclSuccess;
    for (auto &c : joining)
        await_ranks(c.get());
    joining.clear();
    while (!calls.empty() && !result)
        result = launch(calls[0].comm);
    calls.clear();
    return result;
}

static ncclResult_t call(ncclComm *comm, cudaStream_t stream, Transfer transfer)
{
    depth++;
    calls.push_back({comm, stream, transfer});
    return ncclGroupEnd();
}

static ncclResult_t point_to_point(const char *name, TransferKind kind, const void *from, void *to,
                                   size_t count, ncclDataType_t type, int peer, ncclComm *comm,
                                   cudaStream_t stream)
{
    if (!comm)
        return refused(ncclInvalidArgument, "%s: no communicator", name);
    if (peer < 0 || peer >= comm->state->ranks || !size_of_type(type))
        return refused(ncclInvalidArgument, "%s: peer %d of %d ranks, type %d", name, peer,
                       comm->state->ranks, type);
    check_range(name, kind == SEND ? from : to, count * size_of_type(type));
    return call(comm, stream, {{kind, type, 0, 0, count}, (const char *)from, (char *)to, peer});
}

static ncclResult_t collective(const char *name, TransferKind kind, const void *from, void *to,
                               size_t count, ncclDataType_t type, int op, int root, ncclComm *comm,
                               cudaStream_t stream)
{
    if (!comm)
        return refused(ncclInvalidArgument, "%s: no communicator", name);
    bool can_add = type == ncclFloat32 || type == ncclFloat64 || type == ncclBfloat16 ||
                   type == ncclInt32 || type == ncclInt64;
    if (!size_of_type(type) || (kind == ALL_REDUCE && !can_add) ||
        (op != ncclSum && op != ncclMax && op != ncclMin) || root < 0 || root >= comm->state->ranks)
        return refused(ncclInvalidArgument, "%s: type %d, operation %d, root %d", name, type, op,
                       root);
    size_t bytes = count * size_of_type(type);
    if (kind == ALL_REDUCE || comm->state->rank == root)
        check_range(name, from, bytes);
    check_range(name, to, bytes);
    return call(comm, stream, {{kind, type, op, root, count}, (const char *)from, (char *)to, -1});
}

}  // namespace sim

using namespace sim;

extern "C" ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

extern "C" ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId)
{
    std::string path = new_meeting_place();
    if (path.empty())
        return refused(ncclSystemError, "no file can be made in /dev/shm");
    *uniqueId = {};
    memcpy(uniqueId->internal, path.c_str(), path.size() + 1);
    return ncclSuccess;
}

extern "C" ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId,
                                         int rank)
{
    *comm = nullptr;
    if (!devices() || may_block("ncclCommInitRank"))
        return ncclUnhandledCudaError;
    if (nranks < 1 || nranks > RANKS_MOST || rank < 0 || rank >= nranks)
        return refused(ncclInvalidArgument, "rank %d of %d", rank, nranks);
    auto state = std::make_shared<Communicator>();
    catch_faults();
    if (ncclResult_t result = join(state.get(), commId.internal, rank, nranks))
        return refused(result, "rank %d of %d cannot join", rank, nranks);
    if (depth)
        joining.push_back(state);
    else
        await_ranks(state.get());
    *comm = new ncclComm{state};
    return ncclSuccess;
}

static ncclResult_t finish(const char *call, ncclComm_t comm)
{
    if (!comm)
        return refused(ncclInvalidArgument, "%s: no communicator", call);
    world.lock();
    OpRef last = comm->state->chain->last;
    world.unlock();
    if (last)
        wait_for(last, call);
    return ncclSuccess;
}

extern "C" ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    return finish("ncclCommFinalize", comm);
}

extern "C" ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    ncclResult_t result = finish("ncclCommDestroy", comm);
    if (!result)
        delete comm;
    return result;
}

extern "C" ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    if (!comm)
        return refused(ncclInvalidArgument, "ncclCommAbort: no communicator");
    comm->state->aborted = true;
    return ncclCommDestroy(comm);
}

extern "C" const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const text[] = {
        "no error",
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "internal error - please report this issue to the NCCL developers",
        "invalid argument (run with NCCL_DEBUG=WARN for details)",
        "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "remote process exited or there was a network error",
        "NCCL operation in progress",
    };
    return result >= 0 && result < ncclNumResults ? text[result] : "unknown result code";
}

extern "C" const char *ncclGetLastError(ncclComm_t)
{
    return message;
}

extern "C" ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
    *asyncError = comm->state->aborted ? ncclInternalError : ncclSuccess;
    return ncclSuccess;
}

extern "C" ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    *count = comm->state->ranks;
    return ncclSuccess;
}

extern "C" ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    *device = comm->state->device;
    return ncclSuccess;
}

extern "C" ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    *rank = comm->state->rank;
    return ncclSuccess;
}

extern "C" ncclResult_t ncclGroupStart()
{
    depth++;
    return ncclSuccess;
}

extern "C" ncclResult_t ncclGroupEnd()
{
    if (!depth)
        return refused(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    return --depth ? ncclSuccess : end_group();
}

extern "C" ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype,
                                 int peer, ncclComm_t comm, cudaStream_t stream)
{
    return point_to_point("ncclSend", SEND, sendbuff, nullptr, count, datatype, peer, comm, stream);
}

extern "C" ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
                                 ncclComm_t comm, cudaStream_t stream)
{
    return point_to_point("ncclRecv", RECV, nullptr, recvbuff, count, datatype, peer, comm, stream);
}

extern "C" ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                                      ncclDataType_t datatype, int root, ncclComm_t comm,
                                      cudaStream_t stream)
{
    return collective("ncclBroadcast", BROADCAST, sendbuff, recvbuff, count, datatype, ncclSum,
                      root, comm, stream);
}

extern "C" ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                                      ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                      cudaStream_t stream)
{
    return collective("ncclAllReduce", ALL_REDUCE, sendbuff, recvbuff, count, datatype, op, 0, comm,
                      stream);
}
