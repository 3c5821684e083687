#include "engine/runtime/live_timeline.h"

#include "engine/runtime/devices/measured.h"

#include <algorithm>

namespace planloom {

Timeline timelineOfSpans(
    const ExecutionPlan &plan, const std::vector<std::vector<LiveSpan>> &byDevice, Nanoseconds step)
{
    Timeline timeline;
    timeline.traffic = trafficOf(plan);
    SpanColumns &columns = timeline.spans;
    std::int64_t end = step.count();
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        timeline.deviceBegin.push_back(columns.size());
        const DeviceProgram &program = plan.devices[d];
        struct Placed {
            QueueKind queue;
            LiveSpan span;
        };
        std::vector<Placed> placed;
        if (d < byDevice.size()) {
            for (const LiveSpan &span : byDevice[d]) {
                if (span.segment < 0 || static_cast<std::size_t>(span.segment) >= program.segments.size()
                    || span.start < 0 || span.duration < 0)
                    continue;
                const auto &instructions =
                    program.segments[static_cast<std::size_t>(span.segment)].instructions;
                if (span.instruction < 0 || static_cast<std::size_t>(span.instruction) >= instructions.size())
                    continue;
                placed.push_back({queueOf(instructions[static_cast<std::size_t>(span.instruction)]), span});
            }
        }
        std::stable_sort(placed.begin(), placed.end(), [](const Placed &a, const Placed &b) {
            return a.queue != b.queue ? a.queue < b.queue : a.span.start < b.span.start;
        });
        std::int64_t busy = 0;
        std::int64_t communication = 0;
        for (const Placed &each : placed) {
            columns.device.push_back(static_cast<std::int32_t>(d));
            columns.queue.push_back(each.queue);
            columns.segment.push_back(each.span.segment);
            columns.instruction.push_back(each.span.instruction);
            columns.microBatch.push_back(each.span.microBatch);
            columns.start.push_back(each.span.start);
            columns.duration.push_back(each.span.duration);
            (each.queue == QueueKind::Compute ? busy : communication) += each.span.duration;
            end = std::max(end, each.span.start + each.span.duration);
        }
        timeline.busy.emplace_back(busy);
        timeline.exposedCommunication.emplace_back(communication); // one thread: no compute runs beside it
        timeline.memory.emplace_back();
        timeline.symmetryClass.push_back(static_cast<std::int32_t>(d));
    }
    timeline.deviceBegin.push_back(columns.size());
    timeline.step = Nanoseconds{end};
    return timeline;
}

} // namespace planloom
