// Tensor lifetimes of a transformer layer, counted by hand: the simulator's memory is the sum of the buffers
// alive.

#include "engine/simulate/simulate.h"

#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

#include <map>

namespace planloom {
namespace {

std::int64_t bytesOf(const ExecutionPlan &plan, std::size_t device, MemoryKind kind, bool persistent)
{
    std::int64_t bytes = 0;
    for (const BufferInfo &buffer : plan.devices[device].buffers)
        if (buffer.memory == kind && buffer.persistent == persistent)
            bytes += sizeOf(buffer).count;
    return bytes;
}

std::int64_t parametersOf(const Graph &graph)
{
    std::int64_t count = 0;
    for (const Tensor &tensor : graph.tensors)
        if (tensor.role == TensorRole::Weight && !tensor.of)
            count += elementCount(tensor.type.shape);
    return count;
}

TEST(Memory, OfATransformerLayerByKind)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=1&hidden=16&heads=4&seq=8&batch=4&vocab=32");
    const std::int64_t parameters = parametersOf(*graph);
    // One layer: 2 layer norms (2 h each), q, k, v and projection (h x h + h), 2 products of the MLP (h x
    // 4h); the embeddings (vocabulary and 8 positions) and the last layer norm. The output layer is tied to
    // the embedding.
    constexpr std::int64_t h = 16;
    EXPECT_EQ(parameters,
        2 * 2 * h + 4 * (h * h + h) + (h * 4 * h + 4 * h) + (4 * h * h + h) + 32 * h + 8 * h + 2 * h);

    const ExecutionPlan plan = galleryPlan(graph, "single", 1);
    EXPECT_EQ(bytesOf(plan, 0, MemoryKind::OptimizerState, true), 2 * 4 * parameters);
    EXPECT_EQ(bytesOf(plan, 0, MemoryKind::Gradient, false), [&] {
        // Every gradient is made once by its operator and lives on in its accumulator; the tied one is made
        // twice.
        return 4 * (2 * parameters + 32 * h);
    }());
    const auto timeline = simulate(plan, *clusterNamed("dgx-a100:1"));
    ASSERT_TRUE(timeline) << describe(timeline.error());
    const auto at = [&](MemoryKind kind, std::size_t i) {
        return timeline->memory[0].bytes[i][static_cast<std::size_t>(kind)];
    };
    const std::size_t last = timeline->memory[0].bytes.size() - 1;
    EXPECT_EQ(at(MemoryKind::OptimizerState, last), 2 * 4 * parameters);
    EXPECT_EQ(at(MemoryKind::Gradient, last), 0);
    EXPECT_GE(at(MemoryKind::Weight, last), 4 * parameters);
}

TEST(Memory, OfTensorParallelAndZero1IsShared)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=2&hidden=16&batch=8");
    const std::int64_t parameters = parametersOf(*graph);
    const ExecutionPlan whole = galleryPlan(graph, "data-parallel", 2);
    const ExecutionPlan zero = galleryPlan(graph, "zero1", 2);
    EXPECT_EQ(bytesOf(whole, 0, MemoryKind::OptimizerState, true), 2 * 4 * parameters);
    // AdamW's two states, each replica a half.
    std::int64_t both = 0;
    for (std::size_t d = 0; d < 2; ++d)
        both += bytesOf(zero, d, MemoryKind::OptimizerState, true);
    EXPECT_EQ(both, 2 * 4 * parameters);
    EXPECT_LT(bytesOf(zero, 0, MemoryKind::OptimizerState, true),
        bytesOf(whole, 0, MemoryKind::OptimizerState, true) * 3 / 4);
}

} // namespace
} // namespace planloom
