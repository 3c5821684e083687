#include "engine/runtime/devices/measured.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

/// Bytes one member sends (NCCL's and the MPI literature's ring counts). `in` and `out` are its buffers'
/// bytes.
std::int64_t sentBytes(
    InstructionKind kind, std::int64_t in, std::int64_t out, std::int64_t members, bool first)
{
    if (members <= 1)
        return 0;
    switch (kind) {
    case InstructionKind::AllReduce:
        return 2 * in * (members - 1) / members;
    case InstructionKind::AllGather:
        return out * (members - 1) / members;
    case InstructionKind::ReduceScatter:
    case InstructionKind::AllToAll:
        return in * (members - 1) / members;
    case InstructionKind::Broadcast:
        return first ? in : 0;
    default:
        return in;
    }
}

/// A stretch of time, [first, second).
using Interval = std::pair<std::int64_t, std::int64_t>;

/// Time in which something of `all` runs and nothing of `covering`, which is ascending and disjoint.
std::int64_t exposedTime(std::vector<Interval> all, const std::vector<Interval> &covering)
{
    std::sort(all.begin(), all.end());
    std::int64_t exposed = 0;
    std::int64_t at = 0; // all before it is counted
    std::size_t next = 0;
    for (const auto &[begin, end] : all) {
        at = std::max(at, begin);
        while (at < end) {
            while (next < covering.size() && covering[next].second <= at)
                ++next;
            const bool covered = next < covering.size() && covering[next].first <= at;
            std::int64_t to = end;
            if (covered)
                to = covering[next].second;
            else if (next < covering.size())
                to = std::min(end, covering[next].first);
            if (!covered)
                exposed += to - at;
            at = to;
        }
    }
    return exposed;
}

} // namespace

std::vector<Traffic> trafficOf(const ExecutionPlan &plan)
{
    std::map<std::tuple<InstructionKind, std::int32_t, DeviceId, DeviceId>, Traffic> found;
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        const DeviceProgram &program = plan.devices[d];
        const DeviceId from{static_cast<std::int32_t>(d)};
        const auto bytesOf = [&](const BufferList &buffers) {
            if (buffers.empty() || buffers[0] < 0)
                return std::int64_t{0};
            return sizeOf(program.buffers[static_cast<std::size_t>(buffers[0])]).count;
        };
        for (const ScheduleEntry &entry : program.schedule) {
            for (const Instruction &instruction : instructionsOf(program, entry)) {
                if (!isCommunication(instruction.kind) || instruction.kind == InstructionKind::Recv)
                    continue;
                std::int64_t members = 2;
                bool first = true;
                DeviceId to{};
                if (instruction.kind == InstructionKind::Send) {
                    to = instruction.peer;
                } else {
                    const auto &group = plan.groups[static_cast<std::size_t>(instruction.group)];
                    members = static_cast<std::int64_t>(group.size());
                    first = group.front() == from;
                }
                Traffic &traffic = found[{instruction.kind, instruction.group, from, to}];
                traffic.kind = instruction.kind;
                traffic.group = instruction.kind == InstructionKind::Send ? -1 : instruction.group;
                traffic.from = from;
                traffic.to = to;
                traffic.bytes += {sentBytes(instruction.kind, bytesOf(instruction.inputs),
                    bytesOf(instruction.outputs), members, first)};
                ++traffic.count;
            }
        }
    }
    std::vector<Traffic> traffic;
    for (auto &[key, value] : found)
        traffic.push_back(value);
    return traffic;
}

MemoryCurve memoryCurve(
    const DeviceProgram &program, const MemoryPlan &memory, std::span<const LiveSpan> spans)
{
    MemoryCurve curve;
    if (spans.empty())
        return curve;
    const auto infoOf = [&](const MemoryChange &change) -> const BufferInfo & {
        return program.buffers[static_cast<std::size_t>(change.buffer)];
    };
    std::vector<std::pair<std::int64_t, const MemoryChange *>> changes;
    for (const MemoryChange &change : memory.changes) {
        if (infoOf(change).place == MemoryPlace::Host)
            continue;
        std::int64_t time = 0;
        if (change.at >= 0) {
            const LiveSpan &span = spans[static_cast<std::size_t>(change.at)];
            time = change.before ? span.start : span.start + span.duration;
        }
        changes.emplace_back(time, &change);
    }
    std::stable_sort(
        changes.begin(), changes.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    std::array<std::int64_t, kMemoryKindCount> live{};
    std::int64_t total = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        const auto &[time, change] = changes[i];
        const BufferInfo &info = infoOf(*change);
        const std::int64_t bytes = sizeOf(info).count;
        live[static_cast<std::size_t>(info.memory)] += change->isBirth ? bytes : -bytes;
        total += change->isBirth ? bytes : -bytes;
        if (total > curve.peak.count) {
            curve.peak = {total};
            curve.atPeak = live;
        }
        if (i + 1 < changes.size() && changes[i + 1].first == time)
            continue;
        curve.time.push_back(time);
        curve.bytes.push_back(live);
    }
    return curve;
}

Timeline measuredTimeline(
    const ExecutionPlan &plan, const std::vector<DeviceMeasure> &devices, Nanoseconds step)
{
    Timeline timeline;
    timeline.step = step;
    timeline.traffic = trafficOf(plan);
    SpanColumns &columns = timeline.spans;
    for (std::size_t d = 0; d < devices.size(); ++d) {
        timeline.deviceBegin.push_back(columns.size());
        const DeviceProgram &program = plan.devices[d];
        const auto queueOfSpan = [&](const LiveSpan &span) {
            return queueOf(program.segments[static_cast<std::size_t>(span.segment)]
                               .instructions[static_cast<std::size_t>(span.instruction)]);
        };
        std::vector<LiveSpan> spans = devices[d].spans;
        std::stable_sort(spans.begin(), spans.end(),
            [&](const LiveSpan &a, const LiveSpan &b) { return queueOfSpan(a) < queueOfSpan(b); });
        std::int64_t busy = 0;
        std::vector<Interval> computing;
        std::vector<Interval> communicating;
        for (const LiveSpan &span : spans) {
            const QueueKind queue = queueOfSpan(span);
            columns.device.push_back(static_cast<std::int32_t>(d));
            columns.queue.push_back(queue);
            columns.segment.push_back(span.segment);
            columns.instruction.push_back(span.instruction);
            columns.microBatch.push_back(span.microBatch);
            columns.start.push_back(span.start);
            columns.duration.push_back(span.duration);
            (queue == QueueKind::Compute ? computing : communicating)
                .emplace_back(span.start, span.start + span.duration);
            if (queue == QueueKind::Compute)
                busy += span.duration;
        }
        timeline.busy.emplace_back(busy);
        timeline.exposedCommunication.emplace_back(exposedTime(std::move(communicating), computing));
        timeline.memory.push_back(devices[d].memory);
        timeline.hostPeak.push_back(devices[d].hostPeak);
        timeline.symmetryClass.push_back(static_cast<std::int32_t>(d));
    }
    timeline.deviceBegin.push_back(columns.size());
    return timeline;
}

} // namespace planloom
