// An operator in parts computes what it computes whole: the property on which every plan rests.

#include "engine/kernels/kernel.h"
#include "tests/engine/kernels/part_runner.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

namespace planloom::testing {

namespace {

void expectClose(
    const Tensor &tensor, const std::vector<std::byte> &whole, const std::vector<std::byte> &parts)
{
    ASSERT_EQ(whole.size(), parts.size());
    double largest = 0;
    for (std::int64_t i = 0; i < elementCount(tensor.type.shape); ++i)
        largest = std::max(largest, std::fabs(numberAt(whole, tensor.type.dataType, i)));
    for (std::int64_t i = 0; i < elementCount(tensor.type.shape); ++i) {
        ASSERT_NEAR(numberAt(whole, tensor.type.dataType, i), numberAt(parts, tensor.type.dataType, i),
            1e-10 * (1 + largest))
            << "element " << i << " of " << tensor.name;
    }
}

/// Runs `op` whole into `values`, then under every partition, and compares.
void checkParts(const Graph &graph, const Operator &op, Values &values)
{
    const auto ran = runParts(graph, op, Partition{}, values);
    ASSERT_TRUE(ran) << describe(ran.error());
    for (const Partition &partition : partitionsOf(op)) {
        SCOPED_TRACE(::testing::Message()
            << toString(op.annotation) << " under " << toString(op.annotation, partition));
        const auto legal = checkPartition(op, partition);
        ASSERT_TRUE(legal) << describe(legal.error());
        Values again = values;
        const auto parted = runParts(graph, op, partition, again);
        ASSERT_TRUE(parted) << describe(parted.error());
        for (const TensorId output : op.outputs) {
            if (output.valid())
                expectClose(graph.at(output), values[static_cast<std::size_t>(output.index)],
                    again[static_cast<std::size_t>(output.index)]);
        }
    }
}

} // namespace

TEST(Examples, CoverEveryKind)
{
    std::set<OperatorKind> covered;
    for (const Example &example : examplesOfEveryKind(DataType::Float64))
        covered.insert(example.kind);
    for (int kind = 0; kind < static_cast<int>(OperatorKind::Unknown); ++kind)
        EXPECT_TRUE(covered.contains(static_cast<OperatorKind>(kind)))
            << nameOf(static_cast<OperatorKind>(kind));
}

TEST(Kernels, ExistForEveryExampleInEveryDirection)
{
    for (const Example &example : examplesOfEveryKind(DataType::Float64)) {
        const auto graph = graphOf(example);
        ASSERT_TRUE(graph) << example.name << ": " << describe(graph.error());
        for (const Operator &op : graph->operators)
            EXPECT_TRUE(hasKernel(op)) << example.name << " " << op.name;
    }
}

TEST(Examples, AreAnnotated)
{
    for (const Example &example : examplesOfEveryKind(DataType::Float64)) {
        const auto graph = graphOf(example);
        ASSERT_TRUE(graph) << example.name << ": " << describe(graph.error());
        EXPECT_EQ(graph->operators[0].annotationProblem, "") << example.name;
    }
}

TEST(Parts, MakeWhatTheWholeOperatorMakes)
{
    for (const Example &example : examplesOfEveryKind(DataType::Float64)) {
        SCOPED_TRACE(example.name);
        const auto graph = graphOf(example);
        ASSERT_TRUE(graph) << describe(graph.error());
        Values values = drawValues(example, *graph, 1);
        checkParts(*graph, graph->operators[0], values);
        if (graph->operators.size() > 1) {
            SCOPED_TRACE("backward");
            checkParts(*graph, graph->operators[1], values);
        }
        if (HasFatalFailure())
            ADD_FAILURE() << example.name;
    }
}

} // namespace planloom::testing
