#include "engine/simulate/simulate.h"

#include "engine/simulate/compiled_program.h"
#include "engine/simulate/event_loop.h"
#include "engine/simulate/symmetry.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

std::vector<MemoryEvent> inOrderOfTime(std::array<std::vector<MemoryEvent>, 4> lists)
{
    const auto earlier = [](const MemoryEvent &a, const MemoryEvent &b) { return a.time < b.time; };
    for (auto &list : lists) { // Only deaths that wait for the other stream can be out of order.
        if (!std::is_sorted(list.begin(), list.end(), earlier))
            std::stable_sort(list.begin(), list.end(), earlier);
    }
    const auto merged = [&](const std::vector<MemoryEvent> &a, const std::vector<MemoryEvent> &b) {
        std::vector<MemoryEvent> result(a.size() + b.size());
        std::merge(a.begin(), a.end(), b.begin(), b.end(), result.begin(), earlier);
        return result;
    };
    return merged(merged(lists[0], lists[1]), merged(lists[2], lists[3]));
}

/// Nets out what happens at one time: a buffer that lives for no time takes no memory.
MemoryCurve memoryCurve(const std::vector<MemoryEvent> &events, bool points)
{
    MemoryCurve curve;
    std::array<std::int64_t, kMemoryKindCount> now{};
    std::int64_t total = 0;
    for (std::size_t i = 0; i < events.size();) {
        const std::int64_t time = events[i].time;
        auto next = now;
        for (; i < events.size() && events[i].time == time; ++i) {
            next[static_cast<std::size_t>(events[i].kind)] += events[i].bytes;
            total += events[i].bytes;
        }
        if (next == now)
            continue;
        now = next;
        if (points) {
            curve.time.push_back(time);
            curve.bytes.push_back(now);
        }
        if (total > curve.peak.count) {
            curve.peak = {total};
            curve.atPeak = now;
        }
    }
    return curve;
}

/// Time that communication runs while compute does not; both in order and without overlap in themselves.
std::int64_t exposedTime(const StreamTrace &compute, const StreamTrace &communication)
{
    std::int64_t exposed = 0;
    std::size_t k = 0;
    for (std::size_t i = 0; i < communication.start.size(); ++i) {
        const std::int64_t begin = communication.start[i];
        const std::int64_t end = begin + communication.duration[i];
        exposed += end - begin;
        while (k < compute.start.size() && compute.start[k] + compute.duration[k] <= begin)
            ++k;
        for (std::size_t j = k; j < compute.start.size() && compute.start[j] < end; ++j)
            exposed -=
                std::min(end, compute.start[j] + compute.duration[j]) - std::max(begin, compute.start[j]);
    }
    return exposed;
}

void append(std::vector<std::int32_t> &to, const std::vector<std::int32_t> &from)
{
    to.insert(to.end(), from.begin(), from.end());
}

void append(std::vector<std::int64_t> &to, const std::vector<std::int64_t> &from)
{
    to.insert(to.end(), from.begin(), from.end());
}

/// Where the instructions of a class's trace stand in the program of one of its devices.
struct InstructionMap {
    struct Hidden {
        std::int32_t behind = 0; ///< Instruction of the trace.
        std::int32_t index = 0; ///< Of the store in the device's own program.
    };
    std::vector<std::vector<std::int32_t>> kept{}; ///< By segment and instruction of the trace.
    std::vector<std::vector<Hidden>> hidden{}; ///< By segment.
    bool plain = true; ///< Nothing is hidden: indices are equal.
};

InstructionMap instructionMap(const DeviceProgram &program)
{
    InstructionMap map;
    for (const Segment &segment : program.segments) {
        const std::vector<std::int32_t> hidden = hiddenStores(segment);
        map.plain = map.plain && hidden.empty();
        auto &kept = map.kept.emplace_back();
        auto &stores = map.hidden.emplace_back();
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(segment.instructions.size()); ++i) {
            if (stores.size() < hidden.size() && hidden[stores.size()] == i)
                stores.push_back({static_cast<std::int32_t>(kept.size()) - 1, i});
            else
                kept.push_back(i);
        }
    }
    return map;
}

