#include "engine/analyse/waterfall.h"

#include "engine/analyse/statistics.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace planloom {

namespace {

StepPart stepPartOf(const ExecutionPlan &plan, const Segment &segment, const Instruction &instruction)
{
    if (directionOf(plan, segment, instruction) == Direction::Optimizer)
        return StepPart::Optimizer;
    if (instruction.kind != InstructionKind::Kernel)
        return StepPart::Other;
    return instruction.recompute ? StepPart::Recompute : StepPart::Compute;
}

} // namespace

const char *nameOf(StepPart part)
{
    constexpr std::array kNames{
        "compute", "exposed communication", "idle", "recompute", "optimizer", "other"};
    return kNames[static_cast<std::size_t>(part)];
}

std::int64_t StepParts::step() const
{
    return std::accumulate(nanoseconds.begin(), nanoseconds.end(), std::int64_t{0});
}

StepParts partsOf(const ExecutionPlan &plan, const Timeline &timeline)
{
    StepParts parts;
    auto &sums = parts.nanoseconds;
    const std::int64_t step = timeline.step.count();
    const std::size_t devices =
        std::min(plan.devices.size(), std::max<std::size_t>(timeline.deviceBegin.size(), 1) - 1);
    if (devices == 0) {
        sums[static_cast<std::size_t>(StepPart::Idle)] = step;
        return parts;
    }
    const SpanColumns &spans = timeline.spans;
    for (std::size_t d = 0; d < devices; ++d) {
        const auto &segments = plan.devices[d].segments;
        // Where a measured span reaches behind the next one, what is left of it counts.
        std::int64_t computeEnd = 0;
        std::int64_t busy = 0;
        for (std::size_t s = timeline.deviceBegin[d]; s < timeline.deviceBegin[d + 1]; ++s) {
            if (spans.queue[s] != QueueKind::Compute)
                break;
            const Segment &segment = segments[static_cast<std::size_t>(spans.segment[s])];
            const std::int64_t end = std::min(spans.start[s] + spans.duration[s], step);
            const std::int64_t duration =
                std::max<std::int64_t>(end - std::max(spans.start[s], computeEnd), 0);
            computeEnd = std::max(computeEnd, end);
            busy += duration;
            sums[static_cast<std::size_t>(stepPartOf(plan, segment,
                segment.instructions[static_cast<std::size_t>(spans.instruction[s])]))] += duration;
        }
        const std::int64_t exposed = std::clamp<std::int64_t>(
            d < timeline.exposedCommunication.size() ? timeline.exposedCommunication[d].count() : 0, 0,
            step - busy);
        sums[static_cast<std::size_t>(StepPart::ExposedCommunication)] += exposed;
        sums[static_cast<std::size_t>(StepPart::Idle)] += step - busy - exposed;
    }
    for (std::int64_t &sum : sums)
        sum /= static_cast<std::int64_t>(devices);
    sums[static_cast<std::size_t>(StepPart::Other)] += step - parts.step();
    return parts;
}

Waterfall waterfallOf(const StepParts &from, const StepParts &to)
{
    Waterfall waterfall{from, to, {}};
    for (std::size_t i = 0; i < kStepPartCount; ++i)
        waterfall.delta.nanoseconds[i] = to.nanoseconds[i] - from.nanoseconds[i];
    return waterfall;
}

Waterfall waterfallOf(
    const ExecutionPlan &fromPlan, const Timeline &from, const ExecutionPlan &toPlan, const Timeline &to)
{
    return waterfallOf(partsOf(fromPlan, from), partsOf(toPlan, to));
}

} // namespace planloom
