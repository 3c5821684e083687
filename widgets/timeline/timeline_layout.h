#pragma once

#include "widgets/scene/timeline_scene.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace planloom {

/// Sizes in pixels of what a timeline is made of; they grow with the font.
struct TimelineMetrics {
    int header = 168; ///< Width of the column with the devices' names.
    int ruler = 26;
    int legend = 22; ///< Height of the legend at the bottom.
    int group = 22;
    int line = 18; ///< A line of small text.
    int bracket = 15; ///< Above the blocks of pipeline stages: micro-batches in flight.
    int blocks = 15; ///< Upper part of the compute sub-lane: "F0".
    int operators = 22; ///< Lower part: operators; at least.
    int communication = 13; ///< Of the communication sub-lane, if one queue is used.
    int track = 11; ///< Of each of its tracks, if several are.
    int memory = 30; ///< At least.
    int mostStretch = 44; ///< Pixels that a device's operators and memory may each grow by.
    int gap = 3; ///< Between sub-lanes.
    int padding = 7; ///< Above and below a device.
    int compact = 14; ///< Height of a lane of one row, with a pixel of air on both sides.
    int least = 3; ///< Of a lane among so many that no more fits.
    int thin = 4; ///< Of the strips of communication and memory in a low lane.

    /// Height of the communication sub-lane with tracks for these queues.
    int communicationOf(QueueSet queues) const
    {
        return queues.count() > 1 ? queues.count() * track : communication;
    }
    /// Height of a device's lane before it is stretched.
    /// @param strip  height of its communication sub-lane; 0 without one
    int device(bool withBracket, int strip) const
    {
        return 2 * padding + (withBracket ? bracket : 0) + blocks + operators + gap + memory
            + (strip > 0 ? strip + gap : 0);
    }
    /// For a font of this height in pixels.
    static TimelineMetrics forFont(int height);
};

/// What lanes stand together under one header.
enum class LaneGrouping : std::uint8_t {
    Automatic, ///< Stages if there are several, else hosts if they differ or are few.
    Stage,
    Host,
    Replica, ///< Devices that sum their gradients: one of each such group.
    None,
};

/// How high lanes are.
enum class LaneHeight : std::uint8_t {
    Full, ///< Bracket, blocks, operators, communication, memory; they grow where there is room.
    Compact, ///< One row with the blocks.
    Fit, ///< As much of it as leaves all devices in sight: full, with thin strips of memory and
         ///< communication, one row, or lower still.
};
constexpr int kLaneHeightCount = 3;
constexpr double kLeastLaneZoom = 0.25;
constexpr double kMostLaneZoom = 8;

/// How a person arranged the lanes; kept from plan to plan.
struct LaneArrangement {
    std::set<std::int32_t> expanded{}; ///< Symmetry classes whose devices are shown one by one.
    std::set<std::string> collapsed{}; ///< Titles of groups whose lanes are folded away.
    std::set<std::int32_t> pinned{}; ///< First devices of lanes kept at the top.
    std::vector<std::int32_t> order{}; ///< First devices of lanes that were moved, in their new order.
    LaneGrouping grouping = LaneGrouping::Automatic;
    std::string filter{}; ///< Only lanes whose words hold this text, whatever its case.
    bool communication = true; ///< Whether the communication sub-lanes are shown.
    LaneHeight laneHeight = LaneHeight::Fit;
    double zoom = 1; ///< `Fit` lays out for so many times the height there is.
    friend bool operator==(const LaneArrangement &, const LaneArrangement &) = default;
};

/// One row of the picture: a header of a group, or the lane of a device (or of several symmetric ones).
struct TimelineRow {
    enum class Kind : std::uint8_t { Group, Device };
    Kind kind = Kind::Device;
    int y = 0; ///< From the top of the content, below the ruler.
    int height = 0;
    std::string title{}; ///< "Stage 0", "GPU 0-3".
    std::string detail{}; ///< "×4", "2 devices".
    std::string subtitle{}; ///< "Stage 0", where the group has no header; else empty.
    std::int32_t lane = -1; ///< Index into `TimelineScene::lanes`.
    std::vector<DeviceId> devices{}; ///< That the lane, or the group, stands for; ascending.
    bool foldable = false; ///< Can be expanded or collapsed: a class of several devices, or a group.
    bool expanded = false;
    bool pinned = false;
    int padding = 0;
    int bracket = 0; ///< Height of the bracket's strip; 0 without one.
    int blocks = 0; ///< Height of the blocks.
    int operators = 0; ///< Height of the operators.
    int communication = 0; ///< Height of the communication sub-lane; 0 if it is hidden.
    QueueSet queues{}; ///< That share the communication sub-lane.
    int memory = 0; ///< Height of the memory strip.
    int gap = 0;

    /// One row, without operators of their own.
    bool isCompact() const { return kind == Kind::Device && operators == 0; }
    int bracketTop() const { return y + padding; }
    int computeTop() const { return bracketTop() + bracket; }
    int operatorsTop() const { return computeTop() + blocks; }
    int communicationTop() const { return operatorsTop() + operators + gap; }
    int memoryTop() const { return communicationTop() + (communication > 0 ? communication + gap : 0); }
    /// Where the spans of a queue are; nothing if its track is hidden, or has no place here.
    std::optional<TrackPlace> placeOf(QueueKind queue) const
    {
        if (queue != QueueKind::Compute)
            return trackIn(queues, queue, communicationTop(), communication);
        return isCompact() ? TrackPlace{computeTop(), blocks} : TrackPlace{operatorsTop(), operators};
    }
};

/// The rows of a scene from top to bottom: grouped as the arrangement says;
/// devices of one symmetry class (within a group) are one row unless their class is expanded. Groups of a
/// single row each have no headers. Where the rows leave some of `height` pixels free, devices grow. Pinned
/// rows come first.
/// @param beside  a scene of the same devices that is shown with it, whose queues have tracks as well; may be
///                null
std::vector<TimelineRow> layoutRows(const TimelineScene &scene, const LaneArrangement &arrangement,
    int height = 0, const TimelineMetrics &metrics = {}, const TimelineScene *beside = nullptr);

/// Of `rows` those that show one of `devices` (ascending), below the headers of their groups, stacked anew;
/// none is pinned. They grow as in `layoutRows`.
std::vector<TimelineRow> rowsOfDevices(std::vector<TimelineRow> rows, const std::vector<DeviceId> &devices,
    int height = 0, const TimelineMetrics &metrics = {});

/// Height of all rows, one below the other.
int heightOf(const std::vector<TimelineRow> &rows);

/// Height of the pinned rows at the top.
int pinnedHeight(const std::vector<TimelineRow> &rows);

/// `arrangement` with the lane of `row` moved before that of row `before` (behind the last for the number of
/// rows).
LaneArrangement withRowMoved(
    LaneArrangement arrangement, const std::vector<TimelineRow> &rows, std::size_t row, std::size_t before);

/// Index of the row at height `y`; -1 if none. O(log rows)
std::int32_t rowAt(const std::vector<TimelineRow> &rows, int y);

/// Index of the device row that shows `device`; -1 if none does. O(rows x devices of a row)
std::int32_t rowOfDevice(const std::vector<TimelineRow> &rows, DeviceId device);

} // namespace planloom
