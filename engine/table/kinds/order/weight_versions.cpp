#include "engine/table/kinds/order/weight_versions.h"

#include "engine/table/kinds/meaning.h"
#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<WeightVersionsRule>::describe(RuleForm &form, WeightVersionsRule &rule)
{
    form.number(
        "count", rule.count, {"a number of versions, as weight-versions all : 2", 1, kMostWeightVersions});
}

Result<std::vector<OperatorId>> RuleMeaning<WeightVersionsRule>::actsOn(
    const RowSetting &setting, const WeightVersionsRule &, const std::vector<OperatorId> &selected)
{
    std::vector<OperatorId> readers = forwardOnes(setting.graph(), selected);
    std::erase_if(readers, [&](OperatorId op) { return optimizersOf(setting.index(), {op}).empty(); });
    return readers;
}

Result<std::optional<OperatorMeaning>> RuleMeaning<WeightVersionsRule>::of(
    const RowSetting &, const WeightVersionsRule &rule, OperatorId)
{
    return std::optional(OperatorMeaning{.weightVersions = rule.count});
}

} // namespace planloom
