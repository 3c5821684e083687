#include "engine/table/kinds/meaning.h"

#include "engine/graph/operators/weight_update.h"

#include <algorithm>
#include <iterator>

namespace planloom {

Result<std::vector<OperatorId>> RuleMeaning<PrecisionRule>::actsOn(
    const RowSetting &setting, const PrecisionRule &, const std::vector<OperatorId> &selected)
{
    const auto forward = forwardOnes(setting.graph(), selected);
    std::vector<OperatorId> updates;
    std::copy_if(selected.begin(), selected.end(), std::back_inserter(updates),
        [&](OperatorId op) { return updatesWeight(setting.graph().at(op)); });
    std::vector<OperatorId> both;
    std::set_union(forward.begin(), forward.end(), updates.begin(), updates.end(), std::back_inserter(both));
    return both;
}

Result<std::optional<OperatorMeaning>> RuleMeaning<PrecisionRule>::of(
    const RowSetting &, const PrecisionRule &rule, OperatorId)
{
    return std::optional(OperatorMeaning{.precision = rule});
}

} // namespace planloom
