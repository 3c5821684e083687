#include "engine/table/kinds/meaning.h"

namespace planloom {

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
    if (rule.when != Switched::Chosen)
        meaning.offloaded = rule.when == Switched::Always;
    return std::optional(std::move(meaning));
}

} // namespace planloom
