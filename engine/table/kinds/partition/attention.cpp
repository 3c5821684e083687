#include "engine/table/kinds/partition/attention.h"

#include "engine/table/kinds/meaning.h"
#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<AttentionRule>::describe(RuleForm &form, AttentionRule &rule)
{
    form.choice("mode", rule.mode, std::array{AttentionMode::Fused, AttentionMode::Plain});
}

Result<std::optional<OperatorMeaning>> RuleMeaning<AttentionRule>::of(
    const RowSetting &setting, const AttentionRule &rule, OperatorId op)
{
    if (setting.graph().at(op).kind != OperatorKind::Attention)
        return std::optional<OperatorMeaning>{};
    return std::optional(OperatorMeaning{.attention = rule.mode});
}

} // namespace planloom
