#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

std::string stepText(const Plan &plan, std::string_view weight)
{
    const std::string text = decisionText(plan, std::string(weight) + ".step");
    return text.substr(0, text.find(" stage"));
}

/// Splits by the weight's dimensions: "0:2 replicate:2 @ ...".
std::string gridText(const Plan &plan, std::string_view name)
{
    const OperatorId id = operatorNamed(*plan.graph, std::string(name) + ".step");
    const Operator &op = plan.graph->at(id);
    const auto &decision = plan.decisions[static_cast<std::size_t>(id.index)];
    std::string text;
    for (const Split &split : decision.partition.splits) {
        if (split.kind == SplitKind::Replicate) {
            text += "replicate";
        } else {
            const auto &terms = op.annotation.inputs[0].terms;
            for (std::size_t d = 0; d < terms.size(); ++d) {
                if (splittableFactor(op.annotation, terms[d]) == split.dimension)
                    text += std::to_string(d);
            }
        }
        text += ":" + std::to_string(split.parts);
        for (const std::int64_t size : split.sizes)
            text += "," + std::to_string(size);
        text += ' ';
    }
    text += "@";
    for (const DeviceId device : decision.devices)
        text += " " + std::to_string(device.index);
    return text;
}

TEST(OptimizerRule, FollowsHowForwardOperatorsSeeTheWeight)
{
    const auto graph = tinyMlp();
    EXPECT_EQ(gridText(planOf(graph, 1, ""), "w1"), "@ 0");
    EXPECT_EQ(gridText(planOf(graph, 2, "mesh dp=2\nsplit all : batch over dp"), "w1"), "replicate:2 @ 0 1");
    const Plan tp = planOf(graph, 2, "mesh tp=2\nsplit name:a : n over tp");
    EXPECT_EQ(gridText(tp, "w1"), "1:2 @ 0 1");
    EXPECT_EQ(gridText(tp, "w2"), "0:2 @ 0 1");
    // tp inside dp: devices 0 and 2 hold the first half.
    const Plan both = planOf(graph, 4, "mesh dp=2 tp=2\nsplit all : batch over dp\nsplit name:a : n over tp");
    EXPECT_EQ(gridText(both, "w1"), "1:2 replicate:2 @ 0 2 1 3");
    // Uneven parts.
    EXPECT_EQ(gridText(planOf(graph, 2, "split name:a : n into 5,7\nplace name:a : devices 1,0"), "w1"),
        "1:2,5,7 @ 1 0");
    // Several parts on one device are one box again.
    EXPECT_EQ(
        gridText(planOf(graph, 2, "mesh tp=2\nsplit name:a : n over tp\ncoshard name:a : n by 3"), "w1"),
        "1:2 @ 0 1");
}

TEST(OptimizerRule, ShardingCutsReplicasOverAnAxis)
{
    const auto graph = tinyMlp();
    const char *dp = "mesh dp=2\nsplit all : batch over dp\nzero1 all over dp";
    EXPECT_EQ(gridText(planOf(graph, 2, dp), "w1"), "0:2 @ 0 1");
    const char *both =
        "mesh dp=2 tp=2\nsplit all : batch over dp\nsplit name:a : n over tp\nzero1 weight:* over dp";
    // The first dimension that divides, beside the tensor-parallel cut.
    EXPECT_EQ(gridText(planOf(graph, 4, both), "w1"), "1:2 0:2 @ 0 2 1 3");
    // Nothing divides by 5: uneven parts of the longest dimension.
    const auto five = planOf(tinyMlp(5, 8192), 5, "mesh dp=5\nsplit all : batch over dp\nzero1 all");
    EXPECT_EQ(gridText(five, "w1"), "1:5,1638,1638,1639,1638,1639 @ 0 1 2 3 4");
    // They are not worth it of a smaller weight.
    EXPECT_EQ(gridText(five, "w2").substr(0, 11), "replicate:5");
    // Without the row nothing is cut; with parts some replicas remain.
    const auto four = planOf(graph, 4, "mesh dp=4\nsplit all : batch over dp\nzero1 optimizer by 2");
    EXPECT_EQ(gridText(four, "w1"), "0:2 replicate:2 @ 0 1 2 3");
}

TEST(OptimizerRule, RowsMayPlaceAndSplitOptimizersThemselves)
{
    const auto graph = tinyMlp();
    EXPECT_EQ(stepText(planOf(graph, 3, "place optimizer & weight:w1 : devices 2"), "w1"), "whole @ 2");
    const Plan split = planOf(graph, 2, "split optimizer & weight:w1 : out0.0 by 2");
    EXPECT_EQ(gridText(split, "w1"), "0:2 @ 0 1");
}

TEST(OptimizerRule, TiedWeightsOfTwoStagesAreUpdatedOnBoth)
{
    const auto graph = tinyGpt();
    const Plan plan =
        planOf(graph, 2, "mesh pp=2\nplace layer:0 | name:wte : pp=0\nplace layer:1 | name:lm_head : pp=1");
    OperatorId step{};
    for (std::size_t i = 0; i < graph->operators.size(); ++i) {
        const Operator &op = graph->operators[i];
        if (op.direction == Direction::Optimizer
            && graph->at(op.inputs[0]).name.find("wte") != std::string::npos)
            step = {static_cast<std::int32_t>(i)};
    }
    ASSERT_TRUE(step.valid());
    const auto &decision = plan.decisions[static_cast<std::size_t>(step.index)];
    EXPECT_EQ(decision.devices, (std::vector<DeviceId>{{0}, {1}}));
    ASSERT_EQ(decision.partition.splits.size(), 1u);
    EXPECT_EQ(decision.partition.splits[0].kind, SplitKind::Replicate);
}

} // namespace
} // namespace planloom
