#include "engine/table/kinds/order/lanes.h"

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

} // namespace planloom
