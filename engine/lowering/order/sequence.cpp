#include "engine/lowering/order/sequence.h"

#include "engine/lowering/order/order_communication.h"
#include "engine/lowering/order/order_rows.h"
#include "engine/plan/interleaves.h"

#include <algorithm>
#include <limits>

namespace planloom {

namespace {

/// What the updates within a step ask of its blocks. A stage adds the gradients of one update up at a time:
/// its backward blocks for an update run before those for the next. And what its forward blocks read must
/// have been made: with weights of d updates ago, those for update u run behind the backward blocks for
/// update u - d - 1. Where a weight is of several stages, its update waits for all of them.
void addUpdateOrders(
    const MaterializedPlan &materialized, const Plan &plan, std::vector<BlockDependency> &dependencies)
{
    if (plan.updates == 1)
        return;
    const Graph &graph = *plan.graph;
    const std::vector<bool> trained = trainedWeights(graph);
    constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();
    std::vector<std::int32_t> staleness(at(plan.stageCount), kNever);
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const Operator &op = graph.operators[o];
        if (op.direction != Direction::Forward)
            continue;
        std::int32_t &least = staleness[at(plan.decisions[o].stage)];
        for (const TensorId input : op.inputs)
            if (input && trained[at(input)])
                least = std::min(least, plan.decisions[o].weightVersions - 1);
    }
    const auto isEmpty = [&](std::int32_t block) { return materialized.blocks[at(block)].devices.empty(); };
    const bool across = !isEmpty(materialized.optimizers.back())
        || std::any_of(materialized.reductions.begin(), materialized.reductions.end(),
            [&](const ReductionPlace &reduction) {
                return reduction.after.empty() && !isEmpty(reduction.block);
            });
    const std::int32_t size = plan.microBatches / plan.updates;
    for (std::size_t from = 0; from < materialized.blocks.size(); ++from) {
        const BlockInfo &earlier = materialized.blocks[from];
        if (!isBackward(earlier.kind))
            continue;
        for (std::size_t to = 0; to < materialized.blocks.size(); ++to) {
            const BlockInfo &later = materialized.blocks[to];
            if (!isPass(later.kind) || (!across && later.stage != earlier.stage))
                continue;
            const std::int32_t age = isBackward(later.kind) ? 0 : staleness[at(later.stage)];
            if (age < plan.updates)
                dependencies.push_back({.earlier = static_cast<std::int32_t>(from),
                    .later = static_cast<std::int32_t>(to),
                    .offset = age + 1,
                    .groupSize = size});
        }
    }
}

/// Cuts the last run, for every update, of each block that completes gradients where its buckets are
/// complete, and lets them be reduced there. Of several updates in a step each follows its stage's last
/// backward block for it; the last ones, or only ones, come when all is done.
void sliceForReductions(const MaterializedPlan &materialized, const Plan &plan, std::vector<BlockRun> &order)
{
    const auto isEmpty = [&](std::int32_t block) { return materialized.blocks[at(block)].devices.empty(); };
    const std::int32_t size = plan.microBatches / plan.updates;
    const std::size_t blocks = materialized.blocks.size();
    const auto placeOf = [blocks](std::int32_t update, std::int32_t block) {
        return at(update) * blocks + at(block);
    };
    constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
    // By update and block: its last run.
    std::vector<std::size_t> last(at(plan.updates) * blocks, kNever);
    for (std::size_t i = 0; i < order.size(); ++i)
        last[placeOf(order[i].microBatch / size, order[i].block)] = i;
    struct Inside {
        const ReductionPlace *reduction = nullptr;
        std::int32_t mark = -1;
    };
    // By update and block: what begins in its last run, of all the lanes that add to it the last to run.
    std::vector<std::vector<Inside>> inside(last.size());
    for (const ReductionPlace &reduction : materialized.reductions) {
        if (reduction.after.empty() || isEmpty(reduction.block))
            continue;
        for (std::int32_t update = 0; update < plan.updates; ++update) {
            const auto latest = std::max_element(
                reduction.after.begin(), reduction.after.end(), [&](const BlockMark &a, const BlockMark &b) {
                    return last[placeOf(update, a.block)] < last[placeOf(update, b.block)];
                });
            inside[placeOf(update, latest->block)].push_back({&reduction, latest->mark});
        }
    }
    for (auto &reductions : inside)
        std::stable_sort(reductions.begin(), reductions.end(),
            [](const Inside &a, const Inside &b) { return a.mark < b.mark; });
    const auto stages = materialized.optimizers.size() - 1;
    // By update and stage: where its last backward block for it ends.
    std::vector<std::vector<std::size_t>> ends(at(plan.updates), std::vector<std::size_t>(stages, 0));
    for (std::size_t place = 0; place < last.size(); ++place) {
        const BlockInfo &info = materialized.blocks[place % blocks];
        if (last[place] == kNever || !isBackward(info.kind))
            continue;
        std::size_t &end = ends[place / blocks][at(info.stage)];
        end = std::max(end, last[place]);
    }
    std::vector<BlockRun> sliced;
    const auto finish = [&](std::int32_t update) {
        for (const ReductionPlace &reduction : materialized.reductions)
            if (reduction.after.empty())
                sliced.push_back({reduction.block, update * size});
    };
    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::int32_t update = order[i].microBatch / size;
        const std::size_t place = placeOf(update, order[i].block);
        if (inside[place].empty() || order[last[place]].microBatch != order[i].microBatch) {
            sliced.push_back(order[i]);
        } else {
            BlockRun rest = order[i]; // all of the run, or a slice of it: marks ascend
            for (const auto &[reduction, mark] : inside[place]) {
                if (mark <= order[i].from || (order[i].to >= 0 && mark > order[i].to))
                    continue;
                sliced.push_back({rest.block, rest.microBatch, rest.from, mark});
                sliced.push_back({reduction->block, update * size});
                rest.from = mark;
            }
            sliced.push_back(rest);
        }
        if (plan.updates == 1)
            continue;
        const std::vector<std::size_t> &own = ends[at(update)];
        const auto stage = static_cast<std::size_t>(
            materialized.blocks[static_cast<std::size_t>(order[i].block)].stage.index);
        if (!isBackward(materialized.blocks[at(order[i].block)].kind) || own[stage] != i)
            continue;
        sliced.push_back({materialized.optimizers[stage], update * size});
        if (*std::max_element(own.begin(), own.end()) == i) {
            finish(update);
            sliced.push_back({materialized.optimizers.back(), update * size});
        }
    }
    if (plan.updates == 1) {
        finish(0);
        // Stages update in the order in which their backward passes end.
        std::vector<std::pair<std::size_t, std::int32_t>> updates;
        for (std::size_t s = 0; s < stages; ++s)
            updates.emplace_back(ends.front()[s], materialized.optimizers[s]);
        std::sort(updates.begin(), updates.end());
        for (const auto &[end, block] : updates)
            sliced.push_back({block, 0});
        sliced.push_back({materialized.optimizers.back(), 0});
    }
    std::erase_if(sliced, [&](const BlockRun &run) { return isEmpty(run.block); });
    order = std::move(sliced);
}

