#include "engine/table/kinds/order/order.h"

#include "engine/table/kinds/order/micro_batch_pairs.h"

namespace planloom {

void RuleTraits<OpOrderRule>::describe(RuleForm &form, OpOrderRule &rule)
{
    blockPart(form, rule.part, "");
    form.word("before", "'before' and the second selector");
    form.selector("second", rule.second);
    blockPart(form, rule.secondPart, "second_");
    microBatchPair(form, rule);
}

} // namespace planloom
