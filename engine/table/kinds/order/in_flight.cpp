#include "engine/table/kinds/order/in_flight.h"

#include "engine/table/rule_form.h"

namespace planloom {

void RuleTraits<InFlightRule>::describe(RuleForm &form, InFlightRule &rule)
{
    form.number("count", rule.count, {"a number of micro-batches in flight, as in-flight 3", 1});
    form.numberAfter("stage", "stage", rule.stage, {"the number of a stage"});
}

} // namespace planloom
