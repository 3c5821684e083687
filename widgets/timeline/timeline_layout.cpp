#include "widgets/timeline/timeline_layout.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

constexpr std::size_t kMostRuns = 4;

/// What a scene's devices are grouped by: the group's number of each device, and its word.
struct Grouping {
    std::string word{};
    std::vector<std::int32_t> groupOf{};
};

Grouping groupingOf(const TimelineScene &scene)
{
    std::set<std::int32_t> stages;
    std::set<std::int32_t> nodes;
    for (const DeviceLane &lane : scene.lanes) {
        stages.insert(lane.stage);
        nodes.insert(lane.node);
    }
    Grouping grouping;
    const bool byStage = stages.size() > 1;
    if (byStage || nodes.size() > 1)
        grouping.word = byStage ? "Stage" : "Node";
    for (const DeviceLane &lane : scene.lanes)
        grouping.groupOf.push_back(grouping.word.empty() ? 0 : byStage ? lane.stage : lane.node);
    return grouping;
}

TimelineRow deviceRow(const TimelineScene &scene, std::vector<DeviceId> devices, bool foldable, bool expanded)
{
    TimelineRow row;
    row.kind = TimelineRow::Kind::Device;
    row.height = TimelineMetrics::kDevice;
    row.lane = devices.front().index;
    row.title = deviceWord(scene.cluster) + " " + rangesOf(devices);
    row.detail = devices.size() > 1 ? "×" + std::to_string(devices.size()) : std::string{};
    row.devices = std::move(devices);
    row.foldable = foldable;
    row.expanded = expanded;
    return row;
}

/// Headers of groups with one row each only repeat what the row can say itself.
void dropLoneHeaders(std::vector<TimelineRow> &rows)
{
    for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
        if (rows[i].kind == TimelineRow::Kind::Device && rows[i + 1].kind == TimelineRow::Kind::Device)
            return;
    }
    std::vector<TimelineRow> kept;
    std::string group;
    for (TimelineRow &row : rows) {
        if (row.kind == TimelineRow::Kind::Group) {
            group = row.title;
            continue;
        }
        row.subtitle = group;
        kept.push_back(std::move(row));
    }
    rows = std::move(kept);
}

void stretch(std::vector<TimelineRow> &rows, int height)
{
    int devices = 0;
    for (const TimelineRow &row : rows) {
        height -= row.height;
        devices += row.kind == TimelineRow::Kind::Device ? 1 : 0;
    }
    if (devices == 0 || height <= 0)
        return;
    const int each = std::min(height / devices / 2, TimelineMetrics::kMostStretch);
    for (TimelineRow &row : rows) {
        if (row.kind != TimelineRow::Kind::Device)
            continue;
        row.operators += each;
        row.memory += each;
        row.height += 2 * each;
    }
}

} // namespace

std::vector<TimelineRow> layoutRows(const TimelineScene &scene, const std::set<std::int32_t> &expanded, int height)
{
    const Grouping grouping = groupingOf(scene);
    std::map<std::int32_t, std::vector<DeviceId>> groups;
    for (std::size_t d = 0; d < scene.lanes.size(); ++d)
        groups[grouping.groupOf[d]].push_back(scene.lanes[d].device);

    std::vector<TimelineRow> rows;
    for (const auto &[group, devices] : groups) {
        if (!grouping.word.empty()) {
            TimelineRow header;
            header.kind = TimelineRow::Kind::Group;
            header.height = TimelineMetrics::kGroup;
            header.title = group < 0 ? "No stage" : grouping.word + " " + std::to_string(group);
            header.detail = std::to_string(devices.size()) + (devices.size() == 1 ? " device" : " devices");
            rows.push_back(std::move(header));
        }
        std::map<std::int32_t, std::vector<DeviceId>> classes;
        for (const DeviceId device : devices) {
            const std::int32_t symmetry = scene.lanes[static_cast<std::size_t>(device.index)].symmetryClass;
            // Devices without a class are never alike: give each a number of its own.
            classes[symmetry >= 0 ? symmetry : -2 - device.index].push_back(device);
        }
        std::vector<TimelineRow> lanes;
        for (const auto &[symmetry, members] : classes) {
            const bool foldable = members.size() > 1;
            if (foldable && !expanded.contains(symmetry)) {
                lanes.push_back(deviceRow(scene, members, true, false));
                continue;
            }
            for (const DeviceId device : members)
                lanes.push_back(deviceRow(scene, {device}, foldable, true));
        }
        std::stable_sort(lanes.begin(), lanes.end(),
            [](const TimelineRow &a, const TimelineRow &b) { return a.lane < b.lane; });
        std::move(lanes.begin(), lanes.end(), std::back_inserter(rows));
    }
    dropLoneHeaders(rows);
    stretch(rows, height);
    int y = 0;
    for (TimelineRow &row : rows) {
        row.y = y;
        y += row.height;
    }
    return rows;
}

std::string rangesOf(const std::vector<DeviceId> &devices)
{
    std::string text;
    std::size_t runs = 0;
    for (std::size_t begin = 0; begin < devices.size();) {
        std::size_t end = begin + 1;
        while (end < devices.size() && devices[end].index == devices[end - 1].index + 1)
            ++end;
        if (++runs > kMostRuns)
            return text + ", ...";
        if (!text.empty())
            text += ", ";
        text += std::to_string(devices[begin].index);
        if (end - begin > 1)
            text += "-" + std::to_string(devices[end - 1].index);
        begin = end;
    }
    return text;
}

std::string deviceWord(const Cluster &cluster)
{
    return cluster.links.architecture == LinkArchitecture::SharedMemory ? "CPU" : "GPU";
}

std::int32_t rowAt(const std::vector<TimelineRow> &rows, int y)
{
    const auto found
        = std::upper_bound(rows.begin(), rows.end(), y, [](int top, const TimelineRow &row) { return top < row.y; });
    if (found == rows.begin())
        return -1;
    const auto row = std::prev(found);
    return y < row->y + row->height ? static_cast<std::int32_t>(row - rows.begin()) : -1;
}

} // namespace planloom
