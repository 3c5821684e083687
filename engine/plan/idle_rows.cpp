#include "engine/plan/idle_rows.h"

#include "engine/base/ids.h"

#include <algorithm>
#include <set>
#include <string>
#include <variant>

namespace planloom {

namespace {

/// Stages that no row places run side by side on all devices, which is hardly what they were made for: said.
void warnOfSharedStages(PlanDraft &draft)
{
    const auto places = [](const Row &row) {
        const auto *layout = std::get_if<LayoutRule>(&row.rule);
        return row.enabled
            && (std::holds_alternative<OpAssignRule>(row.rule) || std::holds_alternative<SpreadRule>(row.rule)
                || std::holds_alternative<DeviceSharingRule>(row.rule) || (layout && !layout->axis.empty()));
    };
    const auto &rows = draft.table.rows;
    if (draft.plan.stageCount < 2 || std::any_of(rows.begin(), rows.end(), places))
        return;
    std::set<DeviceId> first;
    for (const OperatorDecision &decision : draft.plan.decisions) {
        const std::set<DeviceId> devices(decision.devices.begin(), decision.devices.end());
        if (!first.empty() && !devices.empty() && devices != first)
            return;
        first = devices.empty() ? first : devices;
    }
    for (std::size_t i = 0; i < rows.size() && first.size() > 1; ++i) {
        if (!rows[i].enabled || !std::holds_alternative<StageRule>(rows[i].rule))
            continue;
        draft.bound.reports[i].warning = "all " + std::to_string(draft.plan.stageCount)
            + " stages run on the same " + std::to_string(first.size())
            + " devices, which repeat or share the work of each, as no row says where they run: add a row "
              "place SELECTOR : devices ... for each stage, or spread layer:* : over AXIS in place of stage "
              "rows";
        return;
    }
}

/// True if devices that differ only in their place along an axis do different work of an operator.
/// @param stride  from one device to the next along the axis
bool isUsedBy(const OperatorDecision &decision, const MeshAxis &axis, std::int32_t stride)
{
    for (const Split &split : decision.partition.splits) {
        const bool unnamed = split.axis.empty() && split.over == SplitOver::Devices;
        if (split.parts > 1 && split.kind != SplitKind::Replicate && (unnamed || split.axis == axis.name))
            return true;
    }
    const std::set<DeviceId> devices(decision.devices.begin(), decision.devices.end());
    return std::any_of(devices.begin(), devices.end(), [&](DeviceId device) {
        const std::int32_t place = device.index / stride % axis.size;
        const std::int32_t next = device.index + ((place + 1) % axis.size - place) * stride;
        return !devices.contains(DeviceId{next});
    });
}

/// Devices along an axis that nothing is shared out over all do the same.
void warnOfIdleAxes(PlanDraft &draft)
{
    const PlanMeaning &said = draft.bound.plan;
    if (!said.meshRow.valid())
        return;
    std::int32_t stride = 1;
    std::string idle;
    for (std::size_t a = said.mesh.size(); a-- > 0; stride *= said.mesh[a].size) {
        const MeshAxis &axis = said.mesh[a];
        const bool used = axis.size < 2
            || std::any_of(draft.plan.decisions.begin(), draft.plan.decisions.end(),
                [&](const OperatorDecision &decision) { return isUsedBy(decision, axis, stride); });
        if (!used)
            idle = axis.name + (idle.empty() ? "" : ", ") + idle;
    }
    if (!idle.empty())
        draft.bound.reports[at(said.meshRow)].warning = "nothing is shared out over " + idle
            + ", so that its devices all do the same: split something over it, or "
              "leave it out";
}

/// The only block of a pass runs when it does, whatever the schedule.
void warnOfIdleSchedule(PlanDraft &draft)
{
    if (draft.plan.stageCount > 1 || draft.plan.microBatches > 1)
        return;
    for (std::size_t i = 0; i < draft.table.rows.size(); ++i) {
        const auto *rule = std::get_if<ScheduleRule>(&draft.table.rows[i].rule);
        if (rule != nullptr && draft.table.rows[i].enabled && !rule->chosen
            && rule->kind != ScheduleKind::Sequential && rule->holdsAt(draft.plan.microBatches)
            && !splitsBackward(rule->kind) && !splitsBackward(rule->order))
            draft.bound.reports[i].warning =
                "one stage with one micro-batch runs the same in every schedule: add stages "
                "(spread layer:* : over AXIS), or micro-batches";
    }
}

} // namespace

void warnOfIdleRows(PlanDraft &draft)
{
    warnOfSharedStages(draft);
    warnOfIdleAxes(draft);
    warnOfIdleSchedule(draft);
}

} // namespace planloom
