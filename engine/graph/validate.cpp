#include "engine/base/ids.h"
#include "engine/graph/graph.h"
#include "engine/graph/operator_files/operator_definition.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace planloom {

namespace {

template<typename Tag, typename T> bool inRange(Id<Tag> id, const std::vector<T> &of)
{
    return id.valid() && static_cast<std::size_t>(id.index) < of.size();
}

/// Valid ids must be in range; an invalid id is an absent tensor.
template<typename T> bool slotsInRange(const std::vector<TensorId> &slots, const std::vector<T> &of)
{
    return std::all_of(slots.begin(), slots.end(), [&](TensorId id) { return !id || inRange(id, of); });
}

Error broken(std::string where, const std::string &message)
{
    Error error{ErrorCode::Internal, where + ": " + message, "", ""};
    error.where = std::move(where);
    return error;
}

/// Checks one graph, in the order in which later checks rely on earlier ones.
class Validator
{
public:
    explicit Validator(const Graph &graph)
        : m_graph(graph)
    {
    }

    Result<void> run()
    {
        TRY_VOID(checkScopes());
        TRY_VOID(checkTensors());
        TRY_VOID(checkBelonging());
        TRY_VOID(checkFileParts());
        TRY_VOID(checkEnds());
        TRY_VOID(checkIdsAndNames());
        TRY_VOID(checkOrder());
        for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
            const Operator &op = m_graph.operators[i];
            TRY_VOID(checkAnnotation(op));
            TRY_VOID(checkRoles(op));
            TRY_VOID(checkMirror(OperatorId{static_cast<std::int32_t>(i)}));
        }
        return {};
    }

private:
    static Error broken(const Operator &op, const std::string &message)
    {
        return planloom::broken("operator:" + op.name, message);
    }
    static Error broken(const Tensor &tensor, const std::string &message)
    {
        return planloom::broken("tensor:" + tensor.name, message);
    }

    Result<void> checkScopes() const
    {
        const auto &scopes = m_graph.scopes;
        if (scopes.empty() || !scopes[0].name.empty() || scopes[0].parent)
            return planloom::broken(
                "scope:0", "the first scope must be the model itself, without name and parent");
        for (std::size_t i = 1; i < scopes.size(); ++i) {
            const std::string where = "scope:" + std::to_string(i);
            if (scopes[i].name.empty())
                return planloom::broken(where, "has no name");
            if (!inRange(scopes[i].parent, scopes))
                return planloom::broken(where, "has no parent");
        }
        // Parents may stand anywhere, so look for cycles: 1 = on the current walk, 2 = known to reach the
        // model.
        std::vector<char> state(scopes.size());
        state[0] = 2;
        for (std::size_t i = 1; i < scopes.size(); ++i) {
            std::vector<std::size_t> walk;
            std::size_t s = i;
            for (; state[s] == 0; s = static_cast<std::size_t>(scopes[s].parent.index)) {
                state[s] = 1;
                walk.push_back(s);
            }
            if (state[s] == 1)
                return planloom::broken("scope:" + std::to_string(s), "is its own ancestor");
            for (const std::size_t walked : walk)
                state[walked] = 2;
        }
        return {};
    }

    /// A gradient of a gradient belongs to another one, but in the end to one that belongs to none.
    Result<void> checkBelonging() const
    {
        constexpr std::size_t kUnseen = std::numeric_limits<std::size_t>::max();
        std::vector<std::size_t> seenFrom(m_graph.tensors.size(), kUnseen); // the walk that came by first
        for (std::size_t from = 0; from < m_graph.tensors.size(); ++from) {
            TensorId at{static_cast<std::int32_t>(from)};
            for (; at && seenFrom[static_cast<std::size_t>(at.index)] == kUnseen; at = m_graph.at(at).of)
                seenFrom[static_cast<std::size_t>(at.index)] = from;
            if (at && seenFrom[static_cast<std::size_t>(at.index)] == from)
                return broken(m_graph.at(at), "belongs to itself");
        }
        return {};
    }

