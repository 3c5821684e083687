#include "engine/table/kinds/partition/ring.h"

#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<RingRule>::describe(RuleForm &form, RingRule &rule)
{
    form.word("over", "'over' and a mesh axis");
    form.axis(rule.axis, false);
}

} // namespace planloom
