// Rules of stages in lanes, broken one by one in plans that are right.

#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/verify/verified_plans.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

ExecutionPlan planInLanes(const std::string &more = {})
{
    const auto plan =
        loweredRows(gpt(), "lanes all : 2\nplace all : devices 0,1\nmicro-batches 2\n" + more, 2);
    EXPECT_TRUE(plan) << describe(plan.error());
    return *plan;
}

TEST(LanesRules, HoldInThePlanItself)
{
    EXPECT_EQ(reasonOf(planInLanes()), "");
    EXPECT_EQ(reasonOf(planInLanes("recompute all")), "");
    EXPECT_EQ(reasonOf(planInLanes("slice all : sequence by 2")), "");
    EXPECT_EQ(reasonOf(planInLanes("zero1 all by 2")), "");
}

TEST(LanesRules, SegmentsSayWhichTheyAre)
{
    ExecutionPlan plan = planInLanes();
    bool changed = false;
    for (Segment &segment : plan.devices[1].segments.edit())
        if (segment.lane == 1) {
            segment.lane = 0;
            changed = true;
        }
    EXPECT_TRUE(changed);
    EXPECT_NE(reasonOf(plan).find("runs in a segment of lane 0"), std::string::npos) << reasonOf(plan);
    plan = planInLanes();
    for (Segment &segment : plan.devices[0].segments.edit())
        if (segment.kind == SegmentKind::Optimizer)
            segment.lane = 1;
    EXPECT_NE(reasonOf(plan).find("has no lanes"), std::string::npos) << reasonOf(plan);
}

TEST(LanesRules, AreOfTheBatch)
{
    int tried = 0;
    for (std::size_t o = 0; o < gpt()->operators.size(); ++o) {
        ExecutionPlan plan = planInLanes();
        Partition &partition = plan.partitions[o];
        if (laneCount(partition) == 1 || partition.splits.front().kind != SplitKind::Dimension)
            continue;
        partition.splits.front().dimension += 1;
        EXPECT_NE(reasonOf(plan), "") << gpt()->operators[o].name;
        ++tried;
    }
    EXPECT_GT(tried, 0);
}

/// The gradients of a weight's copies are added up, or the copies drift apart.
TEST(LanesRules, CopiesOfWeightsAreUpdatedAlike)
{
    const ExecutionPlan original = planInLanes();
    int tried = 0;
    for (std::size_t device = 0; device < original.devices.size(); ++device)
        for (std::size_t s = 0; s < original.devices[device].segments.size(); ++s) {
            const Segment &segment = original.devices[device].segments[s];
            if (segment.kind != SegmentKind::Reduce)
                continue;
            ExecutionPlan plan = original;
            auto &instructions = plan.devices[device].segments.edit()[s].instructions;
            instructions.erase(instructions.begin());
            EXPECT_NE(reasonOf(plan), "");
            ++tried;
        }
    EXPECT_GT(tried, 0);
}

} // namespace
} // namespace planloom
