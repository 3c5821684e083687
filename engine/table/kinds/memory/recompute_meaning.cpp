#include "engine/table/kinds/meaning.h"

namespace planloom {

Result<std::optional<OperatorMeaning>> RuleMeaning<RecomputeRule>::of(
    const RowSetting &, const RecomputeRule &rule, OperatorId)
{
    OperatorMeaning meaning;
    if (rule.when != Switched::Chosen)
        meaning.recompute = rule;
    return std::optional(std::move(meaning));
}

} // namespace planloom
