/* self_stream.cpp: streams, events, pinned memory, words, graphs, the watchdog. */
#include "cuda.h"
#include "self.h"
#include <string>
#include <sys/mman.h>
#include <unistd.h>

static const size_t SOME = 1000, BYTES = SOME * sizeof(int);

static cudaEvent_t new_event()
{
    cudaEvent_t event;
    CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

static bool all(const int *x, int value)
{
    for (size_t i = 0; i < SOME; i++)
        if (x[i] != value)
            return false;
    return true;
}

/* memset writes bytes: 0x01010101 for 1 */
static const int ONES = 0x01010101;

/* ---- order ---- */

static void asynchronous()
{
    cudaStream_t s = new_stream();
    int *x = pinned<int>(SOME);
    *x = 0;
    Gate gate(s);
    CUDA(cudaMemsetAsync(x, 1, BYTES, s));
    GIVES(cudaStreamQuery(s), cudaErrorNotReady);
    EXPECT(*(volatile int *)x == 0);
    gate.open();
    CUDA(cudaStreamSynchronize(s));
    EXPECT(all(x, ONES));
    GIVES(cudaStreamQuery(s), cudaSuccess);
}

static void in_order()
{
    cudaStream_t s = new_stream();
    int *x = pinned<int>(SOME);
    for (int i = 0; i < 100; i++)
        CUDA(cudaMemsetAsync(x, i, BYTES, s));
    CUDA(cudaStreamSynchronize(s));
    EXPECT(all(x, 99 * ONES));
}

static void concurrent()
{
    cudaStream_t s = new_stream(), t = new_stream();
    int *x = pinned<int>(SOME);
    Gate gate(s);
    CUDA(cudaMemsetAsync(x, 1, BYTES, t));
    CUDA(cudaStreamSynchronize(t));
    EXPECT(all(x, ONES));
    GIVES(cudaStreamQuery(s), cudaErrorNotReady);
}

/* s writes late, t copies: right only if t waits for s. */
static bool copied_in_time(bool wait, bool heeded)
{
    cudaStream_t s = new_stream(), t = new_stream();
    cudaEvent_t e = new_event();
    int *x = pinned<int>(SOME), *y = pinned<int>(SOME);
    Gate gate(s);
    CUDA(cudaMemsetAsync(x, 1, BYTES, s));
    CUDA(cudaEventRecord(e, s));
    if (wait)
        CUDA(cudaStreamWaitEvent(t, e));
    CUDA(cudaMemcpyAsync(y, x, BYTES, cudaMemcpyHostToHost, t));
    if (heeded)
        usleep(20000);  // so that a copy that does not wait comes too early
    else
        CUDA(cudaStreamSynchronize(t));
    gate.open();
    CUDA(cudaDeviceSynchronize());
    return all(y, ONES);
}

static void events()
{
    EXPECT(copied_in_time(true, true));
    EXPECT(!copied_in_time(false, false));
}

static void dropped_wait()
{
    EXPECT(!copied_in_time(true, false));
    EXPECT(copied_in_time(true, true));
}

static void event_never_recorded()
{
    cudaStream_t s = new_stream();
    cudaEvent_t e = new_event();
    CUDA(cudaStreamWaitEvent(s, e));
    CUDA(cudaStreamSynchronize(s));
    CUDA(cudaEventQuery(e));
    CUDA(cudaEventSynchronize(e));
}

/* A wait means the record that was newest when it was called. */
static void event_again()
{
    cudaStream_t s = new_stream(), t = new_stream();
    cudaEvent_t e = new_event();
    CUDA(cudaEventRecord(e, s));
    CUDA(cudaStreamWaitEvent(t, e));
    Gate gate(s);
    CUDA(cudaEventRecord(e, s));
    CUDA(cudaStreamSynchronize(t));
    GIVES(cudaEventQuery(e), cudaErrorNotReady);
    gate.open();
    CUDA(cudaEventSynchronize(e));
    CUDA(cudaEventQuery(e));
}

static void event_times()
{
    cudaStream_t s = new_stream();
    cudaEvent_t e, f, without = new_event();
    float ms;
    CUDA(cudaEventCreate(&e));
    CUDA(cudaEventCreate(&f));
    CUDA(cudaEventRecord(e, s));
    CUDA(cudaStreamSynchronize(s));
    Gate gate(s);
    CUDA(cudaEventRecord(f, s));
    CUDA(cudaEventRecord(without, s));
    GIVES(cudaEventElapsedTime(&ms, e, f), cudaErrorNotReady);
    usleep(20000);
    gate.open();
    CUDA(cudaStreamSynchronize(s));
    CUDA(cudaEventElapsedTime(&ms, e, f));
    EXPECT(ms > 19 && ms < 20000);
    GIVES(cudaEventElapsedTime(&ms, e, without), cudaErrorInvalidResourceHandle);
}

static void legacy_stream()
{
    cudaStream_t blocking, free = new_stream();
    int *x = pinned<int>(SOME), *y = pinned<int>(SOME);
    CUDA(cudaStreamCreate(&blocking));
    Gate first(blocking), never(free);
    CUDA(cudaMemsetAsync(x, 1, BYTES, blocking));
    CUDA(cudaMemcpyAsync(y, x, BYTES, cudaMemcpyHostToHost, 0));
    CUDA(cudaMemsetAsync(x, 2, BYTES, blocking));
    usleep(20000);
    first.open();
    CUDA(cudaStreamSynchronize(blocking));
    EXPECT(all(y, ONES));
    GIVES(cudaStreamQuery(free), cudaErrorNotReady);
}

static void host_function()
{
    static cudaError_t inside;
    cudaStream_t s = new_stream();
    CUDA(cudaLaunchHostFunc(
        s, [](void *) { inside = cudaDeviceSynchronize(); }, nullptr));
    CUDA(cudaStreamSynchronize(s));
    EXPECT(inside == cudaErrorNotPermitted);
}

static void handles()
{
    cudaStream_t s = new_stream();
    cudaEvent_t e = new_event();
    CUDA(cudaStreamDestroy(s));
    CUDA(cudaEventDestroy(e));
    GIVES(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle);
    GIVES(cudaEventRecord(e, new_stream()), cudaErrorInvalidResourceHandle);
    GIVES(cudaEventDestroy(e), cudaErrorInvalidResourceHandle);
}

/* ---- devices and memory ---- */

static void properties()
{
    cudaDeviceProp p;
    int count, value;
    CUDA(cudaGetDeviceCount(&count));
    EXPECT(count == 3);
    CUDA(cudaGetDeviceProperties(&p, 2));
    EXPECT(p.name == std::string("cudasim"));
    CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    EXPECT(value == 227 << 10);
    GIVES(cudaSetDevice(3), cudaErrorInvalidDevice);
    CUDA(cudaSetDevice(2));
    cudaStream_t s = new_stream();
    CUDA(cudaSetDevice(1));
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = 1;
    config.stream = s;
    GIVES(cudaLaunchKernelEx(
              &config, +[](int) {}, 1),
          cudaErrorInvalidResourceHandle);
}

static void no_device()
{
    int count = 7;
    void *p;
    GIVES(cudaGetDeviceCount(&count), cudaErrorNoDevice);
    EXPECT(count == 0);
    GIVES(cudaMalloc(&p, 4), cudaErrorNoDevice);
    GIVES(cudaGetLastError(), cudaErrorNoDevice);
}

static void only_pinned()
{
    cudaStream_t s = new_stream();
    int *x = device<int>(SOME);
    static int host[SOME];
    GIVES(cudaMemcpyAsync(x, host, BYTES, cudaMemcpyHostToDevice, s), cudaErrorInvalidValue);
    GIVES(cudaMemcpyAsync(host, x, BYTES, cudaMemcpyDeviceToHost, s), cudaErrorInvalidValue);
    CUDA(cudaHostRegister(host, BYTES, cudaHostRegisterDefault));
    GIVES(cudaHostRegister(host, 8, 0), cudaErrorHostMemoryAlreadyRegistered);
    CUDA(cudaMemcpyAsync(x, host, BYTES, cudaMemcpyHostToDevice, s));
    GIVES(cudaMemcpyAsync(x, host, BYTES, cudaMemcpyDeviceToHost, s), cudaErrorInvalidValue);
    CUDA(cudaStreamSynchronize(s));
    CUDA(cudaHostUnregister(host));
    GIVES(cudaHostUnregister(host), cudaErrorHostMemoryNotRegistered);
    CUDA(cudaMemcpy(x, host, BYTES, cudaMemcpyDefault));
}

static void copy_overrun()
{
    int *x = device<int>(SOME), *y = pinned<int>(SOME - 1);
    CUDA(cudaMemcpyAsync(x, y, BYTES, cudaMemcpyHostToDevice, new_stream()));
}

/* ---- words that two processes share ---- */

static void words()
{
    int *word = (int *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    CUresult (*wait)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
    CUresult (*write)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
    CUDA(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", (void **)&wait, 12000, 0));
    CUDA(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", (void **)&write, 12000, 0));
    void *mapped;
    CUDA(cudaHostRegister(word, 4096, cudaHostRegisterMapped));
    CUDA(cudaHostGetDevicePointer(&mapped, word, 0));
    CUdeviceptr here = (CUdeviceptr)mapped, there = here + 4;
    cudaStream_t s = new_stream();
    for (unsigned i = 1; i <= 50; i++) {
        EXPECT(!wait(s, child ? here : there, i, CU_STREAM_WAIT_VALUE_GEQ) || !child);
        EXPECT(!write(s, child ? there : here, child ? i : i + 1, 0));
        if (i == 1 && child)
            EXPECT(!write(new_stream(), here, 1, 0));
    }
    CUDA(cudaStreamSynchronize(s));
    EXPECT(word[1] == 50 && (!child || word[0] >= 50));
    EXPECT(wait(s, 4096, 0, 0) == CUDA_ERROR_INVALID_VALUE);
}

/* ---- the watchdog ---- */

static void hang()
{
    unsigned *word = pinned<unsigned>(1);
    cudaStream_t s = new_stream(), t = new_stream();
    cudaEvent_t e = new_event();
    *word = 0;
    EXPECT(!cuStreamWaitValue32(s, (CUdeviceptr)word, 1, CU_STREAM_WAIT_VALUE_GEQ));
    CUDA(cudaEventRecord(e, s));
    CUDA(cudaStreamWaitEvent(t, e));
    CUDA(cudaStreamSynchronize(t));
}

/* ---- graphs ---- */

static void increment(void *x)
{
    ++*(int *)x;
}

/* s: x++ ......... y = x, z = 2 (on t, in between: x *= 2) */
static void graph()
{
    cudaStream_t s = new_stream(), t = new_stream();
    cudaEvent_t e = new_event(), f = new_event();
    cudaGraph_t g;
    cudaGraphExec_t exec;
    cudaStreamCaptureStatus status;
    int *x = pinned<int>(SOME), *y = pinned<int>(1);
    *x = *y = 0;
    CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CUDA(cudaLaunchHostFunc(s, increment, x));
    CUDA(cudaEventRecord(e, s));
    CUDA(cudaStreamWaitEvent(t, e));
    CUDA(cudaStreamIsCapturing(t, &status));
    EXPECT(status == cudaStreamCaptureStatusActive);
    CUDA(cudaLaunchHostFunc(
        t, [](void *p) { usleep(2000), *(int *)p *= 2; }, x));
    CUDA(cudaEventRecord(f, t));
    CUDA(cudaStreamWaitEvent(s, f));
    CUDA(cudaMemcpyAsync(y, x, 4, cudaMemcpyHostToHost, s));
    CUDA(cudaStreamEndCapture(s, &g));
    EXPECT(*x == 0);
    CUDA(cudaGraphInstantiate(&exec, g));
    CUDA(cudaGraphDestroy(g));
    GIVES(cudaEventQuery(e), cudaErrorCapturedEvent);
    int expected = 0;
    for (int i = 0; i < 10; i++) {
        CUDA(cudaGraphLaunch(exec, s));
        expected = 2 * (expected + 1);
    }
    CUDA(cudaStreamSynchronize(s));
    EXPECT(*x == expected && *y == expected);
    CUDA(cudaGraphLaunch(exec, s));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaStreamSynchronize(s));
    EXPECT(*y == 2 * (expected + 1));
}

/* What no edge orders runs at the same time, in a graph too. */
static void graph_concurrent()
{
    cudaStream_t s = new_stream(), t = new_stream();
    cudaEvent_t e = new_event(), f = new_event();
    cudaGraph_t g;
    cudaGraphExec_t exec;
    unsigned *word = pinned<unsigned>(1);
    *word = 0;
    CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CUDA(cudaEventRecord(e, s));
    CUDA(cudaStreamWaitEvent(t, e));
    EXPECT(!cuStreamWaitValue32(s, (CUdeviceptr)word, 1, CU_STREAM_WAIT_VALUE_EQ));
    EXPECT(!cuStreamWriteValue32(t, (CUdeviceptr)word, 1, 0));
    CUDA(cudaEventRecord(f, t));
    CUDA(cudaStreamWaitEvent(s, f));
    EXPECT(!cuStreamWriteValue32(s, (CUdeviceptr)word, 0, 0));
    CUDA(cudaStreamEndCapture(s, &g));
    CUDA(cudaGraphInstantiate(&exec, g));
    for (int i = 0; i < 5; i++)
        CUDA(cudaGraphLaunch(exec, s));
    CUDA(cudaStreamSynchronize(s));
}

static void graph_unjoined()
{
    cudaStream_t s = new_stream(), t = new_stream();
    cudaEvent_t e = new_event();
    cudaGraph_t g;
    int *x = pinned<int>(SOME);
    CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CUDA(cudaEventRecord(e, s));
    CUDA(cudaStreamWaitEvent(t, e));
    CUDA(cudaMemsetAsync(x, 1, BYTES, t));
    GIVES(cudaStreamEndCapture(s, &g), cudaErrorStreamCaptureUnjoined);
    EXPECT(!g);
    CUDA(cudaMemsetAsync(x, 2, BYTES, t));  // usable again
    CUDA(cudaStreamSynchronize(t));
    EXPECT(all(x, 2 * ONES));
}

static void spoiled_by(cudaError_t (*call)(cudaStream_t, cudaEvent_t), cudaError_t error)
{
    cudaStream_t s = new_stream();
    cudaEvent_t e = new_event();
    cudaGraph_t g;
    CUDA(cudaEventRecord(e, new_stream()));
    CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    GIVES(call(s, e), error);
    GIVES(cudaStreamEndCapture(s, &g), cudaErrorStreamCaptureInvalidated);
}

static void graph_unsupported()
{
    static void *p;
    static int number;
    typedef cudaStream_t S;
    typedef cudaEvent_t E;
    const cudaError_t no = cudaErrorStreamCaptureUnsupported;
    spoiled_by([](S, E) { return cudaMalloc(&p, 4); }, no);
    spoiled_by([](S, E) { return cudaMallocHost(&p, 4); }, no);
    spoiled_by([](S, E) { return cudaMemcpy(&p, &p, 4, cudaMemcpyHostToHost); }, no);
    spoiled_by([](S s, E) { return cudaStreamSynchronize(s); }, no);
    spoiled_by([](S s, E) { return cudaStreamQuery(s); }, no);
    spoiled_by([](S, E e) { return cudaEventSynchronize(e); }, no);
    spoiled_by([](S, E e) { return cudaEventQuery(e); }, no);
    spoiled_by([](S, E) { return cudaDeviceSynchronize(); }, no);
    spoiled_by([](S s, E e) { return cudaStreamWaitEvent(s, e); }, cudaErrorStreamCaptureIsolation);
    cudaStream_t s = new_stream();
    cudaGraph_t g;
    CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    CUDA(cudaMalloc(&p, 4));
    CUDA(cudaStreamEndCapture(s, &g));
    CUDA(cudaGetDevice(&number));
}

const Case stream_cases[] = {
    {"stream-asynchronous", asynchronous},
    {"stream-in-order", in_order},
    {"stream-in-order-shaken", in_order, 0, nullptr, "CUDASIM_SHAKE=100"},
    {"stream-concurrent", concurrent},
    {"stream-legacy", legacy_stream},
    {"stream-host-function", host_function},
    {"event", events},
    {"event-shaken", events, 0, nullptr, "CUDASIM_SHAKE=200"},
    {"event-wait-dropped", dropped_wait, 0, "cudaStreamWaitEvent 1 is dropped",
     "CUDASIM_DROP_WAIT=1"},
    {"event-never-recorded", event_never_recorded},
    {"event-recorded-again", event_again},
    {"event-times", event_times},
    {"handles", handles},
    {"device-properties", properties, 0, nullptr, "CUDASIM_DEVICES=3"},
    {"device-none", no_device, 0, nullptr, "CUDASIM_DEVICES=0"},
    {"copy-only-pinned", only_pinned, 0, "memory that is not pinned"},
    {"copy-overrun", copy_overrun, DIES, "4000 bytes at offset 0 of an allocation of 3996"},
    {"words-between-processes", words},
    {"watchdog", hang, HANGS, "event wait 0 (operation 1 of stream 1) waits for event record 0"},
    {"watchdog-says-host", hang, HANGS, "host: cudaStreamSynchronize waits for event wait 0"},
    {"watchdog-says-word", hang, HANGS, "waits for a word >= 1, it is 0"},
    {"graph", graph},
    {"graph-shaken", graph, 0, nullptr, "CUDASIM_SHAKE=200"},
    {"graph-concurrent", graph_concurrent},
    {"graph-unjoined", graph_unjoined},
    {"graph-unsupported", graph_unsupported},
    {},
};
