// Backward kernels against numeric derivatives, and float kernels against double ones.

#include "engine/check/part_runner.h"

#include <gtest/gtest.h>

#include <cmath>

namespace planloom::testing {

namespace {

/// Sum of the outputs' elements, weighted by the gradients that the backward operator is given.
double weightedSum(const Graph &graph, const OperatorValues &values)
{
    const Operator &forward = graph.operators[0];
    const Operator &backward = graph.operators[1];
    double sum = 0;
    for (std::size_t slot = 0; slot < forward.outputs.size(); ++slot) {
        if (!backward.inputs[slot].valid())
            continue;
        const TensorType &type = graph.at(forward.outputs[slot]).type;
        for (std::int64_t i = 0; i < elementCount(type.shape); ++i) {
            sum += numberAt(values[static_cast<std::size_t>(forward.outputs[slot].index)], type.dataType, i)
                * numberAt(values[static_cast<std::size_t>(backward.inputs[slot].index)], type.dataType, i);
        }
    }
    return sum;
}

} // namespace

TEST(Gradients, AgreeWithCentralDifferences)
{
    constexpr double kStep = 1e-5;
    for (const OperatorExample &example : examplesOfEveryKind(DataType::Float64)) {
        SCOPED_TRACE(example.name);
        const auto graph = graphOf(example);
        ASSERT_TRUE(graph) << describe(graph.error());
        if (graph->operators.size() < 2)
            continue;
        const Operator &forward = graph->operators[0];
        const Operator &backward = graph->operators[1];
        OperatorValues values = drawValues(example, *graph, 2);
        ASSERT_TRUE(runParts(*graph, forward, {}, values));
        const auto ran = runParts(*graph, backward, {}, values);
        ASSERT_TRUE(ran) << describe(ran.error());
        for (std::size_t slot = 0; slot < forward.inputs.size(); ++slot) {
            if (!backward.outputs[slot].valid())
                continue;
            const TensorType &type = graph->at(forward.inputs[slot]).type;
            const auto x = static_cast<std::size_t>(forward.inputs[slot].index);
            const std::int64_t count = elementCount(type.shape);
            const std::int64_t stride = std::max<std::int64_t>(1, count / 24);
            for (std::int64_t i = 0; i < count; i += stride) {
                OperatorValues moved = values;
                const double at = numberAt(values[x], type.dataType, i);
                setNumber(moved[x], type.dataType, i, at + kStep);
                ASSERT_TRUE(runParts(*graph, forward, {}, moved));
                const double above = weightedSum(*graph, moved);
                setNumber(moved[x], type.dataType, i, at - kStep);
                ASSERT_TRUE(runParts(*graph, forward, {}, moved));
                const double slope = (above - weightedSum(*graph, moved)) / (2 * kStep);
                const double made = numberAt(
                    values[static_cast<std::size_t>(backward.outputs[slot].index)], type.dataType, i);
                EXPECT_NEAR(made, slope, 2e-6 * (1 + std::fabs(slope)))
                    << "element " << i << " of input " << slot;
            }
        }
    }
}

TEST(FloatKernels, AgreeWithDoubleOnes)
{
    const auto narrow = examplesOfEveryKind(DataType::Float32);
    const auto wide = examplesOfEveryKind(DataType::Float64);
    ASSERT_EQ(narrow.size(), wide.size());
    for (std::size_t e = 0; e < narrow.size(); ++e) {
        SCOPED_TRACE(narrow[e].name);
        const auto floats = graphOf(narrow[e]);
        const auto doubles = graphOf(wide[e]);
        ASSERT_TRUE(floats) << describe(floats.error());
        ASSERT_TRUE(doubles) << describe(doubles.error());
        OperatorValues given = drawValues(narrow[e], *floats, 3);
        OperatorValues exact(doubles->tensors.size());
        for (std::size_t t = 0; t < given.size(); ++t) { // The same numbers, as doubles.
            const TensorType &type = doubles->tensors[t].type;
            if (given[t].empty())
                continue;
            exact[t].resize(static_cast<std::size_t>(elementCount(type.shape) * sizeOf(type.dataType)));
            for (std::int64_t i = 0; i < elementCount(type.shape); ++i)
                setNumber(
                    exact[t], type.dataType, i, numberAt(given[t], floats->tensors[t].type.dataType, i));
        }
        for (std::size_t o = 0; o < floats->operators.size(); ++o) {
            const auto ran = runParts(*floats, floats->operators[o], {}, given);
            ASSERT_TRUE(ran) << describe(ran.error());
            ASSERT_TRUE(runParts(*doubles, doubles->operators[o], {}, exact));
            for (const TensorId id : floats->operators[o].outputs) {
                if (!id.valid())
                    continue;
                const auto t = static_cast<std::size_t>(id.index);
                double largest = 0;
                for (std::int64_t i = 0; i < elementCount(floats->at(id).type.shape); ++i)
                    largest =
                        std::max(largest, std::fabs(numberAt(exact[t], doubles->at(id).type.dataType, i)));
                for (std::int64_t i = 0; i < elementCount(floats->at(id).type.shape); ++i) {
                    EXPECT_NEAR(numberAt(given[t], floats->at(id).type.dataType, i),
                        numberAt(exact[t], doubles->at(id).type.dataType, i), 4e-6 * (0.1 + largest))
                        << "element " << i << " of " << floats->at(id).name;
                }
            }
        }
    }
}

} // namespace planloom::testing
