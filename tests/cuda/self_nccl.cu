/* self_nccl.cu: a communicator of one rank that sends to itself, for the test on
 * a real GPU: NCCL works here at all, also inside a captured graph. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>

#define CHECK(call)                                                            \
    do {                                                                       \
        if ((call) != 0) {                                                     \
            printf("not ok self-nccl: %s\n", #call);                           \
            return 1;                                                          \
        }                                                                      \
    } while (0)

int main(void)
{
    enum { COUNT = 1000 };
    float host[COUNT], *from, *to;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t run;
    ncclUniqueId id;
    ncclComm_t comm;
    for (int i = 0; i < COUNT; i++)
        host[i] = (float)i;
    CHECK(cudaMalloc((void **)&from, sizeof host));
    CHECK(cudaMalloc((void **)&to, sizeof host));
    CHECK(cudaMemcpy(from, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(to, 0, sizeof host));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(ncclGetUniqueId(&id));
    CHECK(ncclCommInitRank(&comm, 1, id, 0));
    for (int captured = 0; captured < 2; captured++) {
        if (captured)
            CHECK(cudaStreamBeginCapture(stream,
                                         cudaStreamCaptureModeThreadLocal));
        CHECK(ncclGroupStart());
        CHECK(ncclSend(from, COUNT, ncclFloat, 0, comm, stream));
        CHECK(ncclRecv(to, COUNT, ncclFloat, 0, comm, stream));
        CHECK(ncclGroupEnd());
        if (!captured)
            continue;
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&run, graph, 0));
        CHECK(cudaMemset(to, 0, sizeof host));
        CHECK(cudaGraphLaunch(run, stream));
    }
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(host, to, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++)
        CHECK(host[i] != (float)i);
    CHECK(ncclCommDestroy(comm));
    printf("ok self-nccl\n");
    return 0;
}
