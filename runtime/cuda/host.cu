/* host.cu: the life of a CUDA rank: device, arena, data, steps, graph.
 *
 * Everything that a step does is enqueued on the compute stream, or on the lane
 * of a message. The first step runs as it is enqueued, so that libraries make
 * what they need; where the transport allows it the second one is captured, and
 * from then on a step is one launch of that graph. What differs from step to
 * step lies in pinned memory that the graph copies from: tokens, learning rate,
 * step number. */
#include <stdlib.h>
#include <string.h>

#include "transport.cuh"

Device pp_device;
Lane *pp_lanes;
int pp_lane_count;
float *pp_reduce_scratch;

namespace {

enum Kind { TOKENS, TOKEN_TARGETS, NUMBERS, NUMBER_TARGETS };

struct Load {                   // a copy of data that every step makes
    Kind kind;
    int micro;
    void *pinned;
};

enum State { DIRECT, CAPTURING, REPLAYING };

struct Host {
    const Transport *transport;
    State state;
    bool graph_wanted;
    cudaGraphExec_t graph;
    cudaEvent_t finished;
    Load *loads;
    int load_count;
    char *pool, *pool_end;      // pinned, for loads
    Hyper *pinned;              // rate and step of this step; norm of the last
    float *losses;              // pinned [microbatches]
    int loss_count;
    bool clips, rates;
    float rate, floor;
    int warmup;
    float *staging;             // pinned, for host_read_back
    size_t staging_floats;
} host;

constexpr size_t WORKSPACE = 32 << 20;

/* ---- start ---- */

void choose_device()
{
    int count = 0, driver = 0, runtime = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (status != cudaSuccess || count == 0)
        pp_fail("no GPU can be used: %s (driver %d.%d, runtime %d.%d)",
                status == cudaSuccess ? "no device is there"
                                      : cudaGetErrorString(status),
                driver / 1000, driver % 1000 / 10, runtime / 1000,
                runtime % 1000 / 10);
    CHECK(cudaSetDevice(bridge_local_rank() % count));
}

void choose_transport()
{
    const char *name = bridge_option_transport();
    int devices = 0, ranks = bridge_job()->ranks;
    CHECK(cudaGetDeviceCount(&devices));
    bool shared = devices < ranks && bridge_is_launched();  // ranks share a GPU
    host.transport = shared ? &pp_transport_local : &pp_transport_nccl;
    if (name && !strcmp(name, "local"))
        host.transport = &pp_transport_local;
    else if (name && !strcmp(name, "nccl"))
        host.transport = &pp_transport_nccl;
    else if (name)
        pp_fail("--transport is `nccl` or `local`, not `%s`", name);
    if (host.transport == &pp_transport_local && !bridge_is_launched())
        pp_fail("the transport `local` needs pprun: the ranks share its memory");
    int graph = bridge_option_graph();
    if (graph == 1 && !host.transport->graph)
        pp_fail("--graph on: the transport `%s` cannot be captured",
                host.transport->name);
    host.graph_wanted = graph != 0 && host.transport->graph;
}

void make_lanes()
{
    const PpJob *job = bridge_job();
    pp_lanes = (Lane *)calloc((size_t)job->queue_count + 1, sizeof(Lane));
    for (int i = 0; pp_lanes && i < job->queue_count; i++) {
        PpQueue queue = job->queues[i];
        if (queue.from != job->rank && queue.to != job->rank)
            continue;
        Lane *lane = &pp_lanes[pp_lane_count++];
        lane->sends = queue.from == job->rank;
        lane->peer = lane->sends ? queue.to : queue.from;
        lane->index = i;
        CHECK(cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking));
        size_t events = (size_t)job->depth + 1;
        lane->ready = (cudaEvent_t *)calloc(2 * events, sizeof(cudaEvent_t));
        if (!lane->ready)
            pp_fail("out of memory");
        lane->done = lane->ready + events;
        for (size_t k = 0; k < 2 * events; k++)
            CHECK(cudaEventCreateWithFlags(&lane->ready[k],
                                           cudaEventDisableTiming));
    }
}

/* Pinned room for so many floats: for the edges of a run, not for its steps. */
float *staging(size_t count)
{
    if (count > host.staging_floats) {
        CHECK(cudaFreeHost(host.staging));
        CHECK(cudaMallocHost((void **)&host.staging, count * sizeof(float)));
        host.staging_floats = count;
    }
    return host.staging;
}

