/* self.h: the frame of the simulator's own test.
 *
 * A case is a function that runs in a forked child, under its own environment,
 * so that what kills a process can be tested too. It passes when the child ends
 * as expected (`status`, below 0: a signal) and has said `says` on stderr.
 */
#ifndef SELF_H
#define SELF_H

#include "cuda_runtime.h"
#include "cudasim.h"

struct Case {
    const char *name;
    void (*run)();
    int status = 0;
    const char *says = nullptr;
    const char *setting = nullptr;  // "CUDASIM_SHAKE=200"
};

[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail("%s:%d: not so: %s", __FILE__, __LINE__, #condition);                             \
    } while (0)
#define CUDA(call)                                                                                 \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_)                                                                                \
            fail("%s:%d: %s: %s", __FILE__, __LINE__, #call, cudaGetErrorName(error_));            \
    } while (0)
#define GIVES(call, error) EXPECT((call) == (error))

const int DIES = -6;  // SIGABRT, after a report
const int HANGS = 86;

cudaStream_t new_stream();
template <class T> T *device(size_t count)
{
    T *p;
    CUDA(cudaMalloc(&p, count * sizeof(T)));
    return p;
}
template <class T> T *pinned(size_t count)
{
    T *p;
    CUDA(cudaMallocHost(&p, count * sizeof(T)));
    return p;
}

template <class... P>
void launch(cudaStream_t stream, dim3 grid, dim3 block, size_t shared, void (*kernel)(P...),
            std::type_identity_t<P>... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    CUDA(cudaLaunchKernelEx(&config, kernel, arguments...));
}

struct Gate {  // the stream waits here until the host opens it
    unsigned *word;
    explicit Gate(cudaStream_t stream);
    void open();
};

extern const Case stream_cases[], kernel_cases[], blas_cases[], nccl_cases[];  // end: no name

#endif
