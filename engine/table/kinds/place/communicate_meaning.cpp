#include "engine/table/kinds/meaning.h"

namespace planloom {

Result<RuleMeaning<CommunicateRule>::Sides> RuleMeaning<CommunicateRule>::of(const RowSetting &setting,
    const CommunicateRule &rule, const std::vector<OperatorId> &selected, std::int32_t microBatches)
{
    const bool once =
        rule.part == CommunicationPart::Reductions || rule.secondPart == CommunicationPart::Reductions;
    if (once && rule.microBatchOffset != 0)
        return Error{ErrorCode::InvalidInput,
            "gradients are reduced once in a step: there are none of a micro-batch so many later",
            "leave out 'at'", ""};
    if (rule.part == CommunicationPart::Reductions && rule.microBatch >= 0)
        return Error{ErrorCode::InvalidInput,
            "gradients are reduced once in a step: there are none of one micro-batch", "leave out 'of'", ""};
    for (const std::int32_t microBatch : {rule.microBatch, rule.microBatch + rule.microBatchOffset})
        if (rule.microBatch >= 0 && (microBatch < 0 || microBatch >= microBatches))
            return Error{ErrorCode::InvalidInput,
                "there is no micro-batch " + std::to_string(microBatch) + ": the plan has "
                    + std::to_string(microBatches) + ", numbered from 0",
                "", ""};
    const bool gathers =
        rule.part == CommunicationPart::Gathers || rule.secondPart == CommunicationPart::Gathers;
    if (gathers && (rule.microBatchOffset != 0 || rule.microBatch >= 0))
        return Error{ErrorCode::InvalidInput,
            "weights are gathered alike in every micro-batch, for what it runs itself",
            "leave out 'at' and 'of'", ""};
    if (rule.secondPart != CommunicationPart::None && (gathers || rule.part != rule.secondPart))
        return Error{ErrorCode::InvalidInput,
            std::string(nameOf(rule.part)) + " and " + nameOf(rule.secondPart)
                + " are not ordered by one another",
            "order each of them before or after what operators compute", ""};
    Sides sides{ofOneDirection(setting.graph(), selected),
        ofOneDirection(setting.graph(), setting.index().select(rule.second))};
    if (sides.first.empty() || sides.second.empty())
        return Sides{};
    return sides;
}

} // namespace planloom
