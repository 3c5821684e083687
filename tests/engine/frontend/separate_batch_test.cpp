// A batch that lies inside a joined dimension gets one of its own; what is computed stays the same.

#include "engine/frontend/separate_batch.h"

#include "engine/frontend/fuse.h"
#include "engine/frontend/graph_builder.h"
#include "engine/graph/batch.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

constexpr std::int64_t kLength = 6;
constexpr std::int64_t kBatch = 4;

TensorType floats(Shape shape)
{
    return {DataType::Float32, std::move(shape)};
}

Attributes permutation(std::vector<std::int64_t> axes)
{
    return attributesOf({{"permutation", std::move(axes)}});
}

/// What lies between [batch length width] and a loss over [length*batch] rows.
struct Sketch {
    GraphBuilder b{};
    /// [length batch 6] of an input [batch length 6]
    TensorId begin()
    {
        const TensorId x = b.input("x", floats({kBatch, kLength, 6}));
        return b.one(OperatorKind::Transpose, {x}, permutation({1, 0, 2}), "turn");
    }
    TensorId rows(TensorId x) { return b.reshape(x, {kLength * kBatch, 6}, "rows"); }
    /// The mean square of what is given, as [batch].
    Graph end(TensorId x, std::vector<TensorId> outputs = {})
    {
        const TensorId square = b.one(OperatorKind::Mul, {x, x}, {}, "square");
        const auto rank = static_cast<std::int64_t>(b.typeOf(square).shape.size());
        std::vector<std::int64_t> axes;
        for (std::int64_t axis = 0; axis < rank; ++axis)
            axes.push_back(axis);
        const TensorId loss = b.one(OperatorKind::ReduceSum, {square},
            attributesOf({{"axes", axes}, {"keepdims", 0}}), "loss");
        outputs.insert(outputs.begin(), loss);
        auto graph = b.finish(outputs);
        EXPECT_TRUE(graph) << describe(graph.error());
        return *std::move(graph);
    }
};

std::vector<std::vector<std::byte>> outputsOf(Graph graph)
{
    const std::vector<TensorId> outputs = graph.outputs;
    testing_support::GraphRunner runner(testing_support::inDouble(std::move(graph)));
    runner.run();
    std::vector<std::vector<std::byte>> values;
    for (const TensorId id : outputs)
        values.push_back(runner.bytesOf(id));
    return values;
}

/// The graph with the batch apart. Its outputs are those of the graph as it was.
Graph separated(const Graph &graph, std::int32_t &changed)
{
    Graph apart = graph;
    changed = separateBatch(apart);
    apart = tidyReshapes(std::move(apart));
    annotateOperators(apart);
    const auto sound = validate(apart);
    EXPECT_TRUE(sound) << describe(sound.error());
    EXPECT_EQ(testing_support::largestDifference(outputsOf(graph), outputsOf(apart)) < 1e-9, true);
    return apart;
}

std::vector<std::string> uncutOf(const Graph &graph)
{
    std::vector<std::string> names;
    const BatchFlow flow = followBatch(graph, inputsAlong(graph, batchInputOf(graph)));
    for (std::size_t i = 0; i < graph.operators.size(); ++i)
        if (flow.operatorDimension[i] < 0)
            names.push_back(graph.operators[i].name);
    return names;
}

TEST(SeparateBatch, PassesByTheReshapesAroundAProduct)
{
    Sketch s;
    const TensorId x = s.begin();
    const TensorId heads = s.b.reshape(x, {kLength, kBatch, 2, 3}, "heads");
    const TensorId flat = s.b.reshape(heads, {kLength * kBatch, 6}, "flat");
    const TensorId y = s.b.one(OperatorKind::Linear, {flat, s.b.weight("w", {6, 5}), s.b.weight("b", {5})}, {}, "y");
    const TensorId act = s.b.one(OperatorKind::Tanh, {y}, {}, "act");
    const TensorId back = s.b.reshape(act, {kLength, kBatch, 5}, "back");
    const Graph graph = s.end(back);
    std::int32_t changed = 0;
    const Graph apart = separated(graph, changed);
    EXPECT_GT(changed, 0);
    EXPECT_EQ(uncutOf(apart), std::vector<std::string>{});
}

} // namespace
} // namespace planloom
