#include "widgets/timeline/timeline_panel_text.h"

#include "engine/hardware/device_word.h"
#include "widgets/common/format.h"
#include "widgets/timeline/timeline_layout.h"
#include "widgets/timeline/timeline_text.h"

#include <cstdio>

namespace planloom {

namespace {

constexpr std::size_t kMostSectionLines =
    256; ///< Of one section: a table for reading, not for thousands of devices.

std::string percent(std::int64_t part, std::int64_t whole)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.1f%%",
        whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
    return text;
}

PanelLine deviceLine(const std::string &name, const DeviceStatistics &of, std::int64_t length)
{
    return {1,
        {name, formatNanoseconds(of.compute), formatNanoseconds(of.communication),
            formatNanoseconds(of.exposed), formatNanoseconds(of.idle), percent(of.idle, length)}};
}

PanelLine amountLine(const std::string &name, const SpanAmount &amount, std::int64_t all)
{
    return {1,
        {name, formatNanoseconds(amount.nanoseconds), {}, {}, {}, percent(amount.nanoseconds, all),
            formatCount(amount.spans)}};
}

} // namespace

std::string PanelTable::text() const
{
    std::string result = title + "\n";
    const auto add = [&result](const std::vector<std::string> &cells) {
        for (std::size_t i = 0; i < cells.size(); ++i)
            result += (i == 0 ? "" : "\t") + cells[i];
        result += "\n";
    };
    add(columns);
    for (const PanelLine &line : lines)
        add(line.cells);
    return result;
}

PanelTable statisticsTable(const TimelineScene &scene, const BoxStatistics &statistics)
{
    PanelTable table;
    table.title = formatNanoseconds(statistics.length) + " on "
        + (statistics.devices.size() == 1
                ? deviceWord(scene.cluster) + " " + std::to_string(statistics.devices.front().device.index)
                : formatCount(static_cast<std::int64_t>(statistics.devices.size())) + " devices");
    table.columns = {"", "Busy", "Communication", "Exposed", "Idle", "Share", "Spans"};
    const auto count = static_cast<std::int64_t>(statistics.devices.size());
    const std::int64_t compute = statistics.total.compute;
    table.lines.push_back({0, {"Devices (share: idle)"}});
    table.lines.push_back(deviceLine("all", statistics.total, statistics.length * count));
    for (const DeviceStatistics &device : statistics.devices) {
        if (table.lines.size() > kMostSectionLines) {
            table.lines.push_back({1, {"… and more"}});
            break;
        }
        table.lines.push_back(
            deviceLine(deviceWord(scene.cluster) + " " + std::to_string(device.device.index), device,
                statistics.length));
    }
    table.lines.push_back({0, {"Compute by kind (share of busy time)"}});
    for (std::size_t kind = 0; kind < statistics.byCategory.size(); ++kind) {
        if (statistics.byCategory[kind].spans > 0)
            table.lines.push_back(amountLine(
                nameOf(static_cast<OperatorCategory>(kind)), statistics.byCategory[kind], compute));
    }
    if (statistics.copies.spans > 0)
        table.lines.push_back(amountLine("copies and sums", statistics.copies, compute));
    if (statistics.recompute.spans > 0)
        table.lines.push_back(amountLine("of all, recompute", statistics.recompute, compute));
    table.lines.push_back({0, {"Compute by pass"}});
    static const char *const kPasses[] = {"forward", "backward", "optimizer"};
    for (std::size_t pass = 0; pass < statistics.byDirection.size(); ++pass) {
        if (statistics.byDirection[pass].spans > 0)
            table.lines.push_back(amountLine(kPasses[pass], statistics.byDirection[pass], compute));
    }
    table.lines.push_back({0, {"Compute by micro-batch"}});
    std::size_t shown = 0;
    for (std::size_t batch = 0; batch < statistics.byMicroBatch.size(); ++batch) {
        if (statistics.byMicroBatch[batch].spans == 0)
            continue;
        if (++shown > kMostSectionLines) {
            table.lines.push_back({1, {"… and more"}});
            break;
        }
        table.lines.push_back(amountLine(std::to_string(batch), statistics.byMicroBatch[batch], compute));
    }
    if (statistics.oncePerStep.spans > 0)
        table.lines.push_back(amountLine("once per step", statistics.oncePerStep, compute));
    bool heading = false;
    for (std::size_t kind = 0; kind < statistics.communication.size(); ++kind) {
        const SpanAmount &amount = statistics.communication[kind];
        if (amount.spans == 0)
            continue;
        if (!heading)
            table.lines.push_back({0, {"Communication (share of its time)"}});
        heading = true;
        PanelLine line =
            amountLine(nameOf(static_cast<InstructionKind>(kind)), amount, statistics.total.communication);
        std::swap(line.cells[1], line.cells[2]);
        table.lines.push_back(std::move(line));
    }
    return table;
}

PanelTable whatIfTable(const TimelineScene &scene, const WhatIf &answer, const std::string &what)
{
    const std::int64_t saved = answer.before - answer.after;
    char share[32];
    std::snprintf(share, sizeof share, " (%.1f%%)",
        answer.before > 0 ? 100.0 * static_cast<double>(saved) / static_cast<double>(answer.before) : 0.0);
    PanelTable table;
    table.title = "What if " + what + " took no time?";
    table.columns = {"", "Time"};
    table.lines.push_back({1, {"Step now", formatNanoseconds(answer.before)}});
    table.lines.push_back({1, {"Step then", formatNanoseconds(answer.after)}});
    table.lines.push_back({1, {"Saved at most", formatNanoseconds(saved) + share}});
    table.lines.push_back({1,
        {"Its own time, " + formatCount(static_cast<std::int64_t>(answer.spans))
                + (answer.spans == 1 ? " span" : " spans") + " on all devices",
            formatNanoseconds(answer.own)}});
    if (saved == 0)
        table.lines.push_back({1, {"Others take as long beside it"}});
    if (answer.lastDevice >= 0)
        table.lines.push_back({1,
            {"The last to end then", deviceWord(scene.cluster) + " " + std::to_string(answer.lastDevice)}});
    return table;
}

} // namespace planloom
