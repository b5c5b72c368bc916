/* self_kernel.cpp: kernels, shared memory, barriers, shuffles, memory bounds. */
#include "self.h"
#include <math.h>
#include <stdio.h>

__global__ static void add(float *to, const float *x, const float *y, int count)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        to[i] = x[i] + y[i];
}

static void plain_kernel()
{
    const int n = 1000;
    float *x = device<float>(3 * n), *h = pinned<float>(n);
    cudaStream_t s = new_stream();
    for (int i = 0; i < n; i++)
        h[i] = (float)i;
    CUDA(cudaMemcpyAsync(x, h, n * sizeof *h, cudaMemcpyHostToDevice, s));
    CUDA(cudaMemcpyAsync(x + n, x, n * sizeof *h, cudaMemcpyDeviceToDevice, s));
    launch(s, (n + 127) / 128, 128, 0, add, x + 2 * n, x, x + n, n);
    CUDA(cudaMemcpyAsync(h, x + 2 * n, n * sizeof *h, cudaMemcpyDeviceToHost, s));
    CUDA(cudaStreamSynchronize(s));
    for (int i = 0; i < n; i++)
        EXPECT(h[i] == 2.0f * (float)i);
}

static void launch_ex_c()
{
    float *x = device<float>(3), *y = x + 1, *z = x + 2, one = 1, sum;
    int count = 1;
    CUDA(cudaMemcpy(x, &one, 4, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(y, &one, 4, cudaMemcpyHostToDevice));
    void *args[] = {&z, &x, &y, &count};
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = 1;
    CUDA(cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, 0));
    CUDA(cudaLaunchKernelExC(&config, (const void *)add, args));
    CUDA(cudaMemcpy(&sum, z, 4, cudaMemcpyDeviceToHost));
    EXPECT(sum == 2);
}

