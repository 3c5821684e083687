#include "engine/lowering/sequence.h"

#include "engine/lowering/order_rows.h"

#include <algorithm>

namespace planloom {

namespace {

/// Cuts the last run of every block that completes gradients where its buckets are complete, and lets them be
/// reduced there; what runs when all is done comes last.
void sliceForReductions(const MaterializedPlan &materialized, std::vector<BlockRun> &order)
{
    const auto isEmpty = [&](std::int32_t block) {
        return materialized.blocks[static_cast<std::size_t>(block)].devices.empty();
    };
    std::map<std::int32_t, std::vector<const ReductionPlace *>> inside; // by block
    for (const ReductionPlace &reduction : materialized.reductions)
        if (reduction.after >= 0 && !isEmpty(reduction.block))
            inside[reduction.after].push_back(&reduction);
    std::map<std::int32_t, std::size_t> last; // by block: its last run
    for (std::size_t i = 0; i < order.size(); ++i)
        last[order[i].block] = i;
    std::vector<BlockRun> sliced;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const auto reductions = inside.find(order[i].block);
        if (reductions == inside.end() || order[last.at(order[i].block)].microBatch != order[i].microBatch) {
            sliced.push_back(order[i]);
            continue;
        }
        BlockRun rest = order[i]; // all of the run, or a slice of it: marks ascend
        for (const ReductionPlace *reduction : reductions->second) {
            if (reduction->mark <= order[i].from || (order[i].to >= 0 && reduction->mark > order[i].to))
                continue;
            sliced.push_back({rest.block, rest.microBatch, rest.from, reduction->mark});
            sliced.push_back({reduction->block, 0});
            rest.from = reduction->mark;
        }
        sliced.push_back(rest);
    }
    for (const ReductionPlace &reduction : materialized.reductions)
        if (reduction.after < 0)
            sliced.push_back({reduction.block, 0});
    // Stages update in the order in which their backward passes end.
    std::vector<std::pair<std::size_t, std::int32_t>> updates;
    for (std::size_t s = 0; s + 1 < materialized.optimizers.size(); ++s) {
        std::size_t end = 0;
        for (const auto &[block, run] : last) {
            const BlockInfo &info = materialized.blocks[static_cast<std::size_t>(block)];
            if (isBackward(info.kind) && info.stage.index == static_cast<std::int32_t>(s))
                end = std::max(end, run);
        }
        updates.emplace_back(end, materialized.optimizers[s]);
    }
    std::sort(updates.begin(), updates.end());
    for (const auto &[end, block] : updates)
        sliced.push_back({block, 0});
    sliced.push_back({materialized.optimizers.back(), 0});
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
        const auto &places = materialized.marks[static_cast<std::size_t>(mark)];
        const auto found = places.find(static_cast<std::int32_t>(device));
        return found == places.end() ? 0 : found->second;
    };
    std::vector<ScheduleEntry> schedule;
    for (const BlockRun &run : order) {
        const std::int32_t segment = materialized.segmentOf[device][static_cast<std::size_t>(run.block)];
        if (segment < 0)
            continue;
        const auto all = static_cast<std::int32_t>(
            program.segments[static_cast<std::size_t>(segment)].instructions.size());
        const std::int32_t begin = placeOf(run.from, 0);
        const std::int32_t end = placeOf(run.to, all);
        if (begin < end) // else it has nothing of its own in this slice
            schedule.push_back({segment, run.microBatch, begin, end < all ? end : -1});
    }
    return schedule;
}

} // namespace

Result<std::optional<ExecutionPlan>> sequence(const MaterializedPlan &materialized, const Plan &plan)
{
    TRY(auto orders, sortOrders(plan, materialized.blocks, materialized.blocksOf));
    orders.inside.resize(materialized.inside.size()); // none are inside transfers
    if (orders.inside != materialized.inside)
        return std::optional<ExecutionPlan>{};
    std::vector<BlockDependency> dependencies = std::move(orders.between);
    dependencies.insert(dependencies.end(), materialized.dataFlow.begin(), materialized.dataFlow.end());
    TRY(auto order,
        orderBlocks(materialized.blocks, dependencies, plan.microBatches, plan.stageCount, plan.schedule,
            plan.inFlight, plan.interleaved));
    sliceForReductions(materialized, order);
    ExecutionPlan result = materialized.programs;
    for (std::size_t d = 0; d < result.devices.size(); ++d)
        result.devices[d].schedule = scheduleOf(materialized, d, order);
    return std::optional(std::move(result));
}

bool isSameButForOrder(const Plan &a, const Plan &b)
{
    return a.graph == b.graph && a.deviceCount == b.deviceCount && a.units == b.units
        && a.microBatches == b.microBatches && a.wholeBatches == b.wholeBatches
        && a.stageCount == b.stageCount && a.overlap == b.overlap
        && std::equal(a.decisions.begin(), a.decisions.end(), b.decisions.begin(), b.decisions.end(),
            [](const OperatorDecision &x, const OperatorDecision &y) { // whatever they follow from
                return x.partition == y.partition && x.devices == y.devices && x.stage == y.stage
                    && x.recomputeGroup == y.recomputeGroup && x.coshardRegion == y.coshardRegion
                    && x.attention == y.attention && x.precision == y.precision && x.sharding == y.sharding
                    && x.gatherGroup == y.gatherGroup && x.offloaded == y.offloaded
                    && x.splitBackward == y.splitBackward;
            });
}

} // namespace planloom
