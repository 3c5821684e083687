#include "engine/table/kinds/place/device_sharing.h"

#include "engine/table/rule_form.h"

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

} // namespace planloom
