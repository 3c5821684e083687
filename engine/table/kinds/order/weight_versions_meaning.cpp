#include "engine/table/kinds/meaning.h"

#include "engine/table/selector_matcher.h"

namespace planloom {

Result<void> RuleMeaning<WeightVersionsRule>::check(const RowSetting &, const WeightVersionsRule &)
{
    return {};
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
    OperatorMeaning meaning;
    meaning.weightVersions = rule.count;
    return std::optional(std::move(meaning));
}

} // namespace planloom
