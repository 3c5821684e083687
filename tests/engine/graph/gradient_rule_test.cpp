#include "engine/graph/operators/catalogue.h"
#include "tests/engine/graph/parts_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {

namespace {

using Flags = std::vector<bool>;

/// A graph of one operator; a type's shape does not matter here. `absent` inputs have invalid ids.
struct OneOperator {
    Graph graph{};
    Operator op{};

    OneOperator(OperatorKind kind, const std::vector<DataType> &inputs, const std::vector<DataType> &outputs,
        const Flags &present = {})
    {
        op.kind = kind;
        for (std::size_t i = 0; i < inputs.size(); ++i)
            op.inputs.push_back(i < present.size() && !present[i] ? TensorId{} : add(inputs[i]));
        for (const DataType type : outputs)
            op.outputs.push_back(add(type));
    }
    TensorId add(DataType type)
    {
        const TensorId id{static_cast<std::int32_t>(graph.tensors.size())};
        graph.tensors.push_back(Tensor{.name = "t" + std::to_string(id.index), .type = {type, {2, 2}}});
        return id;
    }
    GradientRule rule(const Flags &wanted = {}) const { return gradientRule(graph, op, wanted); }
};

GradientRule rule(OperatorKind kind, const std::vector<DataType> &inputs, const Flags &wanted = {},
    const std::vector<DataType> &outputs = {kFloat})
{
    return OneOperator(kind, inputs, outputs).rule(wanted);
}

} // namespace

TEST(GradientRule, UnaryKindsSaveTheirOutputOrTheirInputOrNothing)
{
    using enum OperatorKind;
    for (const OperatorKind kind : {Relu, Sigmoid, Tanh, Softmax, LogSoftmax, Exp, Sqrt, Reciprocal}) {
        const GradientRule gradient = rule(kind, {kFloat});
        EXPECT_TRUE(gradient.differentiable) << nameOf(kind);
        EXPECT_EQ(gradient.needsInput, Flags{false}) << nameOf(kind);
        EXPECT_EQ(gradient.needsOutput, Flags{true}) << nameOf(kind);
    }
    for (const OperatorKind kind :
        {Gelu, Silu, Erf, Log, Abs, Clip, HardSigmoid, ReduceSumSquare, LpNormalize}) {
        const GradientRule gradient = rule(kind, {kFloat});
        EXPECT_EQ(gradient.needsInput, Flags{true}) << nameOf(kind);
        EXPECT_EQ(gradient.needsOutput, Flags{false}) << nameOf(kind);
    }
    for (const OperatorKind kind :
        {Identity, Neg, Dropout, Reshape, Transpose, ReduceSum, ReduceMean, AveragePool, Cast}) {
        const GradientRule gradient = rule(kind, {kFloat});
        EXPECT_TRUE(gradient.differentiable) << nameOf(kind);
        EXPECT_EQ(gradient.needsInput, Flags{false}) << nameOf(kind);
        EXPECT_EQ(gradient.needsOutput, Flags{false}) << nameOf(kind);
    }
    for (const OperatorKind kind : {MaxPool, ReduceMax, ReduceL2, ReduceLogSumExp}) {
        const GradientRule gradient = rule(kind, {kFloat});
        EXPECT_EQ(gradient.needsInput, Flags{true}) << nameOf(kind);
        EXPECT_EQ(gradient.needsOutput, Flags{true}) << nameOf(kind);
    }
}

TEST(GradientRule, WhatIsNotContinuousHasNoGradient)
{
    using enum OperatorKind;
    EXPECT_FALSE(rule(Less, {kFloat, kFloat}, {}, {DataType::Bool}).differentiable);
    EXPECT_FALSE(rule(Cast, {kFloat}, {}, {kInt}).differentiable);
    EXPECT_FALSE(rule(Cast, {kInt}).differentiable);
    EXPECT_FALSE(rule(ArgMax, {kFloat}, {}, {kInt}).differentiable);
    EXPECT_FALSE(rule(Add, {kInt, kInt}, {}, {kInt}).differentiable);
    EXPECT_FALSE(rule(Floor, {kFloat}).differentiable);
    EXPECT_FALSE(rule(CountValid, {kInt}).differentiable);
    EXPECT_FALSE(rule(Fill, {}).differentiable);
    EXPECT_FALSE(rule(Unknown, {kFloat}).differentiable);
}

