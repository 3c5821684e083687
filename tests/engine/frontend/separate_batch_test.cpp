// A batch that lies inside a joined dimension gets one of its own; what is computed stays the same.

#include "engine/frontend/passes/batch/separate_batch.h"

#include "engine/frontend/passes/fuse/fuse.h"
#include "engine/frontend/zoo/graph_builder.h"
#include "engine/graph/dimensions/batch.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace planloom {
namespace {

constexpr std::int64_t kLength = 6;
constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kRows = kLength * kBatch;

using Strings = std::vector<std::string>;

TensorType floatsOf(Shape shape)
{
    return {DataType::Float32, std::move(shape)};
}

TensorId transposed(GraphBuilder &b, TensorId x, std::vector<std::int64_t> permutation, const char *name)
{
    return b.one(OperatorKind::Transpose, {x}, attributesOf({{"permutation", std::move(permutation)}}), name);
}

/// [length batch 6], of an input [batch length 6].
TensorId sequence(GraphBuilder &b)
{
    return transposed(b, b.input("x", floatsOf({kBatch, kLength, 6})), {1, 0, 2}, "turn");
}

TensorId linear(GraphBuilder &b, TensorId x, const std::string &name, std::int64_t from, std::int64_t to)
{
    return b.one(
        OperatorKind::Linear, {x, b.weight(name + ".w", {from, to}), b.weight(name + ".b", {to})}, {}, name);
}

/// The sum of the squares of `x`, and `others`.
Graph finishedModel(GraphBuilder &b, TensorId x, std::vector<TensorId> others = {})
{
    const TensorId square = b.one(OperatorKind::Mul, {x, x}, {}, "square");
    std::vector<std::int64_t> axes;
    for (std::size_t axis = 0; axis < b.shape(square).size(); ++axis)
        axes.push_back(static_cast<std::int64_t>(axis));
    others.insert(others.begin(),
        b.one(OperatorKind::ReduceSum, {square}, attributesOf({{"axes", axes}, {"keepdims", 0}}), "loss"));
    auto graph = b.finish(others);
    EXPECT_TRUE(graph) << describe(graph.error());
    return *std::move(graph);
}

std::vector<std::vector<double>> outputsOf(const testing_support::GraphRunner &runner)
{
    std::vector<std::vector<double>> values;
    for (const TensorId id : runner.graph().outputs)
        values.push_back(runner.all(id));
    return values;
}

/// The graph with the batch apart, which must be sound and give the same outputs.
Graph separated(const Graph &graph, std::int32_t *count = nullptr)
{
    Graph apart = graph;
    const std::int32_t changed = separateBatch(apart);
    if (count != nullptr)
        *count = changed;
    apart = tidyReshapes(std::move(apart));
    annotateOperators(apart);
    const auto sound = validate(apart);
    EXPECT_TRUE(sound) << describe(sound.error());
    testing_support::GraphRunner before(testing_support::inDouble(graph));
    testing_support::GraphRunner after(testing_support::inDouble(apart));
    after.takeFrom(before);
    EXPECT_TRUE(before.run());
    EXPECT_TRUE(after.run());
    const auto expected = outputsOf(before);
    const auto found = outputsOf(after);
    EXPECT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
        EXPECT_EQ(apart.at(apart.outputs[i]).type, graph.at(graph.outputs[i]).type);
        EXPECT_EQ(found[i].size(), expected[i].size());
        for (std::size_t k = 0; k < std::min(found[i].size(), expected[i].size()); ++k)
            EXPECT_NEAR(found[i][k], expected[i][k], 1e-9 * (1 + std::abs(expected[i][k]))) << i << ' ' << k;
    }
    return apart;
}

