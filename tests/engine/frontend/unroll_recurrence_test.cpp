#include "engine/frontend/passes/batch/unroll_recurrence.h"

#include "engine/frontend/training/training.h"
#include "tests/engine/frontend/recurrent_models.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

using testing_support::GraphRunner;
using testing_support::recurrentForms;
using testing_support::recurrentModel;
using testing_support::unrolledModel;

/// Gradients of weights by the weights' names, and the loss.
std::map<std::string, std::vector<double>> resultsOf(const GraphRunner &run)
{
    std::map<std::string, std::vector<double>> results;
    const Graph &graph = run.graph();
    results["loss"] = run.all(graph.loss);
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        const Tensor &tensor = graph.tensors[i];
        if (tensor.role == TensorRole::Gradient && graph.at(tensor.of).role == TensorRole::Weight)
            results[graph.at(tensor.of).name] = run.all({static_cast<std::int32_t>(i)});
    }
    return results;
}

TEST(UnrollRecurrence, ComputesWhatTheOperatorComputes)
{
    for (const auto &form : recurrentForms()) {
        SCOPED_TRACE(form.name);
        const Graph forward = recurrentModel(form);
        const Graph steps = unrolledModel(forward);
        EXPECT_TRUE(std::none_of(steps.operators.begin(), steps.operators.end(),
            [](const Operator &op) { return categoryOf(op.kind) == OperatorCategory::Recurrent; }));
        const auto whole = buildTrainingStep(forward);
        const auto unrolled = buildTrainingStep(steps);
        ASSERT_TRUE(whole && unrolled);
        GraphRunner expected(testing_support::inDouble(*whole), 3);
        GraphRunner found(testing_support::inDouble(*unrolled), 4);
        for (const char *name : {"x", "w", "r", "b", "h0", "c0", "p"}) {
            const auto &tensors = whole->tensors;
            if (std::none_of(tensors.begin(), tensors.end(), [&](const Tensor &t) { return t.name == name; }))
                continue;
            const auto values = expected.all(expected.find(name));
            for (std::size_t i = 0; i < values.size(); ++i)
                found.set(found.find(name), static_cast<std::int64_t>(i), values[i]);
        }
        ASSERT_TRUE(expected.run());
        ASSERT_TRUE(found.run());
        const auto results = resultsOf(found);
        for (const auto &[name, values] : resultsOf(expected)) {
            SCOPED_TRACE(name);
            ASSERT_TRUE(results.contains(name));
            ASSERT_EQ(results.at(name).size(), values.size());
            for (std::size_t i = 0; i < values.size(); ++i)
                ASSERT_NEAR(results.at(name)[i], values[i], 1e-9 * std::max(1.0, std::abs(values[i])));
        }
    }
}

TEST(UnrollRecurrence, GivesGatesADimensionThatFilesDoNotHave)
{
    const Graph graph = unrolledModel(recurrentModel({.direction = "bidirectional"}));
    const auto tensor = [&](const std::string &name) {
        return *std::find_if(graph.tensors.begin(), graph.tensors.end(),
            [&](const Tensor &each) { return each.name == name; });
    };
    EXPECT_EQ(tensor("r").type.shape, (Shape{8, 4, 4}));
    EXPECT_EQ(tensor("r").fileShape, (Shape{2, 16, 4}));
    EXPECT_EQ(tensor("w").type.shape, (Shape{8, 4, 3}));
    EXPECT_EQ(tensor("w").fileShape, (Shape{2, 16, 3}));
    EXPECT_EQ(tensor("b").type.shape, (Shape{16, 4}));
    EXPECT_EQ(tensor("b").fileShape, (Shape{2, 32}));
}

TEST(UnrollRecurrence, HasOperatorsForEachStepAndNoMore)
{
    // Of four steps all but the first multiply a state; each adds that to what W makes of the input, which
    // has its bias already, and takes four gates apart.
    const Graph graph = unrolledModel(recurrentModel({}, 4));
    const auto count = [&](OperatorKind kind) {
        return std::count_if(graph.operators.begin(), graph.operators.end(),
            [&](const Operator &op) { return op.kind == kind && op.name.starts_with("recurrence"); });
    };
    EXPECT_EQ(count(OperatorKind::Linear), 3);
    EXPECT_EQ(count(OperatorKind::Split), 1 + 1 + 4); // of the bias, of time, of gates
    EXPECT_EQ(count(OperatorKind::Add), 1 + 4 + 3); // of the bias, of states, of cells
    EXPECT_EQ(count(OperatorKind::Sigmoid), 4 + 4 + 3); // the first step has nothing to forget
    EXPECT_EQ(count(OperatorKind::Tanh), 4 + 4);
    EXPECT_EQ(count(OperatorKind::Mul), 4 + 4 + 3);
    EXPECT_EQ(count(OperatorKind::Concat), 1);
}

TEST(UnrollRecurrence, LeavesOtherNamesAndSaysWhatItCannotDo)
{
    Graph graph = recurrentModel({});
    EXPECT_EQ(*unrollRecurrences(graph, {}), 0);
    const auto none = unrollRecurrences(graph, {"lstm"});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().message, "no recurrence is called 'lstm'");
    EXPECT_EQ(none.error().advice, "those of this model are 'recurrence'");

    Graph unknown = recurrentModel({.activations = {"Sigmoid", "Elu", "Tanh"}});
    EXPECT_EQ(*unrollRecurrences(unknown, {"*"}), 0); // all that can be, with a note of the others
    EXPECT_EQ(unknown.notes.size(), 1U);
    EXPECT_FALSE(unknown.recurrences.at("recurrence").isUnrolled);
    const auto elu = unrollRecurrences(unknown, {"recurrence"});
    ASSERT_FALSE(elu);
    EXPECT_EQ(elu.error().code, ErrorCode::NotSupported);
    EXPECT_EQ(elu.error().message,
        "'recurrence' cannot be unrolled: activation 'Elu' has parameters, or is not known");

    Graph clipped = recurrentModel({});
    for (Operator &op : clipped.operators) {
        if (op.kind == OperatorKind::Lstm)
            op.attributes.set("clip", 3.0);
    }
    const auto clip = unrollRecurrences(clipped, {"recurrence"});
    ASSERT_FALSE(clip);
    EXPECT_EQ(clip.error().message, "'recurrence' cannot be unrolled: its gates are clipped");
}

} // namespace
} // namespace planloom
