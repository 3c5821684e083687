// Those kernels on the device that can become one with others (element_chain.h): compiled as chains are, without fused
// multiplications and additions, so that both make the same bits.

#include "engine/cuda/plugin/launch.h"

namespace planloom {

namespace {

template<typename Kernel> __global__ void runElements(Kernel kernel, std::int64_t items)
{
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < items; i += step)
        kernel(i);
}

} // namespace

bool launchChainKernel(DeviceKernel kernel, const void *arguments, std::int64_t items, cudaStream_t stream)
{
    switch (kernel) {
#define PLANLOOM_LAUNCH_ELEMENTS(Name)                                                                       \
    case DeviceKernel::Name:                                                                                 \
        runElements<<<blocksFor(items), kThreads, 0, stream>>>(                                              \
            *static_cast<const Name##Kernel *>(arguments), items);                                           \
        return true;
        PLANLOOM_CHAIN_KERNELS(PLANLOOM_LAUNCH_ELEMENTS)
    default:
        return false;
    }
}

} // namespace planloom
