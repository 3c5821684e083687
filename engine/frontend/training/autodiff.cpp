#include "engine/frontend/training/autodiff.h"

#include "engine/base/ids.h"
#include "engine/base/words.h"
#include "engine/frontend/unique_names.h"
#include "engine/graph/operators/catalogue.h"

#include <cstring>

namespace planloom {

namespace {

/// What differentiation needs to know of a forward graph.
struct Reach {
    std::vector<GradientRule> rules{}; ///< By operator; empty where no input is varied.
    std::vector<bool> varied{}; ///< By tensor: floating, and depends on a weight.
    std::vector<bool> wanted{}; ///< By tensor: varied, and the loss depends on it.
};

/// True for operators whose outputs are constant almost everywhere, or are taken for constants: their
/// derivative is zero, so nothing flows through them, and they are no obstacle either.
bool isFlat(const Operator &op)
{
    using enum OperatorKind;
    switch (op.kind) {
    case Identity:
        return op.attributes.integer("detached") != 0;
    case Ceil:
    case Floor:
    case Round:
    case Sign:
    case IsInf:
    case IsNaN:
    case Not:
    case And:
    case Or:
    case Xor:
    case Equal:
    case Greater:
    case GreaterOrEqual:
    case Less:
    case LessOrEqual:
    case CountValid:
    case ArgMax:
    case ArgMin:
    case OneHot:
    case EyeLike:
        return true;
    default:
        return false;
    }
}

/// True if a gradient flows into input `slot` of an operator with this rule.
bool flowsInto(const Reach &reach, const GradientRule &rule, const Operator &op, std::size_t slot)
{
    return op.inputs[slot] && reach.varied[at(op.inputs[slot])] && slot < rule.gradientOf.size()
        && rule.gradientOf[slot];
}

Reach reachOf(const Graph &graph)
{
    Reach reach;
    reach.rules.resize(graph.operators.size());
    reach.varied.resize(graph.tensors.size());
    reach.wanted.resize(graph.tensors.size());
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        const Tensor &tensor = graph.tensors[i];
        reach.varied[i] = tensor.role == TensorRole::Weight && isFloating(tensor.type.dataType);
    }
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        bool any = false;
        for (const TensorId id : op.inputs)
            any = any || (id && reach.varied[at(id)]);
        if (!any)
            continue;
        GradientRule &rule = reach.rules[i];
        rule = gradientRule(graph, op);
        // A kind without a derivative still passes the dependence on, so that it is found and named below.
        bool flows = !rule.differentiable && !isFlat(op);
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot)
            flows = flows || flowsInto(reach, rule, op, slot);
        if (!flows)
            continue;
        for (const TensorId id : op.outputs) {
            if (id)
                reach.varied[at(id)] = isFloating(graph.at(id).type.dataType);
        }
    }
    reach.wanted[at(graph.loss)] = reach.varied[at(graph.loss)];
    for (std::size_t i = graph.operators.size(); i-- > 0;) {
        const Operator &op = graph.operators[i];
        bool onPath = false;
        for (const TensorId id : op.outputs)
            onPath = onPath || (id && reach.wanted[at(id)]);
        if (!onPath)
            continue;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            if (flowsInto(reach, reach.rules[i], op, slot))
                reach.wanted[at(op.inputs[slot])] = true;
        }
    }
    return reach;
}

bool isOnPath(const Reach &reach, const Operator &op)
{
    for (const TensorId id : op.outputs) {
        if (id && reach.wanted[at(id)])
            return true;
    }
    return false;
}

