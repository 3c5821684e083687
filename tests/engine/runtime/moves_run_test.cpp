// All moves between the layouts of four devices, lowered, proven and run: a product makes its output as one
// layout says, and what reads it wants it as another says, placed in any order.

#include "engine/frontend/zoo/graph_builder.h"
#include "engine/hardware/cluster.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/runtime/run.h"
#include "engine/verify/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

namespace planloom {
namespace {

constexpr std::int64_t kSize = 8;
using Vector = std::array<std::int32_t, 4>; ///< R, V, D0, D1.

std::vector<Vector> vectorsOfFour()
{
    std::vector<Vector> all;
    for (const std::int32_t r : {1, 2, 4})
        for (const std::int32_t v : {1, 2, 4})
            for (const std::int32_t d0 : {1, 2, 4})
                for (const std::int32_t d1 : {1, 2, 4})
                    if (r * v * d0 * d1 == 4)
                        all.push_back({r, v, d0, d1});
    return all;
}

/// y = -(a b), with whole numbers for values, so that sums are exact in any order.
struct NegatedProduct {
    GraphSnapshot graph{};
    OperatorId product{0};
    OperatorId negation{1};
    RunOptions options{};
};

NegatedProduct negatedProduct()
{
    GraphBuilder builder{"negated product"};
    const TensorType type{DataType::Float32, {kSize, kSize}};
    const TensorId a = builder.input("a", type);
    const TensorId b = builder.input("b", type);
    const TensorId c = builder.one(OperatorKind::MatMul, {a, b}, {}, "product");
    const TensorId y = builder.one(OperatorKind::Neg, {c}, {}, "negation");
    auto graph = builder.finish({y}, {});
    EXPECT_TRUE(graph) << describe(graph.error());
    NegatedProduct model;
    model.graph = std::make_shared<const Graph>(*std::move(graph));
    std::mt19937 random(5);
    for (const char *name : {"a", "b"}) {
        std::vector<float> values;
        for (std::int64_t i = 0; i < kSize * kSize; ++i)
            values.push_back(static_cast<float>(static_cast<int>(random() % 9) - 4));
        TensorData data{type, {}};
        data.bytes.resize(values.size() * sizeof(float));
        std::memcpy(data.bytes.data(), values.data(), data.bytes.size());
        model.options.inputs[name] = std::move(data);
    }
    return model;
}

std::vector<float> numbersOf(const TensorData &data)
{
    std::vector<float> values(data.bytes.size() / sizeof(float));
    std::memcpy(values.data(), data.bytes.data(), data.bytes.size());
    return values;
}

std::int32_t identifierOf(const Operator &op, const TensorTerms &terms, std::size_t dimension)
{
    return splittableFactor(op.annotation, terms.terms[dimension]).value();
}

/// The decision that makes, or reads, the product as `vector` says, its parts on `devices`, R outermost.
OperatorDecision decisionOf(const Operator &op, const Vector &vector, const std::vector<DeviceId> &devices)
{
    const auto [r, v, d0, d1] = vector;
    const TensorTerms &terms = op.annotation.outputs[0];
    OperatorDecision decision{.devices = devices, .stage = StageId{0}};
    auto &splits = decision.partition.splits;
    splits.push_back({.kind = SplitKind::Replicate, .parts = r});
    if (op.kind == OperatorKind::MatMul) {
        const auto &dimensions = op.annotation.dimensions;
        const auto k = std::find_if(dimensions.begin(), dimensions.end(),
            [](const Dimension &d) { return d.mark == DimensionMark::Reduce; });
        splits.push_back({.kind = SplitKind::Dimension,
            .dimension = static_cast<std::int32_t>(k - dimensions.begin()),
            .parts = v});
    } else {
        splits.push_back({.kind = SplitKind::Value, .parts = v});
    }
    splits.push_back({.kind = SplitKind::Dimension, .dimension = identifierOf(op, terms, 0), .parts = d0});
    splits.push_back({.kind = SplitKind::Dimension, .dimension = identifierOf(op, terms, 1), .parts = d1});
    return decision;
}

class MovesRun : public testing::Test
{
protected:
    void SetUp() override
    {
        m_model = negatedProduct();
        const auto completion = completePlan(m_model.graph, 4, ConstraintTable{});
        ASSERT_TRUE(completion);
        m_plan = completion->plan;
        m_cluster = clusterNamed("dgx-a100:4").value();
        const auto one = completePlan(m_model.graph, 1, ConstraintTable{});
        const auto reference = runOnCpu(lower(one->plan, m_cluster).value(), m_model.options);
        ASSERT_TRUE(reference) << describe(reference.error());
        m_expected = reference->outputs;
        ASSERT_EQ(m_expected.size(), 1U);
    }

