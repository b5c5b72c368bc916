/* stream.cpp: streams and events.
 *
 * A stream is a thread with a queue. Calls only append; the thread takes one
 * operation after the other, waits for what that one depends on, then runs it.
 * With CUDASIM_SHAKE=n it first sleeps up to n microseconds, so that whatever
 * holds only by luck soon does not. CUDASIM_DROP_WAIT=k forgets the k-th
 * cudaStreamWaitEvent of the process, to see a test fail.
 */
#include "sim.h"
#include <algorithm>
#include <set>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern "C" void omp_set_num_threads(int threads);  // libgomp's: oneDNN computes in one thread

namespace sim
{

std::mutex world;
constinit thread_local CUstream_st *serving = nullptr;
constinit thread_local Op *running = nullptr;
std::atomic<long> finished, pending;

static std::vector<CUstream_st *> &streams = *new std::vector<CUstream_st *>;     // never freed
static std::map<int, CUstream_st *> &legacy = *new std::map<int, CUstream_st *>;  // [device]
static std::set<CUevent_st *> &events = *new std::set<CUevent_st *>;
static std::atomic<bool> exiting;
static std::atomic<int> busy;  // threads inside an operation

/* ---- the thread of a stream ---- */

static OpRef take(CUstream_st *s)
{
    std::unique_lock lock(s->mutex);
    s->current = s->awaited = nullptr;
    s->state.clear();
    s->more.wait(lock, [s] { return !s->queue.empty() || s->ended; });
    if (s->queue.empty())
        return nullptr;
    s->current = s->queue.front();
    s->queue.pop_front();
    return s->current;
}

static void wait_for_others(CUstream_st *s, Op *op)
{
    for (const OpRef &other : op->waits) {
        if (other->done)
            continue;
        s->mutex.lock();
        s->awaited = other;
        s->mutex.unlock();
        other->done.wait(0);
    }
    std::lock_guard lock(s->mutex);
    s->awaited = nullptr;
}

static void shake(unsigned *seed)
{
    static const long most = setting("CUDASIM_SHAKE", 0);
    if (most > 0)
        usleep((unsigned)(rand_r(seed) % (most + 1)));
}

static void run(Op *op)
{
    if (!op->run)
        return;
    busy++;
    if (exiting)
        for (busy--;;)
            pause();
    running = op;
    op->run();
    check_slack();
    running = nullptr;
    busy--;
}

static void finish(Op *op)
{
    op->run = nullptr;
    op->waits.clear();
    op->end = now();
    pending--;
    finished++;
    op->done = 1;
    op->done.notify_all();
}

static void serve(CUstream_st *s)
{
    unsigned seed = (unsigned)getpid() * 31 + (unsigned)s->id;
    serving = s;
    current_device = s->device;
    omp_set_num_threads(1);
    catch_faults();
    while (OpRef op = take(s)) {
        wait_for_others(s, op.get());
        shake(&seed);
        run(op.get());
        finish(op.get());
    }
}

/* Nothing starts once the process leaves: libraries are going away. */
static void stop()
{
    exiting = true;
    for (int i = 0; i < 100 && busy; i++)
        usleep(1000);
}

CUstream_st *new_stream(int device, unsigned flags, bool lane)
{
    static std::once_flag once;
    static std::atomic<int> made;
    std::call_once(once, [] { atexit(stop); });
    start_watchdog();
    CUstream_st *s = new CUstream_st;
    s->id = made++;
    s->device = device;
    s->flags = flags;
    s->lane = lane;
    streams.push_back(s);
    std::thread(serve, s).detach();
    return s;
}

void end_stream(CUstream_st *s)
{
    streams.erase(std::find(streams.begin(), streams.end(), s));
    std::lock_guard lock(s->mutex);  // the struct stays: operations name it
    s->ended = true;
    s->more.notify_one();
}

static CUstream_st *legacy_stream(int device)
{
    CUstream_st *&s = legacy[device];
    if (!s)
        s = new_stream(device, cudaStreamDefault, false);
    return s;
}

CUstream_st *find_stream(cudaStream_t handle)
{
    if (!handle || handle == cudaStreamLegacy)
        return legacy_stream(current_device);
    auto at = std::find(streams.begin(), streams.end(), handle);
    return at == streams.end() || (*at)->lane ? nullptr : *at;
}

static bool is_legacy(CUstream_st *s)
{
    auto at = legacy.find(s->device);
    return at != legacy.end() && at->second == s;
}

/* ---- operations ---- */

OpRef enqueue(CUstream_st *s, const char *kind, std::string name, std::function<void()> run,
              std::vector<OpRef> waits)
{
    OpRef op = std::make_shared<Op>();
    op->kind = kind;
    op->name = std::move(name);
    op->run = std::move(run);
    op->waits = std::move(waits);
    op->stream = s;
    op->number = ++s->made;
    s->last = op;
    pending++;
    std::lock_guard lock(s->mutex);
    s->queue.push_back(op);
    s->more.notify_one();
    return op;
}

/* The legacy stream and blocking streams wait for each other. */
static void wait_legacy(CUstream_st *s, std::vector<OpRef> *waits)
{
    if (is_legacy(s)) {
        for (CUstream_st *other : streams)
            if (other != s && other->device == s->device && !other->lane &&
                !(other->flags & cudaStreamNonBlocking) && other->last)
                waits->push_back(other->last);
    } else if (!s->lane && !(s->flags & cudaStreamNonBlocking) && legacy.count(s->device)) {
        if (OpRef last = legacy[s->device]->last)
            waits->push_back(last);
    }
}

/* The stream to append to, or why nothing can be appended. World is locked. */
static cudaError_t open(const char *call, cudaStream_t handle, CUstream_st **to)
{
    if (serving)
        return misuse(cudaErrorNotPermitted, "%s in a host function", call);
    if (!devices())
        return note(cudaErrorNoDevice);
    if (!(*to = find_stream(handle)))
        return misuse(cudaErrorInvalidResourceHandle, "%s: no such stream", call);
    if (is_legacy(*to) && blocks_legacy_stream(call))
        return note(cudaErrorStreamCaptureImplicit);
    return cudaSuccess;
}

static cudaError_t submit_to(CUstream_st *s, Work work, OpRef *made)
{
    std::vector<OpRef> waits;
    wait_legacy(s, &waits);
    if (work.chain && work.chain->last)
        waits.push_back(work.chain->last);
    for (cudaStream_t with : work.with)
        if (with->last)
            waits.push_back(with->last);
    OpRef op = enqueue(s, work.kind, std::move(work.name), std::move(work.run), std::move(waits));
    if (work.chain)
        work.chain->last = op;
    for (cudaStream_t with : work.with)
        enqueue(with, "join", "", nullptr, {op});
    if (made)
        *made = op;
    return cudaSuccess;
}

cudaError_t submit(const char *call, cudaStream_t handle, Work work)
{
    std::lock_guard lock(world);
    CUstream_st *s;
    if (cudaError_t error = open(call, handle, &s))
        return error;
    for (cudaStream_t &with : work.with) {
        if (!(with = find_stream(with)))
            return misuse(cudaErrorInvalidResourceHandle, "%s: no such stream", call);
        if (with->capture != s->capture)
            return misuse(cudaErrorStreamCaptureIsolation,
                          "%s: streams of one group, some captured, some not", call);
    }
    if (s->capture)
        return note(capture_work(s, std::move(work)));
    return submit_to(s, std::move(work), nullptr);
}

cudaError_t synchronous(const char *call, Work work)
{
    OpRef op;
    {
        std::lock_guard lock(world);
        CUstream_st *s;
        if (cudaError_t error = open(call, 0, &s))
            return error;
        submit_to(s, std::move(work), &op);
    }
    wait_for(op, call);
    return cudaSuccess;
}

void wait_for(const OpRef &op, const char *call)
{
    if (op->done)
        return;
    HostWait wait(std::string(call) + " waits for " + describe(op));
    op->done.wait(0);
}

void synchronize_device(int device, const char *call)
{
    std::vector<OpRef> last;
    world.lock();
    for (CUstream_st *s : streams)
        if (s->device == device && s->last)
            last.push_back(s->last);
    world.unlock();
    for (const OpRef &op : last)
        wait_for(op, call);
}

/* ---- words for the watchdog ---- */

void doing(const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (!serving)
        return;
    std::lock_guard lock(serving->mutex);
    serving->state = text;
}

std::string describe(const OpRef &op)
{
    std::string text = std::string(op->kind) + (op->name.empty() ? "" : " ") + op->name;
    return text + " (operation " + std::to_string(op->number) + " of stream " +
           std::to_string(op->stream->id) + ")";
}

void describe_streams()
{
    for (CUstream_st *s : streams) {
        std::lock_guard lock(s->mutex);
        if (!s->current)
            continue;
        fprintf(stderr, "cudasim:     stream %d%s: %s", s->id, s->lane ? " (of a graph)" : "",
                describe(s->current).c_str());
        if (s->awaited)
            fprintf(stderr, " waits for %s", describe(s->awaited).c_str());
        if (!s->state.empty())
            fprintf(stderr, ": %s", s->state.c_str());
        if (!s->queue.empty())
            fprintf(stderr, "; %zu more behind it, first %s", s->queue.size(),
                    describe(s->queue.front()).c_str());
        fprintf(stderr, "\n");
    }
}

static bool known(CUevent_st *event)
{
    return events.count(event) != 0;
}

static cudaError_t no_event(const char *call)
{
    return misuse(cudaErrorInvalidResourceHandle, "%s: no such event", call);
}

}  // namespace sim

