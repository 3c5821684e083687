#include "engine/table/kinds/order/interleave.h"

#include "engine/table/kinds/order/block_part.h"
#include "engine/table/kinds/order/micro_batch_pairs.h"

namespace planloom {

namespace {

/// "in lane 1"; -1 where there is none.
void laneOf(RuleForm &form, std::int32_t &lane, const std::string &prefix)
{
    const std::size_t place = form.place();
    BlockPart part{.lane = lane};
    blockPart(form, part, prefix);
    if (part.slice >= 0)
        form.expected(prefix + "slice", "no slice: slices are paired in their order", place);
    lane = part.lane;
}

} // namespace

void RuleTraits<InterleaveRule>::describe(RuleForm &form, InterleaveRule &rule)
{
    form.choice("first", rule.first, kPasses);
    form.numberAfter("stage", "stage", rule.stage, {"the number of a stage"});
    laneOf(form, rule.lane, "");
    form.word("with", "'with' and the other pass");
    form.choice("second", rule.second, kPasses);
    const std::size_t place = form.place();
    if (form.has("stage", "second_stage", rule.secondStage != rule.stage))
        form.number("second_stage", rule.secondStage, {"the number of a stage"});
    else
        rule.secondStage = rule.stage;
    if (rule.stage < 0 && rule.secondStage >= 0)
        form.expected("second_stage", "no stage: the other pass is of every stage", place);
    laneOf(form, rule.secondLane, "second_");
    microBatchOffset(form, rule.microBatchOffset, "a micro-batch offset as -1");
}

} // namespace planloom
