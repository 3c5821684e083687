#include "engine/frontend/passes/scopes/scopes.h"

#include "engine/frontend/passes/fuse/fuse.h"
#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/graph_builder.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

/// A chain of operators, each made from one node of the given name (or several, split at blanks).
Graph chain(const std::vector<std::pair<std::string, OperatorKind>> &nodes)
{
    GraphBuilder b;
    TensorId x = b.input("x", {DataType::Float32, {4}});
    for (const auto &[name, kind] : nodes)
        x = b.one(kind, {x});
    auto graph = b.finish({x});
    EXPECT_TRUE(graph) << describe(graph.error());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        std::string rest = nodes[i].first;
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find(' '), rest.size());
            graph->operators[i].sources.push_back({rest.substr(0, end), "Node"});
            rest.erase(0, end + 1);
        }
    }
    buildScopes(*graph);
    return *graph;
}

std::vector<std::string> paths(const Graph &graph)
{
    std::vector<std::string> result;
    for (const Operator &op : graph.operators)
        result.push_back(pathOf(graph, op.scope));
    return result;
}

using Paths = std::vector<std::string>;
constexpr auto kTanh = OperatorKind::Tanh;
constexpr auto kAbs = OperatorKind::Abs;

TEST(Scopes, FollowTheModulePathOfNodeNames)
{
    const Graph graph = chain({{"/transformer/h.3/attn/MatMul", kTanh}, {"/transformer/h.3/attn/Add", kAbs},
        {"/transformer/h.3/Add", kAbs}, {"/transformer/Last", kTanh}, {"/Loss", kTanh}});
    EXPECT_EQ(paths(graph),
        (Paths{"transformer.h.3.attn", "transformer.h.3.attn", "transformer.h.3", "transformer", ""}));
    ASSERT_EQ(graph.scopes.size(), 4U);
    EXPECT_EQ(graph.scopes[2].name, "h.3");
    EXPECT_EQ(graph.scopes[2].parent, ScopeId{1});
}

TEST(Scopes, OfOneOperatorDissolve)
{
    const Graph graph = chain({{"/h.3/attn/c_attn/Gemm", kTanh}, {"/h.3/attn/c_proj/Gemm", kAbs},
        {"/h.3/mlp/fc/dense/Gemm", kAbs}, {"/h.3/Add", kAbs}});
    EXPECT_EQ(paths(graph), (Paths{"h.3.attn", "h.3.attn", "h.3", "h.3"}));
}

TEST(Scopes, OfOneNodeThatBecameSeveralOperatorsDissolve)
{
    const Graph graph =
        chain({{"/layer1/bn1/BatchNormalization", kTanh}, {"/layer1/bn1/BatchNormalization", kAbs},
            {"/layer1/relu/Relu", kAbs}, {"/head/a/X", kTanh}, {"/head/a/Y", kTanh}});
    EXPECT_EQ(paths(graph), (Paths{"layer1", "layer1", "layer1", "head.a", "head.a"}));
}

TEST(Scopes, OfFusedOperatorsAreWhatTheirNodesShare)
{
    const Graph graph =
        chain({{"/a/b/c/X /a/b/d/Y", kTanh}, {"/a/b/Z", kAbs}, {"/a/bc/X /a/b/Y", kAbs}, {"/a/Q", kAbs}});
    EXPECT_EQ(paths(graph), (Paths{"a.b", "a.b", "a", "a"}));
}

TEST(Scopes, NodesWithoutAPathLieInTheModel)
{
    const Graph graph = chain({{"", kTanh}, {"Conv_0", kAbs}, {"/Add", kAbs}});
    EXPECT_EQ(paths(graph), (Paths{"", "", ""}));
    EXPECT_EQ(graph.scopes.size(), 1U);
}

TEST(Scopes, HostileNamesAreBounded)
{
    std::string deep;
    for (int i = 0; i < 5000; ++i)
        deep += "/m";
    const Graph graph = chain({{deep + "/A", kTanh}, {deep + "/B", kAbs}, {"////", kAbs}, {"/", kTanh}});
    EXPECT_LE(graph.scopes.size(), 100U);
}

std::vector<std::int32_t> classes(const Graph &graph)
{
    std::vector<std::int32_t> result;
    for (const Scope &scope : graph.scopes)
        result.push_back(scope.copyClass);
    return result;
}

TEST(Copies, AreFoundByStructure)
{
    const Graph graph = chain({{"/h.0/A", kTanh}, {"/h.0/B", kAbs}, {"/h.1/A", kTanh}, {"/h.1/B", kAbs},
        {"/h.2/A", kAbs}, {"/h.2/B", kTanh}});
    EXPECT_EQ(classes(graph), (std::vector<std::int32_t>{-1, 0, 0, -1}));
}

TEST(Copies, DifferInAttributesShapesAndWiring)
{
    const auto build = [](int variant) {
        GraphBuilder b;
        TensorId x = b.input("x", {DataType::Float32, {4, 4}});
        for (int layer = 0; layer < 2; ++layer) {
            const auto scope = b.scope("h." + std::to_string(layer));
            const bool changed = layer == 1;
            const TensorId w = b.weight("w", {4, 4});
            TensorId y = b.one(OperatorKind::MatMul, {x, w});
            if (changed && variant == 1)
                y = b.one(OperatorKind::MatMul, {w, x}); // other order; leaves one operator more
            y = b.one(OperatorKind::Dropout, {y},
                attributesOf({{"ratio", changed && variant == 2 ? 0.2 : 0.1}, {"seed", layer}}));
            const auto inner = b.scope(changed && variant == 3 ? "deeper" : "inner");
            if (changed && variant == 4) {
                const auto innermost = b.scope("innermost");
                x = b.one(OperatorKind::Add, {x, y});
            } else {
                x = b.one(OperatorKind::Add, changed && variant == 5 ? std::vector{y, y} : std::vector{x, y});
            }
        }
        auto graph = b.finish({x});
        EXPECT_TRUE(graph) << describe(graph.error());
        const auto of = [&](const std::string &name) {
            for (const Scope &scope : graph->scopes) {
                if (scope.name == name)
                    return scope.copyClass;
            }
            return -2;
        };
        return std::pair{of("h.0"), of("h.1")};
    };
    for (int variant = 0; variant <= 5; ++variant) {
        SCOPED_TRACE(variant);
        const auto [first, second] = build(variant);
        if (variant == 0 || variant == 3) { // seeds and names make no difference
            EXPECT_GE(first, 0);
            EXPECT_EQ(first, second);
        } else {
            EXPECT_EQ(first, -1);
            EXPECT_EQ(second, -1);
        }
    }
}

TEST(Scopes, OfBackwardAndOptimizerOperatorsFollowTheForward)
{
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {2, 4}});
    TensorId y;
    {
        const auto scope = b.scope("h.0");
        y = b.one(OperatorKind::Linear, {x, b.weight("w", {4, 3})}, attributesOf({{"transposed", 0}}));
    }
    const TensorId loss = b.one(OperatorKind::ReduceSum, {y},
        attributesOf({{"axes", std::vector<std::int64_t>{0, 1}}, {"keepdims", 0}}));
    const auto forward = b.finish({}, loss);
    ASSERT_TRUE(forward) << describe(forward.error());
    const auto training = buildTrainingStep(*forward, {});
    ASSERT_TRUE(training) << describe(training.error());
    EXPECT_EQ(paths(*training), (Paths{"h.0", "", "", "h.0", "h.0"}));
}

} // namespace
} // namespace planloom
