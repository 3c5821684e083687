#include "engine/table/kinds/meaning.h"

namespace planloom {

Result<std::vector<OperatorId>> RuleMeaning<AttentionRule>::actsOn(
    const RowSetting &setting, const AttentionRule &, const std::vector<OperatorId> &selected)
{
    std::vector<OperatorId> attentions = forwardOnes(setting.graph(), selected);
    std::erase_if(
        attentions, [&](OperatorId op) { return setting.graph().at(op).kind != OperatorKind::Attention; });
    return attentions;
}

Result<std::optional<OperatorMeaning>> RuleMeaning<AttentionRule>::of(
    const RowSetting &setting, const AttentionRule &rule, OperatorId op)
{
    if (setting.graph().at(op).kind != OperatorKind::Attention)
        return std::optional<OperatorMeaning>{};
    return std::optional(OperatorMeaning{.attention = rule.mode});
}

} // namespace planloom