    void expectRight(const Vector &from, const std::vector<DeviceId> &makers, const Vector &to,
        const std::vector<DeviceId> &readers)
    {
        const auto decide = [&](OperatorId op, const Vector &vector, const std::vector<DeviceId> &devices) {
            m_plan.decisions[static_cast<std::size_t>(op.index)] =
                decisionOf(m_model.graph->at(op), vector, devices);
        };
        decide(m_model.product, from, makers);
        decide(m_model.negation, to, readers);
        const auto lowered = lower(m_plan, m_cluster);
        ASSERT_TRUE(lowered) << describe(lowered.error());
        const auto report = verify(*lowered);
        ASSERT_TRUE(report) << describe(report.error());
        ASSERT_TRUE(report->ok()) << report->failure->reason;
        const auto outcome = runOnCpu(*lowered, m_model.options);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        // As numbers: the negation of a zero among the summands may lose its sign.
        EXPECT_EQ(numbersOf(outcome->outputs.begin()->second), numbersOf(m_expected.begin()->second));
    }

    NegatedProduct m_model{};
    Plan m_plan{};
    Cluster m_cluster{};
    NamedArrays m_expected{};
};

std::vector<DeviceId> inOrder()
{
    return {DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}};
}

TEST_F(MovesRun, BetweenAllLayoutsAndPlacementsGiveTheSameNumbers)
{
    int moves = 0;
    for (const Vector &from : vectorsOfFour())
        for (const Vector &to : vectorsOfFour()) {
            std::vector<DeviceId> readers = inOrder();
            do {
                SCOPED_TRACE(testing::Message()
                    << "(" << from[0] << " " << from[1] << " " << from[2] << " " << from[3] << ") to ("
                    << to[0] << " " << to[1] << " " << to[2] << " " << to[3] << ") on " << readers[0].index
                    << readers[1].index << readers[2].index << readers[3].index);
                expectRight(from, inOrder(), to, readers);
                if (HasFatalFailure())
                    return;
                ++moves;
            } while (std::next_permutation(readers.begin(), readers.end()));
        }
    EXPECT_EQ(moves, 100 * 24);
}

TEST_F(MovesRun, OfSumsThatAreReadAsSumsAreNone)
{
    for (const Vector &vector : vectorsOfFour()) {
        SCOPED_TRACE(testing::Message()
            << "(" << vector[0] << " " << vector[1] << " " << vector[2] << " " << vector[3] << ")");
        expectRight(vector, inOrder(), vector, inOrder());
        const auto lowered = lower(m_plan, m_cluster);
        ASSERT_TRUE(lowered);
        for (const DeviceProgram &device : lowered->devices)
            for (const Segment &segment : device.segments)
                for (const Instruction &instruction : segment.instructions) {
                    if (instruction.kind == InstructionKind::Kernel && instruction.op == m_model.negation)
                        break; // behind it, the output is put together for the host
                    EXPECT_TRUE(instruction.kind == InstructionKind::Kernel
                        || instruction.kind == InstructionKind::Load)
                        << nameOf(instruction.kind);
                }
    }
}

std::vector<DeviceId> devices(const std::vector<std::int32_t> &indices)
{
    std::vector<DeviceId> list;
    for (const std::int32_t index : indices)
        list.push_back(DeviceId{index});
    return list;
}

TEST_F(MovesRun, FromOneToManyAreSentOnceAndPassedOn)
{
    m_cluster = clusterNamed("dgx-a100:16").value();
    m_plan.deviceCount = 16;
    struct Case {
        Vector from;
        std::vector<DeviceId> makers;
        Vector to;
        std::vector<DeviceId> readers;
    };
    const Case cases[]{{{1, 1, 1, 1}, devices({0}), {4, 1, 1, 1}, devices({8, 9, 10, 11})},
        {{1, 1, 1, 1}, devices({0}), {4, 1, 1, 1}, devices({0, 1, 2, 3})},
        {{1, 1, 1, 1}, devices({5}), {3, 1, 1, 1}, devices({0, 6, 9})},
        {{1, 1, 2, 1}, devices({0, 1}), {8, 1, 1, 1}, devices({8, 9, 10, 11, 12, 13, 14, 15})},
        {{1, 2, 1, 1}, devices({0, 1}), {4, 1, 2, 1}, devices({8, 9, 10, 11, 12, 13, 14, 15})}};
    int broadcasts = 0;
    for (const Case &test : cases) {
        SCOPED_TRACE(testing::Message() << "case " << &test - cases);
        expectRight(test.from, test.makers, test.to, test.readers);
        const auto lowered = lower(m_plan, m_cluster);
        ASSERT_TRUE(lowered);
        for (const DeviceProgram &device : lowered->devices)
            for (const Segment &segment : device.segments)
                broadcasts +=
                    static_cast<int>(std::count_if(segment.instructions.begin(), segment.instructions.end(),
                        [](const Instruction &i) { return i.kind == InstructionKind::Broadcast; }));
    }
    EXPECT_GE(broadcasts, 4 + 4 + 4); // of the small product, which latency rules
}

TEST_F(MovesRun, BetweenOddPlacementsGiveTheSameNumbers)
{
    std::mt19937 random(9);
    const auto vectors = vectorsOfFour();
    for (int i = 0; i < 300; ++i) {
        std::vector<DeviceId> makers = inOrder();
        std::vector<DeviceId> readers = inOrder();
        std::shuffle(makers.begin(), makers.end(), random);
        std::shuffle(readers.begin(), readers.end(), random);
        expectRight(vectors[random() % vectors.size()], makers, vectors[random() % vectors.size()], readers);
        if (HasFatalFailure())
            return;
    }
}

} // namespace
} // namespace planloom
