#include "engine/table/kinds/partition/spread.h"

#include "engine/table/rule_form.h"

namespace planloom {

const char *nameOf(SpreadBy by)
{
    constexpr std::array kNames{"time", "memory", "count"};
    return kNames[static_cast<std::size_t>(by)];
}

void RuleTraits<SpreadRule>::describe(RuleForm &form, SpreadRule &rule)
{
    form.word("over", "'over' and a mesh axis");
    form.axis(rule.axis);
    if (form.has("by", "by", !form.isText() || rule.by != SpreadBy::Time))
        form.choice("by", rule.by, std::array{SpreadBy::Time, SpreadBy::Memory, SpreadBy::Count});
}

} // namespace planloom
