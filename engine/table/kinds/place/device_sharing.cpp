#include "engine/table/kinds/place/device_sharing.h"

#include "engine/table/kinds/meaning.h"
#include "engine/table/rule_form.h"

#include <algorithm>
#include <iterator>

namespace planloom {

void RuleTraits<DeviceSharingRule>::describe(RuleForm &form, DeviceSharingRule &rule)
{
    if (form.way() == RuleForm::Way::ReadText)
        rule.apart = form.rowWord() == words[1];
    form.word(rule.apart ? "from" : "with",
        rule.apart ? "'from' and the second selector" : "'with' and the second selector");
    form.selector("second", rule.second);
    if (!form.isText())
        form.flag("apart", rule.apart);
}

Result<RuleSides> RuleMeaning<DeviceSharingRule>::of(const RowSetting &setting, const DeviceSharingRule &rule,
    const std::vector<OperatorId> &selected, std::int32_t)
{
    RuleSides sides = sidesOf(setting, selected, rule.second);
    TRY_VOID(checkForward(setting, sides, "runs where its forward operator runs, or its weight is"));
    std::vector<OperatorId> common;
    std::set_intersection(sides.first.begin(), sides.first.end(), sides.second.begin(), sides.second.end(),
        std::back_inserter(common));
    if (rule.apart && !common.empty())
        return Error{ErrorCode::InvalidInput,
            "operator '" + setting.graph().at(common.front()).name + "' cannot run apart from itself",
            "take it out of one of the two selections", ""};
    return sides;
}

} // namespace planloom
