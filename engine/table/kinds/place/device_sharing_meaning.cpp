#include "engine/table/kinds/meaning.h"

#include <algorithm>
#include <iterator>

namespace planloom {

Result<RuleMeaning<DeviceSharingRule>::Sides> RuleMeaning<DeviceSharingRule>::of(const RowSetting &setting,
    const DeviceSharingRule &rule, const std::vector<OperatorId> &selected, std::int32_t)
{
    const Graph &graph = setting.graph();
    Sides sides{ofOneDirection(graph, selected), ofOneDirection(graph, setting.index().select(rule.second))};
    if (sides.first.empty() || sides.second.empty())
        return Sides{};
    for (const auto *side : {&sides.first, &sides.second})
        if (graph.at(side->front()).direction != Direction::Forward)
            return Error{ErrorCode::InvalidInput,
                "operator '" + graph.at(side->front()).name
                    + "' runs where its forward operator runs, or its weight is",
                "select forward operators", ""};
    std::vector<OperatorId> common;
    std::set_intersection(sides.first.begin(), sides.first.end(), sides.second.begin(), sides.second.end(),
        std::back_inserter(common));
    if (rule.apart && !common.empty())
        return Error{ErrorCode::InvalidInput,
            "operator '" + graph.at(common.front()).name + "' cannot run apart from itself",
            "take it out of one of the two selections", ""};
    return sides;
}

} // namespace planloom
