#include "engine/lowering/cut_gradients.h"
#include "tests/engine/lowering/sliced_models.h"
#include "tests/engine/lowering/work_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

struct Sharded {
    explicit Sharded(const std::string &zero, UseUnits units = UseUnits::Never)
        : tests(sequenceMlp(2, 4, 8), "mesh dp=2\nsplit all : batch over dp\n" + zero, 2, units)
        , kept(tests.work, tests.blocks)
        , weights(tests.work, tests.blocks, kept)
        , gradients(tests.work, tests.blocks)
        , cut(tests.work, tests.blocks, weights, gradients)
    {
        weights.find();
    }

    WorkForTests tests;
    KeptWeights kept;
    ShardedWeights weights;
    GradientBuckets gradients;
    CutGradients cut;
};

TEST(ShardedWeights, AreThoseWhoseReplicasShareOutMoreThanTheUpdate)
{
    const auto sharesOut = [](const std::string &zero, std::int32_t stage) {
        const Sharded sharded(zero);
        return sharded.weights.of(sharded.tests.weights().front(), stage) != nullptr;
    };
    EXPECT_FALSE(sharesOut("zero1 all\n", 2));
    EXPECT_TRUE(sharesOut("zero2 all\n", 2));
    EXPECT_FALSE(sharesOut("zero2 all\n", 3));
    EXPECT_TRUE(sharesOut("zero3 all\n", 3));
}

TEST(ShardedWeights, AreGatheredOnceInABlockFromWhatEveryDeviceKeeps)
{
    Sharded sharded("zero3 all\n");
    const TensorId weight = sharded.tests.weights().front();
    const ShardedWeight &own = *sharded.weights.of(weight, 3);
    ASSERT_EQ(own.places.size(), 2U);
    const OperatorId reader = sharded.tests.work.uses.consumers[at(weight)].front();
    const std::int32_t block = sharded.tests.blocks.of(reader).front();
    ASSERT_TRUE(sharded.weights.beginBlock(block));
    const IndexMask whole = sharded.tests.wholeOf(weight);
    const std::vector<Need> needs{{DeviceId{0}, whole}, {DeviceId{1}, whole}};
    for (int i = 0; i < 2; ++i)
        sharded.weights.gather(own, weight, needs, DataType::Float32, block, reader);
    EXPECT_EQ(sharded.tests.emitted(DeviceId{0}, block), std::vector{InstructionKind::AllGather});
    EXPECT_EQ(sharded.kept.held(weight).size(), 2U) << "a shard on each device";
    EXPECT_TRUE(sharded.tests.work.materializer.holds(weight, needs, DataType::Float32, block));
}

TEST(CutGradients, AreReducedToShardsInTheBlockThatMakesThem)
{
    Sharded sharded("zero2 all\n");
    const TensorId weight = sharded.tests.weights().front();
    const TensorId gradient = sharded.tests.gradientOf(weight);
    ASSERT_TRUE(sharded.cut.isCut(gradient));
    EXPECT_TRUE(sharded.cut.isCutInUnit(gradient));
    const OperatorId maker = sharded.tests.work.uses.producers[at(gradient)].front();
    const std::int32_t block = sharded.tests.blocks.weightBlockOf(maker);
    for (const std::int32_t device : {0, 1}) {
        const std::int32_t made = sharded.tests.work.builder.addBuffer(DeviceId{device},
            {.tensor = gradient, .index = sharded.tests.wholeOf(gradient), .summands = {device}});
        sharded.cut.add(
            gradient, DeviceId{device}, block, maker, sharded.tests.wholeOf(gradient), device, made);
    }
    sharded.cut.note(maker, block);
    ASSERT_TRUE(sharded.cut.cut(block));
    EXPECT_EQ(sharded.tests.emitted(DeviceId{0}, block), std::vector{InstructionKind::ReduceScatter})
        << "nothing is added up while it is on its way";
    ASSERT_TRUE(sharded.cut.endBlock(block));
    EXPECT_EQ(sharded.tests.emitted(DeviceId{0}, block),
        (std::vector{InstructionKind::ReduceScatter, InstructionKind::Accumulate}));
    EXPECT_EQ(sharded.gradients.stageOf(gradient), 0) << "it is complete behind that";
}

TEST(CutGradients, OthersAreNot)
{
    Sharded sharded("zero1 all\n");
    EXPECT_FALSE(sharded.cut.isCut(sharded.tests.gradientOf(sharded.tests.weights().front())));
}

} // namespace
} // namespace planloom
