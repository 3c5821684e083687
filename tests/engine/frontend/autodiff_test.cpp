#include "engine/frontend/training/autodiff.h"

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/graph_builder.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <cmath>

namespace planloom {
namespace {

using testing_support::GraphRunner;
using testing_support::inDouble;

using Integers = std::vector<std::int64_t>;

/// Sum of all elements.
TensorId total(GraphBuilder &b, TensorId x)
{
    using enum OperatorKind;
    Integers axes;
    for (std::size_t i = 0; i < b.shape(x).size(); ++i)
        axes.push_back(static_cast<std::int64_t>(i));
    return b.one(ReduceSum, {x}, attributesOf({{"axes", axes}, {"keepdims", 0}}));
}

Graph finished(GraphBuilder &b, TensorId loss, std::vector<TensorId> outputs = {})
{
    auto graph = b.finish(std::move(outputs), loss);
    EXPECT_TRUE(graph) << describe(graph.error());
    return graph ? *graph : Graph{};
}

Graph trained(const Graph &forward, const TrainingOptions &options = {})
{
    auto graph = buildTrainingStep(forward, options);
    EXPECT_TRUE(graph) << describe(graph.error());
    if (!graph)
        return {};
    const auto valid = validate(*graph);
    EXPECT_TRUE(valid) << describe(valid.error());
    return *graph;
}

/// "name(inputs) -> outputs" of each operator, absent tensors as "-".
std::vector<std::string> listing(const Graph &graph, Direction direction)
{
    std::vector<std::string> lines;
    const auto names = [&graph](const std::vector<TensorId> &ids) {
        std::string text;
        for (const TensorId id : ids)
            text += (text.empty() ? "" : " ") + (id ? graph.at(id).name : "-");
        return text;
    };
    for (const Operator &op : graph.operators) {
        if (op.direction == direction)
            lines.push_back(op.name + "(" + names(op.inputs) + ") -> " + names(op.outputs));
    }
    return lines;
}

using Lines = std::vector<std::string>;

TEST(Autodiff, MirrorsOperatorsInReverseAndWantsOnlyGradientsOnTheWayFromWeights)
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {2, 3}});
    const TensorId before = b.one(Tanh, {x}, {}, "before"); // no weight above: no backward operator
    const TensorId y = b.one(MatMul, {before, b.weight("w", {3, 4})}, {}, "product");
    const TensorId z = b.one(Tanh, {y}, {}, "after");
    b.one(Exp, {y}, {}, "aside"); // not on the way to the loss
    const Graph graph = trained(finished(b, total(b, z)));
    EXPECT_EQ(listing(graph, Direction::Backward),
        (Lines{"ReduceSum'(ReduceSum.out.grad - -) -> after.out.grad",
            "after'(after.out.grad - after.out) -> product.out.grad",
            "product'(product.out.grad before.out - -) -> - w.grad"}));
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Backward)
            continue;
        EXPECT_EQ(graph.at(op.mirror).mirror.index, static_cast<std::int32_t>(i));
        EXPECT_EQ(graph.at(op.mirror).kind, op.kind);
    }
    const auto seed = std::find_if(graph.tensors.begin(), graph.tensors.end(),
        [](const Tensor &tensor) { return tensor.name == "ReduceSum.out.grad"; });
    ASSERT_NE(seed, graph.tensors.end());
    EXPECT_EQ(seed->role, TensorRole::Buffer);
    ASSERT_TRUE(seed->data);
    float one = 0;
    std::memcpy(&one, seed->data->bytes.data(), sizeof one);
    EXPECT_EQ(one, 1.0F);
}

TEST(Autodiff, ConsumersOfOneTensorAreSummandsOfOneGradient)
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {2, 3}});
    const TensorId w = b.weight("w", {3, 3}); // tied: used twice
    const TensorId y = b.one(MatMul, {b.one(MatMul, {x, w}, {}, "first"), w}, {}, "second");
    const Graph graph = trained(finished(b, total(b, y)));
    const Uses uses = usesOf(graph);
    int gradients = 0;
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        if (graph.tensors[i].name != "w.grad")
            continue;
        ++gradients;
        EXPECT_EQ(graph.tensors[i].role, TensorRole::Gradient);
        EXPECT_EQ(graph.tensors[i].of, w);
        EXPECT_EQ(uses.producers[i].size(), 2U);
    }
    EXPECT_EQ(gradients, 1);
    for (const Operator &op : graph.operators)
        EXPECT_NE(op.kind, Add);
}

