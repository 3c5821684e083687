#include "engine/table/kinds/partition/alike.h"

#include "engine/base/words.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<AlikeRule>::describe(RuleForm &form, AlikeRule &rule)
{
    form.word("as", "'as' and the second selector");
    form.selector("second", rule.second);
}

Result<RuleSides> RuleMeaning<AlikeRule>::of(
    const RowSetting &setting, const AlikeRule &rule, const std::vector<OperatorId> &selected, std::int32_t)
{
    RuleSides sides = sidesOf(setting, selected, rule.second);
    TRY_VOID(checkForward(setting, sides, "is cut as its forward operator, or its weight"));
    if (sides.first.empty())
        return sides;
    const std::size_t others = sides.second.size();
    if (sides.first.size() % others != 0)
        return Error{ErrorCode::InvalidInput,
            counted(static_cast<std::int64_t>(sides.first.size()), "operator") + " cannot be cut alike "
                + counted(static_cast<std::int64_t>(others), "other") + ", one by one",
            "select as many on both sides, several times as many, or one to be cut as", ""};
    for (std::size_t i = others; i < sides.first.size(); ++i)
        sides.second.push_back(sides.second[i - others]);
    return sides;
}

} // namespace planloom
