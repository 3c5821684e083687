#include "engine/check/examples.h"
#include "engine/graph/operator_files/operator_definition.h"
#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

TensorId addTensor(Graph &graph, std::string name, TensorType type, TensorRole role, TensorId of = {})
{
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.type = std::move(type);
    tensor.role = role;
    tensor.of = of;
    graph.tensors.push_back(std::move(tensor));
    return TensorId{static_cast<std::int32_t>(graph.tensors.size()) - 1};
}

Operator backwardOf(Graph &graph, const Operator &forward, const GradientRule &rule)
{
    Operator backward;
    backward.name = forward.name + "'";
    backward.kind = forward.kind;
    backward.attributes = forward.attributes;
    backward.direction = Direction::Backward;
    backward.mirror = OperatorId{0};
    for (const TensorId output : forward.outputs) {
        const Tensor of = graph.at(output);
        // What an Attention makes besides its result is for its own backward pass; likewise what a definition
        // saves.
        const auto &definition = forward.attributes.definition();
        const auto slot = static_cast<std::size_t>(
            std::find(forward.outputs.begin(), forward.outputs.end(), output) - forward.outputs.begin());
        const bool own = definition ? slot >= definition->outputs.size()
                                    : forward.kind == OperatorKind::Attention && slot > 0;
        backward.inputs.push_back(isFloating(of.type.dataType) && !own
                ? addTensor(graph, "d " + of.name, of.type, TensorRole::Gradient, output)
                : TensorId{});
    }
    for (std::size_t slot = 0; slot < forward.inputs.size(); ++slot)
        backward.inputs.push_back(rule.needsInput[slot] ? forward.inputs[slot] : TensorId{});
    for (std::size_t slot = 0; slot < forward.outputs.size(); ++slot)
        backward.inputs.push_back(rule.needsOutput[slot] ? forward.outputs[slot] : TensorId{});
    for (std::size_t slot = 0; slot < forward.inputs.size(); ++slot) {
        if (!rule.gradientOf[slot]) {
            backward.outputs.push_back({});
            continue;
        }
        const Tensor of = graph.at(forward.inputs[slot]);
        backward.outputs.push_back(
            addTensor(graph, "d " + of.name, of.type, TensorRole::Gradient, forward.inputs[slot]));
    }
    backward.annotation = backwardAnnotation(forward.annotation);
    return backward;
}

} // namespace

Result<Graph> graphOf(const OperatorExample &example)
{
    std::vector<TensorType> inputs;
    std::vector<bool> present;
    for (const ExampleInput &input : example.inputs) {
        inputs.push_back(input.type);
        present.push_back(input.present);
    }
    TRY(const auto outputs, inferTypes(example.kind, example.attributes, inputs, present, example.outputs));
    Graph graph;
    Operator op;
    op.name = "example";
    op.kind = example.kind;
    op.direction = example.optimizer ? Direction::Optimizer : Direction::Forward;
    op.attributes = example.attributes;
    const auto &definition = example.attributes.definition();
    for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
        op.inputs.push_back(present[slot]
                ? addTensor(graph, definition ? definition->inputs[slot].name : "x" + std::to_string(slot),
                    inputs[slot], TensorRole::Input)
                : TensorId{});
    }
    for (std::size_t slot = 0; slot < outputs.size(); ++slot)
        op.outputs.push_back(
            addTensor(graph, definition ? definition->result(slot).name : "y" + std::to_string(slot),
                outputs[slot], TensorRole::Activation));
    AnnotationOutcome outcome = annotate(example.kind, example.attributes, inputs, present, outputs);
    op.annotation = std::move(outcome.annotation);
    op.annotationProblem = std::move(outcome.problem);
    graph.operators.push_back(std::move(op));
    if (!example.optimizer) {
        const GradientRule rule = gradientRule(graph, graph.operators[0]);
        if (rule.differentiable) {
            Operator backward = backwardOf(graph, graph.operators[0], rule);
            graph.operators.push_back(std::move(backward));
        }
    }
    return graph;
}

} // namespace planloom
