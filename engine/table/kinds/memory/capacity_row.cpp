#include "engine/table/kinds/memory/capacity_row.h"

#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<CapacityRule>::describe(RuleForm &form, CapacityRule &rule)
{
    form.name("name", rule.name, "an operator or all, with its room, as in capacity all = 1.25x");
    form.symbol('=', "and the room", false);
    form.spelled("room", rule.capacity, "the room: 1.25x, 128 or all", toString, capacityNamed);
}

} // namespace planloom