TEST(Autodiff, GivesRepeatedSlotsTensorsOfTheirOwn)
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {2, 3}});
    const TensorId y = b.one(Mul, {x, b.weight("w", {3})}, {}, "scaled");
    const TensorId square = b.one(Mul, {y, y}, {}, "square");
    const TensorId triple = b.one(Concat, {square, square, square}, attributesOf({{"axis", 0}}), "triple");
    const TensorId unaffected = b.one(Mul, {x, x}, {}, "unaffected");
    const TensorId all = b.one(Add, {total(b, triple), total(b, unaffected)}, {}, "all");
    const Graph graph = trained(finished(b, all));
    Lines copies;
    for (const Operator &op : graph.operators) {
        if (op.kind == Identity && op.direction == Direction::Forward)
            copies.push_back(op.name);
        std::vector<TensorId> wanted;
        for (const TensorId id : op.outputs) {
            if (id)
                wanted.push_back(id);
        }
        std::sort(wanted.begin(), wanted.end());
        EXPECT_EQ(std::adjacent_find(wanted.begin(), wanted.end()), wanted.end()) << op.name;
    }
    EXPECT_EQ(copies, (Lines{"square.copy", "triple.copy", "triple.copy2"}));
}

TEST(Autodiff, RefusesWhatHasNoDerivativeAndNamesIt)
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {2, 3}});
    const TensorId y = b.one(Mul, {x, b.weight("w", {3})}, {}, "scaled");
    const TensorId z = b.one(
        Unknown, {y}, attributesOf({{"onnx_type", "Mystery"}}), "strange", {{DataType::Float32, {2, 3}}});
    const Graph forward = finished(b, total(b, z));
    const auto graph = buildTrainingStep(forward);
    ASSERT_FALSE(graph);
    EXPECT_EQ(graph.error().code, ErrorCode::NotSupported);
    EXPECT_EQ(graph.error().where, "operator:strange");
    EXPECT_NE(graph.error().message.find("Mystery"), std::string::npos);
}

TEST(Autodiff, UnknownOperatorsBesideTheWayAreNoObstacle)
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {2, 3}});
    const TensorId z = b.one(
        Unknown, {x}, attributesOf({{"onnx_type", "Mystery"}}), "strange", {{DataType::Float32, {2, 3}}});
    const TensorId y = b.one(Mul, {z, b.weight("w", {3})}, {}, "scaled");
    b.one(Unknown, {y}, {}, "aside", {{DataType::Float32, {2, 3}}});
    EXPECT_EQ(listing(trained(finished(b, total(b, y))), Direction::Backward).size(), 2U);
}

TEST(Autodiff, NothingFlowsThroughSteps)
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {2, 3}});
    const TensorId y = b.one(Mul, {x, b.weight("w", {3})}, {}, "scaled");
    const TensorId z = b.one(Mul, {y, b.one(Sign, {y}, {}, "sign")}, {}, "absolute");
    EXPECT_EQ(listing(trained(finished(b, total(b, z))), Direction::Backward),
        (Lines{"ReduceSum'(ReduceSum.out.grad - -) -> absolute.out.grad",
            "absolute'(absolute.out.grad - sign.out -) -> scaled.out.grad -",
            "scaled'(scaled.out.grad x - -) -> - w.grad"}));
}

TEST(Training, RefusesModelsWithoutALossOrWithoutWeightsInIt)
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {3}});
    const TensorId y = b.one(Tanh, {x});
    const Graph inference = finished(b, {}, {y});
    const auto none = buildTrainingStep(inference);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::NotSupported);
    EXPECT_NE(none.error().advice.find("inference"), std::string::npos);

    GraphBuilder c;
    const Graph weightless = finished(c, total(c, c.input("x", {DataType::Float32, {3}})));
    const auto fixed = buildTrainingStep(weightless);
    ASSERT_FALSE(fixed);
    EXPECT_EQ(fixed.error().code, ErrorCode::InvalidInput);
}

