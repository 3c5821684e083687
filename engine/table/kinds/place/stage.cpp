#include "engine/table/kinds/place/stage.h"

#include "engine/table/kinds/meaning.h"
#include "engine/table/rule_form.h"

#include <algorithm>

namespace planloom {

void RuleTraits<StageRule>::describe(RuleForm &form, StageRule &rule)
{
    form.number("index", rule.index, {"the number of a stage"});
    form.numberAfter("of", "of", rule.count,
        {"a number of stages, above that of the stage", std::int64_t{rule.index} + 1});
}

Result<std::vector<OperatorId>> RuleMeaning<StageRule>::actsOn(
    const RowSetting &setting, const StageRule &, const std::vector<OperatorId> &selected)
{
    const Graph &graph = setting.graph();
    auto acted = actedOn(graph, selected);
    const auto other = std::find_if(acted.begin(), acted.end(),
        [&](OperatorId op) { return graph.at(op).direction != Direction::Forward; });
    if (other != acted.end()) {
        return Error{ErrorCode::InvalidInput,
            "only forward operators have a stage of their own, '" + graph.at(*other).name + "' is none", "",
            ""};
    }
    return acted;
}

Result<std::optional<OperatorMeaning>> RuleMeaning<StageRule>::of(
    const RowSetting &, const StageRule &rule, OperatorId)
{
    return std::optional(OperatorMeaning{.stage = Allowed<std::int32_t>::only(rule.index)});
}

} // namespace planloom
