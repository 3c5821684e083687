#pragma once

#include "engine/cuda/backend/cuda_devices.h"
#include "engine/cuda/nccl/nccl_functions.h"
#include "engine/runtime/processes/run_folder.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace planloom {

/// As OpenCuda. Called only where there are several devices.
using OpenNccl = std::function<Result<std::shared_ptr<NcclFunctions>>()>;

/// One device of a plan in each process, on the GPU of its rank's number, joined by NCCL. What opens them
/// returns NotSupported for a plan that NCCL cannot run (nccl_order.h), NotFound or NotSupported where there
/// is no such GPU, or no NCCL.
OpenDevices ncclDevices(OpenCuda cuda, OpenNccl nccl, const CudaBackendOptions &options = {});

/// Asks, in a process of its own since one that has used CUDA must not be forked, whether this machine can
/// run so many devices.
/// @return why not, with the offer to emulate: NotFound or NotSupported; Internal if CUDA does not answer
Result<void> requireGpus(std::int32_t devices);

/// Whether these functions can run so many devices. @return as requireGpus
Result<void> checkGpus(const OpenCuda &cuda, const OpenNccl &nccl, std::int32_t devices);

/// Opens what `request.backend` names: fills `options.devices`, and for "cuda" has one rank for each device.
/// Asks for GPUs where `now`, else whoever runs it does. @return as devicesOfBackend and requireGpus
Result<void> openBackend(RunRequest &request, bool now);

} // namespace planloom
