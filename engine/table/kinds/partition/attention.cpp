#include "engine/table/kinds/partition/attention.h"

#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<AttentionRule>::describe(RuleForm &form, AttentionRule &rule)
{
    form.choice("mode", rule.mode, std::array{AttentionMode::Fused, AttentionMode::Plain});
}

} // namespace planloom
