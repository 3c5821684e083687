#include "engine/table/kinds/meaning.h"

#include "engine/table/selector_matcher.h"

namespace planloom {

Result<void> RuleMeaning<LanesRule>::check(const RowSetting &setting, const LanesRule &rule)
{
    if (!rule.axis.empty())
        TRY_VOID(splitOf(setting, {}, {.kind = SplitKind::Replicate, .axis = rule.axis}));
    return {};
}

Result<std::vector<OperatorId>> RuleMeaning<LanesRule>::actsOn(
    const RowSetting &setting, const LanesRule &, const std::vector<OperatorId> &selected)
{
    // What runs once per step is no block of a micro-batch.
    std::vector<OperatorId> acted = forwardOnes(setting.graph(), selected);
    std::erase_if(acted,
        [&](OperatorId op) { return setting.batch().oncePerStep[static_cast<std::size_t>(op.index)]; });
    return acted;
}

Result<std::optional<OperatorMeaning>> RuleMeaning<LanesRule>::of(
    const RowSetting &, const LanesRule &rule, OperatorId)
{
    return std::optional(OperatorMeaning{.lanes = rule});
}

} // namespace planloom
