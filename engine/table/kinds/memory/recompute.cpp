#include "engine/table/kinds/memory/recompute.h"

#include "engine/table/kinds/meaning.h"
#include "engine/table/rule_form.h"

namespace planloom {

const char *nameOf(RecomputePer per)
{
    constexpr std::array kNames{"selection", "layer", "operator"};
    return kNames[static_cast<std::size_t>(per)];
}

const char *nameOf(Switched when)
{
    constexpr std::array kNames{"always", "never", "solver"};
    return kNames[static_cast<std::size_t>(when)];
}

void RuleTraits<RecomputeRule>::describe(RuleForm &form, RecomputeRule &rule)
{
    form.option("when", rule.when, kAllSwitched);
    if (rule.when != Switched::Always)
        return form.refuse("per", "it only for what is recomputed");
    constexpr std::array kAllPer{RecomputePer::Selection, RecomputePer::Layer, RecomputePer::Operator};
    if (form.has("per", "per", !form.isText() || rule.per != RecomputePer::Selection))
        form.choice("per", rule.per, kAllPer);
}

Result<std::optional<OperatorMeaning>> RuleMeaning<RecomputeRule>::of(
    const RowSetting &, const RecomputeRule &rule, OperatorId)
{
    OperatorMeaning meaning;
    if (rule.when != Switched::Chosen)
        meaning.recompute = rule;
    return std::optional(std::move(meaning));
}

} // namespace planloom
