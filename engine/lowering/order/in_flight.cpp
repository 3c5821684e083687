#include "engine/lowering/order/in_flight.h"

#include <algorithm>
#include <map>

namespace planloom {

std::vector<std::int32_t> mostInFlight(const ExecutionPlan &plan)
{
    const auto stages = static_cast<std::size_t>(std::max(plan.stageCount, 0));
    std::vector<std::int32_t> most(stages, 0);
    for (const DeviceProgram &program : plan.devices) {
        std::vector<bool> backward(stages, false);
        std::vector<bool> split(stages, false); // and ends with the gradients of weights
        const auto stageOf = [&](const Segment &segment) {
            const auto stage = static_cast<std::size_t>(segment.stage.index);
            return segment.stage.valid() && stage < stages ? stage : stages;
        };
        for (const Segment &segment : program.segments)
            if (const std::size_t stage = stageOf(segment); stage < stages && isBackward(segment.kind)) {
                backward[stage] = true;
                split[stage] = split[stage] || segment.kind == SegmentKind::WeightGradient;
            }
        std::vector<std::int32_t> slices(stages, 0); // of the pass that lets a micro-batch go
        for (const Segment &segment : program.segments)
            if (const std::size_t stage = stageOf(segment); stage < stages && isBackward(segment.kind)
                && split[stage] == (segment.kind == SegmentKind::WeightGradient))
                ++slices[stage];
        const auto microBatches = static_cast<std::size_t>(std::max(plan.microBatches, 1));
        std::vector<std::int32_t> held(stages, 0);
        std::vector<bool> ranForward(stages * microBatches, false);
        std::vector<bool> ranBackward(stages * microBatches, false);
        std::vector<std::int32_t> done(stages * microBatches, 0);
        for (const ScheduleEntry &entry : program.schedule) {
            if (entry.begin > 0) // a later slice of a run
                continue;
            const Segment &segment = program.segments[static_cast<std::size_t>(entry.segment)];
            const std::size_t stage = stageOf(segment);
            if (stage == stages || !backward[stage])
                continue;
            // A backward pass that needs nothing of the forward pass may run before it: nothing is held then.
            const std::size_t one = stage * microBatches + static_cast<std::size_t>(entry.microBatch);
            if (segment.kind == SegmentKind::Forward) {
                held[stage] += ranBackward[one] || ranForward[one] ? 0 : 1;
                ranForward[one] = true;
                most[stage] = std::max(most[stage], held[stage]);
            } else if (isBackward(segment.kind)
                && split[stage] == (segment.kind == SegmentKind::WeightGradient)
                && ++done[one] == slices[stage]) {
                ranBackward[one] = true;
                held[stage] -= ranForward[one] ? 1 : 0;
            }
        }
    }
    return most;
}

std::vector<std::pair<RowId, std::string>> liftedLimits(const Plan &plan, const ExecutionPlan &execution)
{
    const std::vector<std::int32_t> most = mostInFlight(execution);
    std::map<RowId, std::string> lifted;
    for (std::size_t s = 0; s < plan.inFlight.size() && s < most.size(); ++s) {
        if (plan.inFlight[s] == 0 || most[s] <= plan.inFlight[s] || !plan.inFlightRows[s].valid())
            continue;
        lifted.emplace(plan.inFlightRows[s],
            "stage " + std::to_string(s) + " holds " + std::to_string(most[s])
                + " micro-batches in flight all the same: other rows leave it nothing else to run");
    }
    return {lifted.begin(), lifted.end()};
}

} // namespace planloom
