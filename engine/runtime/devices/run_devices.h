#pragma once

#include "engine/runtime/devices/device_backend.h"
#include "engine/runtime/machine/free_memory.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// The process that devices are opened in, among those of the run.
struct RankLink {
    std::int32_t rank = 0;
    std::int32_t ranks = 1;
    /// Hands bytes of rank 0 to all ranks, each of which calls it as often. @return Cancelled
    std::function<Result<std::string>(std::string_view)> broadcast{};
};

/// The devices of one run that are not the CPU's: their backends, and what ends their communication.
/// Outlives the backends it makes.
class RunDevices
{
public:
    virtual ~RunDevices() = default;

    /// Hears of what the run should know of, such as a kernel that only the host has. Before all others.
    virtual void setWarning(std::function<void(const std::string &)> warning) = 0;

    /// Opens the devices of this process, and what joins them with those of others. After `setWarning`,
    /// before all else. @return why there are none; NotSupported if they cannot be in this many processes
    virtual Result<void> connect(const RankLink &link) = 0;

    /// What the devices are, for what is measured on them: "NVIDIA H100 80GB HBM3, compute capability 9.0".
    /// Once they are connected.
    virtual Result<std::string> machine() = 0;

    /// Asked once for each device of this process.
    virtual std::unique_ptr<DeviceBackend> device(DeviceId device) = 0;

    /// @return ResourceLimit if the devices do not have this much memory
    virtual Result<void> requireMemory(const std::vector<MemoryNeed> &needs) = 0;

    /// Ends all that waits for other devices, with Cancelled. Thread-safe.
    virtual void abort() = 0;
};

} // namespace planloom
