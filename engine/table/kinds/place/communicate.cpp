#include "engine/table/kinds/place/communicate.h"

#include "engine/table/kinds/meaning.h"
#include "engine/table/kinds/order/micro_batch_pairs.h"

namespace planloom {

const char *nameOf(CommunicationPart part)
{
    constexpr std::array kNames{"", "sends", "gathers", "reductions"};
    return kNames[static_cast<std::size_t>(part)];
}

void RuleTraits<CommunicateRule>::describe(RuleForm &form, CommunicateRule &rule)
{
    using enum CommunicationPart;
    constexpr std::array kParts{Sends, Gathers, Reductions};
    form.choice("communication", rule.part, kParts);
    form.either("before", rule.before, "before", "after", "'before' or 'after', and the second selector");
    form.selector("second", rule.second);
    auto second = rule.secondPart == None ? std::nullopt : std::optional(rule.secondPart);
    form.maybe("second_communication", second, kParts);
    rule.secondPart = second.value_or(None);
    microBatchPair(form, rule);
}

Result<RuleSides> RuleMeaning<CommunicateRule>::of(const RowSetting &setting, const CommunicateRule &rule,
    const std::vector<OperatorId> &selected, std::int32_t microBatches)
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
    TRY_VOID(checkMicroBatches(rule.microBatch, rule.microBatchOffset, microBatches));
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
    return sidesOf(setting, selected, rule.second);
}

} // namespace planloom
