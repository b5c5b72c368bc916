/* graph.cpp: capture and replay.
 *
 * While a stream captures, its operations become nodes. A stream's frontier is
 * the nodes that its next operation follows; an event keeps the frontier of the
 * moment it was recorded, and waiting for it adds that to another stream's:
 *
 *     s: A - record e - B ---- wait f - D        nodes  A B C D
 *     t:      wait e  - C - record f             edges  A>B A>C B>D C>D
 *
 * Replay gives each captured stream a thread of its own (a lane) and makes the
 * operations anew, each waiting for those it follows. Nothing is friendlier
 * than without a graph: what no edge orders runs at the same time.
 */
#include "sim.h"
#include <algorithm>

struct CUgraph_st {
    std::vector<sim::Node> nodes;
    int lanes;
};

struct CUgraphExec_st {
    std::vector<sim::Node> nodes;
    std::vector<CUstream_st *> lanes;
    std::vector<int> leaves;  // nodes that none follows
    sim::OpRef last;          // end of the launch before: launches do not overlap
};

namespace sim
{

static std::vector<Capture *> captures;  // active ones (world)

/* ---- what capture forbids ---- */

cudaError_t spoil(Capture *capture, cudaError_t error, const char *call)
{
    capture->valid = false;
    return misuse(error, "%s while a stream captures", call);
}

cudaError_t may_block(const char *call)
{
    std::lock_guard lock(world);
    for (Capture *c : captures)
        if (c->mode == cudaStreamCaptureModeGlobal ||
            (c->mode == cudaStreamCaptureModeThreadLocal &&
             c->thread == std::this_thread::get_id()))
            return spoil(c, cudaErrorStreamCaptureUnsupported, call);
    return cudaSuccess;
}

/* World is locked. */
bool blocks_legacy_stream(const char *call)
{
    for (Capture *c : captures)
        for (CUstream_st *s : c->streams)
            if (!(s->flags & cudaStreamNonBlocking)) {
                spoil(c, cudaErrorStreamCaptureImplicit, call);
                return true;
            }
    return false;
}

/* ---- recording ---- */

static void unite(std::vector<int> *to, const std::vector<int> &from)
{
    for (int node : from)
        if (std::find(to->begin(), to->end(), node) == to->end())
            to->push_back(node);
}

cudaError_t capture_work(CUstream_st *s, Work work)
{
    Capture *c = s->capture;
    if (!c->valid)
        return cudaErrorStreamCaptureInvalidated;
    Node node = {std::move(work), s->frontier, 0};
    while (c->streams[(size_t)node.lane] != s)
        node.lane++;
    for (cudaStream_t with : node.work.with)
        unite(&node.after, with->frontier);
    int number = (int)c->nodes.size();
    if (Chain *chain = node.work.chain.get()) {
        if (c->chains.count(chain))
            unite(&node.after, {c->chains[chain]});
        c->chains[chain] = number;
    }
    s->frontier = {number};
    for (cudaStream_t with : node.work.with)
        with->frontier = {number};
    c->nodes.push_back(std::move(node));
    return cudaSuccess;
}

/* One of the two captures. World is locked. */
cudaError_t capture_wait(CUstream_st *s, CUevent_st *event)
{
    bool alive = event->captured &&
                 std::find(captures.begin(), captures.end(), event->capture) != captures.end();
    if (event->captured && !alive)
        return misuse(cudaErrorCapturedEvent,
                      "cudaStreamWaitEvent for an event of a capture that has ended");
    if (!event->captured)  // never recorded: nothing to wait for
        return event->op ? spoil(s->capture, cudaErrorStreamCaptureIsolation,
                                 "cudaStreamWaitEvent for work outside the capture")
                         : cudaSuccess;
    Capture *c = event->capture;
    if (!c->valid)
        return cudaErrorStreamCaptureInvalidated;
    if (s->capture && s->capture != c) {
        s->capture->valid = false;
        return spoil(c, cudaErrorStreamCaptureMerge, "cudaStreamWaitEvent");
    }
    if (!s->capture) {
        s->capture = c;
        s->frontier.clear();
        c->streams.push_back(s);
    }
    unite(&s->frontier, event->nodes);
    return cudaSuccess;
}

/* Has every node of the other streams a path to the origin's frontier? */
static bool joined(const Capture *c)
{
    std::vector<bool> before(c->nodes.size());
    for (int node : c->streams[0]->frontier)
        before[(size_t)node] = true;
    for (size_t i = c->nodes.size(); i-- > 0;)
        if (before[i])
            for (int node : c->nodes[i].after)
                before[(size_t)node] = true;
    for (CUstream_st *s : c->streams)
        for (int node : s->frontier)
            if (!before[(size_t)node])
                return false;
    return true;
}

static void forget(Capture *c)
{
    for (CUstream_st *s : c->streams) {
        s->capture = nullptr;
        s->frontier.clear();
    }
    /* The struct stays: events name it. */
    captures.erase(std::find(captures.begin(), captures.end(), c));
}

static cudaError_t end_capture(CUstream_st *s, Capture *c)
{
    if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != std::this_thread::get_id())
        return misuse(cudaErrorStreamCaptureWrongThread, "cudaStreamEndCapture");
    if (c->streams[0] != s)
        return spoil(c, cudaErrorStreamCaptureUnmatched,
                     "cudaStreamEndCapture of a stream that only joined");
    if (!c->valid)
        return misuse(cudaErrorStreamCaptureInvalidated, "cudaStreamEndCapture");
    if (!joined(c))
        return misuse(cudaErrorStreamCaptureUnjoined,
                      "cudaStreamEndCapture: a stream that joined has not been waited for");
    return cudaSuccess;
}