/// Gives every further slot in which an operator reads the same wanted pTensor an Identity of its own.
/// @return true if any was inserted
bool separateSlots(Graph &graph, const Reach &reach)
{
    // For each operator the slots to change; most graphs have none, and then nothing is moved.
    std::vector<std::pair<std::size_t, std::size_t>> repeats; // (operator, slot), in order
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (!isOnPath(reach, op))
            continue;
        for (std::size_t slot = 1; slot < op.inputs.size(); ++slot) {
            if (!flowsInto(reach, reach.rules[i], op, slot))
                continue;
            for (std::size_t earlier = 0; earlier < slot; ++earlier) {
                if (op.inputs[earlier] == op.inputs[slot] && flowsInto(reach, reach.rules[i], op, earlier)) {
                    repeats.emplace_back(i, slot);
                    break;
                }
            }
        }
    }
    if (repeats.empty())
        return false;
    UniqueNames tensorNames = UniqueNames::ofTensors(graph);
    UniqueNames operatorNames = UniqueNames::ofOperators(graph);
    std::vector<Operator> operators;
    operators.reserve(graph.operators.size() + repeats.size());
    auto next = repeats.begin();
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        Operator op = std::move(graph.operators[i]);
        for (std::int32_t number = 1; next != repeats.end() && next->first == i; ++next, ++number) {
            TensorId &slot = op.inputs[next->second];
            Operator copy;
            copy.name = operatorNames.take(op.name + ".copy" + (number == 1 ? "" : std::to_string(number)));
            copy.kind = OperatorKind::Identity;
            copy.inputs = {slot};
            copy.scope = op.scope;
            const TensorType type = graph.at(slot).type;
            AnnotationOutcome outcome = annotate(copy.kind, copy.attributes, {type}, {true}, {type});
            copy.annotation = std::move(outcome.annotation);
            copy.annotationProblem = std::move(outcome.problem);
            Tensor tensor;
            tensor.name = tensorNames.take(copy.name + ".out");
            tensor.type = type;
            slot = TensorId{static_cast<std::int32_t>(graph.tensors.size())};
            copy.outputs = {slot};
            graph.tensors.push_back(std::move(tensor));
            operators.push_back(std::move(copy));
        }
        operators.push_back(std::move(op));
    }
    graph.operators = std::move(operators);
    return true;
}

/// Bytes of the number one.
std::vector<std::byte> oneOf(DataType type)
{
    std::vector<std::byte> bytes(static_cast<std::size_t>(sizeOf(type)));
    const auto write = [&bytes](auto value) { std::memcpy(bytes.data(), &value, sizeof value); };
    switch (type) {
    case DataType::Float64:
        write(1.0);
        break;
    case DataType::Float16:
        write(std::uint16_t{0x3C00});
        break;
    case DataType::BFloat16:
        write(std::uint16_t{0x3F80});
        break;
    default:
        write(1.0F);
        break;
    }
    return bytes;
}

class Differentiator
{
public:
    Differentiator(Graph &graph, const Reach &reach)
        : m_graph(graph)
        , m_reach(reach)
        , m_gradients(graph.tensors.size())
        , m_tensorNames(UniqueNames::ofTensors(graph))
        , m_operatorNames(UniqueNames::ofOperators(graph))
    {
    }

    void run()
    {
        const std::size_t forwards = m_graph.operators.size();
        m_graph.operators.reserve(2 * forwards);
        m_gradients[at(m_graph.loss)] = addLossGradient();
        for (std::size_t i = forwards; i-- > 0;) {
            if (isOnPath(m_reach, m_graph.operators[i]))
                addBackward(OperatorId{static_cast<std::int32_t>(i)});
        }
    }

private:
    TensorId addTensor(Tensor tensor)
    {
        m_graph.tensors.push_back(std::move(tensor));
        return TensorId{static_cast<std::int32_t>(m_graph.tensors.size()) - 1};
    }

    TensorId addLossGradient()
    {
        const Tensor &loss = m_graph.at(m_graph.loss);
        auto data = std::make_shared<TensorData>();
        data->type = loss.type;
        data->bytes = oneOf(loss.type.dataType);
        Tensor tensor;
        tensor.name = m_tensorNames.take(loss.name + ".grad");
        tensor.type = loss.type;
        tensor.role = TensorRole::Buffer;
        tensor.of = m_graph.loss;
        tensor.data = std::move(data);
        return addTensor(std::move(tensor));
    }

    TensorId gradientOf(TensorId id)
    {
        if (!m_gradients[at(id)]) {
            const Tensor &whole = m_graph.at(id);
            Tensor tensor;
            tensor.name = m_tensorNames.take(whole.name + ".grad");
            tensor.type = whole.type;
            tensor.role = TensorRole::Gradient;
            tensor.of = id;
            const TensorId made = addTensor(std::move(tensor));
            m_gradients[at(id)] = made;
        }
        return m_gradients[at(id)];
    }

