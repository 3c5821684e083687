#include "engine/table/kinds/partition/alike.h"

#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<AlikeRule>::describe(RuleForm &form, AlikeRule &rule)
{
    form.word("as", "'as' and the second selector");
    form.selector("second", rule.second);
}

} // namespace planloom