void appendSpan(SpanColumns &spans, std::int32_t device, StreamKind kind, const StreamTrace &stream,
    std::size_t row, std::int32_t instruction, bool hidden)
{
    spans.device.push_back(device);
    spans.stream.push_back(kind);
    spans.segment.push_back(stream.segment[row]);
    spans.instruction.push_back(instruction);
    spans.microBatch.push_back(stream.microBatch[row]);
    spans.start.push_back(hidden ? stream.start[row] + stream.duration[row] : stream.start[row]);
    spans.duration.push_back(hidden ? 0 : stream.duration[row]);
}

void appendSpans(
    SpanColumns &spans, const DeviceTrace &trace, const DeviceProgram &program, std::int32_t device)
{
    const InstructionMap map = instructionMap(program);
    for (const StreamKind kind : {StreamKind::Compute, StreamKind::Communication}) {
        const StreamTrace &stream = trace.streams[static_cast<std::size_t>(kind)];
        if (map.plain) {
            const std::size_t size = spans.size() + stream.start.size();
            spans.device.resize(size, device);
            spans.stream.resize(size, kind);
            append(spans.segment, stream.segment);
            append(spans.instruction, stream.instruction);
            append(spans.microBatch, stream.microBatch);
            append(spans.start, stream.start);
            append(spans.duration, stream.duration);
            continue;
        }
        for (std::size_t row = 0; row < stream.start.size(); ++row) {
            const auto segment = static_cast<std::size_t>(stream.segment[row]);
            const std::int32_t instruction = stream.instruction[row];
            appendSpan(spans, device, kind, stream, row,
                map.kept[segment][static_cast<std::size_t>(instruction)], false);
            for (const InstructionMap::Hidden &store : map.hidden[segment]) {
                if (store.behind == instruction)
                    appendSpan(spans, device, kind, stream, row, store.index, true);
            }
        }
    }
}

void reserveSpans(SpanColumns &spans, std::size_t size)
{
    spans.device.reserve(size);
    spans.stream.reserve(size);
    spans.segment.reserve(size);
    spans.instruction.reserve(size);
    spans.microBatch.reserve(size);
    spans.start.reserve(size);
    spans.duration.reserve(size);
}

/// What one device class sends, by kind, channel slot and size.
using ClassTraffic = std::map<std::tuple<InstructionKind, std::int32_t, std::int64_t>, std::int64_t>;

ClassTraffic trafficOfClass(const CompiledProgram &program)
{
    std::vector<std::int64_t> runs(program.segmentBegin.size() - 1, 0);
    for (const ScheduleEntry &entry : program.schedule)
        ++runs[static_cast<std::size_t>(entry.segment)];
    ClassTraffic traffic;
    for (std::size_t s = 0; s < runs.size(); ++s) {
        for (std::int32_t i = program.segmentBegin[s]; i < program.segmentBegin[s + 1]; ++i) {
            const CompiledInstruction &instruction = program.instructions[static_cast<std::size_t>(i)];
            if (instruction.channel >= 0 && instruction.kind != InstructionKind::Recv && runs[s] > 0)
                traffic[{instruction.kind, instruction.slot, instruction.bytes}] += runs[s];
        }
    }
    return traffic;
}

/// The rows of one device: its class's traffic under its own names.
void appendTraffic(
    std::vector<Traffic> &rows, const ClassTraffic &traffic, const Symmetry &symmetry, std::int32_t device)
{
    std::map<std::tuple<InstructionKind, std::int32_t, std::int32_t>, std::pair<std::int64_t, std::int64_t>>
        sums;
    for (const auto &[key, count] : traffic) {
        const auto &[kind, slot, bytes] = key;
        const auto channelIndex =
            symmetry.slots[static_cast<std::size_t>(device)][static_cast<std::size_t>(slot)];
        const Channel &channel = symmetry.channels[static_cast<std::size_t>(channelIndex)];
        std::int32_t position = 0;
        while (channel.members[static_cast<std::size_t>(position)].device != device)
            ++position;
        const Bytes sent = ringBytesSent(
            *collectiveOf(kind), Bytes{bytes}, static_cast<std::int32_t>(channel.members.size()), position);
        const std::int32_t peer = channel.group >= 0 ? -1 : channel.members[1].device;
        auto &[sumBytes, sumCount] = sums[{kind, channel.group, peer}];
        sumBytes += sent.count * count;
        sumCount += count;
    }
    for (const auto &[key, sum] : sums) {
        const auto &[kind, group, peer] = key;
        rows.push_back({kind, group, DeviceId{device}, DeviceId{peer}, Bytes{sum.first}, sum.second});
    }
}

} // namespace

