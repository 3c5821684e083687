#include "engine/gesture/stage_rows.h"

#include "engine/gesture/row_edits.h"
#include "engine/table/kinds/meaning.h"

#include <algorithm>
#include <map>

namespace planloom {

std::vector<std::int32_t> stagesByRow(const GestureContext &context)
{
    std::vector<std::int32_t> stages;
    forEachRule<StageRule>(context, [&](std::int32_t, const Row &row, const StageRule &rule) {
        stages.resize(context.graph().operators.size(), -1);
        for (const OperatorId op : forwardSelected(context.index(), row.selector)) {
            const auto meaning = RuleMeaning<StageRule>::of(context, rule, op);
            if (const std::int32_t *stage = meaning && *meaning ? (*meaning)->stage.preferred() : nullptr)
                stages[static_cast<std::size_t>(op.index)] = *stage;
        }
    });
    return stages;
}

StageId stageOn(const GestureContext &context, const std::vector<DeviceId> &devices)
{
    if (!context.plan)
        return {};
    std::vector<char> wanted(static_cast<std::size_t>(std::max(context.deviceCount, 1)), 0);
    for (const DeviceId device : devices) {
        if (device.index >= 0 && device.index < context.deviceCount)
            wanted[static_cast<std::size_t>(device.index)] = 1;
    }
    std::map<StageId, std::int64_t> operators;
    const auto &decisions = context.plan->decisions;
    for (std::size_t i = 0; i < decisions.size() && i < context.graph().operators.size(); ++i) {
        if (context.graph().operators[i].direction != Direction::Forward)
            break;
        const bool here =
            std::any_of(decisions[i].devices.begin(), decisions[i].devices.end(), [&](DeviceId d) {
                return d.index >= 0 && d.index < context.deviceCount
                    && wanted[static_cast<std::size_t>(d.index)];
            });
        if (here && decisions[i].stage.valid())
            ++operators[decisions[i].stage];
    }
    StageId best;
    std::int64_t most = 0;
    for (const auto &[stage, count] : operators) {
        if (count > most) {
            most = count;
            best = stage;
        }
    }
    return best;
}

} // namespace planloom
