#pragma once

#include "engine/analyse/block_label.h"
#include "engine/analyse/edge_communication.h"
#include "engine/hardware/cluster.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/plan/decided_by.h"
#include "engine/simulate/timeline.h"
#include "widgets/scene/queue_tracks.h"
#include "widgets/scene/timeline_lanes.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// The compute spans of one segment and micro-batch: "F0". Others may interrupt it, as the reductions of
/// gradients do with the last backward block: it is one block all the same, of several pieces.
struct TimelineBlock {
    std::int64_t begin = 0; ///< Nanoseconds.
    std::int64_t end = 0;
    SegmentKind kind = SegmentKind::Forward;
    StageId stage{};
    std::int32_t microBatch = 0;
    LaneRows rows{}; ///< From its first span to behind its last.
    std::int32_t segment = -1; ///< Index into the device's segments.
    BlockPart part{}; ///< Its lane and slice; none where its stage has no several.
    WideStage wide = WideStage::None; ///< Its stage lies around others on all of their devices.
    bool interrupted = false; ///< Spans of other blocks are among `rows`.
    DecidedBy decidedBy = DecidedBy::Default; ///< The least of its operators.
    friend bool operator==(const TimelineBlock &, const TimelineBlock &) = default;

    /// Forward and backward blocks have an order of their own; what runs once per step has none, and
    /// gradients of weights in a pass of their own fill the time that the others leave.
    bool isOrdered() const { return isPass(kind) && kind != SegmentKind::WeightGradient; }
};

/// Spans of one block that follow one another.
struct BlockPiece {
    std::int64_t begin = 0; ///< Nanoseconds.
    std::int64_t end = 0;
    LaneRows rows{};
    std::int32_t block = -1; ///< Index into the lane's blocks.
    friend bool operator==(const BlockPiece &, const BlockPiece &) = default;
};

/// The spans of one of a device's queues.
struct LaneTrack {
    QueueKind queue{};
    LaneRows rows{};
    friend bool operator==(const LaneTrack &, const LaneTrack &) = default;
};

/// The forward blocks of a pipeline stage before its first backward block: as many micro-batches are in
/// flight.
struct WarmUp {
    StageId stage{};
    std::int32_t count = 0; ///< 0 where the lane has none.
    std::int64_t begin = 0; ///< Nanoseconds.
    std::int64_t end = 0; ///< Of the last of these blocks.
    std::int64_t each = 0; ///< Length of the first block.
    friend bool operator==(const WarmUp &, const WarmUp &) = default;
};

/// One device's part of a scene.
struct DeviceLane {
    DeviceId device{};
    LaneRows compute{};
    /// Of the queues beside compute that its program uses or that have spans, by queue.
    std::vector<LaneTrack> tracks{};
    std::vector<TimelineBlock> blocks{}; ///< In the order of their begin; a later one may end earlier.
    std::vector<BlockPiece> pieces{}; ///< Of the blocks: all of `compute`, in order of time.
    std::vector<std::int64_t> latestEnd{}; ///< By block: of its end and those of the blocks before it.
    PeakIndex memory{};
    std::int32_t symmetryClass = -1; ///< Devices of one class have equal lanes.
    std::int32_t stage = -1; ///< The first stage it works for; -1 if none.
    std::int32_t host = 0;
    std::int32_t replica =
        -1; ///< Its place among the devices with which it sums gradients; -1 if there are none.
    WarmUp warmUp{}; ///< Of `stage`, in plans with several stages and micro-batches.

    /// The queues of `tracks`.
    QueueSet queues() const;
    /// The spans of a queue, compute among them; none for one that is not used.
    LaneRows rowsOf(QueueKind queue) const;
    /// Index of the block that holds compute row `row`; -1 if none. O(log pieces)
    std::int32_t blockOf(std::size_t row) const;
    /// Index of the first block that ends after `nanoseconds`; the number of blocks if there is none. Those
    /// behind it may have ended before. O(log blocks)
    std::size_t firstBlockEndingAfter(double nanoseconds) const;
    /// The same of the pieces, which end in their order.
    std::size_t firstPieceEndingAfter(double nanoseconds) const;
    /// Index of the block that runs at `nanoseconds`, or pauses there; -1 if none.
    std::int32_t blockAt(double nanoseconds) const;
    /// When all blocks before `block` (or all, for their number) have ended: where a pause before it begins.
    std::int64_t endBefore(std::size_t block) const;
    /// The spans of a block without those that interrupt it, in order of time. O(log pieces + pieces among
    /// its rows)
    std::vector<LaneRows> piecesOf(std::size_t block) const;
};

