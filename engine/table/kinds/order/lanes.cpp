#include "engine/table/kinds/order/lanes.h"

#include "engine/table/kinds/meaning.h"
#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<LanesRule>::describe(RuleForm &form, LanesRule &rule)
{
    if (form.has("over", "axis", !rule.axis.empty()))
        form.axis(rule.axis, false);
    else
        form.number("count", rule.count,
            {"a number of lanes, as lanes all : 2, or 'over' and a mesh axis", 2, kMostBlockLanes});
}

Result<void> RuleMeaning<LanesRule>::check(const RowSetting &setting, const LanesRule &rule)
{
    if (!rule.axis.empty())
        TRY_VOID(splitOf(setting, {}, {.kind = SplitKind::Replicate, .axis = rule.axis}));
    return {};
}

Result<std::optional<OperatorMeaning>> RuleMeaning<LanesRule>::of(
    const RowSetting &, const LanesRule &rule, OperatorId)
{
    return std::optional(OperatorMeaning{.lanes = rule});
}

} // namespace planloom