using namespace sim;

/* ---- streams ---- */

extern "C" cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned flags)
{
    if (!devices())
        return note(cudaErrorNoDevice);
    if (flags & ~(unsigned)cudaStreamNonBlocking)
        return note(cudaErrorInvalidValue);
    std::lock_guard lock(world);
    *pStream = new_stream(current_device, flags, false);
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
    return cudaStreamCreateWithFlags(pStream, cudaStreamDefault);
}

extern "C" cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    std::lock_guard lock(world);
    CUstream_st *s = stream ? find_stream(stream) : nullptr;
    if (!s || is_legacy(s))
        return misuse(cudaErrorInvalidResourceHandle, "cudaStreamDestroy: no such stream");
    if (s->capture)
        spoil(s->capture, cudaErrorStreamCaptureUnsupported, "cudaStreamDestroy");
    end_stream(s);
    return cudaSuccess;
}

/* Its newest operation, unless the host may not wait now. */
static cudaError_t newest(const char *call, cudaStream_t stream, OpRef *op)
{
    if (serving)
        return misuse(cudaErrorNotPermitted, "%s in a host function", call);
    if (!devices())
        return note(cudaErrorNoDevice);
    if (cudaError_t error = may_block(call))
        return note(error);
    std::lock_guard lock(world);
    CUstream_st *s = find_stream(stream);
    if (!s)
        return misuse(cudaErrorInvalidResourceHandle, "%s: no such stream", call);
    if (s->capture)
        return note(spoil(s->capture, cudaErrorStreamCaptureUnsupported, call));
    *op = s->last;
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    OpRef op;
    if (cudaError_t error = newest("cudaStreamSynchronize", stream, &op))
        return error;
    if (op)
        wait_for(op, "cudaStreamSynchronize");
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    OpRef op;
    if (cudaError_t error = newest("cudaStreamQuery", stream, &op))
        return error;
    return !op || op->done ? cudaSuccess : note(cudaErrorNotReady);
}

