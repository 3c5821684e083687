// What coshard regions hold, counted by hand: one part between the turns, and one sum.

#include "engine/analyse/memory_at.h"
#include "engine/frontend/zoo/zoo_parts.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/simulate/simulate.h"
#include "engine/table/table_text.h"
#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/simulate/memory_peak.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace planloom {
namespace {

/// The most bytes of activations on the one device.
std::int64_t peakActivations(const GraphSnapshot &graph, const std::string &rows)
{
    const auto table = parseTable(rows);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, 1, *table);
    EXPECT_TRUE(completion && !firstError(*completion));
    for (const RowReport &report : completion->rows)
        EXPECT_EQ(report.warning, "");
    const Cluster cluster = *clusterNamed("dgx-a100:1");
    const auto plan = lower(completion->plan, cluster);
    EXPECT_TRUE(plan) << describe(plan.error());
    const auto timeline = simulate(*plan, cluster);
    EXPECT_TRUE(timeline) << describe(timeline.error());
    return most(timeline->memory[0], MemoryKind::Activation);
}

/// x [64 16] -> up [64 256] -> act -> down [64 16] -> loss.
GraphSnapshot perceptron()
{
    ZooBuilder b("mlp");
    TensorId x = b.input("x", {DataType::Float32, {64, 16}});
    const TensorId labels = b.input("labels", {DataType::Int64, {64}});
    x = b.one(OperatorKind::Gelu, {b.linear(x, 256, "up")}, {}, "act");
    const TensorId loss = b.meanLoss(b.linear(x, 16, "down"), labels);
    const auto forward = b.finish({loss}, loss);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto step = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    EXPECT_TRUE(step) << describe(step.error());
    return std::make_shared<const Graph>(*std::move(step));
}

constexpr std::int64_t kFloat = 4;

/// The backward pass of `down` reads the gradient of its output, and the gelu's output, which it makes the
/// gradient of; that of the gelu will read its input. Beside them lives the number of labels.
TEST(CoshardMemory, OfAnMlpHoldsOnePartOfTheColumns)
{
    const GraphSnapshot graph = perceptron();
    const std::int64_t wide = 64 * 256 * kFloat;
    const std::int64_t narrow = 64 * 16 * kFloat;
    EXPECT_EQ(peakActivations(graph, ""), 3 * wide + narrow + kFloat);
    for (const std::int64_t parts : {2, 4, 8}) {
        const std::string by = " by " + std::to_string(parts) + "\n";
        const std::string rows =
            "coshard name:up : n" + by + "coshard name:act : b" + by + "coshard name:down : k" + by;
        EXPECT_EQ(peakActivations(graph, rows), 3 * wide / parts + narrow + kFloat) << rows;
    }
}

/// Rows of the batch: the part of the gradient is a slice of its own.
TEST(CoshardMemory, OfAnMlpHoldsOnePartOfTheBatch)
{
    const GraphSnapshot graph = perceptron();
    const std::int64_t wide = 64 * 256 * kFloat;
    const std::int64_t narrow = 64 * 16 * kFloat;
    for (const std::int64_t parts : {2, 4, 8})
        EXPECT_EQ(peakActivations(graph, "coshard ! in:loss : batch by " + std::to_string(parts) + "\n"),
            3 * wide / parts + narrow + narrow / parts + kFloat)
            << parts;
}

/// Where parts are kept, both values stay that the backward pass reads; one part of the gradient is new.
TEST(CoshardMemory, OfAnMlpThatIsKeptHoldsOnePartOfTheGradient)
{
    const GraphSnapshot graph = perceptron();
    const std::int64_t wide = 64 * 256 * kFloat;
    const std::int64_t narrow = 64 * 16 * kFloat;
    for (const std::int64_t parts : {2, 4, 8}) {
        const std::string by = " by " + std::to_string(parts) + " keep\n";
        const std::string rows =
            "coshard name:up : n" + by + "coshard name:act : b" + by + "coshard name:down : k" + by;
        EXPECT_EQ(peakActivations(graph, rows), 2 * wide + wide / parts + narrow + kFloat) << rows;
        EXPECT_EQ(peakActivations(graph, "coshard ! in:loss : batch" + by),
            2 * wide + wide / parts + narrow + narrow / parts + kFloat)
            << parts;
    }
}

/// A transformer layer of width h, with products four times as wide. Its peak is in the backward pass of the
/// second product, as above. Behind the layer's begin live, each h wide: its input, both norms' outputs (the
/// regions' inputs), the sum between attention and products, and the two gradients of the sum at the end.
///
///     whole                   + queries, keys, values, attention's output, twice; its log-sum-exps
///     c parts of the columns  + the gradient of the second norm's output, where the parts add up
///     c parts of the batch    + of turn c - 2, the last whose input does not die with it: slices of the
///                               region's input and of the gradient, c - 2 parts of the gradient behind
TEST(CoshardMemory, OfATransformerLayerFallsWithTheParts)
{
    const GraphSnapshot graph =
        trainingStep("zoo:gpt?layers=1&hidden=64&heads=4&seq=64&batch=4&vocab=24", OperatorKind::SgdStep);
    const std::int64_t h = 4 * 64 * 64 * kFloat;
    const std::int64_t exponents = 4 * 64 * 4 * kFloat;
    const std::int64_t logits = 4 * 64 * 24 * kFloat;
    const std::int64_t constants = 64 * 8 + kFloat; // positions, the number of labels
    EXPECT_EQ(peakActivations(graph, ""), 3 * 4 * h + 6 * h + 5 * h + exponents + constants);
    for (const std::int64_t c : {2, 4}) {
        const std::string by = " by " + std::to_string(c) + "\n";
        EXPECT_EQ(
            peakActivations(graph, "coshard in:*.attn : heads" + by + "coshard in:*.mlp : feed-forward" + by),
            3 * 4 * h / c + 6 * h + h + constants);
        EXPECT_EQ(peakActivations(graph, "coshard in:*.attn : batch" + by + "coshard in:*.mlp : batch" + by),
            3 * 4 * h / c + 6 * h + 2 * h / c + (c - 2) * h / c + constants);
        // Kept: all but the gradient of the wide value is as if whole. With many parts that is less than what
        // the products with the table at the end take: both sides of the last norm, a gradient of each, and
        // that of the logits.
        const std::string kept = " by " + std::to_string(c) + " keep\n";
        const std::int64_t behind = 2 * 4 * h + 5 * h + 4 * h + 3 * h + logits + exponents + constants;
        EXPECT_EQ(peakActivations(
                      graph, "coshard in:*.attn : heads" + kept + "coshard in:*.mlp : feed-forward" + kept),
            std::max(2 * 4 * h + 4 * h / c + 6 * h + 5 * h + exponents + constants, behind));
        EXPECT_EQ(
            peakActivations(graph, "coshard in:*.attn : batch" + kept + "coshard in:*.mlp : batch" + kept),
            std::max(2 * 4 * h + 4 * h / c + 6 * h + 5 * h + h / c + exponents + constants, behind));
    }
}

} // namespace
} // namespace planloom
