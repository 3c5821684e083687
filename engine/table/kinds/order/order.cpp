#include "engine/table/kinds/order/order.h"

#include "engine/table/kinds/meaning.h"
#include "engine/table/kinds/order/micro_batch_pairs.h"

#include <algorithm>
#include <iterator>

namespace planloom {

void RuleTraits<OpOrderRule>::describe(RuleForm &form, OpOrderRule &rule)
{
    blockPart(form, rule.part, "");
    form.word("before", "'before' and the second selector");
    form.selector("second", rule.second);
    blockPart(form, rule.secondPart, "second_");
    microBatchPair(form, rule);
}

Result<RuleSides> RuleMeaning<OpOrderRule>::of(const RowSetting &setting, const OpOrderRule &rule,
    const std::vector<OperatorId> &selected, std::int32_t microBatches)
{
    RuleSides sides = sidesOf(setting, selected, rule.second);
    if (sides.first.empty())
        return sides;
    TRY_VOID(checkMicroBatches(rule.microBatch, rule.microBatchOffset, microBatches));
    if (rule.microBatchOffset > 0 || rule.part != rule.secondPart)
        return sides;
    std::vector<OperatorId> common;
    if (sides.paired()) {
        for (std::size_t i = 0; i < sides.first.size(); ++i) {
            if (sides.first[i] == sides.second[i])
                common.push_back(sides.first[i]);
        }
    } else {
        std::set_intersection(sides.first.begin(), sides.first.end(), sides.second.begin(),
            sides.second.end(), std::back_inserter(common));
    }
    if (!common.empty()) {
        return Error{ErrorCode::InvalidInput,
            "operator '" + setting.graph().at(common.front()).name + "' cannot run before itself", "", ""};
    }
    return sides;
}

} // namespace planloom