    Result<void> checkTensors() const
    {
        std::unordered_set<std::string_view> names;
        for (const Tensor &tensor : m_graph.tensors) {
            if (tensor.name.empty())
                return broken(tensor, "has no name");
            if (!names.insert(tensor.name).second)
                return broken(tensor, "its name is not unique");
            for (const std::int64_t extent : tensor.type.shape) {
                if (extent < 0)
                    return broken(tensor, "has a negative extent: " + toString(tensor.type.shape));
            }
            if (tensor.of && !inRange(tensor.of, m_graph.tensors))
                return broken(tensor, "belongs to a tensor that does not exist");
            if (tensor.role == TensorRole::Gradient || tensor.role == TensorRole::OptimizerState) {
                if (!tensor.of)
                    return broken(tensor, "does not say which tensor it belongs to");
                const Tensor &of = m_graph.at(tensor.of);
                if (of.type.shape != tensor.type.shape) {
                    return broken(tensor,
                        "has shape " + toString(tensor.type.shape) + ", but '" + of.name + "' has "
                            + toString(of.type.shape));
                }
                if (tensor.role == TensorRole::OptimizerState && of.role != TensorRole::Weight)
                    return broken(tensor, "is the state of '" + of.name + "', which is not a weight");
            }
            if (!tensor.fileShape.empty()
                && elementCount(tensor.fileShape) != elementCount(tensor.type.shape))
                return broken(tensor, "has other elements in files: " + toString(tensor.fileShape));
            if (tensor.filePart && !fitsFilePart(tensor))
                return broken(tensor,
                    "is no part of '" + tensor.filePart->name + "', which has shape "
                        + toString(tensor.filePart->shape) + " in files");
            if (tensor.data) {
                const TensorData &data = *tensor.data;
                const std::int64_t bytes = elementCount(data.type.shape) * sizeOf(data.type.dataType);
                if (data.type != tensor.type)
                    return broken(tensor, "its values have another type: " + toString(data.type.shape));
                if (static_cast<std::int64_t>(data.bytes.size()) != bytes) {
                    return broken(tensor,
                        "expected " + std::to_string(bytes) + " bytes of values, found "
                            + std::to_string(data.bytes.size()));
                }
            }
        }
        return {};
    }

    /// What says to be parts of one tensor in files is so together: of one kind, one beside the other.
    Result<void> checkFileParts() const
    {
        std::unordered_map<std::string_view, std::vector<const Tensor *>> parts; // by the file's name
        for (const Tensor &tensor : m_graph.tensors) {
            if (tensor.filePart)
                parts[tensor.filePart->name].push_back(&tensor);
        }
        if (parts.empty())
            return {};
        for (const Tensor &tensor : m_graph.tensors) {
            if (!tensor.filePart && parts.contains(tensor.name))
                return broken(tensor, "has the name of a file's tensor that is in parts");
        }
        const auto extentOf = [](const Tensor &tensor) {
            const Shape &own = tensor.fileShape.empty() ? tensor.type.shape : tensor.fileShape;
            return own[static_cast<std::size_t>(tensor.filePart->axis)];
        };
        for (auto &[name, own] : parts) {
            std::sort(own.begin(), own.end(),
                [](const Tensor *a, const Tensor *b) { return a->filePart->begin < b->filePart->begin; });
            for (std::size_t i = 1; i < own.size(); ++i) {
                const Tensor &before = *own[i - 1];
                const FilePart &part = *own[i]->filePart;
                if (part.shape != before.filePart->shape || part.axis != before.filePart->axis
                    || own[i]->type.dataType != before.type.dataType
                    || part.begin < before.filePart->begin + extentOf(before))
                    return broken(
                        *own[i], "cannot be a part of '" + part.name + "' beside '" + before.name + "'");
            }
        }
        return {};
    }

