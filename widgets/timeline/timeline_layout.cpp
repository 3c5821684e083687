#include "widgets/timeline/timeline_layout.h"

#include "engine/base/text.h"
#include "engine/base/words.h"
#include "engine/hardware/device_word.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>

namespace planloom {

namespace {

/// What a scene's devices are grouped by: the group's number of each device, and its word.
struct Grouping {
    std::string word{};
    std::vector<std::int32_t> groupOf{};
};

/// Groups by one number of each device, if it has several values.
Grouping groupedBy(const TimelineScene &scene, const char *word, std::int32_t DeviceLane::*number)
{
    Grouping grouping;
    bool several = false;
    for (const DeviceLane &lane : scene.lanes) {
        grouping.groupOf.push_back(lane.*number);
        several = several || lane.*number != scene.lanes.front().*number;
    }
    if (several)
        grouping.word = word;
    else
        grouping.groupOf.assign(scene.lanes.size(), 0);
    return grouping;
}

Grouping groupingOf(const TimelineScene &scene, LaneGrouping wanted)
{
    constexpr std::int32_t kMostAlikeHosts = 32;
    switch (wanted) {
    case LaneGrouping::Stage:
        return groupedBy(scene, "Stage", &DeviceLane::stage);
    case LaneGrouping::Host:
        return groupedBy(scene, "Host", &DeviceLane::host);
    case LaneGrouping::Replica:
        return groupedBy(scene, "Replica", &DeviceLane::replica);
    case LaneGrouping::None:
        return {{}, std::vector<std::int32_t>(scene.lanes.size(), 0)};
    case LaneGrouping::Automatic:
        break;
    }
    Grouping byStage = groupedBy(scene, "Stage", &DeviceLane::stage);
    if (!byStage.word.empty())
        return byStage;
    // Hundreds of hosts that are all alike are one lane, shown once.
    const bool alike = std::all_of(scene.lanes.begin(), scene.lanes.end(), [&](const DeviceLane &lane) {
        return lane.symmetryClass >= 0 && lane.symmetryClass == scene.lanes.front().symmetryClass;
    });
    if (alike && !scene.lanes.empty()
        && scene.lanes.back().host - scene.lanes.front().host >= kMostAlikeHosts)
        return byStage;
    return groupedBy(scene, "Host", &DeviceLane::host);
}

TimelineRow deviceRow(const TimelineScene &scene, const TimelineScene *beside, std::vector<DeviceId> devices,
    bool foldable, bool expanded, bool communication, const TimelineMetrics &metrics)
{
    TimelineRow row;
    row.kind = TimelineRow::Kind::Device;
    row.lane = devices.front().index;
    const auto lane = static_cast<std::size_t>(row.lane);
    const bool bracket = scene.lanes[lane].warmUp.count > 0;
    row.queues = scene.lanes[lane].queues();
    if (beside && lane < beside->lanes.size())
        row.queues = row.queues | beside->lanes[lane].queues();
    row.communication = communication ? metrics.communicationOf(row.queues) : 0;
    row.height = metrics.device(bracket, row.communication);
    row.padding = metrics.padding;
    row.bracket = bracket ? metrics.bracket : 0;
    row.blocks = metrics.blocks;
    row.operators = metrics.operators;
    row.memory = metrics.memory;
    row.gap = metrics.gap;
    row.title = deviceWord(scene.cluster) + " " + rangesOf(devices, kFewRuns);
    row.detail = devices.size() > 1 ? "×" + std::to_string(devices.size()) : std::string{};
    if (!scene.cluster.otherClasses.empty()) // all of a row are alike, so of one class
        row.detail += (row.detail.empty() ? "" : " ") + scene.deviceModel(devices.front()).name;
    row.devices = std::move(devices);
    row.foldable = foldable;
    row.expanded = expanded;
    return row;
}

bool shows(
    const TimelineScene &scene, const std::string &group, const TimelineRow &row, const std::string &filter)
{
    if (filter.empty())
        return true;
    std::string words = row.title + "\n" + group;
    // Every device by name, so that "gpu 5" finds the lane that stands for 4-7.
    const std::string word = deviceWord(scene.cluster);
    for (const DeviceId device : row.devices)
        words += "\n" + word + " " + std::to_string(device.index);
    return containsLetters(words, filter);
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

void stretch(std::vector<TimelineRow> &rows, int height, int most)
{
    int devices = 0;
    for (const TimelineRow &row : rows) {
        height -= row.height;
        devices += row.kind == TimelineRow::Kind::Device ? 1 : 0;
    }
    if (devices == 0 || height <= 0)
        return;
    const int each = std::min(height / devices / 2, most);
    for (TimelineRow &row : rows) {
        if (row.kind != TimelineRow::Kind::Device || row.isCompact())
            continue;
        row.operators += row.memory > 0 ? each : 2 * each;
        row.memory += row.memory > 0 ? each : 0;
        row.height += 2 * each;
    }
}

/// One row with the blocks; below it strips, if they are wanted and there is room for them.
void makeCompact(TimelineRow &row, int height, bool strips, const TimelineMetrics &metrics)
{
    const bool isLow = height * 2 <= metrics.compact;
    strips = strips && height >= metrics.compact + 2 * (metrics.thin + 1);
    row.communication = strips ? std::min(row.communication, metrics.thin) : 0;
    row.memory = strips ? std::min(row.memory, metrics.thin) : 0;
    row.gap = strips ? 1 : 0;
    row.height = height;
    row.padding = isLow ? 0 : 1;
    row.bracket = row.operators = 0;
    const int below =
        (row.communication > 0 ? row.communication + 1 : 0) + (row.memory > 0 ? row.memory + 1 : 0);
    row.blocks = std::max(height - 2 * row.padding - below - (height > metrics.least ? 1 : 0), 1);
}

/// What a lane has below its full height.
struct LeanParts {
    bool bracket = false; ///< Of the warm-up, which is pulled.
    bool tracks = false; ///< One for each queue; else a thin strip for all.
};

/// Blocks and operators in `height` pixels, above communication and a thin strip of memory.
bool makeLean(TimelineRow &row, int height, LeanParts parts, const TimelineMetrics &metrics)
{
    constexpr int kPadding = 2;
    const int bracket = parts.bracket ? row.bracket : 0;
    const int communication = parts.tracks ? row.communication : std::min(row.communication, metrics.thin);
    const int memory = std::min(row.memory, metrics.thin);
    const int operators = height - 2 * kPadding - bracket - row.blocks
        - (communication > 0 ? communication + 1 : 0) - (memory > 0 ? memory + 1 : 0) - 1;
    if (operators * 2 < metrics.operators)
        return false;
    row.height = height;
    row.padding = kPadding;
    row.gap = 1;
    row.bracket = bracket;
    row.memory = memory;
    row.communication = communication;
    row.operators = operators;
    return true;
}

/// Headers of groups go where every pixel counts: their lanes say where they belong.
void dropHeaders(std::vector<TimelineRow> &rows)
{
    std::string group;
    for (TimelineRow &row : rows) {
        if (row.kind == TimelineRow::Kind::Group)
            group = row.title;
        else if (row.subtitle.empty())
            row.subtitle = group;
    }
    std::erase_if(
        rows, [](const TimelineRow &row) { return row.kind == TimelineRow::Kind::Group && row.expanded; });
}

/// Lanes as low as `wanted` says.
void lower(std::vector<TimelineRow> &rows, LaneHeight wanted, int height, const TimelineMetrics &metrics)
{
    const auto sum = [&rows] {
        return std::accumulate(
            rows.begin(), rows.end(), 0, [](int so, const TimelineRow &row) { return so + row.height; });
    };
    if (wanted == LaneHeight::Full || (wanted == LaneHeight::Fit && (height <= 0 || sum() <= height)))
        return;
    dropHeaders(rows);
    int devices = 0;
    for (const TimelineRow &row : rows) {
        devices += row.kind == TimelineRow::Kind::Device ? 1 : 0;
        height -= row.kind == TimelineRow::Kind::Device ? 0 : row.height;
    }
    const int each = devices > 0 ? std::max(height / devices, metrics.least) : 0;
    std::optional<LeanParts> lean; // the most that all lanes have room for
    for (const LeanParts parts : {LeanParts{true, true}, {true, false}, {false, true}, {false, false}}) {
        const bool fits = std::all_of(rows.begin(), rows.end(), [&](TimelineRow row) {
            return row.kind == TimelineRow::Kind::Group || makeLean(row, each, parts, metrics);
        });
        if (fits && !lean && wanted == LaneHeight::Fit)
            lean = parts;
    }
    const int low = wanted == LaneHeight::Fit ? std::min(each, 2 * metrics.compact) : metrics.compact;
    for (TimelineRow &row : rows) {
        if (row.kind == TimelineRow::Kind::Group)
            continue;
        if (lean)
            makeLean(row, each, *lean, metrics);
        else
            makeCompact(row, low, wanted == LaneHeight::Fit, metrics);
    }
}

void stack(std::vector<TimelineRow> &rows)
{
    int y = 0;
    for (TimelineRow &row : rows) {
        row.y = y;
        y += row.height;
    }
}

/// Lanes that were moved in their order, in the places that they leave.
void reorder(std::vector<TimelineRow> &lanes, const std::vector<std::int32_t> &order)
{
    if (order.empty())
        return;
    std::map<std::int32_t, std::size_t> rank;
    for (std::size_t i = 0; i < order.size(); ++i)
        rank.emplace(order[i], i);
    std::vector<std::size_t> places;
    std::vector<TimelineRow> moved;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        if (rank.contains(lanes[i].lane)) {
            places.push_back(i);
            moved.push_back(std::move(lanes[i]));
        }
    }
    std::sort(moved.begin(), moved.end(),
        [&rank](const TimelineRow &a, const TimelineRow &b) { return rank.at(a.lane) < rank.at(b.lane); });
    for (std::size_t i = 0; i < places.size(); ++i)
        lanes[places[i]] = std::move(moved[i]);
}

} // namespace

TimelineMetrics TimelineMetrics::forFont(int height)
{
    constexpr double kUsual = 17; // pixels: the height of a font of 10 points on an ordinary screen
    const double scale = std::max(height / kUsual, 1.0);
    TimelineMetrics metrics;
    for (int *size :
        {&metrics.header, &metrics.ruler, &metrics.legend, &metrics.group, &metrics.line, &metrics.bracket,
            &metrics.blocks, &metrics.operators, &metrics.communication, &metrics.track, &metrics.memory,
            &metrics.mostStretch, &metrics.gap, &metrics.padding, &metrics.compact, &metrics.thin})
        *size = static_cast<int>(*size * scale + 0.5);
    return metrics;
}

std::vector<TimelineRow> layoutRows(const TimelineScene &scene, const LaneArrangement &arrangement,
    int height, const TimelineMetrics &metrics, const TimelineScene *beside)
{
    const Grouping grouping = groupingOf(scene, arrangement.grouping);
    constexpr std::int32_t kNoGroup = INT32_MAX; // what belongs to none comes last
    std::map<std::int32_t, std::vector<DeviceId>> groups;
    for (std::size_t d = 0; d < scene.lanes.size(); ++d)
        groups[grouping.groupOf[d] < 0 ? kNoGroup : grouping.groupOf[d]].push_back(scene.lanes[d].device);

    std::vector<TimelineRow> rows;
    std::vector<TimelineRow> pinned;
    for (const auto &[group, devices] : groups) {
        const std::string name = grouping.word.empty() ? std::string{}
            : group == kNoGroup                        ? "No " + lowerCase(grouping.word)
                                                       : grouping.word + " " + std::to_string(group);
        std::map<std::int32_t, std::vector<DeviceId>> classes;
        for (const DeviceId device : devices) {
            const std::int32_t symmetry = scene.lanes[static_cast<std::size_t>(device.index)].symmetryClass;
            // Devices without a class are never alike: give each a number of its own.
            classes[symmetry >= 0 ? symmetry : -2 - device.index].push_back(device);
        }
        std::vector<TimelineRow> lanes;
        const auto add = [&](std::vector<DeviceId> members, bool foldable, bool expanded) {
            TimelineRow row = deviceRow(
                scene, beside, std::move(members), foldable, expanded, arrangement.communication, metrics);
            if (!shows(scene, name, row, arrangement.filter))
                return;
            if (!arrangement.pinned.contains(row.lane)) {
                lanes.push_back(std::move(row));
                return;
            }
            row.pinned = true;
            row.subtitle = name;
            pinned.push_back(std::move(row));
        };
        for (const auto &[symmetry, members] : classes) {
            const bool foldable = members.size() > 1;
            if (foldable && !arrangement.expanded.contains(symmetry)) {
                add(members, true, false);
                continue;
            }
            for (const DeviceId device : members)
                add({device}, foldable, true);
        }
        std::stable_sort(lanes.begin(), lanes.end(),
            [](const TimelineRow &a, const TimelineRow &b) { return a.lane < b.lane; });
        reorder(lanes, arrangement.order);
        if (!grouping.word.empty() && !lanes.empty()) {
            TimelineRow header;
            header.kind = TimelineRow::Kind::Group;
            header.height = metrics.group;
            header.title = name;
            header.detail = std::to_string(devices.size()) + (devices.size() == 1 ? " device" : " devices");
            header.devices = devices;
            header.foldable = true;
            header.expanded = !arrangement.collapsed.contains(name);
            rows.push_back(std::move(header));
            if (!rows.back().expanded)
                continue;
        }
        std::move(lanes.begin(), lanes.end(), std::back_inserter(rows));
    }
    if (arrangement.collapsed.empty())
        dropLoneHeaders(rows);
    if (grouping.word.empty() || std::none_of(rows.begin(), rows.end(), [](const TimelineRow &row) {
            return row.kind == TimelineRow::Kind::Group;
        })) {
        reorder(rows, arrangement.order); // without headers, lanes of all groups can change places
    }
    reorder(pinned, arrangement.order);
    rows.insert(rows.begin(), std::make_move_iterator(pinned.begin()), std::make_move_iterator(pinned.end()));
    const bool fits = arrangement.laneHeight == LaneHeight::Fit;
    const double zoom = fits ? std::clamp(arrangement.zoom, kLeastLaneZoom, kMostLaneZoom) : 1;
    height = static_cast<int>(height * zoom);
    lower(rows, arrangement.laneHeight, height, metrics);
    if (arrangement.laneHeight != LaneHeight::Compact)
        stretch(rows, height, static_cast<int>(metrics.mostStretch * std::max(zoom, 1.0)));
    stack(rows);
    return rows;
}

std::vector<TimelineRow> rowsOfDevices(std::vector<TimelineRow> rows, const std::vector<DeviceId> &devices,
    int height, const TimelineMetrics &metrics)
{
    std::vector<TimelineRow> kept;
    for (TimelineRow &row : rows) {
        const bool shows = std::any_of(row.devices.begin(), row.devices.end(), [&devices](DeviceId device) {
            return std::binary_search(devices.begin(), devices.end(), device);
        });
        if (!shows)
            continue;
        row.pinned = false;
        kept.push_back(std::move(row));
    }
    stretch(kept, height, metrics.mostStretch);
    stack(kept);
    return kept;
}

int heightOf(const std::vector<TimelineRow> &rows)
{
    return rows.empty() ? 0 : rows.back().y + rows.back().height;
}

int pinnedHeight(const std::vector<TimelineRow> &rows)
{
    int height = 0;
    for (const TimelineRow &row : rows) {
        if (!row.pinned)
            break;
        height += row.height;
    }
    return height;
}

LaneArrangement withRowMoved(
    LaneArrangement arrangement, const std::vector<TimelineRow> &rows, std::size_t row, std::size_t before)
{
    if (row >= rows.size() || rows[row].kind != TimelineRow::Kind::Device)
        return arrangement;
    std::vector<std::int32_t> order;
    for (std::size_t i = 0; i <= rows.size(); ++i) {
        if (i == before)
            order.push_back(rows[row].lane);
        if (i < rows.size() && i != row && rows[i].kind == TimelineRow::Kind::Device)
            order.push_back(rows[i].lane);
    }
    arrangement.order = std::move(order);
    return arrangement;
}

std::int32_t rowAt(const std::vector<TimelineRow> &rows, int y)
{
    const auto found = std::upper_bound(
        rows.begin(), rows.end(), y, [](int top, const TimelineRow &row) { return top < row.y; });
    if (found == rows.begin())
        return -1;
    const auto row = std::prev(found);
    return y < row->y + row->height ? static_cast<std::int32_t>(row - rows.begin()) : -1;
}

std::int32_t rowOfDevice(const std::vector<TimelineRow> &rows, DeviceId device)
{
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].kind == TimelineRow::Kind::Device
            && std::binary_search(rows[i].devices.begin(), rows[i].devices.end(), device))
            return static_cast<std::int32_t>(i);
    }
    return -1;
}

} // namespace planloom
