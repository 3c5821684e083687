#include "engine/table/kinds/partition/degree.h"

#include "engine/table/rule_form.h"

namespace planloom {

const char *nameOf(Degree degree)
{
    constexpr std::array kNames{
        "data", "tensor", "pipeline", "stages", "micro-batches", "sequence", "expert"};
    return kNames[static_cast<std::size_t>(degree)];
}

void RuleTraits<DegreeRule>::describe(RuleForm &form, DegreeRule &rule)
{
    constexpr std::array kDegrees{Degree::Data, Degree::Tensor, Degree::Pipeline, Degree::Stages,
        Degree::MicroBatches, Degree::Sequence, Degree::Expert};
    form.choice("degree", rule.degree, kDegrees);
    countBound(form, rule.bound);
}

} // namespace planloom
