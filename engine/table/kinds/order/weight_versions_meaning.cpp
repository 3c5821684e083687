#include "engine/table/kinds/meaning.h"

namespace planloom {

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
