#include "engine/table/kinds/order/overlap.h"

#include "engine/table/rule_form.h"

namespace planloom {

const char *nameOf(CollectiveOverlap overlap)
{
    return overlap == CollectiveOverlap::Tensor ? "tensor" : "none";
}

void RuleTraits<OverlapRule>::describe(RuleForm &form, OverlapRule &rule)
{
    form.choice("overlap", rule.overlap, std::array{CollectiveOverlap::Tensor, CollectiveOverlap::None});
}

} // namespace planloom
