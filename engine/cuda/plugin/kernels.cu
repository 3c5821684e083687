// The kernels of kernel_list.h on the device: loops of threads, or of teams, over their items. Those that can be made one with others
// are in elements.cu.

#include "engine/cuda/kernels/kernel_list.h"
#include "engine/cuda/plugin/launch.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr int kWarp = 32;

/// A block of threads, as kernels of teams know it (LoneTeam is one on the host).
class BlockTeam
{
public:
    __device__ BlockTeam(float *shared, double *partial)
        : m_shared(shared)
        , m_partial(partial)
    {
    }
    __device__ std::int64_t index() const { return threadIdx.x; }
    __device__ std::int64_t size() const { return kThreads; }
    __device__ void meet() const { __syncthreads(); }
    __device__ float *shared() const { return m_shared; }

    __device__ double sum(double own) const
    {
        return joined(own, [](double a, double b) { return a + b; });
    }
    __device__ float largest(float own) const
    {
        return static_cast<float>(joined(static_cast<double>(own), [](double a, double b) { return b > a ? b : a; }));
    }

private:
    /// Of all threads, in an order that is always the same. Every thread of the block must come here.
    template<typename Join> __device__ double joined(double own, Join join) const
    {
        for (int distance = kWarp / 2; distance > 0; distance /= 2)
            own = join(own, __shfl_down_sync(0xffffffffu, own, distance));
        __syncthreads(); // those before have read
        if (threadIdx.x % kWarp == 0)
            m_partial[threadIdx.x / kWarp] = own;
        __syncthreads();
        double all = m_partial[0];
        for (int warp = 1; warp < kThreads / kWarp; ++warp)
            all = join(all, m_partial[warp]);
        return all;
    }

    float *m_shared;
    double *m_partial;
};

template<typename Kernel> __global__ void runElements(Kernel kernel, std::int64_t items)
{
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < items; i += step)
        kernel(i);
}

template<typename Kernel> __global__ void __launch_bounds__(kThreads) runTeams(Kernel kernel, std::int64_t items)
{
    __shared__ double shared[kTeamFloats / 2];
    __shared__ double partial[kThreads / kWarp];
    const BlockTeam team(reinterpret_cast<float *>(shared), partial);
    for (std::int64_t i = blockIdx.x; i < items; i += gridDim.x)
        kernel(team, i);
}

} // namespace

cudaError_t launchKernel(DeviceKernel kernel, const void *arguments, std::int64_t items, cudaStream_t stream)
{
    const unsigned blocks = blocksFor(items);
    const auto teams = static_cast<unsigned>(std::min(kMostBlocks, items));
    switch (kernel) {
#define PLANLOOM_LAUNCH_ELEMENTS(Name)                                                                       \
    case DeviceKernel::Name:                                                                                 \
        runElements<<<blocks, kThreads, 0, stream>>>(*static_cast<const Name##Kernel *>(arguments), items);  \
        break;
#define PLANLOOM_LAUNCH_TEAMS(Name)                                                                          \
    case DeviceKernel::Name:                                                                                 \
        runTeams<<<teams, kThreads, 0, stream>>>(*static_cast<const Name##Kernel *>(arguments), items);      \
        break;
        PLANLOOM_ELEMENT_KERNELS(PLANLOOM_LAUNCH_ELEMENTS)
        PLANLOOM_TEAM_KERNELS(PLANLOOM_LAUNCH_TEAMS)
    default:
        if (!launchChainKernel(kernel, arguments, items, stream))
            return launchMatrixKernel(kernel, arguments, items, stream);
    }
    return cudaGetLastError();
}

} // namespace planloom