/* ---- replay ---- */

static void replay(CUgraphExec_st *exec, CUstream_st *s)
{
    std::vector<OpRef> waits, made, leaves;
    if (exec->last)
        waits.push_back(exec->last);
    OpRef start = enqueue(s, "graph launch", "", nullptr, std::move(waits));
    for (const Node &node : exec->nodes) {
        std::vector<OpRef> after = {start};
        for (int other : node.after)
            after.push_back(made[(size_t)other]);
        if (node.work.chain && node.work.chain->last)
            after.push_back(node.work.chain->last);
        OpRef op = enqueue(exec->lanes[(size_t)node.lane], node.work.kind, node.work.name,
                           node.work.run, std::move(after));
        if (node.work.chain)
            node.work.chain->last = op;
        made.push_back(op);
    }
    for (int leaf : exec->leaves)
        leaves.push_back(made[(size_t)leaf]);
    exec->last = enqueue(s, "graph end", "", nullptr, std::move(leaves));
}

}  // namespace sim

using namespace sim;

extern "C" cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    std::lock_guard lock(world);
    if (!devices())
        return note(cudaErrorNoDevice);
    if (!stream || stream == cudaStreamLegacy)
        return misuse(cudaErrorStreamCaptureUnsupported, "cudaStreamBeginCapture of stream 0");
    CUstream_st *s = find_stream(stream);
    if (!s)
        return misuse(cudaErrorInvalidResourceHandle, "cudaStreamBeginCapture: no such stream");
    if (s->capture)
        return misuse(cudaErrorIllegalState, "cudaStreamBeginCapture: it captures already");
    s->capture = new Capture;
    s->capture->mode = mode;
    s->capture->thread = std::this_thread::get_id();
    s->capture->streams = {s};
    s->frontier.clear();
    captures.push_back(s->capture);
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph)
{
    std::lock_guard lock(world);
    *pGraph = nullptr;
    CUstream_st *s = find_stream(stream);
    if (!s || !s->capture)
        return misuse(cudaErrorIllegalState, "cudaStreamEndCapture: it does not capture");
    Capture *c = s->capture;
    cudaError_t error = end_capture(s, c);
    if (error == cudaErrorStreamCaptureWrongThread || error == cudaErrorStreamCaptureUnmatched)
        return error;
    if (!error)
        *pGraph = new CUgraph_st{std::move(c->nodes), (int)c->streams.size()};
    forget(c);
    return error;
}

extern "C" cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
    std::lock_guard lock(world);
    CUstream_st *s = find_stream(stream);
    if (!s)
        return misuse(cudaErrorInvalidResourceHandle, "cudaStreamIsCapturing: no such stream");
    *status = !s->capture         ? cudaStreamCaptureStatusNone
              : s->capture->valid ? cudaStreamCaptureStatusActive
                                  : cudaStreamCaptureStatusInvalidated;
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                            unsigned long long flags)
{
    if (!graph || flags)
        return note(cudaErrorInvalidValue);
    std::lock_guard lock(world);
    CUgraphExec_st *exec = new CUgraphExec_st{graph->nodes, {}, {}, nullptr};
    std::vector<bool> followed(exec->nodes.size());
    for (const Node &node : exec->nodes)
        for (int other : node.after)
            followed[(size_t)other] = true;
    for (size_t i = 0; i < exec->nodes.size(); i++)
        if (!followed[i])
            exec->leaves.push_back((int)i);
    for (int i = 0; i < graph->lanes; i++)
        exec->lanes.push_back(new_stream(current_device, cudaStreamNonBlocking, true));
    *pGraphExec = exec;
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
    std::lock_guard lock(world);
    CUstream_st *s = find_stream(stream);
    if (serving)
        return misuse(cudaErrorNotPermitted, "cudaGraphLaunch in a host function");
    if (!graphExec || !s)
        return misuse(cudaErrorInvalidResourceHandle, "cudaGraphLaunch");
    if (s->capture)
        return note(spoil(s->capture, cudaErrorStreamCaptureUnsupported, "cudaGraphLaunch"));
    replay(graphExec, s);
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
    std::lock_guard lock(world);
    if (!graphExec)
        return note(cudaErrorInvalidValue);
    for (CUstream_st *lane : graphExec->lanes)
        end_stream(lane);  // after what it still has to do
    delete graphExec;
    return cudaSuccess;
}
