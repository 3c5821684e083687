// A plan carries its graph. What the graph says of itself is held against its operators.

#include "engine/verify/graph_rules.h"

#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

#include <functional>

namespace planloom {
namespace {

TEST(GraphRules, HoldForEveryModelOfTheZoo)
{
    for (const char *spec : {"zoo:mlp?layers=2&hidden=8&batch=8",
             "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24&dropout=0.1",
             "zoo:llama?layers=1&hidden=16&heads=4&seq=4&batch=2&vocab=24",
             "zoo:t5?layers=1&hidden=8&heads=2&src=4&tgt=4&batch=2&vocab=8",
             "zoo:moe?layers=2&hidden=8&heads=2&seq=4&batch=4&vocab=8&experts=2", "zoo:swin",
             "zoo:evoformer?layers=1", "zoo:resnet?depth=18", "zoo:vgg?depth=11"}) {
        SCOPED_TRACE(spec);
        for (const OperatorKind optimizer : {OperatorKind::SgdStep, OperatorKind::AdamWStep})
            EXPECT_EQ(checkGraph(*trainingStep(spec, optimizer)), "");
        const auto forward = buildZooModel(spec);
        ASSERT_TRUE(forward) << describe(forward.error());
        EXPECT_EQ(checkGraph(*forward), "");
    }
}

/// The graph of a small model after `edit` of its first operator for which that applies.
std::string reasonAfter(const std::function<bool(Graph &, Operator &)> &edit)
{
    Graph graph = *trainingStep("zoo:gpt?layers=1&hidden=8&heads=2&seq=4&batch=4&vocab=8");
    for (Operator &op : graph.operators)
        if (edit(graph, op))
            return checkGraph(graph);
    return "the edit does not apply";
}

TEST(GraphRules, AnAnnotationThatAllowsWhatItsKindDoesNotIsNamed)
{
    const auto expectOtherDimensions = [](const std::function<bool(Graph &, Operator &)> &edit) {
        EXPECT_NE(reasonAfter(edit).find("other dimensions"), std::string::npos) << reasonAfter(edit);
    };
    // An attention cut along its keys; a product whose parts do not add up; a bias that every part would add.
    expectOtherDimensions([](Graph &, Operator &op) {
        if (op.kind != OperatorKind::Attention || op.direction != Direction::Forward)
            return false;
        for (Dimension &dimension : op.annotation.dimensions)
            dimension.mark = DimensionMark::Spatial;
        return true;
    });
    expectOtherDimensions([](Graph &, Operator &op) {
        for (Dimension &dimension : op.annotation.dimensions)
            if (dimension.mark == DimensionMark::Reduce && op.direction == Direction::Forward) {
                dimension.mark = DimensionMark::Spatial;
                return true;
            }
        return false;
    });
    expectOtherDimensions([](Graph &, Operator &op) {
        if (op.kind != OperatorKind::Gelu)
            return false;
        op.annotation.linearInputs = {0};
        return true;
    });
    expectOtherDimensions([](Graph &, Operator &op) {
        if (op.direction != Direction::Backward)
            return false;
        for (Dimension &dimension : op.annotation.dimensions)
            if (dimension.mark == DimensionMark::Reduce) {
                dimension.mark = DimensionMark::Spatial;
                return true;
            }
        return false;
    });
}

TEST(GraphRules, NoGradientBelongsToItself)
{
    const std::string reason = reasonAfter([](Graph &graph, Operator &op) {
        if (op.direction != Direction::Backward || !op.outputs[0])
            return false;
        graph.tensors[static_cast<std::size_t>(op.outputs[0].index)].of = op.outputs[0];
        return true;
    });
    EXPECT_NE(reason.find("belongs to itself"), std::string::npos) << reason;
}

TEST(GraphRules, TypesAndOptimizersAreHeldAgainstTheirKinds)
{
    EXPECT_NE(reasonAfter([](Graph &graph, Operator &op) {
        if (op.kind != OperatorKind::Attention)
            return false;
        graph.at(op.outputs[0]).type.dataType = DataType::Float64;
        for (Tensor &tensor : graph.tensors) // and its gradient's with it
            if (tensor.role == TensorRole::Gradient && tensor.of == op.outputs[0])
                tensor.type.dataType = DataType::Float64;
        return true;
    }).find("does not make"),
        std::string::npos);
    EXPECT_NE(reasonAfter([](Graph &graph, Operator &op) { // the gradient of another weight of that shape
        if (op.direction != Direction::Optimizer)
            return false;
        for (const Operator &other : graph.operators)
            if (other.direction == Direction::Optimizer && &other != &op
                && graph.at(other.inputs[1]).type == graph.at(op.inputs[1]).type) {
                op.inputs[1] = other.inputs[1];
                return true;
            }
        return false;
    })
                  .find("does not read the gradient of its weight"),
        std::string::npos);
}

} // namespace
} // namespace planloom