/* On the compute stream, and done when it returns: a plain cudaMemcpy is ordered
 * by the default stream, which the compute stream does not wait for. */
void upload(float *to, const float *from, size_t count)
{
    memcpy(staging(count), from, count * sizeof(float));
    CHECK(cudaMemcpyAsync(to, host.staging, count * sizeof(float),
                          cudaMemcpyHostToDevice, pp_device.compute));
    CHECK(cudaStreamSynchronize(pp_device.compute));
}

size_t squares_bytes()
{
    return ((size_t)bridge_job()->parameters + 1) * sizeof(double);
}

/* Only a parameter's owner notes its square; the sum over ranks takes zeros
 * from all others. */
void clear_squares()
{
    CHECK(cudaMemsetAsync(pp_device.squares, 0,
                          squares_bytes(), pp_device.compute));
}

void make_pool()
{
    const PpJob *job = bridge_job();
    const PpData *data = &job->data;
    size_t width = (size_t)(data->input_width > data->target_width
                                ? data->input_width
                                : data->target_width);
    size_t bytes = (size_t)data->rows * (size_t)data->seq * (width ? width : 1) *
                   sizeof(float);
    bytes = (bytes + 63) / 64 * 64 * 2 * (size_t)job->microbatches;
    host.loads = (Load *)calloc(2 * (size_t)job->microbatches, sizeof(Load));
    if (!host.loads)
        pp_fail("out of memory");
    CHECK(cudaMallocHost((void **)&host.pool, bytes ? bytes : 64));
    host.pool_end = host.pool;
    CHECK(cudaMallocHost((void **)&host.pinned, sizeof(Hyper)));
    CHECK(cudaMallocHost((void **)&host.losses,
                         (size_t)job->microbatches * sizeof(float)));
}

Lane *lane_of(int peer, bool sends)
{
    for (int i = 0; i < pp_lane_count; i++)
        if (pp_lanes[i].peer == peer && pp_lanes[i].sends == sends)
            return &pp_lanes[i];
    pp_fail("no queue to or from rank %d was planned", peer);
}

/* ---- data ---- */

void *pinned_load(Kind kind, int micro, size_t bytes)
{
    for (int i = 0; i < host.load_count; i++)
        if (host.loads[i].kind == kind && host.loads[i].micro == micro)
            return host.loads[i].pinned;
    host.loads[host.load_count++] = {kind, micro, host.pool_end};
    void *pinned = host.pool_end;
    host.pool_end += (bytes + 63) / 64 * 64;
    return pinned;
}

void fill(const Load *load)
{
    switch (load->kind) {
    case TOKENS: bridge_tokens((int32_t *)load->pinned, load->micro, 0); break;
    case TOKEN_TARGETS: bridge_tokens((int32_t *)load->pinned, load->micro, 1); break;
    case NUMBERS: bridge_numbers((float *)load->pinned, load->micro, 0); break;
    default: bridge_numbers((float *)load->pinned, load->micro, 1);
    }
}

/* Fills its pinned place, if the step has not yet, and enqueues the copy. */
void *load(Kind kind, int micro, size_t values)
{
    int known = host.load_count;
    void *pinned = pinned_load(kind, micro, values * sizeof(float));
    if (host.load_count > known)
        fill(&host.loads[known]);
    return pinned;
}

size_t data_values(int width)
{
    const PpData *data = &bridge_job()->data;
    return (size_t)data->rows * (size_t)data->seq * (size_t)(width ? width : 1);
}

__global__ void add_floats(float *to, const float *a, const float *b,
                           size_t count)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        to[i] = a[i] + b[i];
}

__global__ void narrow_numbers(Value *to, const float *from, size_t count)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        to[i] = rounded<Value>(from[i]);
}

}  // namespace

/* ---- start ---- */

void host_start(void)
{
    choose_device();
    CHECK(cudaStreamCreateWithFlags(&pp_device.compute, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&host.finished, cudaEventDisableTiming));
    CHECK_BLAS(cublasLtCreate(&pp_device.blas));
    pp_device.workspace_bytes = WORKSPACE;
    CHECK(cudaMalloc(&pp_device.workspace, WORKSPACE));
    CHECK(cudaMalloc((void **)&pp_device.hyper, sizeof(Hyper)));
    CHECK(cudaMalloc((void **)&pp_device.squares, squares_bytes()));
    clear_squares();
    int device = 0;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetAttribute(&pp_device.multiprocessors,
                                 cudaDevAttrMultiProcessorCount, device));
    make_pool();
}

