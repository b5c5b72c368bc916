/* report.cpp: how the simulator speaks: errors, deaths, the watchdog.
 *
 * Whatever a GPU would answer with silence (wrong numbers, a hang) is a report
 * here and ends the process: by SIGABRT, or with status 86 when nothing moved
 * for CUDASIM_WATCHDOG seconds.
 */
#include "sim.h"
#include <algorithm>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

namespace sim
{

void (*clean_up)() = nullptr;
static thread_local cudaError_t last_error = cudaSuccess;

long setting(const char *name, long fallback)
{
    const char *text = getenv(name);
    return text && *text ? atol(text) : fallback;
}

double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- errors ---- */

cudaError_t note(cudaError_t error)
{
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

cudaError_t misuse(cudaError_t error, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "cudasim: %s: %s\n", text, cudaGetErrorName(error));
    return note(error);
}

void leave(int status)
{
    if (clean_up)
        clean_up();
    fflush(NULL);
    if (status)
        _exit(status);
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void where(char *to, size_t size)
{
    if (!running) {
        snprintf(to, size, "on the host");
        return;
    }
    int n = snprintf(to, size, "in %s %s on stream %d", running->kind, running->name.c_str(),
                     serving ? serving->id : 0);
    if (std::string(running->kind) == "kernel" && n > 0 && (size_t)n < size)
        snprintf(to + n, size - (size_t)n, ", block (%u %u %u), thread (%u %u %u)", blockIdx.x,
                 blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
}

void die(const char *format, ...)
{
    static std::mutex one;
    one.lock();  // for ever: the first report is the one to read
    char text[1024], place[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    where(place, sizeof place);
    fprintf(stderr, "cudasim: %s\ncudasim:     %s\n", text, place);
    leave(0);
}

/* ---- faults: a guard page was touched ---- */

static void fault(int number, siginfo_t *info, void *)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    char text[256];
    if (number == SIGBUS)
        die("bus error at %p: /dev/shm may be full", info->si_addr);
    if (!at && info->si_code == SI_KERNEL)
        die("misaligned vector access, or an address that no machine has");
    if (in_fiber_stack_guard(at))
        die("a kernel's thread overran its stack");
    describe_address(text, sizeof text, at);
    if (!running && !*text) {  // no business of ours
        signal(SIGSEGV, SIG_DFL);
        return;
    }
    die("out of bounds: address %p%s%s", info->si_addr, *text ? ", " : "", text);
}

void catch_faults()
{
    static std::once_flag once;
    stack_t stack = {};
    stack.ss_size = 1 << 16;
    stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                       0);
    sigaltstack(&stack, NULL);
    std::call_once(once, [] {
        struct sigaction action = {};
        action.sa_sigaction = fault;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigaction(SIGSEGV, &action, NULL);
        sigaction(SIGBUS, &action, NULL);
    });
}

/* ---- the watchdog ---- */

static std::mutex host_mutex;
static std::vector<HostWait *> host_waits;

HostWait::HostWait(std::string text) : what(std::move(text))
{
    std::lock_guard lock(host_mutex);
    host_waits.push_back(this);
}

HostWait::~HostWait()
{
    std::lock_guard lock(host_mutex);
    host_waits.erase(std::find(host_waits.begin(), host_waits.end(), this));
}

void HostWait::say(std::string text)
{
    std::lock_guard lock(host_mutex);
    what = std::move(text);
}

static bool somebody_waits()
{
    std::lock_guard lock(host_mutex);
    return pending > 0 || !host_waits.empty();
}

static void watch(long seconds)
{
    long seen = -1;
    double since = now();
    for (;;) {
        usleep(50000);
        if (finished != seen || !somebody_waits()) {
            seen = finished;
            since = now();
        }
        if (now() - since < (double)seconds)
            continue;
        fprintf(stderr, "cudasim: watchdog: nothing has finished for %ld s (process %d)\n", seconds,
                getpid());
        host_mutex.lock();
        for (HostWait *wait : host_waits)
            fprintf(stderr, "cudasim:     host: %s\n", wait->what.c_str());
        describe_streams();
        leave(86);
    }
}

void start_watchdog()
{
    static std::once_flag once;
    long seconds = setting("CUDASIM_WATCHDOG", 20);
    if (seconds > 0)
        std::call_once(once, [seconds] { std::thread(watch, seconds).detach(); });
}

}  // namespace sim

/* ---- the calls ---- */

extern "C" cudaError_t cudaGetLastError(void)
{
    cudaError_t error = sim::last_error;
    sim::last_error = cudaSuccess;
    return error;
}

extern "C" cudaError_t cudaPeekAtLastError(void)
{
    return sim::last_error;
}

extern "C" const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define X(name, value, text)                                                                       \
    case name: return #name;
        CUDASIM_ERRORS(X)
#undef X
    }
    return "unrecognized error code";
}

extern "C" const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
#define X(name, value, text)                                                                       \
    case name: return text;
        CUDASIM_ERRORS(X)
#undef X
    }
    return "unrecognized error code";
}
