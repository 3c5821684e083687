#include "engine/base/words.h"
#include "engine/table/kinds/meaning.h"

#include <algorithm>

namespace planloom {

Result<RuleMeaning<AlikeRule>::Sides> RuleMeaning<AlikeRule>::of(
    const RowSetting &setting, const AlikeRule &rule, const std::vector<OperatorId> &selected, std::int32_t)
{
    const Graph &graph = setting.graph();
    const std::vector<OperatorId> first = ofOneDirection(graph, selected);
    const std::vector<OperatorId> second = ofOneDirection(graph, setting.index().select(rule.second));
    if (first.empty() || second.empty())
        return Sides{};
    for (const auto *side : {&first, &second})
        if (graph.at(side->front()).direction != Direction::Forward)
            return Error{ErrorCode::InvalidInput,
                "operator '" + graph.at(side->front()).name
                    + "' is cut as its forward operator, or its weight",
                "select forward operators", ""};
    if (first.size() % second.size() != 0)
        return Error{ErrorCode::InvalidInput,
            counted(static_cast<std::int64_t>(first.size()), "operator") + " cannot be cut alike "
                + counted(static_cast<std::int64_t>(second.size()), "other") + ", one by one",
            "select as many on both sides, several times as many, or one to be cut as", ""};
    Sides sides{first, {}};
    for (std::size_t i = 0; i < first.size(); ++i)
        sides.second.push_back(second[i % second.size()]);
    return sides;
}

} // namespace planloom
