#include "engine/table/kinds/memory/coshard.h"

#include "engine/table/kinds/meaning.h"
#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<CoshardRule>::describe(RuleForm &form, CoshardRule &rule)
{
    partsAlong(form, rule.dimension, rule.parts);
    form.flag("keep", rule.keep);
}

Result<std::optional<OperatorMeaning>> RuleMeaning<CoshardRule>::of(
    const RowSetting &setting, const CoshardRule &rule, OperatorId op)
{
    Split split{.kind = SplitKind::Dimension, .parts = rule.parts};
    TRY(const bool has, bindDimension(setting, op, rule.dimension, split));
    if (!has)
        return std::optional<OperatorMeaning>{};
    TRY_VOID(checkPartition(setting.graph().at(op), {{split}}));
    OperatorMeaning meaning;
    meaning.coshard = Allowed<Split>::only(std::move(split));
    meaning.coshardKeeps = rule.keep;
    return std::optional(std::move(meaning));
}

} // namespace planloom