std::vector<ScheduleEntry> scheduleOf(
    const MaterializedPlan &materialized, std::size_t device, const std::vector<BlockRun> &order)
{
    const DeviceProgram &program = materialized.programs.devices[device];
    const auto placeOf = [&](std::int32_t mark, std::int32_t missing) {
        if (mark < 0)
            return missing;
        const auto &places = materialized.marks[at(mark)];
        const auto found = places.find(static_cast<std::int32_t>(device));
        return found == places.end() ? 0 : found->second;
    };
    std::vector<ScheduleEntry> schedule;
    for (const BlockRun &run : order) {
        const std::int32_t segment = materialized.segmentOf[device][at(run.block)];
        if (segment < 0)
            continue;
        const auto all = static_cast<std::int32_t>(program.segments[at(segment)].instructions.size());
        const std::int32_t begin = placeOf(run.from, 0);
        const std::int32_t end = placeOf(run.to, all);
        if (begin < end) // else it has nothing of its own in this slice
            schedule.push_back({segment, run.microBatch, begin, end < all ? end : -1});
    }
    return schedule;
}

/// Lets what the blocks communicate wait for all that their devices computed before.
void makeWait(const MaterializedPlan &materialized, const std::vector<std::int32_t> &blocks,
    std::vector<DeviceProgram> &devices)
{
    for (std::size_t d = 0; d < devices.size(); ++d)
        for (const std::int32_t block : blocks) {
            const std::int32_t segment = materialized.segmentOf[d][at(block)];
            if (segment < 0)
                continue;
            for (Instruction &instruction : devices[d].segments.edit()[at(segment)].instructions)
                if (isCommunication(instruction.kind) && instruction.kind != InstructionKind::Recv)
                    instruction.waits = true;
        }
}

} // namespace

