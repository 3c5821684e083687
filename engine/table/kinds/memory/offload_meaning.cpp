#include "engine/table/kinds/meaning.h"

#include "engine/table/selector_matcher.h"

namespace planloom {

Result<void> RuleMeaning<OffloadRule>::check(const RowSetting &, const OffloadRule &)
{
    return {};
}

Result<std::vector<OperatorId>> RuleMeaning<OffloadRule>::actsOn(
    const RowSetting &setting, const OffloadRule &rule, const std::vector<OperatorId> &selected)
{
    return rule.what == OffloadedKind::States
        ? RuleMeaning<OptimizerShardingRule>::actsOn(setting, OptimizerShardingRule{}, selected)
        : forwardOnes(setting.graph(), selected);
}

Result<std::optional<OperatorMeaning>> RuleMeaning<OffloadRule>::of(
    const RowSetting &, const OffloadRule &rule, OperatorId)
{
    OperatorMeaning meaning;
    meaning.offloaded = rule.when == Switched::Always;
    meaning.staysOnDevice = rule.when == Switched::Never;
    return std::optional(std::move(meaning));
}

} // namespace planloom