    /// Inputs, outputs and loss of the model.
    Result<void> checkEnds() const
    {
        std::vector<bool> listed(m_graph.tensors.size());
        for (const TensorId id : m_graph.inputs) {
            if (!inRange(id, m_graph.tensors))
                return planloom::broken("graph:inputs", "an input does not exist");
            if (m_graph.at(id).role != TensorRole::Input)
                return broken(m_graph.at(id), "is listed as an input, but has another role");
            if (listed[at(id)])
                return broken(m_graph.at(id), "is listed twice among the inputs");
            listed[at(id)] = true;
        }
        for (std::size_t i = 0; i < m_graph.tensors.size(); ++i) {
            if (m_graph.tensors[i].role == TensorRole::Input && !listed[i])
                return broken(m_graph.tensors[i], "is an input, but not listed as one");
        }
        for (const TensorId id : m_graph.outputs) {
            if (!inRange(id, m_graph.tensors))
                return planloom::broken("graph:outputs", "an output does not exist");
        }
        if (!m_graph.loss)
            return {};
        if (!inRange(m_graph.loss, m_graph.tensors))
            return planloom::broken("graph:loss", "the loss does not exist");
        const Tensor &loss = m_graph.at(m_graph.loss);
        if (elementCount(loss.type.shape) != 1 || !isFloating(loss.type.dataType))
            return broken(loss, "is the loss, but not a floating scalar: " + toString(loss.type.shape));
        if (std::find(m_graph.outputs.begin(), m_graph.outputs.end(), m_graph.loss) == m_graph.outputs.end())
            return broken(loss, "is the loss, but not among the outputs");
        return {};
    }

    Result<void> checkIdsAndNames() const
    {
        std::unordered_set<std::string_view> names;
        for (const Operator &op : m_graph.operators) {
            if (op.name.empty())
                return broken(op, "has no name");
            if (!names.insert(op.name).second)
                return broken(op, "its name is not unique");
            if (!slotsInRange(op.inputs, m_graph.tensors) || !slotsInRange(op.outputs, m_graph.tensors))
                return broken(op, "has a tensor that does not exist");
            if (std::none_of(op.outputs.begin(), op.outputs.end(), [](TensorId id) { return id.valid(); }))
                return broken(op, "makes nothing");
            if ((op.kind == OperatorKind::Custom) != (op.attributes.definition() != nullptr))
                return broken(
                    op, "is of a file's kind without what the file says of it, or the other way round");
            if (op.kind == OperatorKind::Custom && op.direction == Direction::Forward
                && (op.inputs.size() != op.attributes.definition()->inputs.size()
                    || op.outputs.size() != op.attributes.definition()->resultCount()))
                return broken(op, "has other inputs or outputs than its definition");
            if (!inRange(op.scope, m_graph.scopes))
                return broken(op, "its scope does not exist");
            if (op.mirror && !inRange(op.mirror, m_graph.operators))
                return broken(op, "its mirror does not exist");
        }
        return {};
    }

