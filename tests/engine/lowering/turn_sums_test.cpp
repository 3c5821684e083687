#include "engine/lowering/turn_sums.h"
#include "tests/engine/lowering/sliced_models.h"
#include "tests/engine/lowering/work_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

struct Turns {
    explicit Turns(const std::string &rows)
        : tests(attentionOverSequence(false), rows, 1)
        , kept(tests.work, tests.blocks)
        , sharded(tests.work, tests.blocks, kept)
        , gradients(tests.work, tests.blocks)
        , cut(tests.work, tests.blocks, sharded, gradients)
        , sums(tests.work, cut)
    {
    }

    /// Outputs that are summed over turns, of all operators together.
    std::vector<std::pair<OperatorId, std::size_t>> summed()
    {
        std::vector<OperatorId> all;
        for (std::size_t o = 0; o < tests.work.graph.operators.size(); ++o)
            if (tests.work.graph.operators[o].direction == Direction::Backward)
                all.push_back(OperatorId{static_cast<std::int32_t>(o)});
        std::vector<std::pair<OperatorId, std::size_t>> found;
        for (const OperatorId id : all) {
            sums.choose({id});
            for (std::size_t slot = 0; slot < tests.work.graph.at(id).outputs.size(); ++slot)
                if (sums.has(id, slot))
                    found.emplace_back(id, slot);
        }
        return found;
    }

    WorkForTests tests;
    KeptWeights kept;
    ShardedWeights sharded;
    GradientBuckets gradients;
    CutGradients cut;
    TurnSums sums;
};

TEST(TurnSums, AreOfOutputsThatOneDeviceMakesSeveralSummandsOf)
{
    Turns whole("");
    EXPECT_TRUE(whole.summed().empty());
    Turns turns("coshard all : sequence by 2\n");
    const auto summed = turns.summed();
    ASSERT_FALSE(summed.empty()) << "the gradients of keys and values are sums over the queries";
    for (const auto &[id, slot] : summed)
        EXPECT_FALSE(turns.tests.work.isWeightGradient(turns.tests.work.graph.at(id).outputs[slot]))
            << "those are added up over the step";
}

TEST(TurnSums, GrowInOneBufferAndAreHandedOutAtTheEnd)
{
    Turns turns("coshard all : sequence by 2\n");
    const auto [id, slot] = turns.summed().front();
    turns.sums.choose({id});
    const auto &parts = turns.tests.work.partsOf(id);
    const std::int32_t block = turns.tests.blocks.of(id).front();
    const TensorId tensor = turns.tests.work.graph.at(id).outputs[slot];
    for (const TransformedPart &part : parts) {
        const TensorView &view = part.outputs[slot];
        const std::int32_t made =
            turns.tests.work.builder.addBuffer(part.device, {.tensor = tensor, .index = view.index});
        EXPECT_TRUE(turns.sums.add(
            view, part.device, block, id, slot, turns.tests.work.summandOf(id, slot, view), made));
    }
    EXPECT_EQ(turns.tests.emitted(DeviceId{0}, block),
        std::vector<InstructionKind>(parts.size(), InstructionKind::Accumulate));
    EXPECT_EQ(turns.tests.work.materializer.holdingsOf(tensor, block), nullptr) << "not yet";
    turns.sums.handOut(block);
    EXPECT_NE(turns.tests.work.materializer.holdingsOf(tensor, block), nullptr);
    EXPECT_FALSE(turns.sums.has(id, slot));
}

} // namespace
} // namespace planloom