extern "C" cudaError_t cudaDeviceSynchronize(void)
{
    if (serving)
        return misuse(cudaErrorNotPermitted, "cudaDeviceSynchronize in a host function");
    if (!devices())
        return note(cudaErrorNoDevice);
    if (cudaError_t error = may_block("cudaDeviceSynchronize"))
        return note(error);
    synchronize_device(current_device, "cudaDeviceSynchronize");
    return cudaSuccess;
}

extern "C" cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
    return submit("cudaLaunchHostFunc", stream,
                  {"host function", symbol_name((uintptr_t)fn), [=] { fn(userData); }});
}

extern "C" cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    static std::atomic<long> calls;
    static const long dropped = setting("CUDASIM_DROP_WAIT", 0);
    std::lock_guard lock(world);
    CUstream_st *s;
    if (cudaError_t error = open("cudaStreamWaitEvent", stream, &s))
        return error;
    if (!known(event))
        return no_event("cudaStreamWaitEvent");
    if (++calls == dropped) {
        fprintf(stderr, "cudasim: cudaStreamWaitEvent %ld is dropped\n", dropped);
        return cudaSuccess;
    }
    if (s->capture || event->captured)
        return note(capture_wait(s, event));
    if (event->op) {
        std::vector<OpRef> waits = {event->op};
        wait_legacy(s, &waits);
        enqueue(s, "event wait", std::to_string(event->id), nullptr, std::move(waits));
    }
    return cudaSuccess;
}