float *host_arena(void)
{
    const PpJob *job = bridge_job();
    size_t free_bytes = 0, total = 0;
    float *arena = NULL;
    CHECK(cudaMemGetInfo(&free_bytes, &total));
    if (job->arena > free_bytes)
        pp_fail("this rank needs %.2f GB, its GPU has %.2f GB free of %.2f",
                (double)job->arena / 1e9, (double)free_bytes / 1e9,
                (double)total / 1e9);
    CHECK(cudaMalloc((void **)&arena, job->arena));
    CHECK(cudaMemsetAsync(arena, 0, job->arena, pp_device.compute));
    if (job->reduce)
        CHECK(cudaMalloc((void **)&pp_reduce_scratch,
                         job->reduce * sizeof(float)));
    make_lanes();
    choose_transport();
    host.transport->start();
    CHECK(cudaMemsetAsync(pp_device.hyper, 0, sizeof(Hyper), pp_device.compute));
    float one = 1;                                  // without a clip
    upload(&pp_device.hyper->scale, &one, 1);
    return arena;
}

/* ---- steps ---- */

void host_mark_step(void)
{
    for (int i = 0; i < pp_lane_count; i++)
        pp_lanes[i].count = 0;
}

void host_begin_step(void)
{
    for (int i = 0; i < host.load_count; i++)
        fill(&host.loads[i]);
    if (host.rates) {
        host.pinned->rate = bridge_rate(host.rate, host.warmup, host.floor);
        host.pinned->step = bridge_step();
    }
}

/* Step 1 runs directly; then, if wanted, one is captured and replayed. */
int pp_capture(void)
{
    if (host.state == REPLAYING)
        return 0;
    if (host.graph_wanted && bridge_step() > 1) {
        host.state = CAPTURING;
        CHECK(cudaStreamBeginCapture(pp_device.compute,
                                     cudaStreamCaptureModeThreadLocal));
    }
    return 1;
}

void pp_launch(void)
{
    if (host.state == CAPTURING) {
        cudaGraph_t graph;
        CHECK(cudaStreamEndCapture(pp_device.compute, &graph));
        CHECK(cudaGraphInstantiate(&host.graph, graph, 0));
        CHECK(cudaGraphDestroy(graph));
        host.state = REPLAYING;
    }
    if (host.state == REPLAYING)
        CHECK(cudaGraphLaunch(host.graph, pp_device.compute));
    CHECK(cudaEventRecord(host.finished, pp_device.compute));
}

void host_end_step(void)
{
    cudaError_t status;
    while ((status = cudaEventQuery(host.finished)) == cudaErrorNotReady) {
        bridge_check_abort();
        bridge_rest();
    }
    CHECK(status);
    bridge_record(host.losses, host.loss_count,
                  host.clips ? host.pinned->norm : NAN);
    if (host.clips && isnan(host.pinned->scale))
        bridge_left_out(host.pinned->lost, host.pinned->worst);
}

/* Waits on the host: only at the edges of a run. */
const float *host_read_back(const float *values, size_t count)
{
    CHECK(cudaMemcpyAsync(staging(count), values, count * sizeof(float),
                          cudaMemcpyDeviceToHost, pp_device.compute));
    CHECK(cudaStreamSynchronize(pp_device.compute));
    return host.staging;
}

void host_meet(void)
{
    host.transport->meet();
}

/* ---- pp.h ---- */

void pp_tokens(int32_t *tokens, int micro)
{
    size_t values = data_values(0);
    CHECK(cudaMemcpyAsync(tokens, load(TOKENS, micro, values), values * 4,
                          cudaMemcpyHostToDevice, pp_device.compute));
}

void pp_token_targets(int32_t *targets, int micro)
{
    size_t values = data_values(0);
    CHECK(cudaMemcpyAsync(targets, load(TOKEN_TARGETS, micro, values),
                          values * 4, cudaMemcpyHostToDevice,
                          pp_device.compute));
}

/* Numbers enter as float32 and are narrowed on the device. */
void pp_numbers(float *to, int micro)
{
    size_t values = data_values(bridge_job()->data.input_width);
    float *wide = sizeof(Value) == 4 ? to : (float *)scratch(values * 4);
    CHECK(cudaMemcpyAsync(wide, load(NUMBERS, micro, values), values * 4,
                          cudaMemcpyHostToDevice, pp_device.compute));
    if (sizeof(Value) != 4)
        launch(narrow_numbers, dim3(blocks(values, 256)), 256, 0, (Value *)to,
               wide, values);
}

