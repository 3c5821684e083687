#include "engine/table/kinds/meaning.h"

#include "engine/table/selector_matcher.h"

namespace planloom {

Result<void> RuleMeaning<CoshardRule>::check(const RowSetting &, const CoshardRule &)
{
    return {};
}

Result<std::vector<OperatorId>> RuleMeaning<CoshardRule>::actsOn(
    const RowSetting &setting, const CoshardRule &, const std::vector<OperatorId> &selected)
{
    return forwardOnes(setting.graph(), selected);
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
