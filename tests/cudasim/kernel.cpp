/* kernel.cpp: launches. A launch is checked as the driver checks it, then
 * becomes an operation that runs the grid (fiber.cpp).
 */
#include "sim.h"
#include <stdio.h>

namespace sim
{

struct Kernel {
    std::string name;
    CudasimUnpack unpack = nullptr;
    int dynamic_limit = 48 << 10;
    size_t known_then = 0;  // kernels, when the arrays were looked up
    std::shared_ptr<const std::vector<Range>> shared;
};

static std::mutex kernel_mutex;
static std::map<uintptr_t, Kernel> &kernels = *new std::map<uintptr_t, Kernel>;

static Kernel *know(uintptr_t address)
{
    Kernel *kernel = &kernels[address];
    if (kernel->name.empty())
        kernel->name = symbol_name(address);
    if (kernel->known_then != kernels.size()) {
        std::vector<uintptr_t> all;
        for (auto &[other, ignored] : kernels)
            all.push_back(other);
        kernel->shared = std::make_shared<std::vector<Range>>(shared_arrays(address, all));
        kernel->known_then = kernels.size();
    }
    return kernel;
}

static const char *wrong_shape(const cudaLaunchConfig_t *c)
{
    dim3 g = c->gridDim, b = c->blockDim;
    if (!g.x || !g.y || !g.z || !b.x || !b.y || !b.z)
        return "an extent is 0";
    if ((uint64_t)b.x * b.y * b.z > THREADS_MOST || b.x > THREADS_MOST || b.y > THREADS_MOST ||
        b.z > 64)
        return "a block has at most 1024 threads";
    if (g.x > 2147483647u || g.y > 65535 || g.z > 65535)
        return "a grid has at most 2^31-1 x 65535 x 65535 blocks";
    return nullptr;
}

static cudaError_t refuse(const Kernel *kernel, const cudaLaunchConfig_t *c)
{
    dim3 g = c->gridDim, b = c->blockDim;
    if (const char *why = wrong_shape(c))
        return misuse(cudaErrorInvalidConfiguration,
                      "launch of %s, grid (%u %u %u), block (%u %u %u): %s", kernel->name.c_str(),
                      g.x, g.y, g.z, b.x, b.y, b.z, why);
    if (c->dynamicSmemBytes > (size_t)kernel->dynamic_limit)
        return misuse(cudaErrorInvalidValue,
                      "launch of %s with %zu bytes of dynamic shared memory, %d are allowed",
                      kernel->name.c_str(), c->dynamicSmemBytes, kernel->dynamic_limit);
    if (c->numAttrs)
        return misuse(cudaErrorNotSupported, "launch of %s: attributes are not simulated",
                      kernel->name.c_str());
    std::lock_guard lock(world);
    CUstream_st *s = find_stream(c->stream);
    if (s && s->device != current_device)
        return misuse(cudaErrorInvalidResourceHandle,
                      "launch of %s on a stream of device %d, the current device is %d",
                      kernel->name.c_str(), s->device, current_device);
    return cudaSuccess;
}

}  // namespace sim

using namespace sim;

void cudasim_know(void (*kernel)(), CudasimUnpack unpack)
{
    std::lock_guard lock(kernel_mutex);
    kernels[(uintptr_t)kernel].unpack = unpack;
}

cudaError_t cudasim_launch(const cudaLaunchConfig_t *config, void (*kernel)(), CudasimBody body)
{
    if (!devices())
        return note(cudaErrorNoDevice);
    std::unique_lock lock(kernel_mutex);
    Kernel *known = know((uintptr_t)kernel);
    if (cudaError_t error = refuse(known, config))
        return error;
    Grid grid = {known->name,   config->gridDim, config->blockDim, config->dynamicSmemBytes,
                 known->shared, std::move(body)};
    std::string name = known->name;
    lock.unlock();
    return submit("cudaLaunchKernelEx", config->stream,
                  {"kernel", std::move(name), [grid] { run_grid(&grid); }});
}

extern "C" cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func,
                                           void **args)
{
    kernel_mutex.lock();
    CudasimUnpack unpack = kernels[(uintptr_t)func].unpack;
    kernel_mutex.unlock();
    if (!unpack)
        return misuse(cudaErrorInvalidDeviceFunction,
                      "cudaLaunchKernelExC of %s: its parameters are not known before it has "
                      "been in a cudaLaunchKernelEx or cudaFuncSetAttribute",
                      symbol_name((uintptr_t)func).c_str());
    void (*kernel)() = (void (*)())func;
    return cudasim_launch(config, kernel, unpack(kernel, args));
}

extern "C" cudaError_t cudaFuncSetAttribute(const void *func, cudaFuncAttribute attr, int value)
{
    std::lock_guard lock(kernel_mutex);
    Kernel *kernel = know((uintptr_t)func);
    if (attr == cudaFuncAttributePreferredSharedMemoryCarveout)
        return cudaSuccess;
    if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > DYNAMIC_MOST)
        return misuse(cudaErrorInvalidValue, "cudaFuncSetAttribute of %s: %d", kernel->name.c_str(),
                      value);
    kernel->dynamic_limit = value;
    return cudaSuccess;
}
