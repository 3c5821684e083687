#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/simulate/summary.h"
#include "engine/table/table_text.h"
#include "tests/engine/simulate/memory_peak.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

namespace planloom {
namespace {

GraphSnapshot adamStep(const std::string &model)
{
    const auto forward = buildZooModel(model);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::AdamWStep});
    EXPECT_TRUE(training) << describe(training.error());
    return std::make_shared<const Graph>(*std::move(training));
}

struct Offloaded {
    ExecutionPlan plan{};
    Timeline timeline{};
    const MemoryCurve &memory() const { return timeline.memory.front(); }
};

/// On one device whose copies take `hostSeconds` each, whatever their size, and no latency: so each stands
/// alone, and what is counted does not depend on it.
Offloaded offloaded(const GraphSnapshot &graph, const std::string &rows, double hostSeconds = 1e-7)
{
    const auto table = parseTable("precision all : fp32\n" + rows);
    EXPECT_TRUE(table) << describe(table.error());
    const Cluster cluster = *clusterNamed("dgx-a100:1");
    CostModel costs = costModelOf(cluster);
    costs.hostCopy = [hostSeconds](Bytes bytes, std::int32_t) { return bytes.count > 0 ? hostSeconds : 0; };
    const auto completion = completePlan(graph, 1, *table);
    EXPECT_TRUE(completion && !firstError(*completion)) << rows;
    auto plan = lower(completion->plan, cluster, costs);
    EXPECT_TRUE(plan) << describe(plan.error());
    auto timeline = simulate(*plan, cluster, costs);
    EXPECT_TRUE(timeline) << describe(timeline.error());
    return {*std::move(plan), *std::move(timeline)};
}

// An MLP 8 -> 16 -> ... -> 16 -> 4: weights of 8 x 16, 16 x 16 and 16 x 4 floats with biases of 16, 16 and 4.
constexpr std::int64_t kFirst = (8 * 16 + 16) * 4; // bytes of a layer's parameters
constexpr std::int64_t kMiddle = (16 * 16 + 16) * 4;
constexpr std::int64_t kLast = (16 * 4 + 4) * 4;
constexpr std::int64_t kScalars = 8; // the number of labels, and where the backward pass begins

TEST(OffloadedMemory, OfAnMlpHoldsTheStatesOfTwoUpdates)
{
    const auto graph = adamStep("zoo:mlp?layers=4&input=8&hidden=16&classes=4&batch=8");
    const std::int64_t weights = kFirst + 2 * kMiddle + kLast + kScalars;
    const std::int64_t states = 2 * (weights - kScalars); // AdamW's two moments
    const Offloaded kept = offloaded(graph, "");
    const Offloaded moved = offloaded(graph, "offload all : states");
    EXPECT_EQ(most(kept.memory(), MemoryKind::OptimizerState), states);
    EXPECT_EQ(kept.timeline.hostPeak.front().count, 0);
    EXPECT_EQ(moved.timeline.hostPeak.front().count, states);
    // While the bias of the first layer is updated, the moments of the second layer's weight come.
    const std::int64_t staged = 2 * (16 + 16 * 16) * 4;
    EXPECT_EQ(most(moved.memory(), MemoryKind::OptimizerState), staged);
    // Then all gradients are there but the first weight's, which is updated.
    EXPECT_EQ(moved.memory().peak.count, weights + (weights - kScalars - 8 * 16 * 4) + staged);
    // Without: the most is there while the second layer is derived. Gradients of the two layers behind it,
    // its own, what it read, what it was given and what it gives: 8 x 16 floats each.
    EXPECT_EQ(kept.memory().peak.count, weights + states + kLast + 2 * kMiddle + 3 * (8 * 16 * 4));
    // All of it goes back.
    EXPECT_EQ(moved.memory().bytes.back()[static_cast<std::size_t>(MemoryKind::OptimizerState)], 0);
}

