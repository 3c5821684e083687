#include "engine/table/kinds/order/unroll.h"

#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<UnrollRule>::describe(RuleForm &form, UnrollRule &rule)
{
    form.name("name", rule.name, "a recurrence, or all, as in unroll all");
}

} // namespace planloom
