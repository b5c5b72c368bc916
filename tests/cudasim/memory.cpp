/* memory.cpp: device and pinned memory.
 *
 * Every allocation has pages of its own between two guard pages and ends as
 * close to the second as CUDA's alignment of 256 allows; the gaps that are left
 * are filled and looked at after every operation.
 *
 *     | guard | gap    base ........ bytes | slack | guard |
 *              < 4096  ^ 256-aligned         < 256
 *
 * Fresh memory holds 0x7ff97ff9, a NaN as float, as double and as bf16, so that
 * whatever is used before it is written shows. The pages are readable by the
 * host too (threads share a process): that the host keeps off device memory is
 * checked in copies only.
 */
#include "sim.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

namespace sim
{

enum : size_t { PAGE = 4096, ALIGNMENT = 256, DEVICE_TOTAL = (size_t)16 << 30 };

static std::recursive_mutex memory_mutex;       // recursive: a fault may come in the middle
static std::map<uintptr_t, Allocation> memory;  // by base
static size_t device_used;

void fill_pattern(void *to, size_t bytes)
{
    uint64_t pattern = (uint64_t)PATTERN << 32 | PATTERN;
    char *at = (char *)to;
    for (; bytes >= 8; at += 8, bytes -= 8)
        memcpy(at, &pattern, 8);
    memcpy(at, &pattern, bytes);
}

static bool untouched(const char *at, size_t bytes)
{
    uint64_t pattern = (uint64_t)PATTERN << 32 | PATTERN;
    for (; bytes >= 8; at += 8, bytes -= 8)
        if (memcmp(at, &pattern, 8))
            return false;
    return !memcmp(at, &pattern, bytes);
}

void check_slack()
{
    std::lock_guard lock(memory_mutex);
    for (auto &[base, a] : memory) {
        if (!a.map)
            continue;
        const char *first = a.map + PAGE, *last = (const char *)base + a.bytes;
        bool before = untouched(first, (size_t)((const char *)base - first));
        if (!before || !untouched(last, a.slack))
            die("out of bounds: something wrote %s the allocation of %zu bytes at %p",
                before ? "behind" : "before", a.bytes, (void *)base);
    }
}

static bool allocate(size_t bytes, MemoryKind kind, void **to)
{
    size_t inside = (bytes + PAGE - 1) / PAGE * PAGE;
    Allocation a = {};
    a.map_bytes = inside + 2 * PAGE;
    a.map = (char *)mmap(NULL, a.map_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (a.map == MAP_FAILED)
        return false;
    uintptr_t end = (uintptr_t)a.map + PAGE + inside;
    a.base = (end - bytes) / ALIGNMENT * ALIGNMENT;
    a.bytes = bytes;
    a.kind = kind;
    a.device = current_device;
    a.slack = end - a.base - bytes;
    fill_pattern(a.map + PAGE, inside);
    mprotect(a.map, PAGE, PROT_NONE);
    mprotect((void *)end, PAGE, PROT_NONE);
    *to = (void *)a.base;
    std::lock_guard lock(memory_mutex);
    memory[a.base] = a;
    return true;
}

bool find_allocation(const void *pointer, Allocation *found)
{
    std::lock_guard lock(memory_mutex);
    auto after = memory.upper_bound((uintptr_t)pointer);
    if (after == memory.begin())
        return false;
    *found = std::prev(after)->second;
    return (uintptr_t)pointer < found->base + found->bytes;
}

bool reachable(const void *pointer, size_t bytes, Allocation *found)
{
    return find_allocation(pointer, found) &&
           bytes <= found->base + found->bytes - (uintptr_t)pointer;
}

static const char *const kind_name[] = {"device", "pinned", "registered"};

void check_range(const char *what, const void *pointer, size_t bytes)
{
    Allocation a;
    if (!bytes || reachable(pointer, bytes, &a))
        return;
    if (find_allocation(pointer, &a))
        die("out of bounds: %s: %zu bytes at offset %zu of an allocation of %zu (%s)", what, bytes,
            (size_t)((uintptr_t)pointer - a.base), a.bytes, kind_name[a.kind]);
    char text[256];
    describe_address(text, sizeof text, (uintptr_t)pointer);
    die("out of bounds: %s: %zu bytes at %p, %s", what, bytes, pointer,
        *text ? text : "which no device can reach");
}

void describe_address(char *to, size_t size, uintptr_t address)
{
    *to = 0;
    std::lock_guard lock(memory_mutex);
    for (auto &[base, a] : memory) {
        if (!a.map || address < (uintptr_t)a.map || address >= (uintptr_t)a.map + a.map_bytes)
            continue;
        if (address < base)
            snprintf(to, size, "%zu bytes before an allocation of %zu (%s)",
                     (size_t)(base - address), a.bytes, kind_name[a.kind]);
        else
            snprintf(to, size, "%zu bytes after an allocation of %zu (%s)",
                     (size_t)(address - base - a.bytes), a.bytes, kind_name[a.kind]);
    }
}

/* The device finishes first, as with the real calls. */
static cudaError_t release(const char *call, void *pointer, bool device)
{
    if (cudaError_t error = may_block(call))
        return note(error);
    if (!pointer)
        return cudaSuccess;
    synchronize_device(current_device, call);
    check_slack();
    std::lock_guard lock(memory_mutex);
    auto at = memory.find((uintptr_t)pointer);
    if (at == memory.end() || (at->second.kind == DEVICE_MEMORY) != device ||
        at->second.kind == REGISTERED_MEMORY)
        return misuse(cudaErrorInvalidValue, "%s of %p, which is no such allocation", call,
                      pointer);
    if (device)
        device_used -= at->second.bytes;
    /* The addresses stay reserved, so that a use after the release is a fault. */
    mmap(at->second.map, at->second.map_bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    memory.erase(at);
    return cudaSuccess;
}

}  // namespace sim

using namespace sim;

extern "C" void cudasim_check(const void *pointer, size_t bytes)
{
    check_range("cudasim_check", pointer, bytes);
}

extern "C" cudaError_t cudaMalloc(void **devPtr, size_t size)
{
    if (!devices())
        return note(cudaErrorNoDevice);
    if (cudaError_t error = may_block("cudaMalloc"))
        return note(error);
    *devPtr = NULL;
    if (!size)
        return cudaSuccess;
    catch_faults();
    std::lock_guard lock(memory_mutex);
    if (device_used + size > DEVICE_TOTAL || !allocate(size, DEVICE_MEMORY, devPtr))
        return note(cudaErrorMemoryAllocation);
    device_used += size;
    return cudaSuccess;
}

extern "C" cudaError_t cudaFree(void *devPtr)
{
    return release("cudaFree", devPtr, true);
}

extern "C" cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned)
{
    if (!devices())
        return note(cudaErrorNoDevice);
    if (cudaError_t error = may_block("cudaHostAlloc"))
        return note(error);
    catch_faults();
    *pHost = NULL;
    if (size && !allocate(size, PINNED_MEMORY, pHost))
        return note(cudaErrorMemoryAllocation);
    return cudaSuccess;
}

extern "C" cudaError_t cudaMallocHost(void **ptr, size_t size)
{
    return cudaHostAlloc(ptr, size, cudaHostAllocDefault);
}

extern "C" cudaError_t cudaFreeHost(void *ptr)
{
    return release("cudaFreeHost", ptr, false);
}

extern "C" cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned)
{
    if (!devices())
        return note(cudaErrorNoDevice);
    if (cudaError_t error = may_block("cudaHostRegister"))
        return note(error);
    if (!ptr || !size)
        return note(cudaErrorInvalidValue);
    std::lock_guard lock(memory_mutex);
    for (auto &[base, a] : memory)
        if (base < (uintptr_t)ptr + size && (uintptr_t)ptr < base + a.bytes)
            return note(cudaErrorHostMemoryAlreadyRegistered);
    memory[(uintptr_t)ptr] = {(uintptr_t)ptr, size, REGISTERED_MEMORY, current_device, NULL, 0, 0};
    return cudaSuccess;
}

