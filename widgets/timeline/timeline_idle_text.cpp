#include "widgets/timeline/timeline_idle_text.h"

#include "engine/hardware/device_word.h"
#include "widgets/common/format.h"

#include <algorithm>
#include <cstdio>

namespace planloom {

namespace {

constexpr std::size_t kMostDevices = 256; ///< A table for reading, not for thousands of devices.

std::string shareOf(std::int64_t part, std::int64_t whole)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.1f%%",
        whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
    return text;
}

std::string verbOf(WaitKind kind)
{
    switch (kind) {
    case WaitKind::Data:
        return "needs the result of";
    case WaitKind::Order:
        return "runs behind";
    case WaitKind::Reuse:
        return "writes where there is still data of";
    case WaitKind::Peer:
        return "meets";
    }
    return "waits for";
}

std::string deviceName(const TimelineScene &scene, DeviceId device)
{
    return deviceWord(scene.cluster) + " " + std::to_string(device.index);
}

/// "c_attn (F2 on GPU 1)"
std::string nameOfSpan(const TimelineScene &scene, const StagesInParts &stages, std::int64_t row)
{
    const auto at = static_cast<std::size_t>(row);
    const SpanColumns &spans = scene.timeline->spans;
    std::string name = labelOf(scene, at) + " (";
    if (const Segment *segment = scene.findSegment(at))
        name += blockLabel(
            segment->kind, spans.microBatch[at], stages.partOf(*segment), stages.wideOf(segment->stage));
    return name + " on " + deviceName(scene, DeviceId{spans.device[at]}) + ")";
}

std::string wordsOfLink(const TimelineScene &scene, const StagesInParts &stages, const WaitLink &link)
{
    std::string words = blockWords(*scene.plan, stages, deviceWord(scene.cluster), *scene.timeline, link.span,
        DeviceId{}, link.communicates);
    return words.starts_with("the ") ? words.substr(4) : words;
}

} // namespace

PanelTable bubbleTable(const TimelineScene &scene, const Bubble &bubble, const std::vector<WaitLink> &links,
    const IdleGap *gap, const std::function<std::string(RowId)> &textOfRow)
{
    const StagesInParts stages = stagesInParts(*scene.plan);
    PanelTable table;
    table.title = sentenceOf(*scene.plan, scene.cluster, *scene.timeline, bubble, links) + ".";
    table.columns = {"Waits for, nearest first", "Time"};
    table.folded = true;
    const SpanColumns &spans = scene.timeline->spans;
    const auto byRow = [&](RowId row) {
        const std::string text = row.valid() ? textOfRow(row) : std::string{};
        return text.empty() ? std::string{} : ", by the row \"" + text + "\"";
    };
    std::size_t number = 0;
    for (const WaitLink &link : links) {
        table.lines.push_back({0,
            {std::to_string(++number) + "  " + wordsOfLink(scene, stages, link) + byRow(link.row),
                formatNanoseconds(link.end - link.begin)},
            link.span});
        for (std::int32_t w = std::max(link.firstWait, 0); w < link.endWait; ++w) {
            const Wait &wait = bubble.waits[static_cast<std::size_t>(w)];
            table.lines.push_back({1,
                {nameOfSpan(scene, stages, wait.span) + " " + verbOf(wait.kind) + " "
                        + nameOfSpan(scene, stages, wait.on),
                    formatNanoseconds(spans.duration[static_cast<std::size_t>(wait.on)])},
                wait.on});
        }
    }
    if (links.empty())
        table.lines.push_back({0, {bubble.begin == 0 ? "the step begins with it" : "nothing more runs"}});
    if (bubble.heldBack >= 0) {
        table.lines.push_back({0,
            {blockWords(*scene.plan, stages, deviceWord(scene.cluster), *scene.timeline, bubble.heldBack,
                 bubble.device, false)
                + " could run here, but for the order"
                + (bubble.heldBackRow.valid() ? byRow(bubble.heldBackRow) : std::string(" of the schedule"))},
            bubble.heldBack});
    }
    if (gap) {
        for (std::size_t r = 0; r < kIdleReasonCount; ++r) {
            const auto reason = static_cast<IdleReason>(r);
            if (gap->parts[r] > 0)
                table.lines.push_back({0,
                    {std::string("Reason: ") + nameOf(reason),
                        formatNanoseconds(gap->parts[r]) + " ("
                            + shareOf(gap->parts[r], gap->end - gap->begin) + ")"}});
        }
    }
    return table;
}

PanelTable idleTable(const TimelineScene &scene, const IdleTimes &idle)
{
    PanelTable table;
    std::vector<std::size_t> reasons;
    std::int64_t all = 0;
    for (std::size_t r = 0; r < kIdleReasonCount; ++r) {
        all += idle.total[r];
        if (idle.total[r] > 0)
            reasons.push_back(r);
    }
    const std::int64_t step = scene.timeline->step.count();
    const auto devices = static_cast<std::int64_t>(idle.devices.size());
    table.title = "Where the idle time goes: " + formatNanoseconds(all) + " on " + formatCount(devices)
        + (devices == 1 ? " device, " : " devices, ") + shareOf(all, step * devices) + " of their time";
    table.columns = {"", "Idle", "Share"};
    for (const std::size_t r : reasons) {
        std::string name = nameOf(static_cast<IdleReason>(r));
        name.front() = static_cast<char>(name.front() - 'a' + 'A');
        table.columns.push_back(name);
    }
    const auto line = [&](const std::string &name, const IdleParts &parts, std::int64_t whole, int depth) {
        std::int64_t sum = 0;
        for (const std::int64_t part : parts)
            sum += part;
        PanelLine made{depth, {name, formatNanoseconds(sum), shareOf(sum, whole)}};
        for (const std::size_t r : reasons)
            made.cells.push_back(formatNanoseconds(parts[r]));
        table.lines.push_back(std::move(made));
    };
    line("All devices", idle.total, step * devices, 0);
    for (std::size_t d = 0; d < idle.devices.size(); ++d) {
        if (d == kMostDevices) {
            table.lines.push_back({1, {"… and more"}});
            break;
        }
        line(deviceName(scene, DeviceId{static_cast<std::int32_t>(d)}), idle.devices[d], step, 1);
    }
    return table;
}

std::vector<FactLine> factsOfIdle(
    const TimelineScene &scene, const Bubble &bubble, const std::vector<WaitLink> &links, const IdleGap &gap)
{
    constexpr std::size_t kMostWaits = 3; // a tooltip is for a glance
    std::vector<FactLine> facts = factsOfBubble(scene, bubble.begin, bubble.end);
    for (std::size_t r = 0; r < kIdleReasonCount; ++r) {
        if (gap.parts[r] > 0)
            facts.push_back({"Reason",
                std::string(sentenceOf(static_cast<IdleReason>(r))) + ", " + formatNanoseconds(gap.parts[r]),
                -1});
    }
    const StagesInParts stages = stagesInParts(*scene.plan);
    std::size_t shown = 0;
    for (const WaitLink &link : links) {
        if (link.end <= link.begin)
            continue;
        if (shown == kMostWaits)
            break;
        facts.push_back({shown == 0 ? "Waits for" : "that for",
            wordsOfLink(scene, stages, link) + ", " + formatNanoseconds(link.end - link.begin), -1});
        ++shown;
    }
    facts.push_back({{}, "Click says why", -1});
    return facts;
}

} // namespace planloom
