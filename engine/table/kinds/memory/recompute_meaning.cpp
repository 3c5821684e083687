#include "engine/table/kinds/meaning.h"

#include "engine/table/selector_matcher.h"

namespace planloom {

Result<void> RuleMeaning<RecomputeRule>::check(const RowSetting &, const RecomputeRule &)
{
    return {};
}

Result<std::vector<OperatorId>> RuleMeaning<RecomputeRule>::actsOn(
    const RowSetting &setting, const RecomputeRule &, const std::vector<OperatorId> &selected)
{
    return forwardOnes(setting.graph(), selected);
}

Result<std::optional<OperatorMeaning>> RuleMeaning<RecomputeRule>::of(
    const RowSetting &, const RecomputeRule &rule, OperatorId)
{
    OperatorMeaning meaning;
    if (rule.when == Switched::Always)
        meaning.recompute = rule.per;
    meaning.keepsOutputs = rule.when == Switched::Never;
    return std::optional(std::move(meaning));
}

} // namespace planloom
