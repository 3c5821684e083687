#include "engine/frontend/zoo/graph_builder.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(GraphBuilder, InfersTypesAndNamesByScope)
{
    using enum OperatorKind;
    GraphBuilder b("small");
    const TensorId x = b.input("x", {DataType::Float32, {2, 4}});
    TensorId y;
    {
        const auto layer = b.scope("h.0");
        const auto inner = b.scope("mlp");
        y = b.one(MatMul, {x, b.weight("w", {4, 6})}, {}, "product");
    }
    y = b.one(Tanh, {y});
    const auto graph = b.finish({y});
    ASSERT_TRUE(graph) << describe(graph.error());
    const auto valid = validate(*graph);
    EXPECT_TRUE(valid) << describe(valid.error());
    EXPECT_EQ(graph->name, "small");
    ASSERT_EQ(graph->operators.size(), 2U);
    EXPECT_EQ(graph->operators[0].name, "h.0.mlp.product");
    EXPECT_EQ(pathOf(*graph, graph->operators[0].scope), "h.0.mlp");
    EXPECT_EQ(graph->operators[1].name, "Tanh");
    EXPECT_EQ(graph->operators[1].scope, ScopeId{0});
    EXPECT_EQ(graph->at(graph->operators[0].inputs[1]).name, "h.0.mlp.w");
    EXPECT_EQ(graph->at(y).type, (TensorType{DataType::Float32, {2, 6}}));
    EXPECT_FALSE(graph->operators[0].annotation.dimensions.empty());
}

TEST(GraphBuilder, ReentersScopesAndKeepsNamesApart)
{
    using enum OperatorKind;
    GraphBuilder b;
    TensorId x = b.input("x", {DataType::Float32, {2}});
    for (int round = 0; round < 3; ++round) {
        const auto scope = b.scope("block");
        x = b.one(Tanh, {x}, {}, "act");
    }
    const auto graph = b.finish({x});
    ASSERT_TRUE(graph) << describe(graph.error());
    EXPECT_EQ(graph->scopes.size(), 2U);
    EXPECT_EQ(graph->operators[1].name, "block.act_1");
    EXPECT_TRUE(validate(*graph));
}

TEST(GraphBuilder, SharesEqualScalarsAndKeepsData)
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {2}});
    EXPECT_EQ(b.scalar(0.5F), b.scalar(0.5F));
    EXPECT_NE(b.scalar(0.5F), b.scalar(1e-12F));
    EXPECT_NE(b.scalar(1e-12F), b.scalar(2e-12F));
    const TensorId w = b.weight("w", {2}, {3, 4});
    const TensorId y = b.one(Add, {b.one(Mul, {x, w}), b.scalar(0.5F)});
    const auto graph = b.finish({y});
    ASSERT_TRUE(graph) << describe(graph.error());
    EXPECT_TRUE(validate(*graph)); // names are unique
    ASSERT_TRUE(graph->at(w).data);
    EXPECT_EQ(graph->at(w).data->bytes.size(), 8U);
}

TEST(GraphBuilder, KeepsTheFirstFailure)
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {2, 4}});
    TensorId y;
    {
        const auto scope = b.scope("h.0");
        y = b.one(MatMul, {x, b.weight("w", {5, 6})}, {}, "product");
    }
    EXPECT_FALSE(y.valid());
    EXPECT_TRUE(b.failure().has_value());
    const auto parts =
        b.add(Split, {y}, attributesOf({{"axis", 0}, {"sizes", std::vector<std::int64_t>(7, 1)}}));
    EXPECT_GE(parts.size(), 7U); // code that takes them apart goes on
    EXPECT_TRUE(b.shape(parts[6]).empty());
    const auto graph = b.finish({y});
    ASSERT_FALSE(graph);
    EXPECT_EQ(graph.error().where, "operator:h.0.product");
}

TEST(GraphBuilder, RefusesALossThatIsNoScalar)
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId x = b.one(Tanh, {b.input("x", {DataType::Float32, {2}})});
    const auto graph = b.finish({}, x);
    ASSERT_FALSE(graph);
    EXPECT_EQ(graph.error().code, ErrorCode::InvalidInput);
}

} // namespace
} // namespace planloom
