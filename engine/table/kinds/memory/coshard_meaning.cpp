#include "engine/table/kinds/meaning.h"

namespace planloom {

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
