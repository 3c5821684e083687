#include "engine/table/kinds/partition/dimension_size.h"

#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<DimensionSizeRule>::describe(RuleForm &form, DimensionSizeRule &rule)
{
    form.name("name", rule.name, "a dimension with its size, as in dim batch = 64");
    form.symbol('=', "and the size of the dimension", false);
    form.number("size", rule.size, {"the size of the dimension", 1, kMostExtent});
}

} // namespace planloom