extern "C" cudaError_t cudaHostUnregister(void *ptr)
{
    if (cudaError_t error = may_block("cudaHostUnregister"))
        return note(error);
    synchronize_device(current_device, "cudaHostUnregister");
    std::lock_guard lock(memory_mutex);
    auto at = memory.find((uintptr_t)ptr);
    if (at == memory.end() || at->second.kind != REGISTERED_MEMORY)
        return note(cudaErrorHostMemoryNotRegistered);
    memory.erase(at);
    return cudaSuccess;
}

extern "C" cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned)
{
    Allocation a;
    if (!find_allocation(pHost, &a) || a.kind == DEVICE_MEMORY)
        return note(cudaErrorInvalidValue);
    *pDevice = pHost;
    return cudaSuccess;
}

extern "C" cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    if (!devices())
        return note(cudaErrorNoDevice);
    std::lock_guard lock(memory_mutex);
    *total = DEVICE_TOTAL;
    *free = DEVICE_TOTAL - device_used;
    return cudaSuccess;
}

/* ---- copies ---- */

/* Which side of a copy is the device's: from the addresses, then compared with
 * what the caller says. */
static cudaError_t judge(const char *call, const void *dst, const void *src, size_t count,
                         cudaMemcpyKind kind, bool async, bool *between_devices)
{
    Allocation to, from;
    bool to_known = find_allocation(dst, &to), from_known = find_allocation(src, &from);
    bool to_device = to_known && to.kind == DEVICE_MEMORY;
    bool from_device = from_known && from.kind == DEVICE_MEMORY;
    *between_devices = to_device && from_device;
    if (to_known)
        check_range(call, dst, count);
    if (from_known)
        check_range(call, src, count);
    if (async && (!to_known || !from_known))
        return misuse(cudaErrorInvalidValue, "%s of %zu bytes %s memory that is not pinned", call,
                      count, to_known ? "from" : "to");
    bool says_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool says_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind != cudaMemcpyDefault && (says_to != to_device || says_from != from_device))
        return misuse(cudaErrorInvalidValue, "%s: kind %d, but it copies from %s to %s memory",
                      call, (int)kind, from_device ? "device" : "host",
                      to_device ? "device" : "host");
    return cudaSuccess;
}

