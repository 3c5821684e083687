#include "engine/table/kinds/place/communicate.h"

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

} // namespace planloom
