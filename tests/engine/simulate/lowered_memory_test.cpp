#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/simulate/simulate.h"
#include "engine/table/table_text.h"
#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/simulate/memory_peak.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace planloom {
namespace {

/// Two linear layers, 8 -> 16 -> 4: 8 x 16 + 16 + 16 x 4 + 4 parameters.
constexpr std::int64_t kParameters = 212;
constexpr std::int64_t kWeightBytes =
    kParameters * 4 + 4; ///< With the one scalar that begins the backward pass.

Result<Timeline> simulateMlp(const std::string &gallery, std::int32_t devices)
{
    TRY(const Graph forward, buildZooModel("zoo:mlp?layers=2&input=8&hidden=16&classes=4&batch=8"));
    TRY(Graph training, buildTrainingStep(forward, {.optimizer = OperatorKind::AdamWStep}));
    const auto graph = std::make_shared<const Graph>(std::move(training));
    TRY(const Cluster cluster, clusterNamed("dgx-a100:" + std::to_string(devices)));
    TRY(const ConstraintTable table, galleryTable(gallery, graph, devices));
    TRY(const Completion completion, completePlan(graph, devices, table));
    if (const auto error = firstError(completion))
        return *error;
    TRY(const ExecutionPlan plan, lower(completion.plan, cluster));
    return simulate(plan, cluster);
}

std::int64_t atStart(const MemoryCurve &curve, MemoryKind kind)
{
    return curve.bytes.front()[static_cast<std::size_t>(kind)];
}

std::int64_t atEnd(const MemoryCurve &curve, MemoryKind kind)
{
    return curve.bytes.back()[static_cast<std::size_t>(kind)];
}

TEST(LoweredMemory, OfAnMlpHoldsParametersAndTwoStatesEach)
{
    for (const auto &[gallery, devices] : {std::pair{"single", 1}, std::pair{"data-parallel", 2}}) {
        SCOPED_TRACE(gallery);
        const auto timeline = simulateMlp(gallery, devices);
        ASSERT_TRUE(timeline) << describe(timeline.error());
        for (const MemoryCurve &curve : timeline->memory) {
            EXPECT_EQ(atStart(curve, MemoryKind::Weight), kWeightBytes);
            EXPECT_EQ(atStart(curve, MemoryKind::OptimizerState), kParameters * 8);
            EXPECT_EQ(atStart(curve, MemoryKind::Gradient), 0);
            EXPECT_GE(most(curve, MemoryKind::Gradient), kParameters * 4);
            // A step leaves behind what it found.
            EXPECT_EQ(atEnd(curve, MemoryKind::Weight), kWeightBytes);
            EXPECT_EQ(atEnd(curve, MemoryKind::OptimizerState), kParameters * 8);
            for (const MemoryKind kind : {MemoryKind::Gradient, MemoryKind::Input, MemoryKind::Communication})
                EXPECT_EQ(atEnd(curve, kind), 0) << nameOf(kind);
            // The number of labels, which every micro-batch needs, may live as long as the step.
            EXPECT_LE(atEnd(curve, MemoryKind::Activation), 4);
        }
    }
}

/// Bytes of activations when the first kernel of a segment of this kind begins.
std::int64_t activationsAt(const ExecutionPlan &plan, const Timeline &timeline, SegmentKind kind)
{
    const SpanColumns &spans = timeline.spans;
    for (std::size_t row = 0; row < spans.size(); ++row) {
        if (plan.devices[0].segments[static_cast<std::size_t>(spans.segment[row])].kind != kind)
            continue;
        const MemoryCurve &curve = timeline.memory[0];
        const auto after = std::upper_bound(curve.time.begin(), curve.time.end(), spans.start[row]);
        return curve.bytes[static_cast<std::size_t>(after - curve.time.begin()) - 1]
                          [static_cast<std::size_t>(MemoryKind::Activation)];
    }
    return -1;
}

/// Two linear layers with a Relu between them: the gradients of their weights are made of what the layers
/// read and of the gradients of what they make. The input is fed anew.
TEST(LoweredMemory, OfASplitBackwardPassHoldsWhatGradientsOfWeightsAreMadeOf)
{
    const auto forward = buildZooModel("zoo:mlp?layers=2&input=8&hidden=16&classes=4&batch=8");
    ASSERT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    ASSERT_TRUE(training) << describe(training.error());
    const auto graph = std::make_shared<const Graph>(*std::move(training));
    const Cluster cluster = *clusterNamed("dgx-a100:1");
    const auto completion = completePlan(
        graph, 1, ConstraintTable{{Row{.selector = selectAll(), .rule = SplitBackwardRule{}}}, {}});
    ASSERT_TRUE(completion && !firstError(*completion));
    const auto plan = lower(completion->plan, cluster);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto timeline = simulate(*plan, cluster);
    ASSERT_TRUE(timeline) << describe(timeline.error());
    constexpr std::int64_t kHidden =
        8 * 16 * 4; // the second layer's input, the gradient of the first's output
    constexpr std::int64_t kLogits = 8 * 4 * 4; // their gradient
    constexpr std::int64_t kCount = 4; // of labels, which the loss divides by
    EXPECT_EQ(activationsAt(*plan, *timeline, SegmentKind::WeightGradient), 2 * kHidden + kLogits + kCount);
}

TEST(LoweredMemory, OfPlainAttentionsHoldsTheirProbabilities)
{
    const auto forward = buildZooModel("zoo:gpt?layers=2&hidden=16&heads=8&seq=64&batch=2&vocab=16");
    ASSERT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    ASSERT_TRUE(training) << describe(training.error());
    const auto graph = std::make_shared<const Graph>(*std::move(training));
    const Cluster cluster = *clusterNamed("dgx-a100:1");
    const auto run = [&](const std::vector<Row> &rows) {
        const auto completion = completePlan(graph, 1, ConstraintTable{rows, {}});
        EXPECT_TRUE(completion && !firstError(*completion));
        const auto timeline = simulate(*lower(completion->plan, cluster), cluster);
        EXPECT_TRUE(timeline) << describe(timeline.error());
        return std::pair{most(timeline->memory[0], MemoryKind::Activation), timeline->step};
    };
    const auto [fusedBytes, fusedTime] = run({});
    const auto [plainBytes, plainTime] = run({Row{.rule = AttentionRule{AttentionMode::Plain}}});
    // Of both layers at once, when the backward pass begins.
    const std::int64_t probabilities = 2 * 8 * 64 * 64 * 4;
    EXPECT_EQ(plainBytes - fusedBytes, 2 * probabilities);
    EXPECT_GT(plainTime, fusedTime);
    // Dropped and made again, those of one layer at a time are held.
    const Row recompute{.selector = *parseSelector("layer:*"), .rule = RecomputeRule{RecomputePer::Layer}};
    const auto [againFused, againTime] = run({recompute});
    const auto [againPlain, againPlainTime] =
        run({recompute, Row{.rule = AttentionRule{AttentionMode::Plain}}});
    EXPECT_EQ(againPlain - againFused, probabilities);
    EXPECT_GT(againPlainTime, againTime);
}

TEST(LoweredMemory, OfZero1HoldsAShareOfTheStates)
{
    const auto timeline = simulateMlp("zero1", 2);
    ASSERT_TRUE(timeline) << describe(timeline.error());
    for (const MemoryCurve &curve : timeline->memory) {
        EXPECT_EQ(atStart(curve, MemoryKind::Weight), kWeightBytes);
        EXPECT_EQ(atStart(curve, MemoryKind::OptimizerState), kParameters * 8 / 2);
    }
}

TEST(LoweredMemory, OfAPipelineHoldsEachParameterOnce)
{
    const auto timeline = simulateMlp("pipeline:schedule=1f1b,micro-batches=4", 2);
    ASSERT_TRUE(timeline) << describe(timeline.error());
    std::int64_t weights = 0;
    for (const MemoryCurve &curve : timeline->memory)
        weights += atStart(curve, MemoryKind::Weight);
    EXPECT_EQ(weights, kWeightBytes);
}

} // namespace
} // namespace planloom
