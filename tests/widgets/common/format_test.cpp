#include "widgets/common/format.h"

#include <gtest/gtest.h>

#include <limits>

namespace planloom {
namespace {

TEST(Format, BytesHaveThreeDigitsAndIecUnits)
{
    EXPECT_EQ(formatBytes({0}), "0 B");
    EXPECT_EQ(formatBytes({1023}), "1023 B");
    EXPECT_EQ(formatBytes({1024}), "1.00 KiB");
    EXPECT_EQ(formatBytes({1536}), "1.50 KiB");
    EXPECT_EQ(formatBytes({(std::int64_t{1} << 30) - 1}), "1.00 GiB"); // never "1024 MiB"
    EXPECT_EQ(formatBytes({std::int64_t{80} << 30}), "80.0 GiB");
    EXPECT_EQ(formatBytes({-2048}), "-2.00 KiB");
}

TEST(Format, SecondsChooseTheirUnit)
{
    EXPECT_EQ(formatSeconds(0), "0 s");
    EXPECT_EQ(formatSeconds(0.0412), "41.2 ms");
    EXPECT_EQ(formatSeconds(1.25), "1.25 s");
    EXPECT_EQ(formatSeconds(312), "312 s");
    EXPECT_EQ(formatSeconds(8.5e-7), "850 ns");
    EXPECT_EQ(formatSeconds(0.99999), "1.00 s");
    EXPECT_EQ(formatSeconds(std::numeric_limits<double>::infinity()), "-");
}

TEST(Format, AxisLabelsShareAUnitAndDistinguishTheirSteps)
{
    const TimeUnit unit = timeUnitFor(0.05);
    EXPECT_STREQ(unit.name, "ms");
    EXPECT_EQ(formatInUnit(0.02, unit, 0.01), "20");
    EXPECT_EQ(formatInUnit(0.0205, unit, 0.0005), "20.5");
    EXPECT_EQ(formatInUnit(0.0, unit, 0.0005), "0.0");
}

TEST(Format, CountsAndQuantities)
{
    EXPECT_EQ(formatCount(0), "0");
    EXPECT_EQ(formatCount(999), "999");
    EXPECT_EQ(formatCount(16956), "16,956");
    EXPECT_EQ(formatCount(-1234567), "-1,234,567");
    EXPECT_EQ(formatQuantity(124.44e6), "124 M");
    EXPECT_EQ(formatQuantity(1.56e9), "1.56 B");
    EXPECT_EQ(formatQuantity(12), "12");
}

TEST(Format, ShapesAndNames)
{
    EXPECT_EQ(formatShape({}), "scalar");
    EXPECT_EQ(formatShape({4, 64, 768}), "4 × 64 × 768");
    Graph graph;
    graph.scopes.push_back({.name = "h.3", .parent = ScopeId{0}});
    Operator op;
    op.name = "h.3.c_attn";
    op.scope = ScopeId{1};
    EXPECT_EQ(shortName(graph, op), "c_attn");
    op.name = "other";
    EXPECT_EQ(shortName(graph, op), "other");
}

/// An exporter that numbers its nodes leaves the module's name to the weights.
TEST(Format, OperatorsThatAreCalledAfterTheirKindHaveTheNameOfTheirModule)
{
    Graph graph;
    const auto weight = [&](const char *name) {
        graph.tensors.push_back({.name = name, .role = TensorRole::Weight});
        return TensorId{static_cast<std::int32_t>(graph.tensors.size()) - 1};
    };
    const auto add = [&](const char *name, OperatorKind kind, TensorId reads) {
        Operator op;
        op.name = name;
        op.kind = kind;
        op.inputs = {reads};
        graph.operators.push_back(std::move(op));
    };
    add("node_linear_13", OperatorKind::Linear, weight("model.lm_head.weight"));
    add("node_embedding", OperatorKind::Embedding, weight("model.embed_tokens.weight"));
    add("node_addmm_4", OperatorKind::Linear, weight("net.2.bias"));
    add("proj", OperatorKind::Linear, weight("params.w1")); // somebody's own name
    add("c_fc_1", OperatorKind::Linear, weight("h.c_fc_1.weight")); // says its module
    add("MatMul", OperatorKind::MatMul, weight("onnx::MatMul_123")); // its weight says nothing
    add("node_linear_14", OperatorKind::Linear, weight("tied.weight"));
    add("node_linear_15", OperatorKind::Linear, graph.operators.back().inputs.front());
    const char *kShown[] = {
        "lm_head", "embed_tokens", "net.2", "proj", "c_fc_1", "MatMul", "node_linear_14", "node_linear_15"};
    for (std::size_t i = 0; i < graph.operators.size(); ++i)
        EXPECT_EQ(shortName(graph, graph.operators[i]), kShown[i]);
}

TEST(Format, ElidingKeepsBothEndsAndWholeCharacters)
{
    EXPECT_EQ(elided("abc", 3), "abc");
    EXPECT_EQ(elided("abcdefgh", 5), "ab…gh");
    EXPECT_EQ(elided("äöüßéè", 3), "ä…è");
    EXPECT_EQ(elided("abc", 0), "");
}

} // namespace
} // namespace planloom