/// Stretches that follow one another in one piece of a block, for a label over all of them.
struct FoldedRun {
    double x0 = 0; ///< Pixels.
    double x1 = 0;
    LaneRows rows{}; ///< The piece's own spans among theirs: a pixel on a border has spans of both sides.
};
/// Of what `foldSpans` made of the lane's compute rows, in order of x.
std::vector<FoldedRun> foldedRuns(const DeviceLane &lane, const std::vector<DrawRecord> &records);

/// A timeline prepared for drawing. Immutable, made off the GUI thread; shared as `TimelineSceneSnapshot`.
struct TimelineScene {
    TimelineSnapshot timeline{};
    std::shared_ptr<const ExecutionPlan> plan{};
    Cluster cluster{};
    std::vector<DeviceLane> lanes{}; ///< By device.
    std::vector<BusyBefore> before{}; ///< By row, and one more.
    std::int64_t longestSpan = 0; ///< Nanoseconds, of the compute queues: the end of the scale "by time".
    std::int64_t largestPeak = 0; ///< Bytes, over all devices.
    std::array<bool, kMemoryKindCount> memoryKinds{}; ///< Kinds that some device has at its peak.
    /// Nanoseconds: when the first gradients are reduced, or the optimizer begins; none if neither is done.
    std::optional<std::int64_t> gradientsBegin{};
    /// Rows by operator: those of operator i are `operatorRows[operatorBegin[i]]` up to `operatorBegin[i +
    /// 1]`, ascending.
    std::vector<std::uint32_t> operatorBegin{};
    std::vector<std::uint32_t> operatorRows{};
    std::vector<EdgeCommunication> communication{}; ///< On the graph's edges, by operator and tensor.
    std::vector<InstructionKind> communicationKinds{}; ///< That appear in it, ascending; Recv is a Send.
    std::vector<DecidedBy> decidedBy{}; ///< By operator; empty where it is not known (measured steps).

    const Graph &graph() const { return *plan->graph; }
    /// Of the device that the plan knows as `device`.
    const DeviceModel &deviceModel(DeviceId device) const
    {
        return cluster.deviceAt(plan ? plan->units.deviceOf(0, device) : device);
    }
    /// The instruction that row `row` of the spans ran; none if the timeline does not fit the plan.
    const Instruction *findInstruction(std::size_t row) const;
    const Segment *findSegment(std::size_t row) const;
    /// The operator that a span runs or serves; invalid if none.
    OperatorId operatorOf(std::size_t row) const;
    /// A compute span that is the block's own: one among its rows may be of another that interrupts it.
    bool isIn(const TimelineBlock &block, std::size_t row) const;
    /// Of the operator that a span runs or serves.
    DecidedBy decidedByOf(std::size_t row) const;
};
using TimelineSceneSnapshot = std::shared_ptr<const TimelineScene>;

/// O(spans + memory points). Thread-safe. The arguments must not be null and must belong together.
/// @param decidedBy  by operator; empty if it is not known
TimelineSceneSnapshot makeTimelineScene(TimelineSnapshot timeline, std::shared_ptr<const ExecutionPlan> plan,
    Cluster cluster, std::vector<DecidedBy> decidedBy = {});

/// How many spans run or serve `operators`. O(operators)
std::size_t rowCountOf(const TimelineScene &scene, const std::vector<OperatorId> &operators);

/// Rows, ascending, of all spans that run or serve one of `operators` (ascending, each once).
/// O(rows found x log): many thousand belong off the GUI thread.
std::vector<std::size_t> rowsOf(const TimelineScene &scene, const std::vector<OperatorId> &operators);

/// The operators that communications serve, ascending, each once.
std::vector<OperatorId> servedBy(const std::vector<EdgeCommunication> &edges);

/// Rows, ascending, of both ends of these communications. O(rows that serve their operators x log edges)
std::vector<std::size_t> communicationRows(
    const TimelineScene &scene, const std::vector<EdgeCommunication> &edges);

/// The operators of a block's spans, ascending, each once. O(spans of the block)
std::vector<OperatorId> operatorsOf(const TimelineScene &scene, const TimelineBlock &block);

} // namespace planloom