void pp_number_targets(float *to, int micro)
{
    size_t values = data_values(bridge_job()->data.target_width);
    CHECK(cudaMemcpyAsync(to, load(NUMBER_TARGETS, micro, values), values * 4,
                          cudaMemcpyHostToDevice, pp_device.compute));
}

void pp_normal(float *w, size_t count, const char *name, float deviation)
{
    float *values = (float *)malloc(count * sizeof(float));
    if (!values)
        pp_fail("out of memory");
    bridge_draw_normal(values, count, name, deviation);
    upload(w, values, count);
    free(values);
}

float pp_rate(float rate, int warmup, float floor)
{
    host.rates = true;
    host.rate = rate;
    host.warmup = warmup;
    host.floor = floor;
    host.pinned->rate = bridge_rate(rate, warmup, floor);
    host.pinned->step = bridge_step();
    CHECK(cudaMemcpyAsync(pp_device.hyper, host.pinned, offsetof(Hyper, scale),
                          cudaMemcpyHostToDevice, pp_device.compute));
    return host.pinned->rate;
}

float pp_clip(float limit)
{
    host.clips = true;
    host.transport->sum_squares();
    pp_scale_from_squares(bridge_job()->parameters, limit);
    clear_squares();
    CHECK(cudaMemcpyAsync(&host.pinned->scale, &pp_device.hyper->scale,
                          sizeof(Hyper) - offsetof(Hyper, scale),
                          cudaMemcpyDeviceToHost, pp_device.compute));
    return 1;  // the kernels take it from device memory
}

void pp_loss(const float *losses, int microbatches)
{
    host.loss_count = microbatches;
    pp_note_losses(bridge_job()->parameters, losses, microbatches);
    CHECK(cudaMemcpyAsync(host.losses, losses,
                          (size_t)microbatches * sizeof(float),
                          cudaMemcpyDeviceToHost, pp_device.compute));
}

void pp_send(const PpLink *link, int micro, const float *from)
{
    (void)micro;
    Lane *lane = lane_of(link->peer, true);
    int k = lane->count++;
    lane->total++;
    CHECK(cudaEventRecord(lane->ready[k], pp_device.compute));
    CHECK(cudaStreamWaitEvent(lane->stream, lane->ready[k], 0));
    host.transport->send(lane, from, link->floats);
    CHECK(cudaEventRecord(lane->done[k], lane->stream));
}

/* All that was enqueued before has done with the buffer. */
void pp_recv(const PpLink *link, int micro, float *to)
{
    (void)micro;
    Lane *lane = lane_of(link->peer, false);
    int k = lane->count++;
    lane->total++;
    CHECK(cudaEventRecord(lane->ready[k], pp_device.compute));
    CHECK(cudaStreamWaitEvent(lane->stream, lane->ready[k], 0));
    host.transport->receive(lane, to, link->floats);
    CHECK(cudaEventRecord(lane->done[k], lane->stream));
}

void pp_take(const PpLink *link, int micro, int arrived)
{
    (void)micro;
    CHECK(cudaStreamWaitEvent(pp_device.compute,
                              lane_of(link->peer, false)->done[arrived - 1],
                              0));
}

void pp_wait(const PpLink *link, int micro, int taken)
{
    (void)micro;
    CHECK(cudaStreamWaitEvent(pp_device.compute,
                              lane_of(link->peer, true)->done[taken - 1], 0));
}

void pp_reduce(const PpTie *tie, float *const parts[])
{
    host.transport->reduce(tie, parts);
}

void pp_add_floats(float *to, const float *a, const float *b, size_t count)
{
    launch(add_floats, dim3(blocks(count, 256)), 256, 0, to, a, b, count);
}

void pp_sum_uses(const PpTie *tie, float *const parts[])
{
    float *sum = pp_reduce_scratch;
    for (int u = 1; u < tie->uses; u++)
        pp_add_floats(sum, sum, pp_reduce_scratch + (size_t)u * tie->floats,
                      tie->floats);
    CHECK(cudaMemcpyAsync(parts[0], sum, tie->floats * sizeof(float),
                          cudaMemcpyDeviceToDevice, pp_device.compute));
}
