#include "engine/lowering/order/held_micro_batches.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

BlockInfo blockOf(SegmentKind kind, std::int32_t stage, std::int32_t lane = 0, std::int32_t lanes = 1)
{
    return {
        .kind = kind, .stage = StageId{stage}, .lane = lane, .lanes = lanes, .devices = {DeviceId{stage}}};
}

TEST(HeldMicroBatches, AStageHoldsNoMoreThanItsLimit)
{
    const std::vector<BlockInfo> blocks{blockOf(SegmentKind::Forward, 0), blockOf(SegmentKind::Backward, 0)};
    const OrderItems items(blocks, 3); // forward blocks are items 0 to 2
    HeldMicroBatches held(items, {1, {2}, false});
    held.ran(0);
    EXPECT_TRUE(held.mayHold(1));
    held.ran(1);
    EXPECT_FALSE(held.mayHold(2));
    held.ran(3); // the first backward block
    EXPECT_TRUE(held.mayHold(2));
}

TEST(HeldMicroBatches, WithoutRowsOneFOneBHoldsAsManyAsThereAreStagesBehind)
{
    const std::vector<BlockInfo> blocks{blockOf(SegmentKind::Forward, 0), blockOf(SegmentKind::Forward, 1),
        blockOf(SegmentKind::Backward, 1), blockOf(SegmentKind::Backward, 0)};
    const OrderItems items(blocks, 3);
    HeldMicroBatches held(items, {2, {}, true});
    held.ran(0);
    held.ran(3);
    EXPECT_TRUE(held.mayHold(1)) << "stage 0 of 2 holds two";
    EXPECT_FALSE(held.mayHold(4)) << "stage 1 holds one";
    EXPECT_TRUE(HeldMicroBatches(items, {2, {}, false}).mayHold(4));
}

TEST(HeldMicroBatches, WhatRunsBackwardFirstIsNeverHeld)
{
    const std::vector<BlockInfo> blocks{blockOf(SegmentKind::Forward, 0), blockOf(SegmentKind::Backward, 0)};
    const OrderItems items(blocks, 2);
    HeldMicroBatches held(items, {1, {1}, false});
    held.ran(2); // backward of micro-batch 0
    held.ran(0);
    EXPECT_TRUE(held.mayHold(1));
}

TEST(HeldMicroBatches, SplitPassesHoldUntilTheGradientsOfWeights)
{
    const std::vector<BlockInfo> blocks{blockOf(SegmentKind::Forward, 0),
        blockOf(SegmentKind::InputGradient, 0), blockOf(SegmentKind::WeightGradient, 0)};
    const OrderItems items(blocks, 2);
    HeldMicroBatches held(items, {1, {1}, false});
    held.ran(0);
    held.ran(2);
    EXPECT_FALSE(held.mayHold(1)) << "the gradients of inputs let nothing go";
    held.ran(4);
    EXPECT_TRUE(held.mayHold(1));
}

TEST(HeldMicroBatches, LanesHoldTheirOwn)
{
    std::vector<BlockInfo> blocks{blockOf(SegmentKind::Forward, 0, 0, 2),
        blockOf(SegmentKind::Forward, 0, 1, 2), blockOf(SegmentKind::Backward, 0, 0, 2),
        blockOf(SegmentKind::Backward, 0, 1, 2)};
    blocks[1].devices = blocks[3].devices = {DeviceId{1}};
    const OrderItems items(blocks, 2);
    HeldMicroBatches held(items, {1, {1}, false});
    held.ran(0);
    EXPECT_FALSE(held.mayHold(1));
    EXPECT_TRUE(held.mayHold(2)) << "of the other lane";
    EXPECT_TRUE(held.shareLane(0, 4));
    EXPECT_FALSE(held.shareLane(0, 2));
    held.ran(4);
    EXPECT_TRUE(held.mayHold(1));
}

} // namespace
} // namespace planloom
