#include "engine/table/kinds/partition/parts.h"

#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<PartsRule>::describe(RuleForm &form, PartsRule &rule)
{
    // An identifier may be called "in".
    if (form.isText() ? !form.takes("in all", !rule.dimension)
                      : form.holds("dimension", rule.dimension.has_value())) {
        DimensionRef dimension = rule.dimension.value_or(DimensionRef{});
        dimensionRef(form, dimension);
        rule.dimension = std::move(dimension);
    }
    countBound(form, rule.bound);
}

} // namespace planloom
