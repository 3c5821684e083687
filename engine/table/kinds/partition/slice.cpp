#include "engine/table/kinds/partition/slice.h"

#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<SliceRule>::describe(RuleForm &form, SliceRule &rule)
{
    partsAlong(form, rule.dimension, rule.parts);
}

} // namespace planloom
