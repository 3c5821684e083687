// Windows that are counted on through all samples get a dimension of their own, and nothing else does.

#include "engine/frontend/passes/batch/separate_windows.h"

#include "engine/frontend/passes/fuse/fuse.h"
#include "engine/frontend/zoo/graph_builder.h"
#include "engine/frontend/zoo/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

constexpr std::int64_t kSamples = 3;
constexpr std::int64_t kWindows = 4; ///< Of a sample.

TensorType floats(Shape shape)
{
    return {DataType::Float32, std::move(shape)};
}

/// x [b r c w w e] -> windows -> attention of one projection with itself, and a mask -> [b r c w w e].
/// @param mask  its shape; none if empty
Graph windowed(const Shape &mask = {}, const char *outside = "")
{
    GraphBuilder b;
    const TensorId image = b.input("image", floats({kSamples, 2, 2, 2, 2, 6}));
    const TensorId windows = b.reshape(image, {kSamples * kWindows, 4, 6}, "windows");
    const TensorId projected =
        b.one(OperatorKind::Linear, {windows, b.weight("w", {6, 6})}, {}, "projection");
    const TensorId heads = b.one(OperatorKind::Transpose, {b.reshape(projected, {12, 4, 2, 3}, "heads")},
        attributesOf({{"permutation", std::vector<std::int64_t>{0, 2, 1, 3}}}), "transpose");
    std::vector<TensorId> inputs{heads, heads, heads};
    if (!mask.empty())
        inputs.push_back(b.constant(
            "mask", floatData(mask, std::vector<float>(static_cast<std::size_t>(elementCount(mask)), 1))));
    const TensorId context = b.add(OperatorKind::Attention, inputs, {}, "attention").front();
    TensorId joined = b.reshape(
        b.one(OperatorKind::Transpose, {context},
            attributesOf({{"permutation", std::vector<std::int64_t>{0, 2, 1, 3}}}), "transpose_back"),
        {12, 4, 6}, "joined");
    if (std::string(outside) == "across windows")
        joined = b.one(OperatorKind::CumSum, {joined}, attributesOf({{"axis", 0}}), "across");
    const TensorId result = b.reshape(joined, {kSamples, 2, 2, 2, 2, 6}, "image_again");
    std::vector<TensorId> outputs{result};
    if (std::string(outside) == "output")
        outputs.push_back(joined);
    auto graph = b.finish(outputs);
    EXPECT_TRUE(graph) << describe(graph.error());
    return *std::move(graph);
}

const Operator &named(const Graph &graph, const std::string &name)
{
    const auto found = std::find_if(
        graph.operators.begin(), graph.operators.end(), [&](const Operator &op) { return op.name == name; });
    EXPECT_NE(found, graph.operators.end()) << name;
    return *found;
}

Shape madeBy(const Graph &graph, const std::string &name)
{
    return graph.at(named(graph, name).outputs.front()).type.shape;
}

TEST(SeparateWindows, GivesThemADimensionBesideTheSamples)
{
    Graph graph = windowed();
    EXPECT_EQ(separateWindows(graph), 1);
    annotateOperators(graph);
    const auto sound = validate(graph);
    EXPECT_TRUE(sound) << describe(sound.error());
    EXPECT_EQ(madeBy(graph, "windows"), (Shape{3, 4, 4, 6}));
    EXPECT_EQ(madeBy(graph, "projection"), (Shape{3, 4, 4, 6}));
    EXPECT_EQ(madeBy(graph, "transpose"), (Shape{3, 4, 2, 4, 3}));
    EXPECT_EQ(madeBy(graph, "attention"), (Shape{3, 4, 2, 4, 3}));
    EXPECT_EQ(madeBy(graph, "image_again"), (Shape{3, 2, 2, 2, 2, 6}));
    EXPECT_EQ(toString(named(graph, "windows").annotation), "a b 2 c 2 d -> a (b 2) (c 2) d");
    EXPECT_EQ(separateWindows(graph), 0); // done
}

TEST(SeparateWindows, SeesMasksOfEveryWindowOtherwise)
{
    Graph graph = windowed({12, 1, 4, 4});
    EXPECT_EQ(separateWindows(graph), 1);
    const Tensor &mask = graph.at(named(graph, "attention").inputs[3]);
    EXPECT_EQ(mask.type.shape, (Shape{3, 4, 1, 4, 4}));
    EXPECT_EQ(mask.fileShape, (Shape{12, 1, 4, 4}));
    EXPECT_EQ(mask.data->type, mask.type);

    Graph broadcast = windowed({2, 4, 4}); // of heads
    EXPECT_EQ(separateWindows(broadcast), 1);
    EXPECT_EQ(broadcast.at(named(broadcast, "attention").inputs[3]).type.shape, (Shape{2, 4, 4}));
}

TEST(SeparateWindows, LeavesWhatMixesWindowsOrIsSeenOutside)
{
    for (const char *outside : {"across windows", "output"}) {
        SCOPED_TRACE(outside);
        Graph graph = windowed({}, outside);
        const std::size_t operators = graph.operators.size();
        EXPECT_EQ(separateWindows(graph), 0);
        EXPECT_EQ(graph.operators.size(), operators);
        EXPECT_EQ(madeBy(graph, "windows"), (Shape{12, 4, 6}));
    }
}

TEST(SeparateWindows, CutsEveryWindowedOperatorOfSwin)
{
    const auto swin =
        buildZooModel("zoo:swin?layers=2&hidden=8&heads=2&window=2&image=32&patch=2&classes=5&batch=2");
    ASSERT_TRUE(swin) << describe(swin.error());
    for (const Operator &op : swin->operators) {
        const Shape &shape = swin->at(op.outputs.front()).type.shape;
        const bool inImage = op.name.find(".attn.") != std::string::npos && shape.size() > 3
            && op.name.find("bias") == std::string::npos;
        EXPECT_TRUE(!inImage || shape.front() == 2) << op.name << toString(shape);
    }
}

} // namespace
} // namespace planloom
