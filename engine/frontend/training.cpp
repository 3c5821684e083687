#include "engine/frontend/training.h"

#include "engine/frontend/autodiff.h"
#include "engine/frontend/unique_names.h"
#include "engine/graph/catalogue.h"

#include <cmath>

namespace planloom {

namespace {

Result<void> checkOptions(const TrainingOptions &options)
{
    const auto wrong = [](const char *name, double value, const char *expected) {
        return Error{ErrorCode::InvalidInput,
            std::string(name) + " must be " + expected + ", not " + std::to_string(value) + ".", "", name};
    };
    if (options.optimizer != OperatorKind::SgdStep && options.optimizer != OperatorKind::AdamWStep) {
        return Error{ErrorCode::InvalidInput,
            std::string("The optimizer must be SgdStep or AdamWStep, not ") + nameOf(options.optimizer) + ".",
            "", "optimizer"};
    }
    const auto share = [](double value) { return value >= 0 && value < 1; };
    if (!(options.learningRate >= 0) || !std::isfinite(options.learningRate))
        return wrong("learning rate", options.learningRate, "a number of at least 0");
    if (!share(options.momentum))
        return wrong("momentum", options.momentum, "at least 0 and below 1");
    if (!share(options.beta1))
        return wrong("beta1", options.beta1, "at least 0 and below 1");
    if (!share(options.beta2))
        return wrong("beta2", options.beta2, "at least 0 and below 1");
    if (!(options.epsilon > 0) || !std::isfinite(options.epsilon))
        return wrong("epsilon", options.epsilon, "a number above 0");
    if (!(options.weightDecay >= 0) || !std::isfinite(options.weightDecay))
        return wrong("weight decay", options.weightDecay, "a number of at least 0");
    return {};
}

/// Names in use among tensors and among operators.
struct Names {
    UniqueNames tensors;
    UniqueNames operators;
};

TensorId addTensor(Graph &graph, Names &names, const std::string &name, TensorId weight, TensorRole role)
{
    Tensor tensor;
    tensor.name = names.tensors.take(name);
    tensor.type = graph.at(weight).type;
    // Squares of gradients are below what Float16 can hold: steps would divide by zero.
    if (role == TensorRole::OptimizerState && tensor.type.dataType == DataType::Float16)
        tensor.type.dataType = DataType::Float32;
    tensor.role = role;
    tensor.of = weight;
    graph.tensors.push_back(std::move(tensor));
    return TensorId{static_cast<std::int32_t>(graph.tensors.size()) - 1};
}

void addOptimizer(Graph &graph, Names &names, TensorId weight, TensorId gradient, ScopeId scope,
    const TrainingOptions &options)
{
    const std::string name = graph.at(weight).name;
    Operator op;
    op.name = names.operators.take(name + ".step");
    op.kind = options.optimizer;
    op.direction = Direction::Optimizer;
    op.scope = scope;
    op.attributes.set("learning_rate", options.learningRate);
    op.attributes.set("weight_decay", options.weightDecay);
    std::vector<std::string> states;
    if (options.optimizer == OperatorKind::AdamWStep) {
        op.attributes.set("beta1", options.beta1);
        op.attributes.set("beta2", options.beta2);
        op.attributes.set("epsilon", options.epsilon);
        states = {name + ".m", name + ".v"};
    } else {
        op.attributes.set("momentum", options.momentum);
        if (options.momentum > 0)
            states = {name + ".momentum"};
    }
    op.inputs = {weight, gradient};
    for (const std::string &state : states)
        op.inputs.push_back(addTensor(graph, names, state, weight, TensorRole::OptimizerState));
    op.outputs = {addTensor(graph, names, name + ".new", weight, TensorRole::Weight)};
    for (const std::string &state : states)
        op.outputs.push_back(addTensor(graph, names, state + ".new", weight, TensorRole::OptimizerState));
    const auto typesOf = [&graph](const std::vector<TensorId> &ids) {
        std::vector<TensorType> types;
        for (const TensorId id : ids)
            types.push_back(graph.at(id).type);
        return types;
    };
    const std::vector<TensorType> inputs = typesOf(op.inputs);
    const std::vector<TensorType> outputs = typesOf(op.outputs);
    AnnotationOutcome outcome =
        annotate(op.kind, op.attributes, inputs, std::vector<bool>(inputs.size(), true), outputs);
    op.annotation = std::move(outcome.annotation);
    op.annotationProblem = std::move(outcome.problem);
    graph.operators.push_back(std::move(op));
}

} // namespace

Result<Graph> buildTrainingStep(const Graph &forward, const TrainingOptions &options)
{
    TRY_VOID(checkOptions(options));
    Graph graph = forward;
    TRY_VOID(appendBackward(graph));

    // A Gradient's index, and the scope of the first forward user, by tensor.
    std::vector<TensorId> gradients(graph.tensors.size());
    std::vector<ScopeId> scopes(graph.tensors.size());
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        if (graph.tensors[i].role == TensorRole::Gradient)
            gradients[static_cast<std::size_t>(graph.tensors[i].of.index)] =
                TensorId{static_cast<std::int32_t>(i)};
    }
    for (const Operator &op : graph.operators) {
        for (const TensorId id : op.inputs) {
            if (id && !scopes[static_cast<std::size_t>(id.index)])
                scopes[static_cast<std::size_t>(id.index)] = op.scope;
        }
    }
    Names names{UniqueNames::ofTensors(graph), UniqueNames::ofOperators(graph)};
    std::int64_t untrained = 0;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (graph.tensors[i].role != TensorRole::Weight)
            continue;
        if (gradients[i])
            addOptimizer(
                graph, names, TensorId{static_cast<std::int32_t>(i)}, gradients[i], scopes[i], options);
        else
            ++untrained;
    }
    if (untrained > 0)
        graph.notes.push_back("The loss does not depend on " + std::to_string(untrained)
            + " of the weights; they are not updated.");
    return graph;
}

} // namespace planloom
