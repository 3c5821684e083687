#pragma once

#include "engine/cuda/kernel_list.h"

#include <cuda_runtime_api.h>

namespace planloom {

/// As CudaFunctions::launch.
cudaError_t launchKernel(DeviceKernel kernel, const void *arguments, std::int64_t items, cudaStream_t stream);

} // namespace planloom
