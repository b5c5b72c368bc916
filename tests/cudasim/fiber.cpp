/* fiber.cpp: runs the blocks of a grid, one after the other, on this thread.
 *
 * The threads of a block are fibers: each runs until it waits (at a barrier, at
 * a shuffle) or ends, then the next one that can run goes on. One that ends
 * hands its stack to the next that has not begun, so a kernel without barriers
 * is a plain loop on one stack.
 *
 *     barrier    all threads of the block wait at one place -> all can run
 *     shuffle    all lanes of the mask wait at one place -> the last one that
 *                came computes everybody's result -> they can run
 *     nobody can run, not all have ended -> divergence: report and die
 *
 * After each barrier, and from block to block, the direction in which threads
 * run changes: what only works when thread 0 comes first does not work here.
 */
#include "sim.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

constinit thread_local uint3 threadIdx = {}, blockIdx = {};
constinit thread_local dim3 blockDim, gridDim;

/* Dynamic shared memory: `extern __shared__ T name[]`. C++ wants a definition of
 * each name that kernels use; all are the same bytes. */
alignas(1024) thread_local unsigned char cudasim_dynamic[sim::DYNAMIC_MOST + sim::RED_ZONE];
#define DYNAMIC(name)                                                                              \
    extern __attribute__((weak, alias("cudasim_dynamic"))) thread_local unsigned char name[1];
DYNAMIC(dynamic)
DYNAMIC(dynamic_shared)
DYNAMIC(scratchpad)
DYNAMIC(shared)
DYNAMIC(shared_memory)
DYNAMIC(smem)
DYNAMIC(tile)
DYNAMIC(tiles)

/* ---- switching ---- */

#ifdef __x86_64__
typedef void *Context;  // the stack pointer; the rest lies on the stack

extern "C" void cudasim_switch(void **save, void *to);
asm(R"(
    .text
    .globl cudasim_switch
    .type cudasim_switch, @function
cudasim_switch:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    pop %rcx
    jmp *%rcx           # a ret would be predicted to go back to the caller
    .size cudasim_switch, . - cudasim_switch
)");

static void switch_to(Context *from, const Context *to)
{
    cudasim_switch(from, *to);
}

static void prepare(Context *context, char *stack, size_t bytes, void (*entry)())
{
    void **top = (void **)(stack + bytes);
    top[-1] = nullptr;
    top[-2] = (void *)entry;  // where `ret` goes; six registers below
    memset(top - 8, 0, 6 * sizeof *top);
    *context = top - 8;
}
#else
typedef ucontext_t Context;

static void switch_to(Context *from, const Context *to)
{
    swapcontext(from, to);
}

static void prepare(Context *context, char *stack, size_t bytes, void (*entry)())
{
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = bytes;
    context->uc_link = nullptr;
    makecontext(context, entry, 0);
}
#endif

