#include "engine/table/kinds/memory/offload.h"

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

} // namespace planloom
