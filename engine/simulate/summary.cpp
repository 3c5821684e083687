#include "engine/simulate/summary.h"

#include <algorithm>

namespace planloom {

namespace {

double secondsOf(Nanoseconds time)
{
    return static_cast<double>(time.count()) * 1e-9;
}

} // namespace

Bytes mostSent(const TimelineSummary &summary)
{
    Bytes most;
    for (const DeviceSummary &device : summary.devices)
        most = std::max(most, device.sent);
    return most;
}

TimelineSummary summaryOf(const Timeline &timeline)
{
    TimelineSummary summary{.stepSeconds = secondsOf(timeline.step), .bubble = bubbleRatio(timeline)};
    summary.links = timeline.links;
    summary.devices.resize(timeline.busy.size());
    for (std::size_t d = 0; d < summary.devices.size(); ++d) {
        DeviceSummary &device = summary.devices[d];
        device.busySeconds = secondsOf(timeline.busy[d]);
        const std::int64_t step = timeline.step.count();
        if (step > 0)
            device.bubble = static_cast<double>(step - timeline.busy[d].count()) / static_cast<double>(step);
        if (d < timeline.memory.size())
            device.peak = timeline.memory[d].peak;
        if (d < timeline.hostPeak.size())
            device.hostPeak = timeline.hostPeak[d];
        if (d < timeline.exposedCommunication.size())
            device.exposedCommunicationSeconds = secondsOf(timeline.exposedCommunication[d]);
        summary.largestPeak = std::max(summary.largestPeak, device.peak);
        summary.largestHostPeak = std::max(summary.largestHostPeak, device.hostPeak);
    }
    for (const DeviceSummary &device : summary.devices)
        summary.exposedCommunicationSeconds +=
            device.exposedCommunicationSeconds / static_cast<double>(summary.devices.size());
    for (const Traffic &traffic : timeline.traffic) {
        summary.sent += traffic.bytes * timeline.units;
        const auto kind = std::lower_bound(summary.kinds.begin(), summary.kinds.end(), traffic.kind,
            [](const KindTraffic &a, InstructionKind b) { return a.kind < b; });
        if (kind != summary.kinds.end() && kind->kind == traffic.kind) {
            kind->count += traffic.count * timeline.units;
            kind->bytes += traffic.bytes * timeline.units;
        } else {
            summary.kinds.insert(
                kind, {traffic.kind, traffic.count * timeline.units, traffic.bytes * timeline.units});
        }
        if (traffic.from.valid() && static_cast<std::size_t>(traffic.from.index) < summary.devices.size())
            summary.devices[static_cast<std::size_t>(traffic.from.index)].sent += traffic.bytes;
    }
    for (const std::int32_t symmetryClass : timeline.symmetryClass)
        summary.classes = std::max(summary.classes, symmetryClass + 1);
    return summary;
}

} // namespace planloom
