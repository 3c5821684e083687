#pragma once

#include "engine/graph/operators/operator_kind.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"

#include <array>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

namespace planloom {

/// A part of a timeline: a range of time on some devices.
struct TimeBox {
    std::int64_t begin = 0; ///< Nanoseconds.
    std::int64_t end = 0; ///< Not included.
    std::vector<DeviceId> devices{}; ///< Empty means all.
};

/// Time, and how many spans it comes from.
struct SpanAmount {
    std::int64_t nanoseconds = 0;
    std::int64_t spans = 0;
    friend bool operator==(const SpanAmount &, const SpanAmount &) = default;
};

/// What one device does in a box: compute + exposed + idle is the length of the box.
struct DeviceStatistics {
    DeviceId device{};
    std::int64_t compute = 0; ///< Nanoseconds its compute queue runs.
    std::int64_t communication = 0; ///< Its other queues run, one by one: at once counts twice.
    std::int64_t exposed = 0; ///< Communication while it computes nothing.
    std::int64_t idle = 0; ///< Neither runs.
    friend bool operator==(const DeviceStatistics &, const DeviceStatistics &) = default;
};

constexpr std::size_t kOperatorCategoryCount = static_cast<std::size_t>(OperatorCategory::Other) + 1;
constexpr std::size_t kDirectionCount = static_cast<std::size_t>(Direction::Optimizer) + 1;

/// "product", "normalization", ...
const char *nameOf(OperatorCategory category);

/// Figures of a box. Spans count with the part of them that lies inside. Every compute span is in exactly one
/// of `byCategory` and `copies`, one of `byDirection`, and one of `byMicroBatch` and `oncePerStep`.
struct BoxStatistics {
    std::int64_t length = 0; ///< Nanoseconds.
    std::vector<DeviceStatistics> devices{}; ///< In the order of the box.
    DeviceStatistics total{}; ///< Sums over them; its device is invalid.
    std::array<SpanAmount, kOperatorCategoryCount> byCategory{}; ///< Kernels.
    SpanAmount copies{}; ///< Compute spans that are no kernels: loads, sums, slices, updates.
    SpanAmount recompute{}; ///< The share of `byCategory` that runs a second time.
    /// Compute spans by the pass they run in; what is recomputed runs in the backward pass. What runs first
    /// in the step counts as forward, reduction as optimizer, and work at transfers as what it serves.
    std::array<SpanAmount, kDirectionCount> byDirection{};
    std::vector<SpanAmount> byMicroBatch{}; ///< Compute spans of segments that are repeated.
    SpanAmount oncePerStep{};
    std::array<SpanAmount, kInstructionKindCount> communication{}; ///< By InstructionKind; 0 for others.
    friend bool operator==(const BoxStatistics &, const BoxStatistics &) = default;
};

/// @return nothing if stopped; devices that the timeline does not have are left out
/// O(spans in the box + devices x log spans).
std::optional<BoxStatistics> statisticsOf(
    const ExecutionPlan &plan, const Timeline &timeline, const TimeBox &box, std::stop_token stop = {});

/// The whole step on all devices.
TimeBox wholeOf(const Timeline &timeline);

/// By operator of the plan's graph: how long kernels of its own run in one step, on all devices together.
/// Devices of one class run the same kernels. O(instructions of a device of each class)
std::vector<std::int64_t> kernelTimesOf(const ExecutionPlan &plan, const Timeline &timeline);

/// The pass that a segment counts as wherever passes are added up or painted: what runs first in the step as
/// forward, reduction as optimizer; transfers as forward, unless it is known what they serve (below).
Direction directionOf(SegmentKind kind);
/// The pass that compute of this instruction belongs to (see `BoxStatistics::byDirection`).
Direction directionOf(const ExecutionPlan &plan, const Segment &segment, const Instruction &instruction);

} // namespace planloom
