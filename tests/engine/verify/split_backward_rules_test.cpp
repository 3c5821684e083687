// Rules of split backward passes, broken one by one in plans that are right.

#include "tests/engine/verify/verified_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace planloom {
namespace {

ExecutionPlan zeroBubblePlan()
{
    return galleryPlan(gpt(), "pipeline:schedule=zb-h1,micro-batches=4", 2);
}

/// Where the first entry of this kind and micro-batch stands in a device's schedule.
std::size_t entryOf(const DeviceProgram &device, SegmentKind kind, std::int32_t microBatch)
{
    const auto found =
        std::find_if(device.schedule.begin(), device.schedule.end(), [&](const ScheduleEntry &entry) {
            return device.segments[static_cast<std::size_t>(entry.segment)].kind == kind
                && entry.microBatch == microBatch;
        });
    EXPECT_NE(found, device.schedule.end());
    return static_cast<std::size_t>(found - device.schedule.begin());
}

/// The first half of a product's backward operator in a segment of this kind.
Instruction *halfIn(ExecutionPlan &plan, SegmentKind kind)
{
    for (DeviceProgram &device : plan.devices)
        for (Segment &segment : device.segments.edit())
            for (Instruction &instruction : segment.instructions)
                if (segment.kind == kind && instruction.kind == InstructionKind::Kernel
                    && plan.graph->at(instruction.op).kind == OperatorKind::Linear
                    && plan.graph->at(instruction.op).outputs[0])
                    return &instruction;
    ADD_FAILURE() << "there is no such half";
    return nullptr;
}

TEST(SplitBackwardRules, HoldInThePlanItself)
{
    EXPECT_EQ(reasonOf(zeroBubblePlan()), "");
}

TEST(SplitBackwardRules, GradientsOfWeightsComeBehindThoseOfInputs)
{
    ExecutionPlan plan = zeroBubblePlan();
    auto &schedule = plan.devices[0].schedule;
    const std::size_t input = entryOf(plan.devices[0], SegmentKind::InputGradient, 0);
    const std::size_t weight = entryOf(plan.devices[0], SegmentKind::WeightGradient, 0);
    ASSERT_LT(input, weight);
    std::swap(schedule[input], schedule[weight]);
    EXPECT_NE(reasonOf(plan), "");
}

TEST(SplitBackwardRules, GradientsOfWeightsRunOnceInEveryMicroBatch)
{
    for (std::size_t d = 0; d < 2; ++d)
        for (std::int32_t i = 0; i < 4; ++i) {
            ExecutionPlan left = zeroBubblePlan();
            auto &schedule = left.devices[d].schedule;
            const auto at =
                static_cast<std::ptrdiff_t>(entryOf(left.devices[d], SegmentKind::WeightGradient, i));
            const ScheduleEntry entry = schedule[static_cast<std::size_t>(at)];
            schedule.erase(schedule.begin() + at);
            EXPECT_NE(reasonOf(left), "") << "left out in " << i << " on " << d;
            ExecutionPlan twice = zeroBubblePlan();
            twice.devices[d].schedule.insert(twice.devices[d].schedule.begin() + at, entry);
            EXPECT_NE(reasonOf(twice), "") << "twice in " << i << " on " << d;
            ExecutionPlan other = zeroBubblePlan();
            other.devices[d].schedule[static_cast<std::size_t>(at)].microBatch = (i + 1) % 4;
            EXPECT_NE(reasonOf(other), "") << "another than " << i << " on " << d;
        }
}

TEST(SplitBackwardRules, AHalfReadsWhatItsGradientsAreMadeOf)
{
    for (const SegmentKind kind : {SegmentKind::InputGradient, SegmentKind::WeightGradient}) {
        ExecutionPlan plan = zeroBubblePlan();
        Instruction *half = halfIn(plan, kind);
        ASSERT_TRUE(half);
        for (std::size_t slot = 0; slot < half->inputs.size(); ++slot) {
            if (half->inputs[slot] < 0)
                continue;
            const std::int32_t buffer = half->inputs[slot];
            half->inputs[slot] = -1;
            EXPECT_NE(reasonOf(plan).find("is missing"), std::string::npos) << reasonOf(plan);
            half->inputs[slot] = buffer;
        }
        EXPECT_EQ(reasonOf(plan), "");
    }
}

TEST(SplitBackwardRules, NoHalfMakesWhatTheOtherDoes)
{
    ExecutionPlan plan = zeroBubblePlan();
    const Instruction whole = *halfIn(plan, SegmentKind::InputGradient);
    Instruction *weights = halfIn(plan, SegmentKind::WeightGradient);
    ASSERT_TRUE(weights);
    weights->outputs[0] = weights->outputs[1];
    EXPECT_NE(reasonOf(plan), "");
    *weights = whole;
    EXPECT_NE(reasonOf(plan), "");
}

TEST(SplitBackwardRules, GradientsOfInputsAreNotAmongThoseOfWeights)
{
    ExecutionPlan plan = zeroBubblePlan();
    for (DeviceProgram &device : plan.devices)
        for (Segment &segment : device.segments.edit())
            if (segment.kind == SegmentKind::InputGradient)
                segment.kind = SegmentKind::WeightGradient;
    EXPECT_NE(reasonOf(plan).find("among those of weights"), std::string::npos) << reasonOf(plan);
}

} // namespace
} // namespace planloom
