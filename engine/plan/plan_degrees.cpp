#include "engine/plan/plan_degrees.h"

#include "engine/plan/plan_draft.h"
#include "engine/table/mesh_axes.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

bool isForward(const Plan &plan, std::size_t op)
{
    return plan.graph->operators[op].direction == Direction::Forward;
}

/// Into how many parts devices cut operators: their batch, or all else of them.
std::int64_t mostParts(const Plan &plan, bool ofBatch)
{
    const auto batch = batchOf(plan);
    std::int64_t most = 1;
    for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
        if (!isForward(plan, i))
            continue;
        std::int64_t parts = 1;
        for (const Split &split : plan.decisions[i].partition.splits) {
            const bool isOverDevices = split.over == SplitOver::Devices || split.over == SplitOver::Units;
            const bool isOfBatch = split.kind == SplitKind::Dimension && batch->operatorDimension[i] >= 0
                && split.dimension == batch->operatorDimension[i];
            if (isOverDevices && split.kind != SplitKind::Replicate && isOfBatch == ofBatch)
                parts *= split.parts;
        }
        // Parts that wait for one another on a device are none of their own.
        const auto devices = static_cast<std::int64_t>(distinct(plan.decisions[i].devices).size());
        most = std::max(most, std::min(parts, devices * plan.units.count));
    }
    return most;
}

std::int64_t groupsOfStages(const Plan &plan)
{
    if (plan.stageCount <= 1)
        return 1;
    std::vector<std::set<DeviceId>> groups(static_cast<std::size_t>(plan.stageCount));
    for (std::size_t i = 0; i < plan.decisions.size(); ++i)
        if (isForward(plan, i) && at(plan.decisions[i].stage) < groups.size())
            groups[at(plan.decisions[i].stage)].insert(
                plan.decisions[i].devices.begin(), plan.decisions[i].devices.end());
    return static_cast<std::int64_t>(std::set<std::set<DeviceId>>(groups.begin(), groups.end()).size());
}

} // namespace

std::int64_t degreeOf(const Plan &plan, Degree degree)
{
    switch (degree) {
    case Degree::Data:
        return mostParts(plan, true);
    case Degree::Tensor:
        return mostParts(plan, false);
    case Degree::Pipeline:
        return groupsOfStages(plan);
    case Degree::Stages:
        return plan.stageCount;
    case Degree::MicroBatches:
        return plan.microBatches;
    case Degree::Sequence:
    case Degree::Expert:
        break;
    }
    return 0;
}

std::vector<RowId> brokenDegrees(const Plan &plan, const ConstraintTable &table)
{
    const bool hasMesh = std::any_of(table.rows.begin(), table.rows.end(), [](const Row &row) {
        return row.enabled && row.preference == 0 && std::holds_alternative<MeshRule>(row.rule);
    });
    std::vector<RowId> broken;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        const Row &row = table.rows[i];
        const auto *rule = std::get_if<DegreeRule>(&row.rule);
        if (!rule || !row.enabled || row.preference > 0 || rule->degree >= Degree::Sequence
            || (hasMesh && roleOf(rule->degree))) // its axes are what counts
            continue;
        if (!rule->bound.allows(degreeOf(plan, rule->degree)))
            broken.push_back({static_cast<std::int32_t>(i)});
    }
    return broken;
}

} // namespace planloom