Result<Timeline> simulate(
    const ExecutionPlan &plan, const Cluster &cluster, const SimulateOptions &options, std::stop_token stop)
{
    return simulate(plan, cluster, costModelOf(cluster), options, std::move(stop));
}

Result<Timeline> simulate(const ExecutionPlan &plan, const Cluster &cluster, const CostModel &costs,
    const SimulateOptions &options, std::stop_token stop)
{
    if (!plan.graph)
        return Error{ErrorCode::InvalidInput, "the execution plan has no graph", {}, "plan"};
    if (plan.microBatches < 1)
        return Error{ErrorCode::InvalidInput, "the execution plan has no micro-batches", {}, "plan"};
    if (plan.devices.size() > static_cast<std::size_t>(cluster.deviceCount))
        return Error{ErrorCode::InvalidInput,
            "the plan is for " + std::to_string(plan.devices.size()) + " devices, the cluster has "
                + std::to_string(cluster.deviceCount),
            "choose a larger cluster", "cluster:" + cluster.name};

    TRY(const Symmetry symmetry, findSymmetry(plan, cluster, options.mergeSymmetric));
    if (stop.stop_requested())
        return cancelled("the simulation was stopped");
    ProgramCompiler compiler(plan, costs, options.precision);
    std::vector<CompiledProgram> programs;
    programs.reserve(symmetry.representative.size());
    for (const std::int32_t device : symmetry.representative)
        programs.push_back(compiler.compile(symmetry, device));
    TRY(std::vector<DeviceTrace> traces, runPrograms(programs, symmetry, plan.microBatches, stop));

    const std::size_t classes = programs.size();
    std::vector<MemoryCurve> curves(classes);
    std::vector<Nanoseconds> busy(classes), exposed(classes);
    std::vector<ClassTraffic> traffic(classes);
    Timeline timeline;
    for (std::size_t c = 0; c < classes; ++c) {
        DeviceTrace &trace = traces[c];
        curves[c] = memoryCurve(inOrderOfTime(std::move(trace.memory)), options.spans);
        const StreamTrace &compute = trace.streams[static_cast<std::size_t>(StreamKind::Compute)];
        const StreamTrace &communication = trace.streams[static_cast<std::size_t>(StreamKind::Communication)];
        busy[c] =
            Nanoseconds{std::accumulate(compute.duration.begin(), compute.duration.end(), std::int64_t{0})};
        exposed[c] = Nanoseconds{exposedTime(compute, communication)};
        traffic[c] = trafficOfClass(programs[c]);
        timeline.step = std::max(timeline.step, Nanoseconds{trace.end});
    }

    timeline.symmetryClass = symmetry.deviceClass;
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        const auto c = static_cast<std::size_t>(symmetry.deviceClass[d]);
        timeline.memory.push_back(curves[c]);
        timeline.busy.push_back(busy[c]);
        timeline.exposedCommunication.push_back(exposed[c]);
        appendTraffic(timeline.traffic, traffic[c], symmetry, static_cast<std::int32_t>(d));
    }
    if (options.onFigures)
        options.onFigures(timeline);

    timeline.deviceBegin.push_back(0);
    if (options.spans)
        reserveSpans(timeline.spans, static_cast<std::size_t>(instructionCount(plan)));
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        if (stop.stop_requested())
            return cancelled("the simulation was stopped");
        if (options.spans) {
            appendSpans(timeline.spans, traces[static_cast<std::size_t>(symmetry.deviceClass[d])],
                plan.devices[d], static_cast<std::int32_t>(d));
        }
        timeline.deviceBegin.push_back(timeline.spans.size());
    }
    return timeline;
}

} // namespace planloom