namespace sim
{

/* ---- a block ---- */

enum : size_t { PAGE = 4096, STACK = 64 << 10 };

struct Fiber {  // one thread of the block
    Context context;
    char *stack;
    uint3 index;
    CudasimMeeting kind;  // what it waits for
    unsigned mask;
    int from;
    CudasimSite site;
    uint64_t value;  // given to the meeting, then taken from it
};

struct Warp {  // bits are lanes
    unsigned exists, ready, begun, meeting, barrier, ended;
};

struct Block {
    const CudasimBody *body;
    Fiber fiber[THREADS_MOST];
    Warp warp[LANES];
    unsigned ready_warps;  // bits are warps
    int threads, at_barrier, ended;
    CudasimSite barrier;
    unsigned phase;  // its lowest bit is the direction
    int current;     // thread
    Context outside;
    std::vector<char *> stacks;      // free ones
    std::vector<char *> all_stacks;  // to tell a stack's guard page
};

static thread_local Block *block;

static char *new_stack()
{
    if (!block->stacks.empty()) {
        char *stack = block->stacks.back();
        block->stacks.pop_back();
        return stack;
    }
    char *map = (char *)mmap(NULL, PAGE + STACK, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        die("no memory for the stacks of a block's threads");
    mprotect(map, PAGE, PROT_NONE);
    block->all_stacks.push_back(map + PAGE);
    return map + PAGE;
}

bool in_fiber_stack_guard(uintptr_t address)
{
    if (block)
        for (char *stack : block->all_stacks)
            if (address < (uintptr_t)stack && address >= (uintptr_t)stack - PAGE)
                return true;
    return false;
}

/* ---- divergence ---- */

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : nullptr;
    return slash ? slash + 1 : path ? path : "?";
}

static std::string place(CudasimSite site)
{
    return std::string(base_name(site.file)) + ":" + std::to_string(site.line);
}

static bool same(CudasimSite a, CudasimSite b)
{
    return a.line == b.line && (a.file == b.file || !strcmp(a.file, b.file));
}

[[noreturn]] static void diverged_barrier(CudasimSite other)
{
    die("barrier divergence: %d of %d threads wait at the barrier %s, another at %s",
        block->at_barrier, block->threads, place(block->barrier).c_str(), place(other).c_str());
}

[[noreturn]] static void diverged_warp(int w, int lane, const char *why)
{
    const Fiber *fiber = &block->fiber[w * LANES + lane];
    die("warp divergence: lane %d of warp %d waits at %s for the lanes %#x: %s", lane, w,
        place(fiber->site).c_str(), fiber->mask, why);
}

/* Nobody can run, somebody waits. */
[[noreturn]] static void stuck()
{
    for (int w = 0; w < LANES; w++) {
        if (!block->warp[w].meeting)
            continue;
        int lane = __builtin_ctz(block->warp[w].meeting);
        unsigned missing = block->fiber[w * LANES + lane].mask & ~block->warp[w].meeting;
        char why[128];
        snprintf(why, sizeof why, "%#x do not come, of which %#x have ended and %#x wait at %s",
                 missing, missing & block->warp[w].ended, missing & block->warp[w].barrier,
                 block->at_barrier ? ("the barrier " + place(block->barrier)).c_str()
                                   : "other places");
        diverged_warp(w, lane, why);
    }
    die("barrier divergence: %d of %d threads wait at the barrier %s, %d have ended",
        block->at_barrier, block->threads, place(block->barrier).c_str(), block->ended);
}

/* ---- who runs next ---- */

static int pick(unsigned set)
{
    return block->phase & 1 ? 31 - __builtin_clz(set) : __builtin_ctz(set);
}

static void open_barrier()
{
    block->at_barrier = 0;
    block->phase++;
    for (int w = 0; w * LANES < block->threads; w++) {
        block->warp[w].ready = block->warp[w].exists;
        block->warp[w].barrier = 0;
        block->ready_warps |= 1u << w;
    }
}

/* The thread that runs next, no more ready; -1: all have ended. */
static int next()
{
    int w = block->current / LANES;
    if (!block->warp[w].ready) {
        if (!block->ready_warps) {
            if (block->ended == block->threads)
                return -1;
            if (block->at_barrier != block->threads)
                stuck();
            open_barrier();
        }
        w = pick(block->ready_warps);
    }
    int lane = pick(block->warp[w].ready);
    block->warp[w].ready &= ~(1u << lane);
    if (!block->warp[w].ready)
        block->ready_warps &= ~(1u << w);
    return w * LANES + lane;
}

static bool begins(int thread)
{
    Warp *warp = &block->warp[thread / LANES];
    unsigned bit = 1u << thread % LANES;
    bool first = !(warp->begun & bit);
    warp->begun |= bit;
    return first;
}

/* The life of a stack: threads that begin on it, until another goes on. */
static void life()
{
    for (;;) {
        Fiber *self = &block->fiber[block->current];
        threadIdx = self->index;
        (*block->body)();
        block->ended++;
        block->warp[block->current / LANES].ended |= 1u << block->current % LANES;
        int thread = next();
        if (thread >= 0 && begins(thread)) {
            block->fiber[thread].stack = self->stack;
            block->current = thread;
            continue;
        }
        block->stacks.push_back(self->stack);
        if (thread >= 0)
            block->current = thread;
        switch_to(&self->context, thread >= 0 ? &block->fiber[thread].context : &block->outside);
    }
}

static void resume(Context *from, int thread)
{
    Fiber *fiber = &block->fiber[thread];
    if (begins(thread)) {
        fiber->stack = new_stack();
        /* Tops at one offset in their pages would share a few lines of the cache. */
        size_t color = (uintptr_t)fiber->stack / (PAGE + STACK) % 32 * 128;
        prepare(&fiber->context, fiber->stack, STACK - color, life);
    }
    block->current = thread;
    switch_to(from, &fiber->context);
}

/* The current thread waits. */
static void give_way()
{
    int self = block->current, thread = next();
    if (thread == self)
        return;
    resume(&block->fiber[self].context, thread);
    threadIdx = block->fiber[self].index;
}

/* ---- meetings ---- */

static void finish_meeting(int w, unsigned mask, const Fiber *last)
{
    Fiber *fiber = &block->fiber[w * LANES];
    uint64_t given[LANES], ballot = 0;
    for (unsigned left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        Fiber *f = &fiber[lane];
        if (f->mask != mask || f->kind != last->kind || !same(f->site, last->site))
            diverged_warp(w, lane, ("another waits at " + place(last->site)).c_str());
        given[lane] = f->value;
        ballot |= (f->value & 1) << lane;
    }
    for (unsigned left = mask; left; left &= left - 1) {
        Fiber *f = &fiber[__builtin_ctz(left)];
        if (f->kind == CUDASIM_BALLOT)
            f->value = ballot;
        else if (f->kind == CUDASIM_SHUFFLE)
            f->value = mask >> (f->from & 31) & 1 ? given[f->from & 31]
                                                  : (uint64_t)PATTERN << 32 | PATTERN;
    }
}

static uint64_t meet(CudasimMeeting kind, unsigned mask, uint64_t value, int from, CudasimSite site)
{
    int thread = block->current, w = thread / LANES;
    unsigned bit = 1u << thread % LANES;
    Warp *warp = &block->warp[w];
    Fiber *self = &block->fiber[thread];
    self->kind = kind;
    self->mask = mask;
    self->value = value;
    self->from = from;
    self->site = site;
    if (!(mask & bit))
        diverged_warp(w, thread % LANES, "it is not one of them");
    if (mask & ~warp->exists)
        diverged_warp(w, thread % LANES, "the block is not that wide");
    if (mask & warp->ended)
        diverged_warp(w, thread % LANES, "some have ended");
    warp->meeting |= bit;
    if ((warp->meeting & mask) != mask) {
        give_way();
        return self->value;
    }
    finish_meeting(w, mask, self);
    warp->meeting &= ~mask;
    warp->ready |= mask & ~bit;
    if (warp->ready)
        block->ready_warps |= 1u << w;
    return self->value;
}

/* ---- grids ---- */

static void poison(const Grid *grid)
{
    for (Range range : *grid->shared)
        fill_pattern(tls_block() + range.at, range.bytes);
    fill_pattern(cudasim_dynamic, grid->dynamic + RED_ZONE);
}

static void check_red_zone(const Grid *grid)
{
    static const unsigned pattern = PATTERN;
    for (size_t i = 0; i < RED_ZONE; i++)
        if (cudasim_dynamic[grid->dynamic + i] !=
            ((const unsigned char *)&pattern)[(grid->dynamic + i) % 4])
            die("out of bounds: written behind %zu bytes of dynamic shared memory", grid->dynamic);
}

static void begin_block(unsigned number)
{
    block->at_barrier = block->ended = block->current = 0;
    block->phase = number;
    block->ready_warps = 0;
    for (int w = 0; w * LANES < block->threads; w++) {
        int lanes = block->threads - w * LANES;
        unsigned exists = lanes >= LANES ? ~0u : (1u << lanes) - 1;
        block->warp[w] = {exists, exists, 0, 0, 0, 0};
        block->ready_warps |= 1u << w;
    }
    block->current = pick(block->ready_warps) * LANES;
}

static void number_threads(dim3 size)
{
    for (int i = 0; i < block->threads; i++)
        block->fiber[i].index = {i % size.x, i / size.x % size.y, i / size.x / size.y};
}

void run_grid(const Grid *grid)
{
    static thread_local unsigned launches;
    if (!block)
        block = new Block;
    unsigned blocks = grid->grid.x * grid->grid.y * grid->grid.z;
    bool backwards = launches++ & 1;
    blockDim = grid->block;
    gridDim = grid->grid;
    block->body = &grid->body;
    block->threads = (int)(blockDim.x * blockDim.y * blockDim.z);
    memset(block->warp, 0, sizeof block->warp);
    number_threads(blockDim);
    for (unsigned i = 0; i < blocks; i++) {
        unsigned b = backwards ? blocks - 1 - i : i;
        blockIdx = {b % gridDim.x, b / gridDim.x % gridDim.y, b / gridDim.x / gridDim.y};
        poison(grid);
        begin_block(b);
        resume(&block->outside, next());
        check_red_zone(grid);
    }
}

}  // namespace sim

using namespace sim;

void cudasim_block_barrier(CudasimSite site)
{
    if (block->at_barrier && !same(block->barrier, site))
        diverged_barrier(site);
    block->barrier = site;
    block->at_barrier++;
    block->warp[block->current / LANES].barrier |= 1u << block->current % LANES;
    give_way();
}

uint64_t cudasim_warp_meeting(CudasimMeeting kind, unsigned mask, uint64_t value, int from,
                              CudasimSite site)
{
    return meet(kind, mask, value, from, site);
}

int cudasim_lane()
{
    return block->current % LANES;
}
