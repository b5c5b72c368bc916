/* cuda_runtime.h: the part of the CUDA runtime that pipec calls, simulated.
 *
 * Stands before the toolkit's header of the same name (-Itests/cudasim) so that
 * the same sources compile with the host compiler. Names, signatures and values
 * are the toolkit's (13.0); only what is used is here, so a call that is not
 * simulated does not compile. What each call does here: README.
 */
#ifndef CUDASIM_CUDA_RUNTIME_H
#define CUDASIM_CUDA_RUNTIME_H

#include "vector_types.h"
#include <functional>
#include <stddef.h>
#include <tuple>
#include <type_traits>
#include <utility>

#define CUDART_VERSION 13000
#define CUDARTAPI
#define CUDART_CB

// clang-format off
#define CUDASIM_ERRORS(X)                                                             \
    X(cudaSuccess, 0, "no error")                                                     \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                   \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                  \
    X(cudaErrorInitializationError, 3, "initialization error")                        \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")             \
    X(cudaErrorInvalidHostPointer, 16, "invalid host pointer")                        \
    X(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                    \
    X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")       \
    X(cudaErrorInsufficientDriver, 35,                                                \
      "CUDA driver version is insufficient for CUDA runtime version")                 \
    X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                  \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                   \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                          \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                 \
    X(cudaErrorIllegalState, 401,                                                     \
      "the operation cannot be performed in the present state")                       \
    X(cudaErrorSymbolNotFound, 500, "named symbol not found")                         \
    X(cudaErrorNotReady, 600, "device not ready")                                     \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")       \
    X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")  \
    X(cudaErrorHostMemoryAlreadyRegistered, 712,                                      \
      "part or all of the requested memory range is already mapped")                  \
    X(cudaErrorHostMemoryNotRegistered, 713,                                          \
      "pointer does not correspond to a registered memory region")                    \
    X(cudaErrorMisalignedAddress, 716, "misaligned address")                          \
    X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                      \
    X(cudaErrorNotPermitted, 800, "operation not permitted")                          \
    X(cudaErrorNotSupported, 801, "operation not supported")                          \
    X(cudaErrorStreamCaptureUnsupported, 900,                                         \
      "operation not permitted when stream is capturing")                             \
    X(cudaErrorStreamCaptureInvalidated, 901,                                         \
      "operation failed due to a previous error during capture")                      \
    X(cudaErrorStreamCaptureMerge, 902,                                               \
      "operation would result in a merge of separate capture sequences")              \
    X(cudaErrorStreamCaptureUnmatched, 903,                                           \
      "capture was not ended in the same stream as it began")                         \
    X(cudaErrorStreamCaptureUnjoined, 904,                                            \
      "capturing stream has unjoined work")                                           \
    X(cudaErrorStreamCaptureIsolation, 905,                                           \
      "dependency created on uncaptured work in another stream")                      \
    X(cudaErrorStreamCaptureImplicit, 906,                                            \
      "operation would make the legacy stream depend on a capturing blocking stream") \
    X(cudaErrorCapturedEvent, 907,                                                    \
      "operation not permitted on an event last recorded in a capturing stream")      \
    X(cudaErrorStreamCaptureWrongThread, 908,                                         \
      "attempt to terminate a thread-local capture sequence from another thread")     \
    X(cudaErrorUnknown, 999, "unknown error")

enum cudaError {
#define X(name, value, text) name = value,
    CUDASIM_ERRORS(X)
#undef X
};
// clang-format on
typedef enum cudaError cudaError_t;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef void (*cudaHostFn_t)(void *userData);

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0,
    cudaStreamCaptureStatusActive = 1,
    cudaStreamCaptureStatusInvalidated = 2
};

enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaStreamCaptureModeRelaxed = 2
};

enum cudaDriverEntryPointQueryResult {
    cudaDriverEntryPointSuccess = 0,
    cudaDriverEntryPointSymbolNotFound = 1,
    cudaDriverEntryPointVersionNotSufficent = 2
};

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrIntegrated = 18,
    cudaDevAttrCanMapHostMemory = 19,
    cudaDevAttrComputeMode = 20,
    cudaDevAttrConcurrentKernels = 31,
    cudaDevAttrPciBusId = 33,
    cudaDevAttrPciDeviceId = 34,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrAsyncEngineCount = 40,
    cudaDevAttrUnifiedAddressing = 41,
    cudaDevAttrPciDomainId = 50,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrHostRegisterSupported = 99
};

#define cudaHostAllocDefault 0x00
#define cudaHostAllocPortable 0x01
#define cudaHostAllocMapped 0x02
#define cudaHostAllocWriteCombined 0x04
#define cudaHostRegisterDefault 0x00
#define cudaHostRegisterPortable 0x01
#define cudaHostRegisterMapped 0x02
#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaEventWaitDefault 0x00
#define cudaEnableDefault 0x0

