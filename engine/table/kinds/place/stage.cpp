#include "engine/table/kinds/place/stage.h"

#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<StageRule>::describe(RuleForm &form, StageRule &rule)
{
    form.number("index", rule.index, {"the number of a stage"});
    form.numberAfter("of", "of", rule.count,
        {"a number of stages, above that of the stage", std::int64_t{rule.index} + 1});
}

} // namespace planloom
