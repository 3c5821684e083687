#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"

#include <array>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <vector>

namespace planloom {

/// Behind all times: a buffer that outlives the step.
constexpr std::int64_t kNeverDies = std::numeric_limits<std::int64_t>::max();

/// One instance of a buffer of a device and when it takes memory: during [birth, death).
struct BufferLifetime {
    std::int32_t buffer = -1; ///< Index into the device's buffers.
    std::int32_t microBatch =
        -1; ///< Of buffers per micro-batch; -1 for those of the step and persistent ones.
    TensorId tensor{};
    MemoryKind kind{};
    Bytes bytes{};
    OperatorId
        maker{}; ///< The operator whose instruction wrote it first; invalid for what is there from the start.
    InstructionKind made{}; ///< By what kind of instruction; Load for what is there from the start.
    std::int64_t birth = 0; ///< Nanoseconds.
    std::int64_t death = kNeverDies;
    friend bool operator==(const BufferLifetime &, const BufferLifetime &) = default;
};

/// All lifetimes of one device in one step, by birth: those that are alive at a time add up to the device's
/// memory curve exactly.
/// @return empty if stopped or out of range. O(spans of the device + lifetimes log lifetimes)
std::vector<BufferLifetime> lifetimesOf(
    const ExecutionPlan &plan, const Timeline &timeline, DeviceId device, std::stop_token stop = {});

/// Those alive at `time`, largest first. O(lifetimes born by then + result log result).
std::vector<BufferLifetime> aliveAt(const std::vector<BufferLifetime> &lifetimes, Nanoseconds time);

/// Both at once, for one look: the live buffers of `device` at `time`, largest first.
std::vector<BufferLifetime> memoryAt(
    const ExecutionPlan &plan, const Timeline &timeline, DeviceId device, Nanoseconds time);

/// Bytes by kind of a memory curve at `time`; zero before its first point.
std::array<std::int64_t, kMemoryKindCount> bytesAt(const MemoryCurve &curve, Nanoseconds time);

/// The first moment of a memory curve's peak; zero for one without points.
Nanoseconds peakTime(const MemoryCurve &curve);

} // namespace planloom