static Work copy(void *dst, const void *src, size_t count)
{
    return {"copy", std::to_string(count) + " bytes", [=] { memmove(dst, src, count); }};
}

extern "C" cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
                                       cudaMemcpyKind kind, cudaStream_t stream)
{
    bool ignored;
    if (!count)
        return cudaSuccess;
    if (cudaError_t error = judge("cudaMemcpyAsync", dst, src, count, kind, true, &ignored))
        return error;
    return submit("cudaMemcpyAsync", stream, copy(dst, src, count));
}

extern "C" cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, cudaMemcpyKind kind)
{
    bool between_devices;
    if (cudaError_t error = may_block("cudaMemcpy"))
        return note(error);
    if (!count)
        return cudaSuccess;
    if (cudaError_t error = judge("cudaMemcpy", dst, src, count, kind, false, &between_devices))
        return error;
    if (between_devices)  // the real one returns early too
        return submit("cudaMemcpy", 0, copy(dst, src, count));
    return synchronous("cudaMemcpy", copy(dst, src, count));
}

extern "C" cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
    check_range("cudaMemsetAsync", devPtr, count);
    return submit("cudaMemsetAsync", stream, {"memset", std::to_string(count) + " bytes", [=] {
                                                  memset(devPtr, value, count);
                                              }});
}

extern "C" cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
    if (cudaError_t error = may_block("cudaMemset"))
        return note(error);
    return cudaMemsetAsync(devPtr, value, count, 0);
}
