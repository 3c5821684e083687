#include "engine/binding/followers.h"
#include "engine/binding/stage_numbers.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(Followers, TakeThePlaceOfTheirLargestInput)
{
    const auto graph = tinyMlp();
    const SelectorIndex index(graph);
    const OperatorId a = operatorNamed(*graph, "a");
    const OperatorId r = operatorNamed(*graph, "r");
    const OperatorId b = operatorNamed(*graph, "b");
    EXPECT_FALSE(leaderOf(index, a).op.valid());
    EXPECT_EQ(leaderOf(index, r).op, a);
    EXPECT_EQ(leaderOf(index, b).op, r);
    std::vector<std::int32_t> place(graph->operators.size(), -1);
    place[static_cast<std::size_t>(r.index)] = 3;
    followPlaces(index, place);
    EXPECT_EQ(place[static_cast<std::size_t>(b.index)], 3); // its producer's
    EXPECT_EQ(place[static_cast<std::size_t>(a.index)], 3); // no producer: its first consumer's
    for (std::size_t i = 0; i < place.size(); ++i)
        EXPECT_EQ(place[i] >= 0, graph->operators[i].direction == Direction::Forward) << i;
}

TEST(Followers, AgreeWithTheDefinitionOnRandomPlaces)
{
    // The definition, operator by operator, for places that rows give at random.
    std::mt19937 random(3);
    for (const char *spec : {"zoo:gpt?layers=2&hidden=32&heads=2&seq=8&vocab=64&batch=2",
             "zoo:t5?layers=1&hidden=32&heads=2&d_kv=16&ffn=64&src=8&tgt=8&vocab=64&batch=2", "zoo:moe"}) {
        const auto graph = zooTraining(spec);
        const SelectorIndex index(graph);
        std::size_t forward = 0;
        while (forward < graph->operators.size() && graph->operators[forward].direction == Direction::Forward)
            ++forward;
        for (int round = 0; round < 20; ++round) {
            std::vector<std::int32_t> given(graph->operators.size(), -1);
            for (std::size_t i = 0; i < forward; ++i) {
                if (random() % 4 == 0)
                    given[i] = static_cast<std::int32_t>(random() % 5);
            }
            std::vector<std::int32_t> place = given;
            followPlaces(index, place);
            for (std::size_t i = 0; i < forward; ++i) {
                ASSERT_GE(place[i], 0);
                if (given[i] >= 0) {
                    EXPECT_EQ(place[i], given[i]);
                    continue;
                }
                const OperatorId leader = leaderOf(index, {static_cast<std::int32_t>(i)}).op;
                // Who has a producer is where that is, unless nobody on the way up was placed.
                bool placedAbove = false;
                for (OperatorId up = leader; up.valid(); up = leaderOf(index, up).op)
                    placedAbove = placedAbove || given[static_cast<std::size_t>(up.index)] >= 0;
                if (placedAbove) {
                    EXPECT_EQ(place[i], place[static_cast<std::size_t>(leader.index)])
                        << graph->operators[i].name;
                }
            }
        }
    }
}

TEST(StageNumbers, FollowTheDataFlowAndNameWhatRunsAgainstIt)
{
    const auto graph = tinyMlp();
    const SelectorIndex index(graph);
    std::vector<std::int32_t> byRow(graph->operators.size(), -1);
    const auto at = [&](const char *name) {
        return static_cast<std::size_t>(operatorNamed(*graph, name).index);
    };
    byRow[at("r")] = 1;
    StageNumbers numbers = numberStages(index, byRow);
    EXPECT_TRUE(numbers.violations.empty());
    EXPECT_EQ(numbers.stage[at("a")], 0);
    EXPECT_EQ(numbers.stage[at("b")], 1);
    byRow[at("b")] = 0;
    numbers = numberStages(index, byRow);
    ASSERT_EQ(numbers.violations.size(), 1u);
    EXPECT_EQ(graph->at(numbers.violations.front().op).name, "b");
    EXPECT_EQ(graph->at(numbers.violations.front().producer).name, "r");
    EXPECT_EQ(numbers.violations.front().producerStage, 1);
}

} // namespace
} // namespace planloom
