#include "engine/table/kinds/memory/coshard.h"

#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<CoshardRule>::describe(RuleForm &form, CoshardRule &rule)
{
    partsAlong(form, rule.dimension, rule.parts);
    form.flag("keep", rule.keep);
}

} // namespace planloom
