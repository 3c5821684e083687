#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/run.h"
#include "engine/simulate/timeline.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// Collectives and sends of one kind, number of members and size.
struct CollectiveFigures {
    InstructionKind kind{};
    std::int32_t members = 0; ///< Devices that take part.
    std::int64_t bytes = 0; ///< Of the whole value on one member, before or after, whichever is larger.
    std::int64_t moved = 0; ///< Bytes that one member sends, by the ring algorithm.
    std::int64_t count = 0; ///< Of spans that were measured, over all members.
    double predicted = 0; ///< Mean seconds of one; 0 if unknown.
    double measured = 0; ///< Mean seconds of one, waiting for the others included.
    double best = 0; ///< The shortest: nearly without waiting.
    /// Bytes per second that left a member while the shortest ran; 0 if unknown.
    double bandwidth() const { return best > 0 ? static_cast<double>(moved) / best : 0; }
    friend bool operator==(const CollectiveFigures &, const CollectiveFigures &) = default;
};

/// By kind, then by size, the largest first. O(spans); both timelines are of `plan`.
std::vector<CollectiveFigures> collectivesBySize(
    const ExecutionPlan &plan, const Timeline &predicted, const Timeline &measured);

/// The device that holds the others up, in a sentence; empty if there is none: its kernels take at least half
/// as long again, held against their prediction, as those of the device in the middle. Measured may be part
/// of a step. O(spans).
std::string stragglerOf(const ExecutionPlan &plan, const Timeline &predicted, const Timeline &measured);

/// Spans of one step, by device.
using StepSpans = std::vector<std::vector<LiveSpan>>;

/// The mean of several steps: every instruction's mean start and duration, over the steps that have it. Those
/// of `steps` that are empty are passed by. O(spans log spans).
StepSpans meanOf(const std::vector<const StepSpans *> &steps);

/// The step that took longest; 0 for none. The first of several is passed by: it warms up.
std::size_t worstStep(const std::vector<double> &stepSeconds);

} // namespace planloom