TEST(GradientRule, ProductsSaveTheOtherFactor)
{
    using enum OperatorKind;
    for (const OperatorKind kind : {Mul, MatMul}) {
        EXPECT_EQ(rule(kind, {kFloat, kFloat}).needsInput, (Flags{true, true}));
        EXPECT_EQ(rule(kind, {kFloat, kFloat}, {true, false}).needsInput, (Flags{false, true}));
        EXPECT_EQ(rule(kind, {kFloat, kFloat}, {false, true}).needsInput, (Flags{true, false}));
    }
    EXPECT_EQ(rule(Linear, {kFloat, kFloat, kFloat}).needsInput, (Flags{true, true, false}));
    EXPECT_EQ(rule(Linear, {kFloat, kFloat, kFloat}, {false, false, true}).needsInput,
        (Flags{false, false, false}));
    EXPECT_EQ(
        rule(Einsum, {kFloat, kFloat, kFloat}, {true, false, false}).needsInput, (Flags{false, true, true}));
    EXPECT_EQ(rule(Div, {kFloat, kFloat}, {true, false}).needsInput, (Flags{false, true}));
    EXPECT_EQ(rule(Pow, {kFloat, kInt}).gradientOf, (Flags{true, false}));
}

TEST(GradientRule, IndicesAndLabelsAreSavedButHaveNoGradient)
{
    using enum OperatorKind;
    for (const OperatorKind kind : {Embedding, Gather, GatherElements, GatherND}) {
        const GradientRule gradient = rule(kind, {kFloat, kInt});
        EXPECT_EQ(gradient.gradientOf, (Flags{true, false})) << nameOf(kind);
        EXPECT_EQ(gradient.needsInput, (Flags{false, true})) << nameOf(kind);
    }
    const GradientRule loss = rule(CrossEntropy, {kFloat, kInt, kFloat});
    EXPECT_EQ(loss.gradientOf, (Flags{true, false, false}));
    EXPECT_EQ(loss.needsInput, (Flags{true, true, true}));
    const GradientRule where = rule(Where, {DataType::Bool, kFloat, kFloat});
    EXPECT_EQ(where.gradientOf, (Flags{false, true, true}));
    EXPECT_EQ(where.needsInput, (Flags{true, false, false}));
    const GradientRule top = rule(TopK, {kFloat}, {}, {kFloat, kInt});
    EXPECT_EQ(top.needsOutput, (Flags{false, true}));
    EXPECT_EQ(top.needsInput, Flags{false});
}

TEST(GradientRule, NormalisationsSaveWhatTheirStatisticsNeed)
{
    using enum OperatorKind;
    const std::vector<DataType> five(5, kFloat);
    EXPECT_EQ(rule(BatchNormalize, five).needsInput, (Flags{true, true, true, true, false}));
    EXPECT_EQ(rule(BatchNormalize, five, {true, true, false, false, true}).needsInput,
        (Flags{false, false, true, true, false}));
    EXPECT_EQ(rule(BatchVariance, {kFloat, kFloat}).needsInput, (Flags{true, true}));
    EXPECT_EQ(rule(BatchMean, {kFloat}).needsInput, Flags{false});
    EXPECT_EQ(rule(LayerNorm, {kFloat, kFloat, kFloat}).needsInput, (Flags{true, true, false}));
    // A norm without a scale: no id to save, and no gradient.
    const GradientRule bare =
        OneOperator(LayerNorm, {kFloat, kFloat, kFloat}, {kFloat}, {true, false, true}).rule();
    EXPECT_EQ(bare.gradientOf, (Flags{true, false, true}));
    EXPECT_EQ(bare.needsInput, (Flags{true, false, false}));
}

TEST(GradientRule, AttentionsReachAdditiveMasksAndSaveTheirSums)
{
    using enum OperatorKind;
    const std::vector<DataType> outputs{kFloat, kFloat, kFloat};
    const GradientRule additive = rule(Attention, {kFloat, kFloat, kFloat, kFloat}, {}, outputs);
    EXPECT_EQ(additive.gradientOf, (Flags{true, true, true, true}));
    EXPECT_EQ(additive.needsInput, (Flags{true, true, true, true}));
    EXPECT_EQ(additive.needsOutput, (Flags{true, true, true}));
    const GradientRule hidden = rule(Attention, {kFloat, kFloat, kFloat, DataType::Bool}, {}, outputs);
    EXPECT_EQ(hidden.gradientOf, (Flags{true, true, true, false}));
    // The gradient of the values asks neither for the values nor for the result.
    const GradientRule values = rule(Attention, {kFloat, kFloat, kFloat}, {false, false, true}, outputs);
    EXPECT_EQ(values.needsInput, (Flags{true, true, false}));
    EXPECT_EQ(values.needsOutput, (Flags{false, true, true}));
}

} // namespace planloom
