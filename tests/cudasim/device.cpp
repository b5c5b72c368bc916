/* device.cpp: what the simulated devices say about themselves, and the driver's
 * stream memory operations, which wait for and write words that any process may
 * share.
 *
 * CUDASIM_DEVICES says how many there are (1); the figures are an H100's where
 * kernels depend on them (shared memory, threads), round ones elsewhere.
 */
#include "cuda.h"
#include "sim.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace sim
{

constinit thread_local int current_device = 0;

int devices()
{
    static const int count = (int)setting("CUDASIM_DEVICES", 1);
    return count < 0 ? 0 : count;
}

static bool word_is(const volatile uint32_t *word, uint32_t value, unsigned how)
{
    uint32_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    switch (how & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ: return (int32_t)(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return now == value;
    case CU_STREAM_WAIT_VALUE_AND: return (now & value) != 0;
    }
    return ~(now | value) != 0;
}

static void await_word(const volatile uint32_t *word, uint32_t value, unsigned how)
{
    static const char *const sign[] = {">=", "==", "&", "nor"};
    for (int i = 0; !word_is(word, value, how); i++) {
        if (i >= 200 && i % 1000 == 0)
            doing("waits for a word %s %u, it is %u", sign[how & 3], value, *word);
        usleep(i < 50 ? 0 : i < 200 ? 10 : 100);
    }
}

static bool bad_word(const char *call, CUdeviceptr address)
{
    Allocation a;
    if (address % 4 == 0 && reachable((void *)(uintptr_t)address, 4, &a))
        return false;
    fprintf(stderr, "cudasim: %s: no device can reach address %p\n", call,
            (void *)(uintptr_t)address);
    return true;
}

}  // namespace sim

using namespace sim;

extern "C" CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                        unsigned flags)
{
    if (bad_word("cuStreamWaitValue32", addr))
        return CUDA_ERROR_INVALID_VALUE;
    auto word = (volatile uint32_t *)(uintptr_t)addr;
    return (CUresult)submit(
        "cuStreamWaitValue32", stream,
        {"word wait", std::to_string(value), [=] { await_word(word, value, flags); }});
}

extern "C" CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                         unsigned flags)
{
    if (bad_word("cuStreamWriteValue32", addr) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    auto word = (volatile uint32_t *)(uintptr_t)addr;
    return (CUresult)submit("cuStreamWriteValue32", stream,
                            {"word write", std::to_string(value),
                             [=] { __atomic_store_n(word, value, __ATOMIC_RELEASE); }});
}

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr,
                                                        unsigned, unsigned long long,
                                                        cudaDriverEntryPointQueryResult *status)
{
    *funcPtr = !strcmp(symbol, "cuStreamWaitValue32")    ? (void *)cuStreamWaitValue32
               : !strcmp(symbol, "cuStreamWriteValue32") ? (void *)cuStreamWriteValue32
                                                         : nullptr;
    if (status)
        *status = *funcPtr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return *funcPtr || status ? cudaSuccess : note(cudaErrorSymbolNotFound);
}

extern "C" cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **funcPtr,
                                               unsigned long long flags,
                                               cudaDriverEntryPointQueryResult *status)
{
    return cudaGetDriverEntryPointByVersion(symbol, funcPtr, 0, flags, status);
}

extern "C" cudaError_t cudaGetDeviceCount(int *count)
{
    *count = devices();
    return *count ? cudaSuccess : note(cudaErrorNoDevice);
}

extern "C" cudaError_t cudaSetDevice(int device)
{
    if (!devices())
        return note(cudaErrorNoDevice);
    if (device < 0 || device >= devices())
        return note(cudaErrorInvalidDevice);
    current_device = device;
    return cudaSuccess;
}

extern "C" cudaError_t cudaGetDevice(int *device)
{
    *device = current_device;
    return devices() ? cudaSuccess : note(cudaErrorNoDevice);
}

extern "C" cudaError_t cudaDriverGetVersion(int *driverVersion)
{
    *driverVersion = devices() ? CUDART_VERSION : 0;
    return cudaSuccess;
}

extern "C" cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
    *runtimeVersion = CUDART_VERSION;
    return cudaSuccess;
}

extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device)
{
    if (!devices())
        return note(cudaErrorNoDevice);
    if (device < 0 || device >= devices())
        return note(cudaErrorInvalidDevice);
    size_t free;
    *prop = {};
    strcpy(prop->name, "cudasim");
    cudaMemGetInfo(&free, &prop->totalGlobalMem);
    prop->sharedMemPerBlock = 48 << 10;
    prop->sharedMemPerBlockOptin = DYNAMIC_MOST;
    prop->sharedMemPerMultiprocessor = 228 << 10;
    prop->regsPerBlock = prop->regsPerMultiprocessor = 65536;
    prop->warpSize = LANES;
    prop->maxThreadsPerBlock = THREADS_MOST;
    prop->maxThreadsDim[0] = prop->maxThreadsDim[1] = THREADS_MOST;
    prop->maxThreadsDim[2] = 64;
    prop->maxGridSize[0] = 2147483647;
    prop->maxGridSize[1] = prop->maxGridSize[2] = 65535;
    prop->major = 9;
    prop->multiProcessorCount = 4;
    prop->canMapHostMemory = prop->concurrentKernels = prop->unifiedAddressing = 1;
    prop->hostRegisterSupported = 1;
    prop->pciBusID = device + 1;
    prop->asyncEngineCount = 3;
    prop->memoryBusWidth = 5120;
    prop->l2CacheSize = 50 << 20;
    prop->maxThreadsPerMultiProcessor = 2048;
    return cudaSuccess;
}

extern "C" cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int device)
{
    cudaDeviceProp p;
    if (cudaError_t error = cudaGetDeviceProperties(&p, device))
        return error;
    switch (attr) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)p.sharedMemPerBlock; break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrClockRate: *value = 1000000; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrIntegrated: *value = p.integrated; break;
    case cudaDevAttrCanMapHostMemory: *value = p.canMapHostMemory; break;
    case cudaDevAttrComputeMode: *value = 0; break;
    case cudaDevAttrConcurrentKernels: *value = p.concurrentKernels; break;
    case cudaDevAttrPciBusId: *value = p.pciBusID; break;
    case cudaDevAttrPciDeviceId: *value = p.pciDeviceID; break;
    case cudaDevAttrPciDomainId: *value = p.pciDomainID; break;
    case cudaDevAttrMemoryClockRate: *value = 1000000; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = p.memoryBusWidth; break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrAsyncEngineCount: *value = p.asyncEngineCount; break;
    case cudaDevAttrUnifiedAddressing: *value = p.unifiedAddressing; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = (int)p.sharedMemPerMultiprocessor;
        break;
    case cudaDevAttrCooperativeLaunch: *value = p.cooperativeLaunch; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)p.sharedMemPerBlockOptin; break;
    case cudaDevAttrHostRegisterSupported: *value = p.hostRegisterSupported; break;
    default: return note(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}
