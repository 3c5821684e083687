#include "engine/table/kinds/meaning.h"

#include "engine/table/selector_matcher.h"

namespace planloom {

Result<void> RuleMeaning<FollowRule>::check(const RowSetting &, const FollowRule &)
{
    return {};
}

Result<std::vector<OperatorId>> RuleMeaning<FollowRule>::actsOn(
    const RowSetting &setting, const FollowRule &, const std::vector<OperatorId> &selected)
{
    return forwardOnes(setting.graph(), selected);
}

Result<std::optional<OperatorMeaning>> RuleMeaning<FollowRule>::of(
    const RowSetting &, const FollowRule &, OperatorId)
{
    OperatorMeaning meaning;
    meaning.follows = true;
    return std::optional(std::move(meaning));
}

} // namespace planloom