    /// Forward, backward, optimizer; and every tensor is complete before it is read.
    Result<void> checkOrder() const
    {
        const std::size_t tensors = m_graph.tensors.size();
        constexpr std::size_t kNone = static_cast<std::size_t>(-1);
        std::vector<std::size_t> first(tensors, kNone);
        std::vector<std::size_t> last(tensors, kNone);
        for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
            const Operator &op = m_graph.operators[i];
            if (i > 0 && op.direction < m_graph.operators[i - 1].direction)
                return broken(op, "stands behind an operator of a later part of the step");
            for (const TensorId id : op.outputs) {
                if (!id)
                    continue;
                const bool sum = m_graph.at(id).role == TensorRole::Gradient
                    || (op.kind == OperatorKind::SquareSum && first[at(id)] != kNone
                        && m_graph.operators[first[at(id)]].kind == OperatorKind::SquareSum);
                if (!sum && first[at(id)] != kNone)
                    return broken(m_graph.at(id),
                        "has two producers, which only gradients and sums of their squares may have");
                if (first[at(id)] == kNone)
                    first[at(id)] = i;
                last[at(id)] = i;
            }
        }
        for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
            const Operator &op = m_graph.operators[i];
            for (const TensorId id : op.inputs) {
                if (!id)
                    continue;
                const Tensor &tensor = m_graph.at(id);
                // The gradient of the loss may be given rather than made.
                const bool made = tensor.role == TensorRole::Activation
                    || (tensor.role == TensorRole::Gradient && tensor.of != m_graph.loss);
                if (made && last[at(id)] == kNone)
                    return broken(op, "reads '" + tensor.name + "', which nothing makes");
                if (last[at(id)] != kNone && last[at(id)] >= i)
                    return broken(op, "reads '" + tensor.name + "' before it is complete");
            }
        }
        for (const TensorId id : m_graph.outputs) {
            if (m_graph.at(id).role == TensorRole::Activation && first[at(id)] == kNone)
                return broken(m_graph.at(id), "is an output that nothing makes");
        }
        return {};
    }

    Result<void> checkAnnotation(const Operator &op) const
    {
        const Annotation &annotation = op.annotation;
        std::unordered_set<std::string_view> names;
        for (const Dimension &dimension : annotation.dimensions) {
            if (dimension.name.empty() || dimension.size < 0)
                return broken(op, "its annotation has a dimension without name or size");
            if (!names.insert(dimension.name).second)
                return broken(op, "its annotation has two dimensions called '" + dimension.name + "'");
        }
        if (annotation.inputs.size() != op.inputs.size() || annotation.outputs.size() != op.outputs.size()) {
            return broken(op,
                "has " + std::to_string(op.inputs.size()) + " inputs and " + std::to_string(op.outputs.size())
                    + " outputs, but its annotation is '" + toString(annotation) + "'");
        }
        std::int32_t last = -1;
        for (const Window &window : annotation.windows) {
            if (window.dimension <= last
                || static_cast<std::size_t>(window.dimension) >= annotation.dimensions.size()
                || !isSane(window, annotation.dimensions[static_cast<std::size_t>(window.dimension)].size))
                return broken(op, "its annotation describes windows that cannot be");
            last = window.dimension;
        }
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot)
            TRY_VOID(checkTerms(op, op.inputs[slot], annotation.inputs[slot]));
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
            TRY_VOID(checkTerms(op, op.outputs[slot], annotation.outputs[slot]));
        std::unordered_set<std::int32_t> linear;
        for (const std::int32_t slot : annotation.linearInputs) {
            if (slot < 0 || static_cast<std::size_t>(slot) >= op.inputs.size() || !linear.insert(slot).second)
                return broken(op, "its linear inputs name slot " + std::to_string(slot) + " wrongly");
        }
        if (!annotation.combinations.empty()) {
            const auto &all = annotation.combinations;
            if (all.size() != op.outputs.size()
                || std::all_of(all.begin(), all.end(), [](Combination c) { return c == Combination::Sum; }))
                return broken(op, "its annotation does not say of every output how its parts are combined");
            for (std::size_t slot = 0; slot < all.size(); ++slot)
                if (all[slot] == Combination::Weighted && !isWeighedRightly(op, slot))
                    return broken(op, "has no logarithms by which to weigh the parts of an output");
            if (!annotation.linearInputs.empty() || op.direction != Direction::Forward)
                return broken(op, "is linear, but the parts of its outputs are not summed");
        }
        if (!op.annotationProblem.empty() && !splittableDimensions(annotation).empty()) {
            return broken(op,
                "is kept whole (" + op.annotationProblem + "), but may be split: '" + toString(annotation)
                    + "'");
        }
        return {};
    }

    /// The parts of output `slot` find their weights: rows that the output's dimensions begin with.
    static bool isWeighedRightly(const Operator &op, std::size_t slot)
    {
        const std::int32_t by = weightsOf(op.annotation, slot);
        if (by < 0 || !op.outputs[static_cast<std::size_t>(by)])
            return false;
        const auto &rows = op.annotation.outputs[static_cast<std::size_t>(by)].terms;
        const auto &own = op.annotation.outputs[slot].terms;
        return rows.size() <= own.size() && std::equal(rows.begin(), rows.end(), own.begin());
    }

    /// The terms of one slot; those of an absent tensor only have to make sense by themselves.
    Result<void> checkTerms(const Operator &op, TensorId id, const TensorTerms &terms) const
    {
        const Annotation &annotation = op.annotation;
        if (terms.opaque) {
            if (!terms.terms.empty())
                return broken(op, "its annotation has an opaque tensor with dimensions");
            return {};
        }
        std::vector<std::int32_t> seen; // few: a tensor's rank
        for (const Term &term : terms.terms) {
            if (term.reach != WindowReach::Own
                && (term.factors.size() != 1 || !findWindow(annotation, term.factors[0])))
                return broken(op, "its annotation has windows that it does not describe");
            bool behindFirst = false;
            for (const std::int32_t factor : term.factors) {
                if (factor < 0 || static_cast<std::size_t>(factor) >= annotation.dimensions.size())
                    return broken(op, "its annotation has a factor out of range");
                const Dimension &dimension = annotation.dimensions[static_cast<std::size_t>(factor)];
                if (dimension.size == 1)
                    continue;
                const bool twice = std::find(seen.begin(), seen.end(), factor) != seen.end();
                if ((behindFirst || twice) && dimension.mark != DimensionMark::Frozen) {
                    return broken(op,
                        "'" + dimension.name + "' may be split, but would not cut boxes in '"
                            + toString(annotation, terms) + "'");
                }
                behindFirst = true;
                seen.push_back(factor);
            }
        }
        if (!id)
            return {};
        const Tensor &tensor = m_graph.at(id);
        bool fits = terms.terms.size() == tensor.type.shape.size();
        for (std::size_t i = 0; fits && i < terms.terms.size(); ++i) {
            std::int64_t extent = 1;
            for (const std::int32_t factor : terms.terms[i].factors)
                extent *= annotation.dimensions[static_cast<std::size_t>(factor)].size;
            if (terms.terms[i].reach != WindowReach::Own && terms.terms[i].reach != WindowReach::Met)
                extent = findWindow(annotation, terms.terms[i].factors[0])->extent;
            fits = extent == tensor.type.shape[i];
        }
        if (!fits) {
            return broken(op,
                "'" + toString(annotation, terms) + "' of its annotation does not fit '" + tensor.name
                    + "' of shape " + toString(tensor.type.shape));
        }
        return {};
    }

    /// Which roles each part of the step may make.
    Result<void> checkRoles(const Operator &op) const
    {
        for (const TensorId id : op.outputs) {
            if (!id)
                continue;
            const Tensor &tensor = m_graph.at(id);
            const bool activation = tensor.role == TensorRole::Activation;
            const bool stored =
                tensor.role == TensorRole::Weight || tensor.role == TensorRole::OptimizerState;
            const bool allowed = op.direction == Direction::Forward ? activation
                : op.direction == Direction::Backward ? activation || tensor.role == TensorRole::Gradient
                                                      : activation || stored;
            if (!allowed)
                return broken(
                    op, "makes '" + tensor.name + "', whose role does not belong to this part of the step");
        }
        for (const TensorId id : op.inputs) {
            if (!id)
                continue;
            const TensorRole role = m_graph.at(id).role;
            if (op.direction == Direction::Forward
                && (role == TensorRole::Gradient || role == TensorRole::OptimizerState))
                return broken(op, "reads '" + m_graph.at(id).name + "' in the forward pass");
            if (op.direction == Direction::Backward && role == TensorRole::OptimizerState)
                return broken(op, "reads '" + m_graph.at(id).name + "' in the backward pass");
        }
        return {};
    }

    Result<void> checkMirror(OperatorId id)
    {
        const Operator &op = m_graph.at(id);
        if (op.direction == Direction::Optimizer) {
            if (op.mirror)
                return broken(op, "is an optimizer operator with a mirror");
            return {};
        }
        if (!op.mirror) {
            if (op.direction == Direction::Backward)
                return broken(op, "is a backward operator without its forward");
            return {};
        }
        const Operator &other = m_graph.at(op.mirror);
        const Direction expected =
            op.direction == Direction::Forward ? Direction::Backward : Direction::Forward;
        if (other.mirror != id || other.direction != expected)
            return broken(op, "its mirror '" + other.name + "' does not mirror it");
        if (op.direction == Direction::Forward)
            return {};
        if (m_lastMirror && op.mirror > m_lastMirror)
            return broken(op, "the backward operators are not in the reverse order of the forward ones");
        m_lastMirror = op.mirror;
        return checkBackward(op, other);
    }

    Result<void> checkBackward(const Operator &op, const Operator &forward) const
    {
        if (op.kind != forward.kind || op.attributes != forward.attributes)
            return broken(op, "differs from its forward in kind or attributes");
        const std::size_t outputs = forward.outputs.size();
        const std::size_t inputs = forward.inputs.size();
        if (op.inputs.size() != 2 * outputs + inputs || op.outputs.size() != inputs) {
            return broken(op,
                "expected " + std::to_string(2 * outputs + inputs) + " inputs and " + std::to_string(inputs)
                    + " outputs, found " + std::to_string(op.inputs.size()) + " and "
                    + std::to_string(op.outputs.size()));
        }
        for (std::size_t i = 0; i < outputs; ++i) {
            if (!isGradientOf(op.inputs[i], forward.outputs[i]))
                return broken(
                    op, "input " + std::to_string(i) + " is not the gradient of its forward's output");
            const TensorId saved = op.inputs[outputs + inputs + i];
            if (saved && saved != forward.outputs[i])
                return broken(
                    op, "input " + std::to_string(outputs + inputs + i) + " is not its forward's output");
        }
        for (std::size_t i = 0; i < inputs; ++i) {
            if (op.inputs[outputs + i] && op.inputs[outputs + i] != forward.inputs[i])
                return broken(op, "input " + std::to_string(outputs + i) + " is not its forward's input");
            if (!isGradientOf(op.outputs[i], forward.inputs[i]))
                return broken(
                    op, "output " + std::to_string(i) + " is not the gradient of its forward's input");
        }
        const auto &own = op.annotation.dimensions;
        const auto &theirs = forward.annotation.dimensions;
        const auto alike = [](const Dimension &a, const Dimension &b) {
            return a.name == b.name && a.size == b.size;
        };
        if (!std::equal(own.begin(), own.end(), theirs.begin(), theirs.end(), alike)
            || op.annotation.windows != forward.annotation.windows)
            return broken(op, "its annotation has other dimensions than its forward's");
        return {};
    }

    /// Absent, or the gradient of `tensor`; that of the loss may be a constant.
    bool isGradientOf(TensorId gradient, TensorId tensor) const
    {
        if (!gradient)
            return true;
        const Tensor &found = m_graph.at(gradient);
        if (found.role == TensorRole::Gradient)
            return found.of == tensor;
        return tensor && tensor == m_graph.loss && found.type == m_graph.at(tensor).type;
    }

    const Graph &m_graph;
    OperatorId m_lastMirror{}; ///< Forward of the backward operator before.
};

} // namespace

Result<void> validate(const Graph &graph)
{
    return Validator(graph).run();
}

} // namespace planloom
