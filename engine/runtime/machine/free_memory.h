#pragma once

#include "engine/base/result.h"
#include "engine/base/units.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// Memory that this process can still get: what the machine has available, and what is left below the limits
/// of the control groups (versions 1 and 2) that it is in, and of its address space (ulimit -v), whichever is
/// least. File caches that the kernel gives up count as free. Nothing where the system does not say.
/// @param root  in front of /proc and /sys
std::optional<Bytes> freeMemory(const std::string &root = {});

/// How many processes the system has killed because memory ran out: of this process's control group, else of
/// the machine. 0 where it does not say.
std::int64_t memoryKills(const std::string &root = {});

/// What one device needs of the memory of this machine.
struct MemoryNeed {
    std::int32_t device = 0;
    Bytes own{}; ///< Of its buffers.
    Bytes host{}; ///< Of its host, which is this machine, too.
};

/// @return ResourceLimit naming the device that needs most, what all need, what is free, and a way out
Result<void> requireMemory(const std::vector<MemoryNeed> &needs, const std::optional<Bytes> &free);

} // namespace planloom
