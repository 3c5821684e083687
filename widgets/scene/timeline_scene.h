#pragma once

#include "engine/hardware/cluster.h"
#include "engine/lowering/execution_plan.h"
#include "engine/simulate/timeline.h"
#include "widgets/scene/timeline_lanes.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace planloom {

/// A run of compute spans of one segment and micro-batch: "F0".
struct TimelineBlock {
    std::int64_t begin = 0; ///< Nanoseconds.
    std::int64_t end = 0;
    SegmentKind kind = SegmentKind::Forward;
    StageId stage{};
    std::int32_t microBatch = 0;
    friend bool operator==(const TimelineBlock &, const TimelineBlock &) = default;
};

/// One device's part of a scene.
struct DeviceLane {
    DeviceId device{};
    LaneRows compute{};
    LaneRows communication{};
    std::vector<TimelineBlock> blocks{}; ///< In order of time.
    PeakIndex memory{};
    std::int32_t symmetryClass = -1; ///< Devices of one class have equal lanes.
    std::int32_t stage = -1; ///< The first stage it works for; -1 if none.
    std::int32_t node = 0;
};

/// A timeline prepared for drawing. Immutable, made off the GUI thread; shared as `TimelineSceneSnapshot`.
struct TimelineScene {
    TimelineSnapshot timeline{};
    std::shared_ptr<const ExecutionPlan> plan{};
    Cluster cluster{};
    std::vector<DeviceLane> lanes{}; ///< By device.
    std::vector<BusyBefore> before{}; ///< By row, and one more.
    std::int64_t longestSpan = 0; ///< Nanoseconds, of the compute streams: the end of the scale "by time".
    std::int64_t largestPeak = 0; ///< Bytes, over all devices.

    const Graph &graph() const { return *plan->graph; }
    /// The instruction that row `row` of the spans ran; none if the timeline does not fit the plan.
    const Instruction *findInstruction(std::size_t row) const;
    const Segment *findSegment(std::size_t row) const;
    /// The operator that a span runs or serves; invalid if none.
    OperatorId operatorOf(std::size_t row) const;
};
using TimelineSceneSnapshot = std::shared_ptr<const TimelineScene>;

/// O(spans + memory points). Thread-safe. The arguments must not be null and must belong together.
TimelineSceneSnapshot makeTimelineScene(
    TimelineSnapshot timeline, std::shared_ptr<const ExecutionPlan> plan, Cluster cluster);

/// Rows, ascending, of all spans that run or serve one of `operators` (ascending). O(spans)
std::vector<std::size_t> rowsOf(const TimelineScene &scene, const std::vector<OperatorId> &operators);

} // namespace planloom
