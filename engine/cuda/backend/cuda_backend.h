#pragma once

#include "engine/cuda/backend/cuda_communicator.h"
#include "engine/runtime/devices/device_backend.h"

#include <chrono>
#include <filesystem>
#include <memory>

namespace planloom {

/// How a device of CUDA is driven.
struct CudaBackendOptions {
    std::int32_t gpu = 0; ///< CUDA's number.
    /// A step in which nothing ends for so long is given up, later where the host computes for it.
    std::chrono::milliseconds deadline{12'000};
    bool captures = true; ///< Steps that are alike run as CUDA graphs (step_graphs.h).
    bool fuses = true; ///< Element-wise kernels that follow each other become one (element_chain.h).
    std::filesystem::path kernelFolder{}; ///< Where those are kept for later runs; empty: nowhere.
};

/// A device on a GPU: each queue is a stream, each event an event, and a task is in its stream as soon as all
/// that it waits for is. Collectives of several devices in this process meet on the host; until they have,
/// what stands behind them in their queues is held back.
///
/// Tasks' times are those of events in their streams, on the host's clock: an event that is recorded while
/// nothing runs anchors it at the start of each step.
/// @return as cudaError, where the GPU cannot be used
Result<std::unique_ptr<DeviceBackend>> cudaBackend(
    CudaShared &shared, std::unique_ptr<CudaCommunicator> communicator, const CudaBackendOptions &options);

} // namespace planloom
