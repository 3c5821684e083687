#pragma once

#include "widgets/scene/timeline_scene.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace planloom {

/// Heights in pixels of what a timeline is made of.
struct TimelineMetrics {
    static constexpr int kRuler = 26;
    static constexpr int kGroup = 22;
    static constexpr int kBlocks = 15; ///< Upper part of the compute sub-lane: "F0".
    static constexpr int kOperators = 22; ///< Lower part: operators; at least.
    static constexpr int kCommunication = 13;
    static constexpr int kMemory = 30; ///< At least.
    static constexpr int kMostStretch = 44; ///< Pixels that a device's operators and memory may each grow by.
    static constexpr int kGap = 3; ///< Between sub-lanes.
    static constexpr int kPadding = 7; ///< Above and below a device.
    static constexpr int kDevice
        = 2 * kPadding + kBlocks + kOperators + kCommunication + kMemory + 2 * kGap;
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
    std::vector<DeviceId> devices{}; ///< That the lane stands for; ascending.
    bool foldable = false; ///< Its class has several devices: can be expanded or collapsed.
    bool expanded = false;
    int operators = TimelineMetrics::kOperators; ///< Height of the operators.
    int memory = TimelineMetrics::kMemory; ///< Height of the memory strip.

    int computeTop() const { return y + TimelineMetrics::kPadding; }
    int operatorsTop() const { return computeTop() + TimelineMetrics::kBlocks; }
    int communicationTop() const
    {
        return operatorsTop() + operators + TimelineMetrics::kGap;
    }
    int memoryTop() const { return communicationTop() + TimelineMetrics::kCommunication + TimelineMetrics::kGap; }
};

/// The rows of a scene from top to bottom: grouped by stage if there are several, else by node if there are several;
/// devices of one symmetry class (within a group) are one row unless their class is in `expanded`. Groups of a single
/// row each have no headers. Where the rows leave some of `height` pixels free, devices grow.
std::vector<TimelineRow> layoutRows(
    const TimelineScene &scene, const std::set<std::int32_t> &expanded, int height = 0);

/// "0", "0-3", "0, 2, 4-6"; shortened by "..." behind the fourth run.
std::string rangesOf(const std::vector<DeviceId> &devices);

/// "GPU" for accelerators, "CPU" for CPU devices.
std::string deviceWord(const Cluster &cluster);

/// Index of the row at height `y`; -1 if none. O(log rows)
std::int32_t rowAt(const std::vector<TimelineRow> &rows, int y);

} // namespace planloom