Graph oneWeight()
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {3}});
    b.weight("unused", {7});
    return finished(b, total(b, b.one(Mul, {x, b.weight("w", {3})}, {}, "scaled")));
}

TEST(Training, AddsAnOptimizerPerWeightWithAGradient)
{
    using enum OperatorKind;
    const Graph plain = trained(oneWeight(), {.learningRate = 0.5});
    EXPECT_EQ(listing(plain, Direction::Optimizer), (Lines{"w.step(w w.grad) -> w.new"}));
    EXPECT_EQ(plain.operators.back().attributes.real("learning_rate"), 0.5);
    ASSERT_EQ(plain.notes.size(), 1U); // the unused weight
    EXPECT_EQ(listing(trained(oneWeight(), {.momentum = 0.9}), Direction::Optimizer),
        (Lines{"w.step(w w.grad w.momentum) -> w.new w.momentum.new"}));
    EXPECT_EQ(listing(trained(oneWeight(), {.clipNorm = 0.5}), Direction::Optimizer),
        (Lines{"w.square(w.grad) -> clip.square", "clip(clip.square) -> clip.factor",
            "w.step(w w.grad - clip.factor) -> w.new"}));
    const Graph adam = trained(oneWeight(), {.optimizer = AdamWStep});
    EXPECT_EQ(
        listing(adam, Direction::Optimizer), (Lines{"w.step(w w.grad w.m w.v) -> w.new w.m.new w.v.new"}));
    for (const Tensor &tensor : adam.tensors) {
        if (tensor.name == "w.new") {
            EXPECT_EQ(tensor.role, TensorRole::Weight);
            EXPECT_EQ(adam.at(tensor.of).name, "w");
        } else if (tensor.name == "w.m" || tensor.name == "w.v.new") {
            EXPECT_EQ(tensor.role, TensorRole::OptimizerState);
            EXPECT_EQ(adam.at(tensor.of).name, "w");
        }
    }
}

TEST(Training, NamesStayUniqueWhereTheModelHasThemAlready)
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {3}});
    TensorId y = x;
    for (const char *name : {"w", "w.m", "w.grad", "w.new", "w.m.new", "w.step"})
        y = b.one(Mul, {y, b.weight(name, {3})}, {}, name);
    y = b.one(Mul, {y, y}, {}, "w.step'");
    const Graph graph = trained(finished(b, total(b, y)), {.optimizer = AdamWStep}); // validates it
    EXPECT_EQ(listing(graph, Direction::Optimizer).size(), 6U);
}

TEST(Training, ChecksItsOptions)
{
    using enum OperatorKind;
    for (const TrainingOptions &options : {TrainingOptions{.learningRate = -1},
             TrainingOptions{.learningRate = NAN}, TrainingOptions{.momentum = 1},
             TrainingOptions{.beta1 = -0.1}, TrainingOptions{.beta2 = 1.5}, TrainingOptions{.epsilon = 0},
             TrainingOptions{.weightDecay = -1}, TrainingOptions{.optimizer = Add}}) {
        const auto graph = buildTrainingStep(oneWeight(), options);
        ASSERT_FALSE(graph);
        EXPECT_EQ(graph.error().code, ErrorCode::InvalidInput);
    }
}

/// Compares every gradient of a weight with central differences of the loss.
void checkGradients(const Graph &forward, std::uint32_t seed)
{
    const Graph graph = inDouble(trained(forward));
    GraphRunner runner(graph, seed);
    ASSERT_TRUE(runner.run());
    constexpr double kStep = 1e-5;
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        const Tensor &gradient = graph.tensors[i];
        if (gradient.role != TensorRole::Gradient || graph.at(gradient.of).role != TensorRole::Weight)
            continue;
        for (std::int64_t k = 0; k < elementCount(gradient.type.shape); ++k) {
            GraphRunner moved = runner;
            const double value = runner.get(gradient.of, k);
            double losses[2];
            for (const int side : {0, 1}) {
                moved.set(gradient.of, k, value + (side == 0 ? -kStep : kStep));
                ASSERT_TRUE(moved.run());
                losses[side] = moved.get(graph.loss);
            }
            const double difference = (losses[1] - losses[0]) / (2 * kStep);
            EXPECT_NEAR(runner.get(TensorId{static_cast<std::int32_t>(i)}, k), difference,
                1e-6 * std::max(1.0, std::abs(difference)))
                << gradient.name << " element " << k;
        }
    }
}