/* Each thread leaves its number, takes another's: wrong without the barriers. */
__global__ static void reverse(int *to, int rounds)
{
    __shared__ int here[256];
    int at = (int)threadIdx.x, last = (int)blockDim.x - 1;
    int value = at;
    for (int i = 0; i < rounds; i++) {
        here[at] = value;
        __syncthreads();
        value = here[last - at];
        __syncthreads();
    }
    to[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

static void barrier()
{
    int *x = device<int>(3 * 200), h[600];
    launch(0, 3, 200, 0, reverse, x, 3);
    CUDA(cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 600; i++)
        EXPECT(h[i] == 199 - i % 200);
}

__global__ static void one_for_all(float *to, int first, bool meet)
{
    __shared__ float value;
    if ((int)threadIdx.x == first)
        value = 1;
    if (meet)
        __syncthreads();
    to[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

/* The same kernel with and without its barrier: without, NaNs come out whether
 * the first or the last thread writes. */
static void missing_barrier()
{
    float *x = device<float>(128), h[128];
    for (int meet = 0; meet < 2; meet++)
        for (int first : {0, 63}) {
            int wrong = 0;
            launch(0, 2, 64, 0, one_for_all, x, first, meet);
            CUDA(cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost));
            for (float value : h)
                wrong += value != 1;
            EXPECT(meet ? wrong == 0 : wrong > 0);
        }
}

template <class T> __global__ static void sum_block(T *to, const T *from)
{
    extern __shared__ double dynamic_shared[];
    T *part = (T *)dynamic_shared;
    T sum = from[threadIdx.x];
    for (int step = 16; step; step /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : T(0);
        for (int step = 16; step; step /= 2)
            sum += __shfl_down_sync(0xffffffff, sum, (unsigned)step);
        if (threadIdx.x == 0)
            *to = sum;
    }
}

template <class T> static void sums()
{
    T *x = device<T>(513), h[512], sum = 0, got;
    for (int i = 0; i < 512; i++)
        sum += h[i] = (T)(i * i % 37);
    CUDA(cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice));
    launch(0, 1, 512, 16 * sizeof(T), sum_block<T>, x + 512, x);
    CUDA(cudaMemcpy(&got, x + 512, sizeof got, cudaMemcpyDeviceToHost));
    EXPECT(got == sum);
}

static void shuffle_sum()
{
    sums<float>();
    sums<double>();
    sums<int>();
}

__global__ static void shuffles(int *to)
{
    int lane = (int)threadIdx.x;
    to[lane] = __shfl_sync(0xffffffff, lane, 3, 8);
    to[32 + lane] = __shfl_up_sync(0xffffffff, lane, 2, 16);
    to[64 + lane] = __shfl_down_sync(0xffffffff, lane, 1);
    if (lane < 16)
        to[96 + lane] = __shfl_xor_sync(0xffff, lane, 5);
    else
        to[96 + lane] = (int)__ballot_sync(0xffff0000, lane % 2);
}

static void shuffle_kinds()
{
    int *x = device<int>(128), h[128];
    launch(0, 1, 32, 0, shuffles, x);
    CUDA(cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; i++) {
        EXPECT(h[i] == i / 8 * 8 + 3);
        EXPECT(h[32 + i] == (i % 16 < 2 ? i : i - 2));
        EXPECT(h[64 + i] == (i == 31 ? 31 : i + 1));
        EXPECT(h[96 + i] == (i < 16 ? i ^ 5 : (int)0xaaaa0000));
    }
}

__global__ static void early_end(int *to)
{
    if (threadIdx.x == 7)
        return;
    __syncthreads();
    to[threadIdx.x] = 1;
}

__global__ static void two_barriers(int *to)
{
    if (threadIdx.x < 5)
        __syncthreads();
    else
        __syncthreads();
    to[threadIdx.x] = 1;
}

__global__ static void half_shuffle(int *to)
{
    if (threadIdx.x < 16)
        to[threadIdx.x] = __shfl_xor_sync(0xffffffff, 1, 1);
    __syncthreads();
}

static void divergence_end()
{
    launch(0, 1, 64, 0, early_end, device<int>(64));
    CUDA(cudaDeviceSynchronize());
}

static void divergence_two()
{
    launch(0, 1, 64, 0, two_barriers, device<int>(64));
    CUDA(cudaDeviceSynchronize());
}

static void divergence_shuffle()
{
    launch(0, 1, 64, 0, half_shuffle, device<int>(64));
    CUDA(cudaDeviceSynchronize());
}

__global__ static void write_at(float *to, long at)
{
    to[at] = 1;
}

static void overrun_by(long floats)
{
    launch(0, 1, 1, 0, write_at, device<float>(1024), floats);
    CUDA(cudaDeviceSynchronize());
}

static void overrun_page()
{
    overrun_by(1024);
}

static void overrun_before()
{
    overrun_by(-1);
}

static void overrun_slack()
{
    launch(0, 1, 1, 0, write_at, device<float>(1000), 1000L);
    CUDA(cudaDeviceSynchronize());
}

static void use_after_free()
{
    float *x = device<float>(10);
    CUDA(cudaFree(x));
    launch(0, 1, 1, 0, write_at, x, 0L);
    CUDA(cudaDeviceSynchronize());
}

__global__ static void checks(float *to, size_t bytes)
{
    cudasim_check(to, bytes);
}

static void check_fits()
{
    launch(0, 1, 1, 0, checks, device<float>(10) + 4, 24ul);
    CUDA(cudaDeviceSynchronize());
}

static void check_overruns()
{
    launch(0, 1, 1, 0, checks, device<float>(10) + 4, 25ul);
    CUDA(cudaDeviceSynchronize());
}

__global__ static void write_shared(int at)
{
    extern __shared__ float smem[];
    smem[at] = 1;
}

static void overrun_shared()
{
    launch(0, 1, 1, 64, write_shared, 16);
    CUDA(cudaDeviceSynchronize());
}

__global__ static void read_shared(float *to)
{
    extern __shared__ float smem[];
    __shared__ float fixed[4];
    to[0] = smem[0];
    to[1] = fixed[3];
    smem[0] = fixed[3] = 1;
}

static void poison()
{
    float *x = device<float>(3), h[3];
    for (int i = 0; i < 2; i++) {
        launch(0, 2, 1, 4, read_shared, x);
        CUDA(cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost));
        EXPECT(isnan(h[0]) && isnan(h[1]) && isnan(h[2]));
    }
}

static void shared_limit()
{
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = 1;
    config.dynamicSmemBytes = 100 << 10;
    GIVES(cudaLaunchKernelEx(&config, write_shared, 0), cudaErrorInvalidValue);
    CUDA(
        cudaFuncSetAttribute(write_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
    CUDA(cudaLaunchKernelEx(&config, write_shared, (100 << 8) - 1));
    CUDA(cudaDeviceSynchronize());
    config.blockDim = 1025;
    GIVES(cudaLaunchKernelEx(&config, write_shared, 0), cudaErrorInvalidConfiguration);
    GIVES(cudaGetLastError(), cudaErrorInvalidConfiguration);
    GIVES(cudaGetLastError(), cudaSuccess);
}

__global__ static void count_up(float *to)
{
    atomicAdd(to, 1.0f);
}

static void atomics()
{
    float *x = device<float>(1), h = 0;
    CUDA(cudaMemcpy(x, &h, 4, cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize());
    cudaStream_t s = new_stream(), t = new_stream();
    launch(s, 50, 100, 0, count_up, x);
    launch(t, 50, 100, 0, count_up, x);
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemcpy(&h, x, 4, cudaMemcpyDeviceToHost));
    EXPECT(h == 10000);
}

static void fresh_memory()
{
    unsigned h[3];
    CUDA(cudaMemcpy(h, device<unsigned>(3), sizeof h, cudaMemcpyDeviceToHost));
    EXPECT(h[0] == 0x7ff97ff9 && h[2] == 0x7ff97ff9);
    EXPECT(isnan(*pinned<double>(1)));
}

const Case kernel_cases[] = {
    {"kernel", plain_kernel},
    {"kernel-launch-ex-c", launch_ex_c},
    {"kernel-barrier", barrier},
    {"kernel-missing-barrier", missing_barrier},
    {"kernel-shuffle-sum", shuffle_sum},
    {"kernel-shuffle-kinds", shuffle_kinds},
    {"kernel-divergence-end", divergence_end, DIES, "barrier divergence: 63 of 64"},
    {"kernel-divergence-two-barriers", divergence_two, DIES, "barrier divergence"},
    {"kernel-divergence-shuffle", divergence_shuffle, DIES, "warp divergence: lane 0"},
    {"kernel-divergence-name", divergence_end, DIES, "in kernel early_end on stream"},
    {"overrun-page", overrun_page, DIES, "0 bytes after an allocation of 4096 (device)"},
    {"overrun-before", overrun_before, DIES, "4 bytes before an allocation of 4096"},
    {"overrun-slack", overrun_slack, DIES, "behind the allocation of 4000 bytes"},
    {"overrun-kernel-name", overrun_slack, DIES, "in kernel write_at"},
    {"overrun-after-free", use_after_free, DIES, "out of bounds"},
    {"check-fits", check_fits},
    {"check-overruns", check_overruns, DIES, "25 bytes at offset 16 of an allocation of 40"},
    {"shared-overrun", overrun_shared, DIES, "behind 64 bytes of dynamic shared memory"},
    {"shared-poison", poison},
    {"shared-limit", shared_limit},
    {"atomics", atomics},
    {"memory-fresh", fresh_memory},
    {},
};
