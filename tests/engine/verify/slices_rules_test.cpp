// Rules of stages in slices, broken one by one in plans that are right.

#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/lowering/sliced_models.h"
#include "tests/engine/verify/verified_plans.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

ExecutionPlan planInSlices(const std::string &more = {})
{
    const auto plan = loweredRows(gpt(), "slice all : sequence by 2\nmicro-batches 2\n" + more, 1);
    EXPECT_TRUE(plan) << describe(plan.error());
    return *plan;
}

/// Where an entry of this kind and slice stands first in the schedule of device 0.
std::size_t entryOfSlice(const ExecutionPlan &plan, SegmentKind kind, std::int32_t slice)
{
    const DeviceProgram &device = plan.devices[0];
    const auto found =
        std::find_if(device.schedule.begin(), device.schedule.end(), [&](const ScheduleEntry &entry) {
            const Segment &segment = device.segments[static_cast<std::size_t>(entry.segment)];
            return segment.kind == kind && segment.slice == slice;
        });
    EXPECT_NE(found, device.schedule.end());
    return static_cast<std::size_t>(found - device.schedule.begin());
}

TEST(SlicesRules, HoldInThePlanItself)
{
    EXPECT_EQ(reasonOf(planInSlices()), "");
    EXPECT_EQ(reasonOf(planInSlices("recompute all")), "");
    EXPECT_EQ(reasonOf(planInSlices("attention all : plain")), "");
}

TEST(SlicesRules, RunInTheirOrder)
{
    for (const SegmentKind kind : {SegmentKind::Forward, SegmentKind::Backward}) {
        ExecutionPlan plan = planInSlices();
        std::swap(plan.devices[0].schedule[entryOfSlice(plan, kind, 0)],
            plan.devices[0].schedule[entryOfSlice(plan, kind, 1)]);
        EXPECT_NE(reasonOf(plan), "");
    }
}

TEST(SlicesRules, SegmentsSayWhichTheyAre)
{
    ExecutionPlan plan = planInSlices();
    for (Segment &segment : plan.devices[0].segments.edit())
        if (segment.slice == 1)
            segment.slice = 0;
    EXPECT_NE(reasonOf(plan).find("runs in a segment of slice 0"), std::string::npos) << reasonOf(plan);
    plan = planInSlices();
    for (Segment &segment : plan.devices[0].segments.edit())
        if (segment.kind == SegmentKind::Optimizer)
            segment.slice = 1;
    EXPECT_NE(reasonOf(plan).find("has no slices"), std::string::npos) << reasonOf(plan);
}

TEST(SlicesRules, KeysAreLeftOutOfCausalAttentionAlone)
{
    ExecutionPlan plan = planInSlices();
    auto graph = std::make_shared<Graph>(*plan.graph);
    for (Operator &op : graph->operators)
        if (op.kind == OperatorKind::Attention)
            op.attributes.erase("causal");
    plan.graph = graph;
    EXPECT_NE(reasonOf(plan), "");
}

TEST(SlicesRules, AreTheFirstSplitOfWhatRunsInEveryMicroBatch)
{
    for (std::size_t o = 0; o < gpt()->operators.size(); ++o) {
        ExecutionPlan plan = planInSlices();
        const Operator &op = gpt()->operators[o];
        Partition &partition = plan.partitions[o];
        if (op.direction == Direction::Optimizer && partition.splits.empty()) {
            partition.splits = {
                {.kind = SplitKind::Dimension, .dimension = 0, .parts = 1, .over = SplitOver::Slices}};
        } else if (op.kind == OperatorKind::Attention && sliceCount(partition) > 1) {
            // Without the word for it, every slice needs all keys.
            partition.splits.front().over = SplitOver::Devices;
        } else {
            continue;
        }
        EXPECT_NE(reasonOf(plan), "") << op.name;
    }
}

/// What is left of a gradient that a slice does not make must be zero there, not forgotten.
TEST(SlicesRules, EverySummandThatReachesABoxIsAddedUp)
{
    ExecutionPlan plan = planInSlices();
    int tried = 0;
    for (std::size_t s = 0; s < plan.devices[0].segments.size(); ++s)
        for (std::size_t i = 0; i < plan.devices[0].segments[s].instructions.size(); ++i) {
            const Instruction &original = plan.devices[0].segments[s].instructions[i];
            if (original.kind != InstructionKind::Sum || original.inputs.size() != 2)
                continue;
            for (const std::size_t kept : {0U, 1U}) {
                ExecutionPlan mutant = plan;
                Instruction &sum = mutant.devices[0].segments.edit()[s].instructions[i];
                sum.inputs = {original.inputs[kept]};
                EXPECT_NE(reasonOf(mutant), "");
                ++tried;
            }
        }
    EXPECT_GT(tried, 0);
}

} // namespace
} // namespace planloom