typedef struct CUuuid_st {
    char bytes[16];
} cudaUUID_t;

struct cudaDeviceProp {  // the fields that somebody reads, in the toolkit's order
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    int major;
    int minor;
    int multiProcessorCount;
    int integrated;
    int canMapHostMemory;
    int concurrentKernels;
    int pciBusID;
    int pciDeviceID;
    int pciDomainID;
    int asyncEngineCount;
    int unifiedAddressing;
    int memoryBusWidth;
    int l2CacheSize;
    int maxThreadsPerMultiProcessor;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor;
    int cooperativeLaunch;
    size_t sharedMemPerBlockOptin;
    int hostRegisterSupported;
};

enum cudaLaunchAttributeID { cudaLaunchAttributeIgnore = 0 };
typedef struct cudaLaunchAttribute_st {
    cudaLaunchAttributeID id;
} cudaLaunchAttribute;

typedef struct cudaLaunchConfig_st {
    dim3 gridDim;
    dim3 blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned int numAttrs;
} cudaLaunchConfig_t;

extern "C" {
/* device */
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDriverGetVersion(int *driverVersion);
cudaError_t cudaRuntimeGetVersion(int *runtimeVersion);
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr,
                                             unsigned int cudaVersion, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status = NULL);
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status = NULL);

/* errors */
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);

/* memory */
cudaError_t cudaMalloc(void **devPtr, size_t size);
cudaError_t cudaFree(void *devPtr);
cudaError_t cudaMallocHost(void **ptr, size_t size);
cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags);
cudaError_t cudaFreeHost(void *ptr);
cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags);
cudaError_t cudaHostUnregister(void *ptr);
cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                            cudaStream_t stream = 0);
cudaError_t cudaMemset(void *devPtr, int value, size_t count);
cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream = 0);

/* streams and events */
cudaError_t cudaStreamCreate(cudaStream_t *pStream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags = 0);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = 0);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

/* graphs */
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec);

/* kernels */
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args);
cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value);
}

template <class T> cudaError_t cudaMalloc(T **devPtr, size_t size)
{
    return cudaMalloc((void **)devPtr, size);
}

template <class T> cudaError_t cudaMallocHost(T **ptr, size_t size, unsigned flags = 0)
{
    return cudaHostAlloc((void **)ptr, size, flags);
}

template <class T> cudaError_t cudaHostAlloc(T **ptr, size_t size, unsigned flags)
{
    return cudaHostAlloc((void **)ptr, size, flags);
}

template <class T> cudaError_t cudaHostGetDevicePointer(T **pDevice, void *pHost, unsigned flags)
{
    return cudaHostGetDevicePointer((void **)pDevice, pHost, flags);
}

inline cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned int flags)
{
    return cudaEventCreateWithFlags(event, flags);
}

/* ---- launching: the arguments are copied at the call, as by the real one ---- */

typedef std::function<void()> CudasimBody;                  // what one thread does
typedef CudasimBody (*CudasimUnpack)(void (*)(), void **);  // from the array of ExC

cudaError_t cudasim_launch(const cudaLaunchConfig_t *config, void (*kernel)(), CudasimBody body);
void cudasim_know(void (*kernel)(), CudasimUnpack unpack);  // its parameters, for ExC

template <class... P, size_t... I>
CudasimBody cudasim_unpack(void (*kernel)(P...), void **args, std::index_sequence<I...>)
{
    (void)args;  // of a kernel without parameters
    std::tuple<std::remove_cv_t<P>...> kept(*(std::remove_cv_t<P> *)args[I]...);
    return [kernel, kept] { std::apply(kernel, kept); };
}

template <class... P> void cudasim_know(void (*kernel)(P...))
{
    cudasim_know((void (*)())kernel, [](void (*known)(), void **args) {
        return cudasim_unpack((void (*)(P...))known, args, std::index_sequence_for<P...>());
    });
}

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...), A &&...args)
{
    static_assert(sizeof...(P) == sizeof...(A), "a kernel is launched with all its arguments");
    cudasim_know(kernel);
    std::tuple<std::remove_cv_t<P>...> kept(static_cast<P>(std::forward<A>(args))...);
    return cudasim_launch(config, (void (*)())kernel, [kernel, kept] { std::apply(kernel, kept); });
}

template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), enum cudaFuncAttribute attr, int value)
{
    cudasim_know(kernel);
    return cudaFuncSetAttribute((const void *)kernel, attr, value);
}

#include "cudasim_device.h"

#endif
