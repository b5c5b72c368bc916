/* sim.h: what the files of the simulator share; nobody else includes it.
 *
 * The one idea: everything that CUDA does asynchronously is an Op. A stream is
 * a thread that takes Ops from its queue in order; an Op first waits for other
 * Ops (of events, of graph edges, of a communicator's order), then runs, then
 * is done for ever. An event is a reference to the Op that was recorded last; a
 * captured graph is a list of Ops that are not made yet.
 *
 *     cudaXxxAsync -> submit -> capturing?  Node of a Graph  -> cudaGraphLaunch -> Ops
 *                               else        Op on a queue    -> stream's thread
 */
#ifndef CUDASIM_SIM_H
#define CUDASIM_SIM_H

#include "cuda_runtime.h"
#include "cudasim.h"
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sim
{

/* ---- operations (stream.cpp) ---- */

struct Op;
typedef std::shared_ptr<Op> OpRef;

struct Op {
    const char *kind = "";      // "kernel", "copy", "event wait"
    std::string name;           // of the kernel, of the message
    std::function<void()> run;  // may be empty: then it only orders
    std::vector<OpRef> waits;   // done before this one runs
    CUstream_st *stream = nullptr;
    unsigned long number = 0;  // on its stream, from 1
    double end = 0;            // s, when it was done
    std::atomic<int> done = 0;
};

struct Chain {  // operations that run one after the other, whatever their streams
    OpRef last;
};

struct Work {  // an operation that somebody asks for
    const char *kind;
    std::string name;
    std::function<void()> run;
    std::shared_ptr<Chain> chain = nullptr;
    std::vector<cudaStream_t> with = {};  // others: it waits for them, they for it
};

cudaError_t submit(const char *call, cudaStream_t stream, Work work);
OpRef enqueue(CUstream_st *stream, const char *kind, std::string name, std::function<void()> run,
              std::vector<OpRef> waits);
CUstream_st *new_stream(int device, unsigned flags, bool lane);
CUstream_st *find_stream(cudaStream_t handle);  // NULL: no such stream; 0: the legacy stream
void end_stream(CUstream_st *stream);
void wait_for(const OpRef &op, const char *call);  // the host blocks
void synchronize_device(int device, const char *call);
cudaError_t synchronous(const char *call, Work work);  // on the legacy stream; the host waits
std::string describe(const OpRef &op);
void describe_streams();  // to stderr, for the watchdog
void doing(const char *format, ...) __attribute__((format(printf, 1, 2)));

extern std::mutex world;  // streams, events, captures; never held in a wait
extern constinit thread_local CUstream_st *serving;  // of this thread, NULL on the host's
extern constinit thread_local Op *running;           // what it does
extern std::atomic<long> finished, pending;          // operations of this process

/* ---- capture (graph.cpp) ---- */

struct Node {
    Work work;
    std::vector<int> after;  // nodes
    int lane;                // which captured stream
};

struct Capture {
    std::vector<Node> nodes;
    std::vector<CUstream_st *> streams;  // [lane]; the first is the origin
    std::map<Chain *, int> chains;       // last node of each
    cudaStreamCaptureMode mode;
    std::thread::id thread;
    bool valid = true;
};

cudaError_t may_block(const char *call);  // an error while a capture forbids synchronous calls
cudaError_t capture_work(CUstream_st *stream, Work work);
cudaError_t capture_wait(CUstream_st *stream, CUevent_st *event);
cudaError_t spoil(Capture *capture, cudaError_t error, const char *call);
bool blocks_legacy_stream(const char *call);

/* ---- memory (memory.cpp) ---- */

enum MemoryKind { DEVICE_MEMORY, PINNED_MEMORY, REGISTERED_MEMORY };
enum { PATTERN = 0x7ff97ff9 };  // NaN as float, as double and as two bf16

struct Allocation {
    uintptr_t base;
    size_t bytes;
    MemoryKind kind;
    int device;
    char *map;  // guard page, whole pages, guard page
    size_t map_bytes;
    size_t slack;  // bytes after the last one, up to the guard page
};

bool find_allocation(const void *pointer, Allocation *found);
bool reachable(const void *pointer, size_t bytes, Allocation *found);   // lies in one allocation
void check_range(const char *what, const void *pointer, size_t bytes);  // or dies
void check_slack();  // dies if something wrote behind an allocation
void describe_address(char *to, size_t size, uintptr_t address);
void fill_pattern(void *to, size_t bytes);

/* ---- kernels (kernel.cpp, fiber.cpp, symbols.cpp) ---- */

struct Range {  // in the TLS block of the main program
    size_t at, bytes;
};

struct Grid {          // one launch
    std::string name;  // of the kernel
    dim3 grid, block;
    size_t dynamic;                                    // bytes of shared memory, beyond the static
    std::shared_ptr<const std::vector<Range>> shared;  // static arrays
    CudasimBody body;
};

enum { DYNAMIC_MOST = 227 << 10, RED_ZONE = 256, THREADS_MOST = 1024, LANES = 32 };

void run_grid(const Grid *grid);
bool in_fiber_stack_guard(uintptr_t address);
std::string symbol_name(uintptr_t function);
std::vector<Range> shared_arrays(uintptr_t kernel, const std::vector<uintptr_t> &others);
char *tls_block();  // of this thread and the main program

/* ---- devices and errors (device.cpp, report.cpp) ---- */

int devices();
extern constinit thread_local int current_device;
cudaError_t note(cudaError_t error);  // keeps it for cudaGetLastError
cudaError_t misuse(cudaError_t error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void leave(int status);  // without destructors; 0: abort
long setting(const char *name, long fallback);
double now();  // s
void start_watchdog();
void catch_faults();        // for this thread
extern void (*clean_up)();  // before the process dies of a report

struct HostWait {  // while it lives, the host waits, and the watchdog sees it
    std::string what;
    explicit HostWait(std::string text);
    ~HostWait();
    void say(std::string text);
};

}  // namespace sim

struct CUstream_st {
    int id = 0;
    int device = 0;
    unsigned flags = 0;
    bool lane = false;  // of a graph, not made by the user
    std::mutex mutex;   // queue, current, awaited, state, ended
    std::condition_variable more;
    std::deque<sim::OpRef> queue;
    sim::OpRef current, awaited;  // what runs; what it waits for
    std::string state;            // what a long operation does
    bool ended = false;
    sim::OpRef last;                  // newest (world)
    unsigned long made = 0;           // operations (world)
    sim::Capture *capture = nullptr;  // (world)
    std::vector<int> frontier;        // capturing: the nodes that the next one follows (world)
};

struct CUevent_st {
    int id = 0;
    unsigned flags = 0;
    sim::OpRef op;                    // recorded last; NULL: never
    sim::Capture *capture = nullptr;  // recorded last while capturing (stale: compared only)
    bool captured = false;
    std::vector<int> nodes;
};

#endif
