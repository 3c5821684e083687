#include "engine/table/kinds/meaning.h"

#include <algorithm>
#include <iterator>

namespace planloom {

Result<RuleMeaning<OpOrderRule>::Sides> RuleMeaning<OpOrderRule>::of(const RowSetting &setting,
    const OpOrderRule &rule, const std::vector<OperatorId> &selected, std::int32_t microBatches)
{
    Sides sides{ofOneDirection(setting.graph(), selected),
        ofOneDirection(setting.graph(), setting.index().select(rule.second))};
    if (sides.first.empty() || sides.second.empty())
        return Sides{};
    const std::int32_t last = microBatches - 1;
    if (rule.microBatch >= 0
        && (rule.microBatch > last || rule.microBatch + rule.microBatchOffset < 0
            || rule.microBatch + rule.microBatchOffset > last)) {
        const std::int32_t missing =
            rule.microBatch > last ? rule.microBatch : rule.microBatch + rule.microBatchOffset;
        return Error{ErrorCode::InvalidInput,
            "there is no micro-batch " + std::to_string(missing) + ": the plan has "
                + std::to_string(last + 1) + ", numbered from 0",
            "", ""};
    }
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
