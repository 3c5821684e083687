#include "engine/table/kinds/order/weight_versions.h"

#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<WeightVersionsRule>::describe(RuleForm &form, WeightVersionsRule &rule)
{
    form.number(
        "count", rule.count, {"a number of versions, as weight-versions all : 2", 1, kMostWeightVersions});
}

} // namespace planloom
