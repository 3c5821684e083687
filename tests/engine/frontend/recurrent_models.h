#pragma once

#include "engine/frontend/passes/batch/unroll_recurrence.h"
#include "engine/frontend/passes/dead_code.h"
#include "engine/frontend/passes/fuse/fuse.h"
#include "engine/frontend/passes/scopes/scopes.h"
#include "engine/frontend/zoo/graph_builder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace planloom::testing_support {

/// A recurrence and what it is given.
struct RecurrentForm {
    const char *name = "";
    OperatorKind kind = OperatorKind::Lstm;
    const char *direction = "forward";
    std::int64_t layout = 0;
    bool bias = true;
    bool firstStates = false;
    bool peepholes = false;
    std::int64_t coupled = 0; ///< Lstm: the forget gate is 1 - the input gate.
    std::int64_t linear = 0; ///< Gru: the reset gate comes after the product.
    std::vector<std::string> activations{};
};

inline const std::vector<RecurrentForm> &recurrentForms()
{
    static const std::vector<RecurrentForm> forms{{.name = "Lstm"},
        {.name = "LstmBothWays", .direction = "bidirectional", .firstStates = true},
        {.name = "LstmBackwardsWithoutBias", .direction = "reverse", .bias = false},
        {.name = "LstmBatchFirst", .direction = "bidirectional", .layout = 1, .firstStates = true},
        {.name = "LstmPeepholes", .direction = "bidirectional", .firstStates = true, .peepholes = true},
        {.name = "LstmCoupled", .firstStates = true, .coupled = 1},
        {.name = "LstmOtherActivations", .activations = {"Sigmoid", "Softsign", "Relu"}},
        {.name = "Gru", .kind = OperatorKind::Gru},
        {.name = "GruBothWays", .kind = OperatorKind::Gru, .direction = "bidirectional", .firstStates = true},
        {.name = "GruLinear", .kind = OperatorKind::Gru, .direction = "bidirectional", .linear = 1},
        {.name = "GruLinearBatchFirst",
            .kind = OperatorKind::Gru,
            .layout = 1,
            .firstStates = true,
            .linear = 1},
        {.name = "GruWithoutBias", .kind = OperatorKind::Gru, .bias = false, .linear = 1},
        {.name = "Rnn", .kind = OperatorKind::Rnn},
        {.name = "RnnBothWays", .kind = OperatorKind::Rnn, .direction = "bidirectional", .firstStates = true},
        {.name = "RnnWithoutBias", .kind = OperatorKind::Rnn, .bias = false, .activations = {"Relu"}}};
    return forms;
}

/// A forward graph: x through "recurrence", whose loss is the sum of squares of all that it makes.
inline Graph recurrentModel(const RecurrentForm &form, std::int64_t steps = 4, std::int64_t batch = 4)
{
    constexpr std::int64_t kHidden = 4;
    constexpr std::int64_t kWidth = 3;
    const std::int64_t directions = form.direction == std::string("bidirectional") ? 2 : 1;
    const std::int64_t gates = form.kind == OperatorKind::Lstm ? 4 : form.kind == OperatorKind::Gru ? 3 : 1;
    GraphBuilder b("recurrent");
    const auto state = [&](const char *name) {
        return form.firstStates ? b.weight(name,
                   form.layout == 1 ? Shape{batch, directions, kHidden} : Shape{directions, batch, kHidden})
                                : TensorId{};
    };
    const TensorId x = b.input("x",
        {DataType::Float32, form.layout == 1 ? Shape{batch, steps, kWidth} : Shape{steps, batch, kWidth}});
    const TensorId projected =
        b.one(OperatorKind::Linear, {x, b.weight("w", {directions, gates * kHidden, kWidth})},
            attributesOf({{"transposed", 1}}), "projection");
    const TensorId r = b.weight("r", {directions, gates * kHidden, kHidden});
    const TensorId bias = form.bias ? b.weight("b", {directions, 2 * gates * kHidden}) : TensorId{};
    const TensorId hidden = state("h0");
    const TensorId cell = form.kind == OperatorKind::Lstm ? state("c0") : TensorId{};
    std::vector<TensorId> inputs{projected, {}, r, bias, {}, hidden};
    if (form.kind == OperatorKind::Lstm)
        inputs.push_back(cell);
    if (form.peepholes)
        inputs.push_back(b.weight("p", {directions, 3 * kHidden}));
    Attributes attributes = attributesOf({{"direction", std::string(form.direction)}, {"layout", form.layout},
        {"hidden_size", kHidden}, {"input_forget", form.coupled}, {"linear_before_reset", form.linear}});
    if (!form.activations.empty())
        attributes.set("activations", form.activations);
    const auto made = b.add(form.kind, inputs, attributes, "recurrence");
    TensorId loss;
    for (std::size_t slot = 0; slot < (form.kind == OperatorKind::Lstm ? 3U : 2U); ++slot) {
        const std::string number = std::to_string(slot);
        const TensorId square = b.one(OperatorKind::Mul, {made[slot], made[slot]}, {}, "square_" + number);
        const TensorId sum =
            b.one(OperatorKind::ReduceSum, {square}, attributesOf({{"keepdims", 0}}), "sum_" + number);
        loss = loss ? b.one(OperatorKind::Add, {loss, sum}, {}, "loss_" + number) : sum;
    }
    auto graph = b.finish({loss}, loss);
    EXPECT_TRUE(graph) << form.name << ": " << describe(graph.error());
    return graph ? *std::move(graph) : Graph{};
}

/// The same, step by step.
inline Graph unrolledModel(Graph graph)
{
    const auto unrolled = unrollRecurrences(graph, {"*"});
    EXPECT_TRUE(unrolled) << describe(unrolled.error());
    removeDeadCode(graph);
    findCopies(graph);
    annotateOperators(graph);
    const auto valid = validate(graph);
    EXPECT_TRUE(valid) << describe(valid.error());
    return graph;
}

} // namespace planloom::testing_support
