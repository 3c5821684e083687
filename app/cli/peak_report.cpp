#include "app/cli/peak_report.h"

#include "engine/analyse/memory_at.h"
#include "engine/base/words.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

namespace planloom::cli {

namespace {

constexpr std::size_t kShown = 20; ///< Tensors, where a person reads it.

std::string deviceText(DeviceId device)
{
    return "device " + std::to_string(device.index);
}

} // namespace

PeakReport peakOf(const ExecutionPlan &plan, const Timeline &timeline)
{
    PeakReport peak;
    const MemoryCurve *curve = nullptr;
    for (std::size_t d = 0; d < timeline.memory.size(); ++d)
        if (!curve || timeline.memory[d].peak > curve->peak) {
            curve = &timeline.memory[d];
            peak.device = DeviceId{static_cast<std::int32_t>(d)};
        }
    if (!curve)
        return peak;
    peak.bytes = curve->peak.count;
    peak.ofKinds = curve->atPeak;
    peak.time = peakTime(*curve).count();
    std::map<std::pair<std::int32_t, MemoryKind>, PeakReport::Held> ofTensors;
    for (const BufferLifetime &each : memoryAt(plan, timeline, peak.device, Nanoseconds{peak.time})) {
        PeakReport::Held &own = ofTensors[{each.tensor.index, each.kind}];
        own.tensor = each.tensor ? plan.graph->at(each.tensor).name : "(none)";
        own.kind = each.kind;
        own.bytes += each.bytes.count;
        ++own.buffers;
    }
    for (auto &[key, own] : ofTensors)
        peak.held.push_back(std::move(own));
    std::stable_sort(
        peak.held.begin(), peak.held.end(), [](const auto &a, const auto &b) { return a.bytes > b.bytes; });
    return peak;
}

nlohmann::json peakToJson(const PeakReport &peak)
{
    nlohmann::json kinds = nlohmann::json::object();
    for (int k = 0; k < kMemoryKindCount; ++k)
        kinds[nameOf(static_cast<MemoryKind>(k))] = peak.ofKinds[static_cast<std::size_t>(k)];
    nlohmann::json held = nlohmann::json::array();
    for (const PeakReport::Held &each : peak.held)
        held.push_back({{"tensor", each.tensor}, {"kind", nameOf(each.kind)}, {"bytes", each.bytes},
            {"buffers", each.buffers}});
    return {{"device", peak.device.index}, {"time_seconds", static_cast<double>(peak.time) * 1e-9},
        {"bytes", peak.bytes}, {"kinds", kinds}, {"held", held}};
}

void printPeak(const PeakReport &peak)
{
    std::printf("  fullest at     %s, %s into the step: %s\n", deviceText(peak.device).c_str(),
        formatNanoseconds(peak.time).c_str(), formatBytes(Bytes{peak.bytes}).c_str());
    for (int k = 0; k < kMemoryKindCount; ++k)
        if (const std::int64_t bytes = peak.ofKinds[static_cast<std::size_t>(k)]; bytes > 0)
            std::printf(
                "    %-16s %12s\n", nameOf(static_cast<MemoryKind>(k)), formatBytes(Bytes{bytes}).c_str());
    for (std::size_t i = 0; i < std::min(kShown, peak.held.size()); ++i) {
        const PeakReport::Held &each = peak.held[i];
        std::printf("    %12s  %-14s %s%s\n", formatBytes(Bytes{each.bytes}).c_str(), nameOf(each.kind),
            each.tensor.c_str(),
            each.buffers > 1 ? (" (" + counted(each.buffers, "buffer") + ")").c_str() : "");
    }
    if (peak.held.size() > kShown)
        std::printf("    and %s smaller\n",
            counted(static_cast<std::int64_t>(peak.held.size() - kShown), "tensor").c_str());
}

} // namespace planloom::cli