TEST(OffloadedMemory, OfAnMlpHoldsTheActivationsOfOneLayer)
{
    const auto graph = adamStep("zoo:mlp?layers=6&input=8&hidden=16&classes=4&batch=256");
    const std::int64_t parameters = kFirst + 4 * kMiddle + kLast;
    const std::int64_t always = 3 * parameters + kScalars; // weights and two moments
    const std::int64_t one = 256 * 16 * 4; // what a layer makes
    const Offloaded kept = offloaded(graph, "");
    const Offloaded moved = offloaded(graph, "offload all : activations");
    // Without: five layers keep what their Relu makes. The last Relu to have run is derived first: from the
    // gradient of what it made, that of what it read. The gradients of the last layer are there.
    EXPECT_EQ(kept.memory().peak.count, always + kLast + 7 * one);
    // With: where the second Relu is derived there are what it made, both gradients, and what the first one
    // made, which the layer between them reads next. Five layers have their gradients.
    EXPECT_EQ(moved.memory().peak.count, always + kLast + 3 * kMiddle + 4 * one);
    // On the host: what five Relu made, the logits, and the logarithm of each sample's sum over them.
    EXPECT_EQ(moved.timeline.hostPeak.front().count, 5 * one + 256 * 4 * 4 + 256 * 4);
}

TEST(OffloadedMemory, OfTransformerLayersDoesNotGrowWithTheirNumber)
{
    // 2 x 8 tokens of 16 floats. The backward pass of a layer reads: what both norms made, query, key, value,
    // the attention's output by heads and merged, both residuals (11 times the tokens with what follows),
    // what the feed-forward layer makes before and behind its activation (4 each), and for each token and
    // each of 2 heads the logarithm of the attention's sum.
    const std::int64_t tokens = 2 * 8 * 16 * 4;
    const std::int64_t layer = (2 + 3 + 2 + 2 + 4 + 4) * tokens + 2 * 8 * 2 * 4;
    const auto graphOf = [](int layers) {
        return adamStep(
            "zoo:gpt?layers=" + std::to_string(layers) + "&hidden=16&heads=2&seq=8&batch=2&vocab=16");
    };
    const auto two = graphOf(2);
    const auto three = graphOf(3);
    const Offloaded keptTwo = offloaded(two, "");
    const Offloaded keptThree = offloaded(three, "");
    const Offloaded movedTwo = offloaded(two, "offload all : activations");
    const Offloaded movedThree = offloaded(three, "offload all : activations");
    const auto activations = [](const Offloaded &plan) {
        return most(plan.memory(), MemoryKind::Activation);
    };
    EXPECT_EQ(activations(keptThree) - activations(keptTwo), layer);
    EXPECT_EQ(activations(movedThree), activations(movedTwo));
    EXPECT_EQ(movedThree.timeline.hostPeak.front().count - movedTwo.timeline.hostPeak.front().count, layer);
}

TEST(OffloadedMemory, ComesJustInTimeAndShowsOnItsQueue)
{
    const auto graph = adamStep("zoo:mlp?layers=6&input=8&hidden=16&classes=4&batch=256");
    const Offloaded kept = offloaded(graph, "");
    const Offloaded fast = offloaded(graph, "offload all : activations");
    const Offloaded slow = offloaded(graph, "offload all : activations", 1e-3);
    // Behind what is computed, but for the one that the backward pass begins with.
    EXPECT_LE(fast.timeline.step.count(), kept.timeline.step.count() + 200);
    const auto [begin, end] = rowsOf(slow.timeline, 0, QueueKind::Copy);
    std::map<InstructionKind, int> spans;
    for (std::size_t row = begin; row < end; ++row) {
        const Segment &segment =
            slow.plan.devices[0].segments[static_cast<std::size_t>(slow.timeline.spans.segment[row])];
        ++spans[segment.instructions[static_cast<std::size_t>(slow.timeline.spans.instruction[row])].kind];
        EXPECT_EQ(slow.timeline.spans.duration[row], 1'000'000);
    }
    EXPECT_EQ(
        spans, (std::map<InstructionKind, int>{{InstructionKind::Offload, 7}, {InstructionKind::Fetch, 7}}));
    EXPECT_GE(slow.timeline.step.count(), 12'000'000);
}

} // namespace
} // namespace planloom
