#include "engine/table/kinds/meaning.h"

#include "engine/table/selector_matcher.h"

namespace planloom {

Result<void> RuleMeaning<SplitBackwardRule>::check(const RowSetting &, const SplitBackwardRule &)
{
    return {};
}

Result<std::vector<OperatorId>> RuleMeaning<SplitBackwardRule>::actsOn(
    const RowSetting &setting, const SplitBackwardRule &, const std::vector<OperatorId> &selected)
{
    return forwardOnes(setting.graph(), selected);
}

Result<std::optional<OperatorMeaning>> RuleMeaning<SplitBackwardRule>::of(
    const RowSetting &, const SplitBackwardRule &, OperatorId)
{
    OperatorMeaning meaning;
    meaning.splitBackward = true;
    return std::optional(std::move(meaning));
}

} // namespace planloom
