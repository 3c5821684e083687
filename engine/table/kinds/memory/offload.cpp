#include "engine/table/kinds/memory/offload.h"

#include "engine/table/kinds/meaning.h"
#include "engine/table/rule_form.h"

namespace planloom {

const char *nameOf(OffloadedKind kind)
{
    return kind == OffloadedKind::States ? "states" : "activations";
}

void RuleTraits<OffloadRule>::describe(RuleForm &form, OffloadRule &rule)
{
    form.choice("what", rule.what, std::array{OffloadedKind::States, OffloadedKind::Activations});
    if (rule.what == OffloadedKind::States)
        form.option("when", rule.when, std::array{Switched::Always, Switched::Never},
            "always or never: the search leaves states where they are");
    else
        form.option("when", rule.when, kAllSwitched);
}

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
