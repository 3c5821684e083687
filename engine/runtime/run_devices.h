#pragma once

#include "engine/runtime/device_backend.h"
#include "engine/runtime/free_memory.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace planloom {

/// The devices of one run that are not the CPU's: their backends, and what ends their communication.
/// Outlives the backends it makes.
class RunDevices
{
public:
    virtual ~RunDevices() = default;

    /// Hears of what the run should know of, such as a kernel that only the host has. Before all others.
    virtual void setWarning(std::function<void(const std::string &)> warning) = 0;

    /// Asked once for each device of the plan.
    virtual std::unique_ptr<DeviceBackend> device(DeviceId device) = 0;

    /// @return ResourceLimit if the devices do not have this much memory
    virtual Result<void> requireMemory(const std::vector<MemoryNeed> &needs) = 0;

    /// Ends all that waits for other devices, with Cancelled. Thread-safe.
    virtual void abort() = 0;
};

} // namespace planloom
