#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

namespace planloom {

/// What a Python has to run exported plans with.
struct TorchProbe {
    std::string python{}; ///< The interpreter, as it was named.
    std::string pythonVersion{};
    std::string torch{}; ///< Version; empty without it.
    std::string whyNoTorch{}; ///< What importing it ended with.
    bool distributed = false; ///< torch.distributed was built in.
    bool gloo = false; ///< Communication on CPUs.
    bool nccl = false; ///< On GPUs.
    std::int32_t gpus = 0;
    std::string whyNoGpus{}; ///< Where there are none.
    std::string cuda{}; ///< Version that torch was built for; empty without it.
    std::string said{}; ///< What it printed: for `torchProbeIn` of another process.
    friend bool operator==(const TorchProbe &, const TorchProbe &) = default;
};

/// The interpreter of the virtual environment that is active, else the first on PATH; empty if there is none.
std::string pythonOnPath();

/// Asks an interpreter, which imports torch: takes seconds. @return NotFound for what cannot be started;
/// InvalidInput for what is no Python, or does not answer within `seconds`; Cancelled
Result<TorchProbe> probeTorch(
    const std::string &python, double seconds = 120, const std::stop_token &stop = {});
/// What the probe's program printed. @return InvalidInput
Result<TorchProbe> torchProbeIn(std::string_view text, const std::string &python);

/// Where a plan of `processes` runs: on GPUs, or why not there but on CPUs.
struct TorchPlace {
    bool onGpus = false;
    std::string whyNot{};
};
/// @return NotSupported saying why this Python runs no plan, and what would help
Result<TorchPlace> torchPlaceOf(const TorchProbe &probe, std::int32_t processes);

} // namespace planloom
