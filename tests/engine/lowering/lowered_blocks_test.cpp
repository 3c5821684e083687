#include "engine/lowering/lowered_blocks.h"
#include "tests/engine/lowering/sliced_models.h"
#include "tests/engine/lowering/work_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(LoweredBlocks, EveryStageHasItsOperatorsInItsOwnBlocks)
{
    const WorkForTests tests(sequenceMlp(2, 2, 8), stageRowsOf(2), 2);
    const LoweredBlocks &blocks = tests.blocks;
    ASSERT_EQ(blocks.forward().size(), 2U);
    EXPECT_EQ(blocks.optimizers().size(), 3U) << "and one for weights of both stages";
    for (std::size_t o = 0; o < tests.work.graph.operators.size(); ++o) {
        const OperatorId id{static_cast<std::int32_t>(o)};
        const Direction direction = tests.work.graph.at(id).direction;
        ASSERT_EQ(blocks.of(id).size(), 1U);
        const std::int32_t block = blocks.of(id).front();
        const auto &sequence = blocks.sequence(block);
        EXPECT_EQ(std::count(sequence.begin(), sequence.end(), id), 1);
        if (direction == Direction::Optimizer) {
            EXPECT_EQ(block, blocks.optimizers().back());
        } else if (block != blocks.prologue()) {
            const StageId stage = tests.work.decisionOf(id).stage;
            const auto &pass = direction == Direction::Forward ? blocks.forward() : blocks.backward();
            EXPECT_EQ(block, pass[at(stage)].front());
            EXPECT_TRUE(blocks.isInStage(id, direction, stage));
            EXPECT_FALSE(blocks.isInStage(id, direction, StageId{1 - stage.index}));
        }
    }
    EXPECT_EQ(
        blocks.forwardOperators(blocks.backward()[1].front()), blocks.sequence(blocks.forward()[1].front()));
    EXPECT_TRUE(blocks.weightGradient()[0].empty());
}

TEST(LoweredBlocks, AProductWhoseBackwardPassIsSplitRunsHalfInEitherBlock)
{
    const WorkForTests tests(sequenceMlp(2, 2, 8), "split-backward all", 1);
    const LoweredBlocks &blocks = tests.blocks;
    ASSERT_EQ(blocks.weightGradient()[0].size(), 1U);
    const std::int32_t input = blocks.backward()[0].front();
    const std::int32_t weight = blocks.weightGradient()[0].front();
    EXPECT_EQ(tests.work.builder.block(input).kind, SegmentKind::InputGradient);
    int halves = 0;
    for (const OperatorId id : blocks.sequence(weight)) {
        const Operator &own = blocks.shareOf(id, weight);
        EXPECT_TRUE(std::any_of(own.outputs.begin(), own.outputs.end(),
            [&](TensorId made) { return made && tests.work.isWeightGradient(made); }));
        EXPECT_EQ(blocks.weightBlockOf(id), weight);
        if (blocks.of(id).front() != input)
            continue;
        ++halves;
        for (const TensorId made : blocks.shareOf(id, input).outputs)
            EXPECT_FALSE(made && tests.work.isWeightGradient(made));
    }
    EXPECT_EQ(halves, 1) << "the first layer's input has no gradient";
}

TEST(LoweredBlocks, LongerOperatorsMakeLongerBlocks)
{
    WorkForTests few(sequenceMlp(1, 2, 8), "", 1);
    WorkForTests many(sequenceMlp(4, 2, 8), "", 1);
    few.blocks.estimate();
    many.blocks.estimate();
    const auto secondsOf = [](const WorkForTests &tests) {
        return tests.work.builder.block(tests.blocks.forward()[0].front()).seconds;
    };
    EXPECT_GT(secondsOf(few), 0);
    EXPECT_GT(secondsOf(many), secondsOf(few));
    EXPECT_EQ(many.blocks.kernelSeconds().size(), many.work.graph.operators.size());
}

} // namespace
} // namespace planloom