Result<std::optional<ExecutionPlan>> sequence(const MaterializedPlan &materialized, const Plan &plan)
{
    const bool pieces = !plan.orders.empty() && mayInterleave(plan);
    if (pieces && materialized.places.empty())
        return std::optional<ExecutionPlan>{};
    TRY(auto orders,
        sortOrders(
            plan, materialized.blocks, materialized.blocksOf, pieces ? &materialized.places : nullptr));
    orders.inside.resize(materialized.inside.size()); // none are inside transfers
    if (orders.inside != materialized.inside)
        return std::optional<ExecutionPlan>{};
    std::vector<BlockDependency> dependencies = std::move(orders.between);
    dependencies.insert(dependencies.end(), materialized.dataFlow.begin(), materialized.dataFlow.end());
    addUpdateOrders(materialized, plan, dependencies);
    TRY(auto order,
        orderBlocks(materialized.blocks, dependencies, plan.microBatches, plan.stageCount, plan.schedule,
            plan.inFlight, plan.interleaved, plan.order));
    sliceForReductions(materialized, plan, order);
    TRY(order, orderCommunication(materialized, plan, std::move(order)));
    ExecutionPlan result = materialized.programs;
    for (std::size_t d = 0; d < result.devices.size(); ++d)
        result.devices[d].schedule = scheduleOf(materialized, d, order);
    makeWait(materialized, waitingBlocks(materialized, plan), result.devices);
    return std::optional(std::move(result));
}

Result<ExecutionPlan> sequenceAsMade(const MaterializedPlan &materialized, const Plan &plan)
{
    TRY(auto execution, sequence(materialized, plan));
    if (!execution)
        return Error{ErrorCode::Internal, "the order of a plan is not the one it was made in", {}, "plan"};
    return *std::move(execution);
}

namespace {

/// Orders that blocks are made with.
std::vector<CommunicationOrder> gatherOrders(const Plan &plan)
{
    std::vector<CommunicationOrder> orders;
    for (const CommunicationOrder &order : plan.communicationOrders)
        if (order.part == CommunicationPart::Gathers)
            orders.push_back(order);
    return orders;
}

} // namespace

bool isSameButForOrder(const Plan &a, const Plan &b)
{
    return gatherOrders(a) == gatherOrders(b) && a.graph == b.graph && a.deviceCount == b.deviceCount
        && a.units == b.units && a.microBatches == b.microBatches && a.wholeBatches == b.wholeBatches
        && a.updates == b.updates && a.stageCount == b.stageCount && a.overlap == b.overlap
        && std::equal(a.decisions.begin(), a.decisions.end(), b.decisions.begin(), b.decisions.end(),
            [](const OperatorDecision &x, const OperatorDecision &y) { // whatever they follow from
                return x.partition == y.partition && x.devices == y.devices && x.stage == y.stage
                    && x.recomputeGroup == y.recomputeGroup && x.coshardRegion == y.coshardRegion
                    && x.ringSplit == y.ringSplit && x.attention == y.attention && x.precision == y.precision
                    && x.sharding == y.sharding && x.gatherGroup == y.gatherGroup
                    && x.offloaded == y.offloaded && x.splitBackward == y.splitBackward
                    && x.weightVersions == y.weightVersions;
            });
}

} // namespace planloom
