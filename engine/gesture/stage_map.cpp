#include "engine/gesture/stage_map.h"

#include "engine/gesture/row_edits.h"

#include <algorithm>
#include <map>

namespace planloom {

StageMap stageRows(const GestureContext &context)
{
    StageMap map;
    forEachRule<StageRule>(context, [&](std::int32_t, const Row &row, const StageRule &rule) {
        map.byRow.resize(context.graph().operators.size(), -1);
        for (const OperatorId op : forwardSelected(*context.index, row.selector))
            map.byRow[static_cast<std::size_t>(op.index)] = rule.index;
    });
    return map;
}

std::optional<StageViolation> numberStages(const SelectorIndex &index, StageMap &map)
{
    const Graph &graph = index.graph();
    std::optional<StageViolation> violation;
    // Operators computed from inputs and constants alone, which no row names, wait for their consumers.
    std::vector<char> waits(graph.operators.size(), 0);
    map.stage.assign(graph.operators.size(), 0);
    std::size_t count = 0;
    for (; count < graph.operators.size() && graph.operators[count].direction == Direction::Forward;
         ++count) {
        const Operator &op = graph.operators[count];
        const std::int32_t row = map.byRow.empty() ? -1 : map.byRow[count];
        bool waiting = row < 0;
        std::int32_t last = 0;
        OperatorId from;
        for (const TensorId input : op.inputs) {
            if (!input.valid())
                continue;
            waiting = waiting && graph.at(input).role != TensorRole::Weight;
            for (const OperatorId maker : index.uses().producers[static_cast<std::size_t>(input.index)]) {
                const auto at = static_cast<std::size_t>(maker.index);
                if (graph.at(maker).direction != Direction::Forward)
                    continue;
                waiting = waiting && waits[at] != 0;
                if (!waits[at] && map.stage[at] >= last) {
                    last = map.stage[at];
                    from = maker;
                }
            }
        }
        waits[count] = waiting;
        map.stage[count] = row >= 0 ? row : last;
        if (row >= 0 && row < last && !violation)
            violation = {{static_cast<std::int32_t>(count)}, from, row, last};
    }
    for (std::size_t i = count; i-- > 0;) {
        if (!waits[i])
            continue;
        std::int32_t first = -1;
        for (const TensorId output : graph.operators[i].outputs) {
            if (!output.valid())
                continue;
            for (const OperatorId user : index.uses().consumers[static_cast<std::size_t>(output.index)]) {
                if (graph.at(user).direction != Direction::Forward)
                    continue;
                const std::int32_t stage = map.stage[static_cast<std::size_t>(user.index)];
                first = first < 0 ? stage : std::min(first, stage);
            }
        }
        map.stage[i] = std::max(first, 0);
    }
    return violation;
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
