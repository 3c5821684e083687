#include "engine/table/kinds/meaning.h"

#include "engine/graph/operators/weight_update.h"
#include "engine/table/mesh_axes.h"

#include <algorithm>
#include <iterator>

namespace planloom {

Result<void> RuleMeaning<OptimizerShardingRule>::check(
    const RowSetting &setting, const OptimizerShardingRule &rule)
{
    if (!rule.axis.empty() && !findAxis(setting.mesh, rule.axis)) {
        return Error{ErrorCode::InvalidInput, "the mesh has no axis '" + rule.axis + "'",
            noSuchAxisAdvice(setting.mesh, rule.axis), ""};
    }
    return {};
}

Result<std::vector<OperatorId>> RuleMeaning<OptimizerShardingRule>::actsOn(
    const RowSetting &setting, const OptimizerShardingRule &, const std::vector<OperatorId> &selected)
{
    std::vector<OperatorId> named;
    std::copy_if(selected.begin(), selected.end(), std::back_inserter(named),
        [&](OperatorId op) { return updatesWeight(setting.graph().at(op)); });
    return named.empty() ? optimizersOf(setting.index(), selected) : named;
}

Result<std::optional<OperatorMeaning>> RuleMeaning<OptimizerShardingRule>::of(
    const RowSetting &, const OptimizerShardingRule &rule, OperatorId)
{
    OperatorMeaning meaning;
    if (!rule.chosen)
        meaning.sharding = rule;
    return std::optional(std::move(meaning));
}

} // namespace planloom
