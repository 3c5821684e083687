#include "engine/analyse/statistics.h"

#include <algorithm>
#include <array>
#include <utility>

namespace planloom {

namespace {

/// Rows of one queue of one device that may meet [begin, end).
struct Rows {
    std::size_t begin = 0;
    std::size_t end = 0;
};

Rows rowsIn(
    const SpanColumns &spans, std::size_t first, std::size_t last, std::int64_t begin, std::int64_t end)
{
    const auto from = spans.start.begin() + static_cast<std::ptrdiff_t>(first);
    const auto to = spans.start.begin() + static_cast<std::ptrdiff_t>(last);
    Rows rows;
    rows.end = static_cast<std::size_t>(std::lower_bound(from, to, end) - spans.start.begin());
    rows.begin = static_cast<std::size_t>(std::lower_bound(from, to, begin) - spans.start.begin());
    // Queues are in order: only the spans just before can reach into the box.
    while (rows.begin > first && spans.start[rows.begin - 1] + spans.duration[rows.begin - 1] > begin)
        --rows.begin;
    return rows;
}

/// The part of span `s` in [begin, end) that is not before `from`.
std::int64_t overlapOf(const SpanColumns &spans, std::size_t s, std::int64_t begin, std::int64_t end)
{
    return std::max<std::int64_t>(
        std::min(end, spans.start[s] + spans.duration[s]) - std::max(begin, spans.start[s]), 0);
}

void count(SpanAmount &amount, std::int64_t nanoseconds)
{
    amount.nanoseconds += nanoseconds;
    ++amount.spans;
}

} // namespace

const char *nameOf(OperatorCategory category)
{
    constexpr std::array kNames{"product", "attention", "normalization", "activation", "elementwise",
        "reduction", "movement", "loss", "recurrent", "optimizer", "other"};
    return kNames[static_cast<std::size_t>(category)];
}

Direction directionOf(SegmentKind kind)
{
    switch (kind) {
    case SegmentKind::Backward:
    case SegmentKind::InputGradient:
    case SegmentKind::WeightGradient:
        return Direction::Backward;
    case SegmentKind::Reduce:
    case SegmentKind::Optimizer:
        return Direction::Optimizer;
    case SegmentKind::Prologue:
    case SegmentKind::Forward:
    case SegmentKind::Transfer:
        break;
    }
    return Direction::Forward;
}

Direction directionOf(const ExecutionPlan &plan, const Segment &segment, const Instruction &instruction)
{
    if (segment.kind == SegmentKind::Transfer && instruction.op.valid())
        return plan.graph->at(instruction.op).direction;
    return directionOf(segment.kind);
}

TimeBox wholeOf(const Timeline &timeline)
{
    return {0, timeline.step.count(), {}};
}

std::optional<BoxStatistics> statisticsOf(
    const ExecutionPlan &plan, const Timeline &timeline, const TimeBox &box, std::stop_token stop)
{
    BoxStatistics result;
    const std::int64_t begin = std::max<std::int64_t>(box.begin, 0);
    const std::int64_t end = std::max(begin, std::min(box.end, timeline.step.count()));
    result.length = end - begin;
    result.byMicroBatch.resize(static_cast<std::size_t>(std::max(plan.microBatches, 0)));
    const std::size_t deviceCount =
        std::min(plan.devices.size(), std::max<std::size_t>(timeline.deviceBegin.size(), 1) - 1);
    std::vector<DeviceId> devices = box.devices;
    if (devices.empty())
        for (std::size_t d = 0; d < deviceCount; ++d)
            devices.push_back({static_cast<std::int32_t>(d)});
    const SpanColumns &spans = timeline.spans;
    const auto instructionOf = [&](const DeviceProgram &program, std::size_t s) -> const Instruction & {
        return program.segments[static_cast<std::size_t>(spans.segment[s])]
            .instructions[static_cast<std::size_t>(spans.instruction[s])];
    };

    for (const DeviceId id : devices) {
        const auto d = static_cast<std::size_t>(id.index);
        if (!id.valid() || d >= deviceCount)
            continue;
        if (stop.stop_requested())
            return std::nullopt;
        const DeviceProgram &program = plan.devices[d];
        DeviceStatistics device{.device = id};
        const auto [first, middle] = rowsOf(timeline, d, QueueKind::Compute);
        const Rows compute = rowsIn(spans, first, middle, begin, end);
        for (std::size_t s = compute.begin; s < compute.end; ++s) {
            const std::int64_t part = overlapOf(spans, s, begin, end);
            const Segment &segment = program.segments[static_cast<std::size_t>(spans.segment[s])];
            const Instruction &instruction = instructionOf(program, s);
            device.compute += part;
            if (instruction.kind == InstructionKind::Kernel) {
                const Operator &op = plan.graph->at(instruction.op);
                count(result.byCategory[static_cast<std::size_t>(categoryOf(op.kind))], part);
                if (instruction.recompute)
                    count(result.recompute, part);
            } else {
                count(result.copies, part);
            }
            count(
                result.byDirection[static_cast<std::size_t>(directionOf(plan, segment, instruction))], part);
            const bool repeated = isPass(segment.kind) || segment.kind == SegmentKind::Transfer;
            const auto microBatch = static_cast<std::size_t>(spans.microBatch[s]);
            count(repeated && microBatch < result.byMicroBatch.size() ? result.byMicroBatch[microBatch]
                                                                      : result.oncePerStep,
                part);
        }
        std::vector<Stretch> stretches;
        for (int q = 1; q < kQueueCount; ++q) {
            const auto [from, to] = rowsOf(timeline, d, static_cast<QueueKind>(q));
            const Rows communication = rowsIn(spans, from, to, begin, end);
            for (std::size_t s = communication.begin; s < communication.end; ++s) {
                const std::int64_t part = overlapOf(spans, s, begin, end);
                const InstructionKind kind = instructionOf(program, s).kind;
                if (isCommunication(kind) || isHostCopy(kind)) { // else what came is brought into shape
                    device.communication += part;
                    count(result.communication[static_cast<std::size_t>(kind)], part);
                }
                stretches.emplace_back(
                    std::max(begin, spans.start[s]), std::min(end, spans.start[s] + spans.duration[s]));
            }
        }
        device.exposed = exposedTime(std::move(stretches),
            std::span(spans.start).subspan(compute.begin, compute.end - compute.begin),
            std::span(spans.duration).subspan(compute.begin, compute.end - compute.begin));
        device.idle = result.length - device.compute - device.exposed;
        result.total.compute += device.compute;
        result.total.communication += device.communication;
        result.total.exposed += device.exposed;
        result.total.idle += device.idle;
        result.devices.push_back(device);
    }
    return result;
}

std::vector<std::int64_t> kernelTimesOf(const ExecutionPlan &plan, const Timeline &timeline)
{
    std::vector<std::int64_t> times(plan.graph->operators.size(), 0);
    const SpanColumns &spans = timeline.spans;
    std::vector<std::int64_t> alike; // by class: devices
    for (const std::int32_t its : timeline.symmetryClass) {
        alike.resize(std::max(alike.size(), static_cast<std::size_t>(its) + 1), 0);
        ++alike[static_cast<std::size_t>(its)];
    }
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        // Its first device stands for a class.
        const std::int64_t count =
            std::exchange(alike[static_cast<std::size_t>(timeline.symmetryClass[d])], std::int64_t{0});
        if (count == 0)
            continue;
        for (std::size_t row = timeline.deviceBegin[d]; row < timeline.deviceBegin[d + 1]; ++row) {
            const auto &instructions =
                plan.devices[d].segments[static_cast<std::size_t>(spans.segment[row])].instructions;
            const Instruction &instruction = instructions[static_cast<std::size_t>(spans.instruction[row])];
            if (instruction.kind == InstructionKind::Kernel && instruction.op.valid())
                times[static_cast<std::size_t>(instruction.op.index)] += count * spans.duration[row];
        }
    }
    return times;
}

} // namespace planloom
