#include "engine/frontend/training/training.h"

#include "engine/frontend/training/autodiff.h"
#include "engine/frontend/unique_names.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/weight_update.h"

#include <algorithm>
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
    if (!(options.clipNorm >= 0) || !std::isfinite(options.clipNorm))
        return wrong("clip norm", options.clipNorm, "a number of at least 0");
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

TensorId addScalar(Graph &graph, Names &names, const std::string &name)
{
    Tensor tensor;
    tensor.name = names.tensors.take(name);
    tensor.type = {DataType::Float32, {}};
    graph.tensors.push_back(std::move(tensor));
    return TensorId{static_cast<std::int32_t>(graph.tensors.size()) - 1};
}

/// Annotates `op`, and appends it.
void addAnnotated(Graph &graph, Operator op)
{
    AnnotationOutcome outcome = annotate(op.kind, op.attributes, typesOf(graph, op.inputs),
        presentAmong(op.inputs), typesOf(graph, op.outputs));
    op.annotation = std::move(outcome.annotation);
    op.annotationProblem = std::move(outcome.problem);
    graph.operators.push_back(std::move(op));
}

/// Operators that find the factor which all gradients are scaled by.
/// @param gradients  by tensor: its gradient, if it is a weight that is trained
TensorId addClipping(Graph &graph, Names &names, const std::vector<TensorId> &gradients,
    const std::vector<ScopeId> &scopes, double clipNorm)
{
    const TensorId squares = addScalar(graph, names, "clip.square");
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (!gradients[i])
            continue;
        Operator op;
        op.name = names.operators.take(graph.tensors[i].name + ".square");
        op.kind = OperatorKind::SquareSum;
        op.direction = Direction::Optimizer;
        op.scope = scopes[i];
        op.inputs = {gradients[i]};
        op.outputs = {squares};
        addAnnotated(graph, std::move(op));
    }
    Operator op;
    op.name = names.operators.take("clip");
    op.kind = OperatorKind::ClipFactor;
    op.direction = Direction::Optimizer;
    op.scope = ScopeId{0}; // the model
    op.attributes.set("clip_norm", clipNorm);
    op.inputs = {squares};
    op.outputs = {addScalar(graph, names, "clip.factor")};
    const TensorId factor = op.outputs.front();
    addAnnotated(graph, std::move(op));
    return factor;
}

/// @param factor  what its gradient is multiplied with; invalid if nothing
void addOptimizer(Graph &graph, Names &names, TensorId weight, TensorId gradient, ScopeId scope,
    const TrainingOptions &options, TensorId factor)
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
    if (factor) {
        op.inputs.resize(factorSlotOf(op.kind));
        op.inputs.push_back(factor);
    }
    op.outputs = {addTensor(graph, names, name + ".new", weight, TensorRole::Weight)};
    for (const std::string &state : states)
        op.outputs.push_back(addTensor(graph, names, state + ".new", weight, TensorRole::OptimizerState));
    addAnnotated(graph, std::move(op));
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
    for (std::size_t i = 0; i < gradients.size(); ++i)
        if (graph.tensors[i].role != TensorRole::Weight)
            gradients[i] = {};
    const bool clips = options.clipNorm > 0
        && std::any_of(gradients.begin(), gradients.end(), [](TensorId id) { return id.valid(); });
    const TensorId factor =
        clips ? addClipping(graph, names, gradients, scopes, options.clipNorm) : TensorId{};
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (graph.tensors[i].role != TensorRole::Weight)
            continue;
        if (gradients[i])
            addOptimizer(graph, names, TensorId{static_cast<std::int32_t>(i)}, gradients[i], scopes[i],
                options, factor);
        else
            ++untrained;
    }
    if (untrained > 0)
        graph.notes.push_back("The loss does not depend on " + std::to_string(untrained)
            + " of the weights; they are not updated.");
    return graph;
}

} // namespace planloom
