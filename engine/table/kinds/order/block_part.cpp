#include "engine/table/kinds/order/block_part.h"

#include "engine/table/rule_form.h"

namespace planloom {

void blockPart(RuleForm &form, BlockPart &part, const std::string &prefix)
{
    if (form.isText() && !form.takes("in", !part.isAll()))
        return;
    form.numberAfter("lane", prefix + "lane", part.lane, {"the number of a lane"});
    form.numberAfter("slice", prefix + "slice", part.slice, {"the number of a slice"});
    if (form.isText() && part.isAll())
        form.expected({}, "'lane' or 'slice' and its number");
}

std::string toString(const BlockPart &part)
{
    return part.isAll() ? std::string{} : ' ' + textOf(blockPart, part, {});
}

} // namespace planloom