/// Operators that cannot be cut along the batch, apart from the last sum.
Strings uncutOf(const Graph &graph)
{
    Strings names;
    const BatchFlow flow = followBatch(graph, inputsAlong(graph, batchInputOf(graph)));
    for (std::size_t i = 0; i < graph.operators.size(); ++i)
        if (flow.operatorDimension[i] < 0)
            names.push_back(graph.operators[i].name);
    return names;
}

bool has(const Graph &graph, OperatorKind kind)
{
    return std::any_of(
        graph.operators.begin(), graph.operators.end(), [&](const Operator &op) { return op.kind == kind; });
}

TEST(SeparateBatch, PassesByTheReshapesAroundAProduct)
{
    GraphBuilder b;
    const TensorId heads = b.reshape(sequence(b), {kLength, kBatch, 2, 3}, "heads");
    const TensorId rows = b.reshape(heads, {kRows, 6}, "rows");
    const TensorId act = b.one(OperatorKind::Tanh, {linear(b, rows, "product", 6, 5)}, {}, "act");
    const Graph graph = finishedModel(b, b.reshape(act, {kLength, kBatch, 5}, "back"));
    EXPECT_NE(uncutOf(graph), Strings{});
    const Graph apart = separated(graph);
    EXPECT_EQ(uncutOf(apart), Strings{});
    EXPECT_EQ(std::count_if(apart.operators.begin(), apart.operators.end(),
                  [](const Operator &op) { return op.kind == OperatorKind::Reshape; }),
        0);
}

TEST(SeparateBatch, LeavesABatchThatIsOutsideAsItIs)
{
    GraphBuilder b;
    const TensorId rows = b.reshape(b.input("x", floatsOf({kBatch, kLength, 6})), {kRows, 6}, "rows");
    const Graph graph = finishedModel(b, linear(b, rows, "product", 6, 5));
    std::int32_t changed = -1;
    separated(graph, &changed);
    EXPECT_EQ(changed, 0);
}

TEST(SeparateBatch, GivesLossesTheirRowsInAnotherOrder)
{
    GraphBuilder b;
    const TensorId rows = b.reshape(linear(b, sequence(b), "head", 6, 5), {kRows, 5}, "rows");
    const TensorId labels = b.input("labels", {DataType::Int64, {kBatch, kLength}});
    const TensorId list = b.reshape(transposed(b, labels, {1, 0}, "turned_labels"), {kRows}, "list");
    const TensorId loss = b.one(
        OperatorKind::CrossEntropy, {rows, list}, attributesOf({{"reduction", std::string("sum")}}), "loss");
    auto graph = b.finish({loss}, loss);
    ASSERT_TRUE(graph) << describe(graph.error());
    const Graph apart = separated(*graph);
    EXPECT_EQ(uncutOf(apart), Strings{});
    EXPECT_GT(analyseBatch(apart).mostMicroBatches, 1);
}

TEST(SeparateBatch, GivesConvolutionsTheirImagesInAnotherOrder)
{
    GraphBuilder b;
    const TensorId video =
        transposed(b, b.input("x", floatsOf({kBatch, 3, 2, 4, 4})), {1, 0, 2, 3, 4}, "turn");
    const TensorId images = b.reshape(video, {3 * kBatch, 2, 4, 4}, "images");
    const TensorId made = b.one(OperatorKind::Conv, {images, b.weight("w", {5, 2, 3, 3})},
        attributesOf(
            {{"strides", std::vector<std::int64_t>{1, 1}}, {"pads", std::vector<std::int64_t>{1, 1, 1, 1}},
                {"dilations", std::vector<std::int64_t>{1, 1}}, {"group", 1}}),
        "conv");
    const TensorId act = b.one(OperatorKind::Relu, {made}, {}, "act");
    const Graph graph = finishedModel(b, b.reshape(act, {3, kBatch, 5, 4, 4}, "back"));
    EXPECT_EQ(uncutOf(separated(graph)), Strings{});
}

