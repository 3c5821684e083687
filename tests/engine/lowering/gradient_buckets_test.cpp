#include "engine/lowering/gradient_buckets.h"
#include "tests/engine/lowering/sliced_models.h"
#include "tests/engine/lowering/work_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// Devices add up gradients of a small model, by hand.
struct ByHand {
    explicit ByHand(const std::string &rows, std::int32_t devices, std::int32_t layers = 2)
        : tests(sequenceMlp(layers, 4, 8), rows, devices)
        , gradients(tests.work, tests.blocks)
    {
    }

    OperatorId makerOf(TensorId gradient) const { return tests.work.uses.producers[at(gradient)].front(); }
    /// What `device` makes of a whole gradient, as the summand with this number.
    void add(TensorId gradient, std::int32_t device, std::int32_t summand = 0)
    {
        const OperatorId maker = makerOf(gradient);
        const std::int32_t block = tests.blocks.of(maker).front();
        const std::int32_t made = tests.work.builder.addBuffer(
            DeviceId{device}, {.tensor = gradient, .index = tests.wholeOf(gradient)});
        gradients.accumulate(
            gradient, DeviceId{device}, block, maker, tests.wholeOf(gradient), summand, made);
        gradients.markCompletions(maker, block);
    }

    WorkForTests tests;
    GradientBuckets gradients;
};

TEST(GradientBuckets, ADeviceAddsASummandUpOnce)
{
    ByHand hand("", 1);
    const TensorId gradient = hand.tests.gradientOf(hand.tests.weights().front());
    const std::int32_t block = hand.tests.blocks.of(hand.makerOf(gradient)).front();
    EXPECT_EQ(hand.gradients.stageOf(gradient), std::nullopt);
    hand.add(gradient, 0);
    hand.add(gradient, 0);
    EXPECT_EQ(hand.tests.emitted(DeviceId{0}, block), std::vector{InstructionKind::Accumulate});
    const BufferInfo &sum =
        hand.tests.work.builder.buffer(DeviceId{0}, hand.gradients.sumOn(gradient, DeviceId{0}));
    EXPECT_EQ(sum.memory, MemoryKind::Gradient);
    EXPECT_FALSE(sum.perMicroBatch) << "it is of the step";
    EXPECT_EQ(hand.gradients.stageOf(gradient), 0);
}

TEST(GradientBuckets, WhatCostsNothingToReduceIsOneBucket)
{
    ByHand hand("", 1);
    for (const TensorId weight : hand.tests.weights())
        hand.add(hand.tests.gradientOf(weight), 0);
    hand.gradients.reduce();
    std::int32_t reduction = -1;
    for (const TensorId weight : hand.tests.weights()) {
        const TensorId gradient = hand.tests.gradientOf(weight);
        EXPECT_EQ(hand.gradients.bucketOf(gradient), 0);
        reduction = hand.gradients.reductionOf(gradient);
        EXPECT_EQ(hand.tests.work.builder.block(reduction).kind, SegmentKind::Reduce);
        EXPECT_EQ(hand.tests.work.materializer.makersOf(gradient), std::vector{reduction});
    }
    EXPECT_EQ(hand.gradients.bucketOf(hand.tests.weights().front()), -1) << "a weight is no gradient";
    MaterializedPlan plan;
    hand.gradients.handOver(plan);
    ASSERT_EQ(plan.reductions.size(), 1U);
    EXPECT_EQ(plan.reductions[0].block, reduction);
    EXPECT_EQ(plan.reductions[0].gradients.size(), hand.tests.weights().size());
}

TEST(GradientBuckets, StagesHaveBucketsOfTheirOwn)
{
    ByHand hand(stageRowsOf(2), 2);
    const auto weights = hand.tests.weights();
    hand.add(hand.tests.gradientOf(weights[0]), 0);
    hand.add(hand.tests.gradientOf(weights[1]), 1);
    EXPECT_EQ(hand.gradients.stageOf(hand.tests.gradientOf(weights[1])), 1);
    hand.gradients.reduce();
    EXPECT_NE(hand.gradients.bucketOf(hand.tests.gradientOf(weights[0])),
        hand.gradients.bucketOf(hand.tests.gradientOf(weights[1])));
}

TEST(GradientBuckets, DevicesWithOtherSummandsOfABoxAddThemUpTogether)
{
    ByHand hand("mesh dp=2\nsplit all : batch over dp\n", 2);
    const TensorId gradient = hand.tests.gradientOf(hand.tests.weights().front());
    hand.add(gradient, 0, 0);
    hand.add(gradient, 1, 1);
    EXPECT_EQ(hand.gradients.addersOf(gradient), (std::vector{DeviceId{0}, DeviceId{1}}));
}

} // namespace
} // namespace planloom