    void addBackward(OperatorId forwardId)
    {
        const Operator &forward = m_graph.at(forwardId);
        std::vector<bool> flows;
        for (std::size_t slot = 0; slot < forward.inputs.size(); ++slot)
            flows.push_back(
                flowsInto(m_reach, m_reach.rules[static_cast<std::size_t>(forwardId.index)], forward, slot));
        const GradientRule rule = gradientRule(m_graph, forward, flows);
        Operator backward;
        backward.name = m_operatorNames.take(forward.name + "'");
        backward.kind = forward.kind;
        backward.direction = Direction::Backward;
        backward.attributes = forward.attributes;
        backward.annotationProblem = forward.annotationProblem;
        backward.mirror = forwardId;
        backward.scope = forward.scope;
        backward.sources = forward.sources;
        backward.inputs.reserve(forward.inputs.size() + 2 * forward.outputs.size());
        for (const TensorId id : forward.outputs)
            backward.inputs.push_back(id && m_reach.wanted[at(id)] ? m_gradients[at(id)] : TensorId{});
        for (std::size_t slot = 0; slot < forward.inputs.size(); ++slot)
            backward.inputs.push_back(rule.needsInput[slot] ? forward.inputs[slot] : TensorId{});
        for (std::size_t slot = 0; slot < forward.outputs.size(); ++slot)
            backward.inputs.push_back(rule.needsOutput[slot] ? forward.outputs[slot] : TensorId{});
        for (std::size_t slot = 0; slot < forward.inputs.size(); ++slot) {
            backward.outputs.push_back(flows[slot] ? gradientOf(forward.inputs[slot]) : TensorId{});
        }
        backward.annotation = backwardAnnotation(forward.annotation, backward.outputs);
        m_graph.operators.push_back(std::move(backward));
        m_graph.at(forwardId).mirror = OperatorId{static_cast<std::int32_t>(m_graph.operators.size()) - 1};
    }

    Graph &m_graph;
    const Reach &m_reach;
    std::vector<TensorId> m_gradients; ///< By forward tensor.
    UniqueNames m_tensorNames;
    UniqueNames m_operatorNames;
};

std::vector<OperatorId> obstaclesOf(const Graph &graph, const Reach &reach)
{
    std::vector<OperatorId> obstacles;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (isOnPath(reach, graph.operators[i]) && !reach.rules[i].differentiable)
            obstacles.push_back(OperatorId{static_cast<std::int32_t>(i)});
    }
    return obstacles;
}

} // namespace

std::vector<OperatorId> withoutDerivative(const Graph &graph)
{
    return graph.loss ? obstaclesOf(graph, reachOf(graph)) : std::vector<OperatorId>{};
}

Result<void> appendBackward(Graph &graph)
{
    if (!graph.loss) {
        return Error{ErrorCode::NotSupported, "The model has no loss, so there is nothing to differentiate.",
            "Name a scalar output with --loss, or plan the model for inference.", ""};
    }
    for (const Operator &op : graph.operators) {
        if (op.direction != Direction::Forward)
            return Error{
                ErrorCode::InvalidInput, "The graph already has a backward pass.", "", "operator:" + op.name};
    }
    Reach reach = reachOf(graph);
    if (separateSlots(graph, reach))
        reach = reachOf(graph);
    if (!reach.wanted[at(graph.loss)]) {
        return Error{ErrorCode::InvalidInput,
            "The loss " + graph.at(graph.loss).name + " does not depend on any weight.",
            "Choose another output with --loss, or plan the model for inference.",
            "tensor:" + graph.at(graph.loss).name};
    }
    if (const auto obstacles = obstaclesOf(graph, reach); !obstacles.empty()) {
        const Operator &op = graph.at(obstacles.front());
        const std::size_t others = obstacles.size() - 1;
        return Error{ErrorCode::NotSupported,
            "The loss depends on weights through " + op.name + ", and " + typeNameOf(op)
                + " has no derivative here"
                + (others == 0 ? std::string(".")
                               : ", as " + counted(static_cast<std::int64_t>(others), "other operator")
                            + (others == 1 ? " has none." : " have none.")),
            isNamedByFile(op)
                ? "Give it one in an operator file (a line 'derivative', or a body), or plan the model for "
                  "inference."
                : "Plan the model for inference, or export it without this operator.",
            "operator:" + op.name};
    }
    Differentiator(graph, reach).run();
    return {};
}

} // namespace planloom