TEST(SeparateBatch, KeepsWhatTheModelReturns)
{
    GraphBuilder b;
    const TensorId rows = b.reshape(sequence(b), {kRows, 6}, "rows");
    const TensorId product = linear(b, rows, "product", 6, 5);
    const Graph graph = finishedModel(b, product, {product, rows});
    separated(graph); // compares shapes and values
}

TEST(SeparateBatch, LeavesWhatGoesThroughAllRowsToItself)
{
    GraphBuilder b;
    const TensorId rows = b.reshape(sequence(b), {kRows, 6}, "rows");
    const TensorId sums = b.one(OperatorKind::CumSum, {rows}, attributesOf({{"axis", 0}}), "sums");
    const TensorId product = linear(b, sums, "product", 6, 5);
    const Graph graph = finishedModel(b, b.reshape(product, {kLength, kBatch, 5}, "back"));
    const Graph apart = separated(graph);
    EXPECT_TRUE(has(apart, OperatorKind::CumSum));
}

TEST(SeparateBatch, BroadcastsWhatHasNoBatch)
{
    GraphBuilder b;
    const TensorId rows = b.reshape(sequence(b), {kRows, 6}, "rows");
    const TensorId scaled = b.one(OperatorKind::Mul, {rows, b.weight("scale", {6})}, {}, "scaled");
    const TensorId placed = b.one(OperatorKind::Add, {scaled, b.weight("places", {kRows, 6})}, {}, "placed");
    const TensorId shifted = b.one(OperatorKind::Sub, {placed, b.weight("shift", {1, 1})}, {}, "shifted");
    const TensorId images = b.reshape(shifted, {1, kRows, 6}, "images");
    const TensorId again = b.one(OperatorKind::Add, {images, b.weight("all", {2, 1, 6})}, {}, "again");
    const TensorId mean = b.one(OperatorKind::ReduceMean, {again},
        attributesOf({{"axes", std::vector<std::int64_t>{0}}, {"keepdims", 0}, {"count", 2}}), "mean");
    const Graph graph = finishedModel(b, b.reshape(mean, {kLength, kBatch, 6}, "back"));
    const Graph apart = separated(graph);
    for (const std::string &name : uncutOf(apart)) // what is made of weights alone has no batch
        EXPECT_NE(name.find("shaped"), std::string::npos) << name;
}

TEST(SeparateBatch, SumsOverAllRows)
{
    GraphBuilder b;
    const TensorId rows = b.reshape(sequence(b), {kRows, 6}, "rows");
    const TensorId sum = b.one(OperatorKind::ReduceSum, {rows},
        attributesOf({{"axes", std::vector<std::int64_t>{0}}, {"keepdims", 0}}), "sum");
    const TensorId kept = b.one(OperatorKind::ReduceSum, {rows},
        attributesOf({{"axes", std::vector<std::int64_t>{0}}, {"keepdims", 1}}), "kept");
    const TensorId both = b.one(OperatorKind::Add, {sum, kept}, {}, "both");
    separated(finishedModel(b, both));
}

TEST(SeparateBatch, TakesOneOfEachGroupWhereEveryOtherSampleIsTaken)
{
    GraphBuilder b;
    const TensorId y = linear(b, b.input("x", floatsOf({2 * kBatch, 6})), "product", 6, 5);
    const auto every = [&](std::int64_t start, const char *name) {
        return b.one(OperatorKind::Slice, {y},
            attributesOf({{"starts", std::vector<std::int64_t>{start, 0}},
                {"steps", std::vector<std::int64_t>{2, 1}}}),
            name, {floatsOf({kBatch, 5})});
    };
    const Graph graph =
        finishedModel(b, b.one(OperatorKind::Sub, {every(0, "chosen"), every(1, "rejected")}, {}, "margin"));
    const Graph apart = separated(graph);
    EXPECT_EQ(uncutOf(apart), Strings{});
    EXPECT_EQ(analyseBatch(apart).mostMicroBatches, kBatch);
}

} // namespace
} // namespace planloom