/* ---- events ---- */

extern "C" cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    static std::atomic<int> made;
    if (!devices())
        return note(cudaErrorNoDevice);
    std::lock_guard lock(world);
    *event = new CUevent_st;
    (*event)->id = made++;
    (*event)->flags = flags;
    events.insert(*event);
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

extern "C" cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    std::lock_guard lock(world);
    if (!known(event))
        return no_event("cudaEventDestroy");
    events.erase(event);
    delete event;
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    std::lock_guard lock(world);
    CUstream_st *s;
    if (cudaError_t error = open("cudaEventRecord", stream, &s))
        return error;
    if (!known(event))
        return no_event("cudaEventRecord");
    event->captured = s->capture != nullptr;
    event->capture = s->capture;
    event->nodes = s->frontier;
    event->op = nullptr;
    if (s->capture && !s->capture->valid)
        return note(cudaErrorStreamCaptureInvalidated);
    if (!s->capture) {
        std::vector<OpRef> waits;
        wait_legacy(s, &waits);
        event->op = enqueue(s, "event record", std::to_string(event->id), nullptr,
                            std::move(waits));
    }
    return cudaSuccess;
}

/* What it recorded last, unless the host may not ask now. */
static cudaError_t recorded(const char *call, cudaEvent_t event, OpRef *op)
{
    if (serving)
        return misuse(cudaErrorNotPermitted, "%s in a host function", call);
    if (cudaError_t error = may_block(call))
        return note(error);
    std::lock_guard lock(world);
    if (!known(event))
        return no_event(call);
    if (event->captured)
        return note(cudaErrorCapturedEvent);
    *op = event->op;
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventQuery(cudaEvent_t event)
{
    OpRef op;
    if (cudaError_t error = recorded("cudaEventQuery", event, &op))
        return error;
    return !op || op->done ? cudaSuccess : note(cudaErrorNotReady);
}

extern "C" cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    OpRef op;
    if (cudaError_t error = recorded("cudaEventSynchronize", event, &op))
        return error;
    if (op)
        wait_for(op, "cudaEventSynchronize");
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    std::lock_guard lock(world);
    if (!known(start) || !known(end))
        return no_event("cudaEventElapsedTime");
    if (((start->flags | end->flags) & cudaEventDisableTiming) || !start->op || !end->op)
        return note(cudaErrorInvalidResourceHandle);
    if (!start->op->done || !end->op->done)
        return note(cudaErrorNotReady);
    *ms = (float)(1e3 * (end->op->end - start->op->end));
    return cudaSuccess;
}
