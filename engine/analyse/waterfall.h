#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"

#include <array>
#include <cstdint>

namespace planloom {

/// Where the time of a step goes.
enum class StepPart : std::uint8_t {
    Compute, ///< Kernels of the forward and backward pass, run once.
    ExposedCommunication, ///< Communication while nothing is computed.
    Idle, ///< Neither. With exposed communication it makes up the bubble (`bubbleRatio`).
    Recompute, ///< Kernels of the forward pass run a second time.
    Optimizer, ///< Compute of the optimizer and of the reduction before it, apart from communication.
    Other, ///< Loads, slices, sums and copies of the passes.
};
constexpr std::size_t kStepPartCount = 6;
const char *nameOf(StepPart part); ///< "compute", "exposed communication", "idle", ...

/// A step cut into its parts, in nanoseconds, averaged over devices: every device's parts add up to the step,
/// and so do their averages. What rounding leaves over (less than a nanosecond a part) is in Other.
struct StepParts {
    std::array<std::int64_t, kStepPartCount> nanoseconds{}; ///< By StepPart.

    std::int64_t operator[](StepPart part) const { return nanoseconds[static_cast<std::size_t>(part)]; }
    std::int64_t step() const; ///< Their sum: `Timeline::step`.
    friend bool operator==(const StepParts &, const StepParts &) = default;
};

/// Of a predicted or measured timeline of `plan`, with spans. A timeline without devices is all idle.
/// O(spans).
StepParts partsOf(const ExecutionPlan &plan, const Timeline &timeline);

/// Why one step takes longer or shorter than another: for each part, `to` minus `from`. They add up to the
/// difference of the two steps exactly; the other way round every difference changes its sign; of a step with
/// itself all are 0.
struct Waterfall {
    StepParts from{};
    StepParts to{};
    StepParts delta{};
    friend bool operator==(const Waterfall &, const Waterfall &) = default;
};

/// The plans may differ in everything, also in the number of devices; measured may be held against predicted.
Waterfall waterfallOf(
    const ExecutionPlan &fromPlan, const Timeline &from, const ExecutionPlan &toPlan, const Timeline &to);
Waterfall waterfallOf(const StepParts &from, const StepParts &to);

} // namespace planloom
