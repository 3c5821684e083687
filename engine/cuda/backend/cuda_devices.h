#pragma once

#include "engine/cuda/backend/cuda_backend.h"
#include "engine/runtime/devices/run_devices.h"
#include "engine/runtime/run.h"

#include <functional>
#include <memory>
#include <string>

namespace planloom {

/// Gives the functions of CUDA, in the process that runs the plan: a forked process cannot use those of its
/// parent.
using OpenCuda = std::function<Result<std::shared_ptr<CudaFunctions>>()>;

/// All devices of a plan on one GPU of this machine, in one process: any plan can be tried with a single one.
/// What opens them returns NotFound or NotSupported with the reason where there is none that can be used.
OpenDevices emulatedCudaDevices(OpenCuda open, CudaBackendOptions options = {});

/// Which devices `--backend` names: "cpu", "cuda" (nccl_devices.h), "cuda-emulated". @return NotSupported for
/// others, naming those known
/// @param predictedStepSeconds  0 if unknown: of long steps more patience is had
Result<OpenDevices> devicesOfBackend(const std::string &backend, double predictedStepSeconds = 0);

/// `MachineProfile::machine` of a GPU.
Result<std::string> cudaMachineName(CudaFunctions &cuda, std::int32_t gpu);

/// Why no GPU can be used; success where one can. Checks driver, devices and architectures.
Result<void> checkCuda(CudaFunctions &cuda, std::int32_t gpu);

} // namespace planloom
