#include "engine/graph/operators/gradient_flow.h"

#include "engine/graph/operators/catalogue.h"

#include <algorithm>

namespace planloom {

std::vector<bool> gradientsOfWeights(const Graph &graph)
{
    std::vector<bool> fed(graph.tensors.size(), false); // made of what is fed to the model
    for (std::size_t t = 0; t < graph.tensors.size(); ++t)
        fed[t] = graph.tensors[t].role == TensorRole::Input;
    for (const Operator &op : graph.operators) {
        if (op.direction != Direction::Forward)
            continue;
        const bool any = std::any_of(op.inputs.begin(), op.inputs.end(),
            [&](TensorId input) { return input && fed[static_cast<std::size_t>(input.index)]; });
        for (const TensorId output : op.outputs)
            if (output && any)
                fed[static_cast<std::size_t>(output.index)] = true;
    }
    std::vector<bool> ofWeights(graph.tensors.size(), false);
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
        const Tensor &tensor = graph.tensors[t];
        ofWeights[t] = tensor.role == TensorRole::Gradient && tensor.of
            && !fed[static_cast<std::size_t>(tensor.of.index)];
    }
    return ofWeights;
}

Operator partOfBackward(const Graph &graph, const Operator &backward, const std::vector<bool> &wanted)
{
    const Operator &forward = graph.at(backward.mirror);
    std::vector<bool> made(backward.outputs.size());
    for (std::size_t slot = 0; slot < made.size(); ++slot)
        made[slot] = backward.outputs[slot] && wanted[slot];
    const GradientRule rule = gradientRule(graph, forward, made);
    Operator part = backward;
    for (std::size_t slot = 0; slot < made.size(); ++slot)
        if (!made[slot])
            part.outputs[slot] = {};
    // Slots of a backward operator: gradients of outputs, inputs, outputs.
    const auto clearUnless = [&part](const std::vector<bool> &needed, std::size_t first) {
        for (std::size_t slot = 0; slot < needed.size(); ++slot)
            if (!needed[slot])
                part.inputs[first + slot] = {};
    };
    clearUnless(rule.needsInput, forward.outputs.size());
    clearUnless(rule.needsOutput, forward.outputs.size() + forward.inputs.size());
    return part;
}

} // namespace planloom
