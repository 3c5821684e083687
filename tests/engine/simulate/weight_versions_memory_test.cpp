// What versions of weights take of the memory, against counts by hand.

#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/simulate/simulate.h"
#include "engine/table/table_text.h"

#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/simulate/memory_peak.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

Timeline delayedTimeline(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices = 1)
{
    const auto table = parseTable(rows);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion && !firstError(*completion)) << rows;
    const Cluster cluster = *clusterNamed("dgx-a100:" + std::to_string(devices));
    const auto plan = lower(completion->plan, cluster);
    EXPECT_TRUE(plan) << describe(plan.error());
    auto timeline = simulate(*plan, cluster);
    EXPECT_TRUE(timeline) << describe(timeline.error());
    return *std::move(timeline);
}

/// Bytes that a device has of a kind, the same at both ends of the step and the most in between.
std::int64_t always(const MemoryCurve &curve, MemoryKind kind)
{
    const auto k = static_cast<std::size_t>(kind);
    EXPECT_EQ(curve.bytes.front()[k], most(curve, kind));
    EXPECT_EQ(curve.bytes.back()[k], most(curve, kind));
    return most(curve, kind);
}

// Four equal layers, 16 -> 16, of 16 x 16 + 16 numbers.
constexpr std::int64_t kNumbers = 16 * 16 + 16;
constexpr std::int64_t kStart = 4; ///< The scalar that the backward pass begins with counts as a weight.

GraphSnapshot fourLayers()
{
    return trainingStep("zoo:mlp?layers=4&input=16&hidden=16&classes=16&batch=8");
}

TEST(WeightVersionsMemory, OfAnMlpIsOneCopyAVersion)
{
    const auto graph = fourLayers();
    for (const std::int64_t versions : {1, 2, 3, 5}) {
        SCOPED_TRACE(versions);
        const Timeline timeline = delayedTimeline(graph, "weight-versions all : " + std::to_string(versions));
        EXPECT_EQ(always(timeline.memory[0], MemoryKind::Weight), kStart + versions * 4 * kNumbers * 4);
        EXPECT_EQ(always(timeline.memory[0], MemoryKind::OptimizerState), 2 * 4 * kNumbers * 4);
    }
    // The peak grows by what is kept, and by nothing else.
    EXPECT_EQ(delayedTimeline(graph, "weight-versions all : 3").memory[0].peak.count
            - delayedTimeline(graph, "").memory[0].peak.count,
        2 * 4 * kNumbers * 4);
}

TEST(WeightVersionsMemory, OfStagesIsThatOfTheirPlaceInThePipeline)
{
    std::string rows = "micro-batches 4\nschedule 1f1b\n";
    for (int stage = 0; stage < 4; ++stage) {
        const std::string s = std::to_string(stage);
        rows += "stage in:layers." + s + " : " + s + "\nplace in:layers." + s + " : devices " + s
            + "\nweight-versions in:layers." + s + " : " + std::to_string(4 - stage) + "\n";
    }
    const Timeline timeline = delayedTimeline(fourLayers(), rows, 4);
    for (std::size_t stage = 0; stage < 4; ++stage) {
        const auto versions = static_cast<std::int64_t>(4 - stage);
        EXPECT_EQ(always(timeline.memory[stage], MemoryKind::Weight),
            versions * kNumbers * 4 + (stage == 3 ? kStart : 0))
            << stage;
    }
}

/// Versions are of what the model reads, in its type; there is one master, the newest.
TEST(WeightVersionsMemory, OfAMasterIsNone)
{
    const Timeline timeline = delayedTimeline(fourLayers(), "precision all : bf16\nweight-versions all : 3");
    const auto weights = [&](const auto &bytes) {
        return bytes[static_cast<std::size_t>(MemoryKind::Weight)];
    };
    EXPECT_EQ(weights(timeline.memory[0].bytes.front()), kStart + 3 * 4 * kNumbers * 2);
    // And what is cast to them, a matrix at a time.
    EXPECT_EQ(most(timeline.memory[0], MemoryKind::Weight), kStart + 3 * 4 * kNumbers * 2 + 16 * 16 * 2);
    EXPECT_EQ(always(timeline.memory[0], MemoryKind::OptimizerState), 3 * 4 * kNumbers * 4);
}

TEST(WeightVersionsMemory, OfShardedWeightsIsSharded)
{
    const std::string parallel = "mesh dp=2\nsplit all : batch over dp\nzero3 all over dp\n";
    const Timeline one = delayedTimeline(fourLayers(), parallel, 2);
    const Timeline three = delayedTimeline(fourLayers(), parallel + "weight-versions all : 3", 2);
    for (std::size_t device = 0; device < 2; ++device)
        EXPECT_EQ(
            most(three.memory[device], MemoryKind::Weight) - most(one.memory[device], MemoryKind::Weight),
            2 * 4 * kNumbers * 4 / 2);
}

TEST(WeightVersionsMemory, OfATransformerLayerIsItsParameters)
{
    // Of 16 floats: query, key, value and output, two of the feed-forward layer four times as wide, each with
    // biases; two norms.
    const std::int64_t layer = (4 * (16 * 16 + 16) + 2 * 4 * 16 * 16 + 4 * 16 + 16 + 2 * 2 * 16) * 4;
    const auto graph = trainingStep("zoo:gpt?layers=3&hidden=16&heads=2&seq=8&batch=2&vocab=16");
    const Timeline one = delayedTimeline(graph, "");
    const Timeline two = delayedTimeline(graph, "weight-versions layer:1 : 2");
    const Timeline four = delayedTimeline(graph, "weight-versions layer:1-2 : 4");
    const auto weights = [](const Timeline &t) { return always(t.memory[0], MemoryKind::Weight); };
    EXPECT_EQ(weights(two) - weights(one), layer);
    EXPECT_EQ(weights(four) - weights(one), 3 * 2 * layer);
}

} // namespace
} // namespace planloom
