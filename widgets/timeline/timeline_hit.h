#pragma once

#include "widgets/scene/time_axis.h"
#include "widgets/timeline/timeline_layout.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// What lies where on a timeline: all that hit-testing follows from. Positions are from the axis' zero to the
/// right and from the top of the content down.
struct TimelineCanvas {
    const TimelineScene *scene = nullptr; ///< Not null.
    const std::vector<TimelineRow> *rows = nullptr; ///< Not null.
    TimeAxis axis{};
    double width = 0;

    const DeviceLane &laneOf(const TimelineRow &row) const
    {
        return scene->lanes[static_cast<std::size_t>(row.lane)];
    }
    double pixels(std::int64_t nanoseconds) const
    {
        return static_cast<double>(nanoseconds) / axis.nanosecondsPerPixel;
    }
};

enum class HitPart : std::uint8_t {
    None,
    Group, ///< Header of a group, over its whole width.
    Header, ///< Name of a lane.
    LaneEdge, ///< The lower edge of a lane's name, or of a group's header: all that runs there.
    Bracket, ///< Micro-batches in flight.
    BracketEnd, ///< Its grip.
    Block, ///< The band "F0".
    Span, ///< An operator wide enough to be seen alone.
    SpanEdge, ///< Its bottom edge.
    Folded, ///< Operators too small to be seen alone.
    Idle, ///< A pause of the compute queue.
    Communication,
    Memory,
};

/// What lies under a point.
struct TimelineHit {
    HitPart part = HitPart::None;
    std::int32_t row = -1; ///< Index into the rows.
    std::int64_t span = -1; ///< Row of the spans: of Span, SpanEdge, Folded, Communication.
    std::int32_t block = -1; ///< Index into the lane's blocks; of Idle the one behind the pause.
    std::int64_t idleBegin = 0; ///< Of Idle, nanoseconds.
    std::int64_t idleEnd = 0;
    double time = 0; ///< Nanoseconds.

    /// A hand can take hold of it: it is compute, or a grip.
    bool movable() const
    {
        return part == HitPart::Block || part == HitPart::Span || part == HitPart::SpanEdge
            || part == HitPart::Folded || part == HitPart::BracketEnd || part == HitPart::LaneEdge;
    }
};

/// The operators that the devices of a row work on, forward ones, ascending. O(spans of the first
/// micro-batch)
std::vector<OperatorId> operatorsOfRow(const TimelineCanvas &canvas, std::int32_t row);

/// What lies at (x, y); x below 0 is the column of names. O(log spans + log rows)
TimelineHit hitAt(const TimelineCanvas &canvas, double x, int y);

/// Which way a drag goes.
enum class DragLock : std::uint8_t { None, Horizontal, Vertical };
constexpr double kDragPixels = 6; ///< A drag begins behind so many.
/// None until the pointer has moved `kDragPixels`; then the way it moved further.
DragLock dragLockOf(double dx, double dy);

/// Where an operator dropped at a height would run.
struct LaneTarget {
    std::int32_t row = -1; ///< Index into the rows; -1 for none.
    std::vector<DeviceId> devices{}; ///< Ascending.
    int top = 0; ///< Content, of what lights up.
    int bottom = 0;
    std::string words{}; ///< "GPU 1", "Stage 1", "Host 0".
    bool valid() const { return row >= 0; }
    friend bool operator==(const LaneTarget &, const LaneTarget &) = default;
};
/// A lane (for a lane that stands for several devices: those), a group's header (all of its devices), or, at
/// the border between two lanes of one host in a cluster of several, that host.
LaneTarget laneTargetAt(const TimelineCanvas &canvas, int y);

/// Device rows from `first` to `last`, headers between them left out; either may be the larger.
std::vector<std::int32_t> deviceRowsBetween(
    const std::vector<TimelineRow> &rows, std::int32_t first, std::int32_t last);
/// The device row `by` device rows below `row` (above for negative ones); -1 if there is none.
std::int32_t deviceRowBeside(const std::vector<TimelineRow> &rows, std::int32_t row, std::int32_t by);
/// Index of the first device row on which one of `operators`' spans runs; -1 if none is shown.
std::int32_t rowOfOperators(const TimelineCanvas &canvas, const std::vector<OperatorId> &operators);

/// A place between two things of a lane.
struct Caret {
    std::size_t before =
        0; ///< Index of the block, or row of the span, it stands before; one behind the last at the end.
    double time = 0; ///< Nanoseconds, where it is drawn.
    friend bool operator==(const Caret &, const Caret &) = default;
};
/// The border between blocks nearest to `time`: a block's middle divides. None lies within a block that
/// others interrupt.
Caret blockCaretAt(const DeviceLane &lane, double time);
/// The same among the spans of one block.
Caret spanCaretAt(const SpanColumns &spans, LaneRows rows, double time);

/// The span of a block that a caret among its spans stands beside, seen from span `own`: what interrupts the
/// block has no order with it and is passed over. `own` where there is no other. O(spans passed over)
std::size_t besideCaret(
    const TimelineScene &scene, const TimelineBlock &block, std::size_t own, std::size_t caret);

/// What a block would have to come before, or after, to be moved to a caret.
struct BlockMove {
    std::int32_t first = -1; ///< Indices into the lane's blocks: `first` would run before `second`.
    std::int32_t second = -1;
    bool changes() const { return first >= 0 && second >= 0; }
    friend bool operator==(const BlockMove &, const BlockMove &) = default;
};
/// Blocks that run once per step have no order: the nearest ordered one on the way counts. Nothing changes
/// where the block is already.
BlockMove blockMoveTo(const DeviceLane &lane, std::size_t block, std::size_t caret);

/// How many micro-batches in flight a bracket dragged to `time` says: at least 1, at most `microBatches`.
std::int32_t inFlightAt(const WarmUp &warmUp, double time, std::int32_t microBatches);

} // namespace planloom