/// A random graph over [3 4] values in which tensors meet again: residuals, repeated slots, tied weights.
Graph randomModel(std::uint32_t seed)
{
    using enum OperatorKind;
    std::mt19937 random(seed);
    const auto pick = [&random](std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    GraphBuilder b;
    const Shape shape{3, 4};
    std::vector<TensorId> values{b.input("x", {DataType::Float32, shape})};
    std::vector<TensorId> squares{b.weight("w0", {4, 4}), b.weight("w1", {4, 4})};
    std::vector<TensorId> rows{b.weight("r0", {4}), b.weight("r1", {4})};
    const auto value = [&] { return values[pick(values.size())]; };
    const auto square = [&] { return squares[pick(squares.size())]; };
    const auto row = [&] { return rows[pick(rows.size())]; };
    values.push_back(b.one(MatMul, {values[0], squares[0]}));
    const std::size_t operators = 3 + pick(6);
    for (std::size_t i = 0; i < operators; ++i) {
        TensorId y;
        switch (pick(12)) {
        case 0:
            y = b.one(Tanh, {value()});
            break;
        case 1:
            y = b.one(Sigmoid, {value()});
            break;
        case 2:
            y = b.one(Add, {value(), value()});
            break;
        case 3:
            y = b.one(Mul, {value(), value()});
            break;
        case 4:
            y = b.one(Sub, {value(), row()});
            break;
        case 5:
            y = b.one(MatMul, {value(), square()});
            break;
        case 6:
            y = b.one(
                Linear, {value(), square(), row()}, attributesOf({{"transposed", std::int64_t(pick(2))}}));
            break;
        case 7:
            y = b.one(Softmax, {value()}, attributesOf({{"axis", std::int64_t(pick(2))}}));
            break;
        case 8:
            y = b.one(LayerNorm, {value(), row(), row()}, attributesOf({{"axis", 1}, {"epsilon", 1e-2}}));
            break;
        case 9: {
            const TensorId turned =
                b.one(Transpose, {value()}, attributesOf({{"permutation", Integers{1, 0}}}));
            y = b.reshape(turned, shape);
            break;
        }
        case 10: {
            const TensorId both = b.one(Concat, {value(), value()}, attributesOf({{"axis", 1}}));
            y = b.add(
                Split, {both}, attributesOf({{"axis", 1}, {"sizes", Integers{3, 4, 1}}}))[1]; // others unused
            break;
        }
        default: {
            const TensorId mean = b.one(
                ReduceMean, {value()}, attributesOf({{"axes", Integers{0}}, {"keepdims", 1}, {"count", 3}}));
            y = b.one(Mul, {value(), mean});
        }
        }
        values.push_back(y);
    }
    const TensorId w = b.one(Mul, {values.back(), rows[1]});
    return finished(b, total(b, b.one(Add, {w, value()})));
}

TEST(Autodiff, GradientsOfRandomModelsAreTheirDifferences)
{
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(seed);
        checkGradients(randomModel(seed), seed);
    }
}

TEST(Autodiff, GradientsOfEmbeddingAndCrossEntropyAreTheirDifferences)
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId tokens = b.input("tokens", {DataType::Int64, {2, 4}});
    const TensorId labels = b.input("labels", {DataType::Int64, {8}});
    const TensorId table = b.weight("table", {3, 5}); // tied: embeds, and makes the logits
    const TensorId x = b.one(Embedding, {table, tokens});
    const TensorId y = b.one(Gelu, {x}, attributesOf({{"approximate", "tanh"}}));
    const TensorId logits = b.reshape(b.one(Linear, {y, table}, attributesOf({{"transposed", 1}})), {8, 3});
    const TensorId sum =
        b.one(CrossEntropy, {logits, labels}, attributesOf({{"reduction", "sum"}, {"ignore_index", 1}}));
    const TensorId count = b.one(CountValid, {labels}, attributesOf({{"ignore_index", 1}}));
    checkGradients(finished(b, b.one(Div, {sum, count})), 3);
}

} // namespace
} // namespace planloom
