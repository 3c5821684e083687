#pragma once

#include "engine/cuda/kernel_list.h"

#include <cuda_runtime_api.h>

namespace planloom {

/// As CudaFunctions::launch.
cudaError_t launchKernel(DeviceKernel kernel, const void *arguments, std::int64_t items, cudaStream_t stream);
/// The same, of PLANLOOM_MATRIX_KERNELS.
cudaError_t launchMatrixKernel(
    DeviceKernel kernel, const void *arguments, std::int64_t items, cudaStream_t stream);
/// As CudaFunctions::codeArchitecture.
cudaError_t codeArchitecture(std::int32_t &architecture);

} // namespace planloom
