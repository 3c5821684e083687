#pragma once

#include "engine/runtime/devices/device_executor.h"
#include "engine/simulate/timeline.h"

#include <span>
#include <vector>

namespace planloom {

/// Puts what the devices measured together as one timeline. Communication spans include waiting for the
/// peers.
/// @param devices  of all devices of `plan`
Timeline measuredTimeline(
    const ExecutionPlan &plan, const std::vector<DeviceMeasure> &devices, Nanoseconds step);

/// What a device's buffers took over a step, by when its instructions ran.
/// @param spans  by instruction of the step; empty: nothing is known
MemoryCurve memoryCurve(
    const DeviceProgram &program, const MemoryPlan &memory, std::span<const LiveSpan> spans);

/// Bytes that each device sends in one step, by the ring algorithm for collectives, summed over equal
/// (kind, group, from, to).
std::vector<Traffic> trafficOf(const ExecutionPlan &plan);

} // namespace planloom
