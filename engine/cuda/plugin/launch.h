#pragma once

#include "engine/cuda/kernels/kernel_list.h"

#include <algorithm>

#include <cuda_runtime_api.h>

namespace planloom {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 65535LL * 16; // what is beyond is done in turns

/// Of kThreads threads each, for one thread an item.
inline unsigned blocksFor(std::int64_t items)
{
    return static_cast<unsigned>(std::min(kMostBlocks, (items + kThreads - 1) / kThreads));
}

/// As CudaFunctions::launch.
cudaError_t launchKernel(DeviceKernel kernel, const void *arguments, std::int64_t items, cudaStream_t stream);
/// The same of those of PLANLOOM_CHAIN_KERNELS, with the launch's error left to be asked for. @return false
/// for others
bool launchChainKernel(DeviceKernel kernel, const void *arguments, std::int64_t items, cudaStream_t stream);
/// The same, of PLANLOOM_MATRIX_KERNELS.
cudaError_t launchMatrixKernel(
    DeviceKernel kernel, const void *arguments, std::int64_t items, cudaStream_t stream);
/// As CudaFunctions::codeArchitecture.
cudaError_t codeArchitecture(std::int32_t &architecture);

} // namespace planloom
