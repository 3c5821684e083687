#include "engine/verify/graph_rules.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/weight_update.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace planloom {

namespace {

std::string checkTypes(const Graph &graph, const Operator &op, const std::vector<TensorType> &inputs,
    const std::vector<bool> &present, const std::vector<TensorType> &outputs)
{
    const auto inferred = inferTypes(op.kind, op.attributes, inputs, present, outputs);
    if (!inferred)
        return op.name + ": " + inferred.error().message;
    if (inferred->size() != outputs.size())
        return op.name + " makes " + std::to_string(inferred->size()) + " tensors, not "
            + std::to_string(outputs.size());
    for (std::size_t slot = 0; slot < outputs.size(); ++slot)
        if (op.outputs[slot] && (*inferred)[slot] != outputs[slot])
            return op.name + " does not make '" + graph.at(op.outputs[slot]).name + "' of type "
                + nameOf(outputs[slot].dataType) + " " + toString(outputs[slot].shape);
    return {};
}

/// Slots of an optimizer operator: weight, its gradient, its states; the new weight, the new states.
std::string checkOptimizer(const Graph &graph, const Operator &op, std::vector<bool> &updated)
{
    const auto wrong = [&op](const char *what) { return op.name + " " + what; };
    if (!updatesWeight(op))
        return wrong("is no optimizer, but stands behind the backward pass");
    if (op.inputs.size() < 2 || op.outputs.empty())
        return wrong("does not make one new value for its weight and for each of its states");
    const auto factor = factorSlot(op);
    if (factor && (*factor + 1 != op.inputs.size() || graph.at(op.inputs[*factor]).type != TensorType{}))
        return wrong("scales its gradient by what is no number");
    const std::size_t states = op.outputs.size() - 1;
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot)
        if (slot != factor && op.inputs[slot].valid() != (slot < 2 + states))
            return wrong(op.inputs[slot]
                    ? "does not make one new value for its weight and for each of its states"
                    : "lacks a tensor");
    if (op.inputs.size() < 2 + states
        || std::any_of(op.outputs.begin(), op.outputs.end(), [](TensorId id) { return !id; }))
        return wrong("lacks a tensor");
    const TensorId weight = op.inputs[0];
    const Tensor &gradient = graph.at(op.inputs[1]);
    if (graph.at(weight).role != TensorRole::Weight || graph.at(op.outputs[0]).role != TensorRole::Weight
        || graph.at(op.outputs[0]).of != weight)
        return wrong("does not make a new weight of a weight");
    if (gradient.role != TensorRole::Gradient || gradient.of != weight)
        return wrong("does not read the gradient of its weight");
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        const TensorId old = op.inputs[slot == 0 ? 0 : slot + 1];
        if (slot > 0
            && (graph.at(old).role != TensorRole::OptimizerState || graph.at(old).of != weight
                || graph.at(op.outputs[slot]).role != TensorRole::OptimizerState
                || graph.at(op.outputs[slot]).of != weight))
            return wrong("does not make new states of its weight's states");
        if (graph.at(old).type != graph.at(op.outputs[slot]).type)
            return wrong("changes the type of what it updates");
        if (updated[static_cast<std::size_t>(old.index)])
            return wrong("updates what another operator updates");
        updated[static_cast<std::size_t>(old.index)] = true;
    }
    return {};
}

/// What clips gradients: the squares of all gradients that updates read go into the one sum that their factor
/// is made of.
std::string checkClipping(const Graph &graph)
{
    std::map<TensorId, std::size_t> squared; // gradients: how often
    std::map<TensorId, TensorId> sumOf; // by factor
    std::set<TensorId> sums;
    for (const Operator &op : graph.operators) {
        if (op.kind == OperatorKind::SquareSum) {
            ++squared[op.inputs[0]];
            sums.insert(op.outputs[0]);
        } else if (op.kind == OperatorKind::ClipFactor)
            sumOf[op.outputs[0]] = op.inputs[0];
    }
    if (sums.size() > 1)
        return "the squares of gradients are added up in more than one sum";
    std::size_t scaled = 0;
    for (const Operator &op : graph.operators) {
        const auto slot = factorSlot(op);
        scaled += slot ? 1 : 0;
        if (!slot) {
            if (updatesWeight(op) && !sums.empty())
                return op.name + " does not scale its gradient, as others do";
            continue;
        }
        const auto factor = sumOf.find(op.inputs[*slot]);
        if (factor == sumOf.end() || !sums.contains(factor->second))
            return op.name + " scales its gradient by what is not made of the gradients' norm";
        if (squared[op.inputs[1]] != 1)
            return "the norm of all gradients counts that of " + op.name + " "
                + std::to_string(squared[op.inputs[1]]) + " times";
    }
    if (scaled != squared.size())
        return "the norm of all gradients counts one that no weight is updated by";
    return {};
}

/// Gradients are of the type of what they belong to; states of a weight, too, or wider than Float16.
bool isOfTypeOf(const Tensor &tensor, TensorType type)
{
    if (tensor.role == TensorRole::OptimizerState && type.dataType == DataType::Float16
        && tensor.type.dataType == DataType::Float32)
        type.dataType = DataType::Float32;
    return tensor.type == type;
}

} // namespace

std::string checkGraph(const Graph &graph)
{
    if (const auto valid = validate(graph); !valid)
        return valid.error().message;
    for (const Tensor &tensor : graph.tensors)
        if ((tensor.role == TensorRole::Gradient || tensor.role == TensorRole::OptimizerState)
            && !isOfTypeOf(tensor, graph.at(tensor.of).type))
            return "'" + tensor.name + "' is not of the type of '" + graph.at(tensor.of).name + "'";
    std::vector<bool> updated(graph.tensors.size(), false);
    for (const Operator &op : graph.operators) {
        const auto otherDimensions = [&op] {
            return op.name + " has other dimensions than its kind and shapes give it";
        };
        if (op.direction == Direction::Backward) {
            if (op.annotation != backwardAnnotation(graph.at(op.mirror).annotation, op.outputs))
                return otherDimensions();
            continue;
        }
        std::vector<bool> present;
        for (const TensorId id : op.inputs)
            present.push_back(id.valid());
        const auto inputs = typesOf(graph, op.inputs);
        const auto outputs = typesOf(graph, op.outputs);
        const bool clips = op.kind == OperatorKind::SquareSum || op.kind == OperatorKind::ClipFactor;
        if (clips != (op.direction == Direction::Optimizer && !updatesWeight(op)))
            return op.name + " stands in a part of the step where its kind does not belong";
        if (std::string reason = updatesWeight(op) && op.direction == Direction::Optimizer
                ? checkOptimizer(graph, op, updated)
                : checkTypes(graph, op, inputs, present, outputs);
            !reason.empty())
            return reason;
        // A plan may leave whole what windows lie over.
        const auto today = annotate(op.kind, op.attributes, inputs, present, outputs).annotation;
        if (op.annotation != today && op.annotation != withoutWindows(today))
            return otherDimensions();
    }
    return checkClipping(graph);
}

} // namespace planloom
