#pragma once

#include "engine/base/units.h"
#include "engine/runtime/machine/probe.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// What the devices of a run are.
enum class RunBackend : std::uint8_t {
    Cpu, ///< Emulated, on the processor.
    Cuda, ///< A GPU each, in a process of its own.
    CudaEmulated, ///< All of them emulated on one GPU.
    Torch, ///< Processes of PyTorch, one for each, on GPUs where there are enough, else on the processor.
};
constexpr int kRunBackendCount = 4;
const char *nameOf(RunBackend backend); ///< "cuda-emulated": as `--backend` takes it.
std::optional<RunBackend> backendNamed(std::string_view name); ///< Inverse of nameOf.

/// Why a plan cannot run on GPUs of a machine, as far as that is seen before it is tried, with what would do
/// instead; empty if nothing is in its way, and for Cpu and Torch. Libraries are left to who opens them.
/// @param peaks  by device: what its memory has to hold
std::string whyNotOnGpus(const Probe &probe, RunBackend backend, const std::vector<Bytes> &peaks);

} // namespace planloom
