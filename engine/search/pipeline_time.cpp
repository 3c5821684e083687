#include "engine/search/pipeline_time.h"

#include "engine/lowering/schedule_templates.h"

#include <algorithm>
#include <limits>

namespace planloom {

namespace {

using Order = std::vector<std::vector<ScheduledBlock>>;

/// One device: a micro-batch forward and backward, then the next.
Order oneByOne(std::int32_t microBatches, bool backward)
{
    Order order(1);
    for (std::int32_t m = 0; m < microBatches; ++m) {
        order.front().push_back({{StageId{0}, Pass::Forward}, m});
        if (backward)
            order.front().push_back({{StageId{0}, Pass::Backward}, m});
    }
    return order;
}

Result<Order> orderOf(
    ScheduleKind schedule, std::int32_t stages, std::int32_t ranks, std::int32_t microBatches, bool backward)
{
    if (stages == 1)
        return oneByOne(microBatches, backward);
    ScheduleSetting setting{.rankCount = ranks, .microBatches = microBatches, .backward = backward};
    for (std::int32_t s = 0; s < stages; ++s)
        setting.rankOf.push_back(s % ranks);
    TRY(Schedule made, makeSchedule(schedule, setting));
    return std::move(made.ranks);
}

} // namespace

std::vector<StageVisits> longestWay(
    const std::vector<PlayedBlock> &blocks, std::int32_t to, bool including, std::size_t stages)
{
    std::vector<StageVisits> visits(stages);
    for (std::int32_t at = to; at >= 0; at = blocks[static_cast<std::size_t>(at)].before) {
        const PlayedBlock &own = blocks[static_cast<std::size_t>(at)];
        const Pass pass = own.block.block.pass;
        StageVisits &stage = visits[static_cast<std::size_t>(own.block.block.stage.index)];
        if (at != to || including)
            ++(pass == Pass::Forward               ? stage.forward
                    : pass == Pass::WeightGradient ? stage.weights
                                                   : stage.backward);
        if (own.received) {
            const PlayedBlock &sender = blocks[static_cast<std::size_t>(own.before)];
            StageVisits &from = visits[static_cast<std::size_t>(sender.block.block.stage.index)];
            ++(pass == Pass::Forward ? from.sendForward : from.sendBackward);
        }
    }
    return visits;
}

Result<PipelineTime> playPipeline(ScheduleKind schedule, const std::vector<StageTime> &stages,
    std::int32_t ranks, std::int32_t microBatches, bool backward, std::vector<PlayedBlock> *blocks)
{
    const auto stageCount = static_cast<std::int32_t>(stages.size());
    TRY(const Order order, orderOf(schedule, stageCount, ranks, microBatches, backward));
    bool splits = false;
    for (const auto &rank : order)
        for (const ScheduledBlock &block : rank)
            splits = splits || block.block.pass == Pass::WeightGradient;
    constexpr double kNotYet = -1;
    const auto slots = stages.size() * static_cast<std::size_t>(microBatches);
    std::vector<double> forward(slots, kNotYet);
    std::vector<double> back(slots, kNotYet);
    const auto slot = [&](std::int32_t stage, std::int32_t microBatch) {
        return static_cast<std::size_t>(stage * microBatches + microBatch);
    };
    PipelineTime time;
    time.lastBackward.assign(stages.size(), 0);
    time.begin.assign(stages.size(), std::numeric_limits<double>::infinity());
    time.lastInput.assign(stages.size(), 0);
    time.end.assign(stages.size(), 0);
    time.inFlight.assign(stages.size(), 0);
    std::vector<std::int32_t> held(stages.size(), 0);
    std::vector<std::int32_t> numbers(blocks ? 2 * slots : 0, -1); // of forward, then of backward blocks
    std::vector<std::int32_t> lastOf(order.size(), -1);
    std::vector<std::size_t> at(order.size(), 0);
    std::vector<double> clock(order.size(), 0);
    bool moved = true;
    while (moved) {
        moved = false;
        for (std::size_t r = 0; r < order.size(); ++r) {
            while (at[r] < order[r].size()) {
                const ScheduledBlock &next = order[r][at[r]];
                const std::int32_t s = next.block.stage.index;
                const std::int32_t m = next.microBatch;
                const StageTime &own = stages[static_cast<std::size_t>(s)];
                double ready = 0;
                double duration = 0;
                std::size_t from = 2 * slots; // whence it receives
                if (next.block.pass == Pass::Forward) {
                    duration = own.forward;
                    if (s > 0) {
                        const double before = forward[slot(s - 1, m)];
                        if (before == kNotYet)
                            break;
                        ready =
                            before + (ranks > 1 ? stages[static_cast<std::size_t>(s) - 1].sendForward : 0);
                        from = slot(s - 1, m);
                    }
                } else if (next.block.pass == Pass::WeightGradient) {
                    duration = own.weights;
                    if (back[slot(s, m)] == kNotYet)
                        break;
                } else {
                    duration = own.backward + (splits ? 0 : own.weights);
                    if (forward[slot(s, m)] == kNotYet)
                        break;
                    if (s + 1 < stageCount) {
                        const double after = back[slot(s + 1, m)];
                        if (after == kNotYet)
                            break;
                        ready =
                            after + (ranks > 1 ? stages[static_cast<std::size_t>(s) + 1].sendBackward : 0);
                        from = slots + slot(s + 1, m);
                    }
                }
                const double start = std::max(clock[r], ready);
                if (blocks) {
                    const bool waited = from < numbers.size() && ready > clock[r];
                    const auto number = static_cast<std::int32_t>(blocks->size());
                    blocks->push_back({next, start, waited ? numbers[from] : lastOf[r], waited});
                    lastOf[r] = number;
                    if (next.block.pass != Pass::WeightGradient)
                        numbers[(next.block.pass == Pass::Forward ? 0 : slots) + slot(s, m)] = number;
                }
                clock[r] = start + duration;
                const auto stage = static_cast<std::size_t>(s);
                time.begin[stage] = std::min(time.begin[stage], start);
                time.end[stage] = clock[r];
                if (next.block.pass == Pass::Forward) {
                    forward[slot(s, m)] = clock[r];
                    time.inFlight[stage] = std::max(time.inFlight[stage], ++held[stage]);
                } else {
                    time.lastBackward[stage] = start;
                    if (next.block.pass != Pass::WeightGradient) {
                        back[slot(s, m)] = clock[r];
                        time.lastInput[stage] = start;
                    }
                    if (!splits || next.block.pass == Pass::WeightGradient)
                        --held[stage];
                }
                ++at[r];
                moved = true;
            }
            time.makespan = std::max(time.makespan, clock[r]);
        }
    }
    for (std::size_t r = 0; r < order.size(); ++r)
        if (at[r] < order[r].size())
            return Error{ErrorCode::InvalidInput,
                std::string("schedule ") + nameOf(schedule) + " cannot run these stages", "choose another",
                "schedule"};
    return time;
}

} // namespace planloom
