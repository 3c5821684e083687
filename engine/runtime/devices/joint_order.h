#pragma once

#include "engine/runtime/devices/memory_plan.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace planloom {

/// One run of one instruction, in the step of one device.
struct DeviceTurn {
    std::int32_t device = 0;
    std::int32_t step = 0; ///< Index into its `MemoryPlan::instructions`.
    friend bool operator==(const DeviceTurn &, const DeviceTurn &) = default;
};

/// The steps of all devices as one sequence, in which everything could happen one after another.
struct JointOrder {
    std::vector<DeviceTurn> turns{};
    /// [begin, end) in `turns` of what happens at once: the members of a collective, in the order of their
    /// group; a send and its receive; else one instruction. One behind the other.
    std::vector<std::pair<std::size_t, std::size_t>> meetings{};
};

/// Devices go on in turn, one instruction each, until they have to wait for those that they meet. So devices
/// that do alike stay beside each other. O(instructions).
/// @param memory  of all devices of `plan`, for the order of their steps
/// @return nothing if they cannot go on: no plan of Planloom's is like that
std::optional<JointOrder> jointOrder(const ExecutionPlan &plan, std::span<const MemoryPlan> memory);

} // namespace planloom
