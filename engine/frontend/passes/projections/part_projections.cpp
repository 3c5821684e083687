#include "engine/frontend/passes/projections/part_projections.h"

#include "engine/frontend/passes/projections/divide_projections.h"
#include "engine/frontend/passes/projections/projection_columns.h"
#include "engine/frontend/unique_names.h"
#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace planloom {

namespace {

/// What the parts of one product's columns entail.
struct Parting {
    std::int32_t parts = 0;
    TensorId weight{};
    TensorId bias{};
    std::map<TensorId, Shape> shapes{}; ///< Of activations, now.
    std::map<std::int32_t, Attributes> attributes{}; ///< By operator.
    std::set<TensorId> narrowed{}; ///< Pieces, which have a dimension of size 1 more now.
};

class ProjectionParter : ProjectionPass
{
public:
    explicit ProjectionParter(Graph &graph)
        : ProjectionPass(graph)
    {
    }

    std::int32_t run();

private:
    std::optional<Parting> partingOf(std::int32_t product) const;
    std::optional<Parting> partedBy(TensorId columns, std::size_t axis, int steps) const;
    bool isTakenApart(TensorId tensor, std::size_t axis, int steps) const;
    void follow(Parting &parting, TensorId tensor, std::size_t axis) const;
    void apply();
    void applyToParameter(TensorId id, std::int32_t parts, bool partsFirst);
    void widen(const Parting &parting, std::vector<std::vector<TensorId>> &narrowedBy);

    std::map<std::int32_t, Parting> m_partings{}; ///< By product.
};

/// True if a Split, Slice or Gather takes the places along dimension `axis` apart.
bool ProjectionParter::isTakenApart(TensorId tensor, std::size_t axis, int steps) const
{
    using enum OperatorKind;
    if (steps > kMostStepsToCut || m_isOutput[index(tensor)] || usersOf(tensor).empty())
        return false;
    const auto takes = [&](std::int32_t user) {
        const Operator &op = at(user);
        switch (op.kind) {
        case Split:
        case Slice:
            return cutOf(m_graph, op, axis).has_value();
        case Gather:
            return op.inputs[0] == tensor && op.inputs[1] != tensor
                && op.attributes.integer("axis") == static_cast<std::int64_t>(axis);
        case Transpose:
            return isTakenApart(op.outputs[0], transposedAxis(op, axis), steps + 1);
        case Reshape: {
            const auto to = keptBy(shapeOf(tensor), shapeOf(op.outputs[0]), axis);
            return to && isTakenApart(op.outputs[0], *to, steps + 1);
        }
        default:
            return passesColumns(op.kind) && shapeOf(op.outputs[0]) == shapeOf(tensor)
                && isTakenApart(op.outputs[0], axis, steps + 1);
        }
    };
    return std::all_of(usersOf(tensor).begin(), usersOf(tensor).end(), takes);
}

/// How the columns in dimension `axis` are taken apart, if they are: only the number of parts is set.
std::optional<Parting> ProjectionParter::partedBy(TensorId columns, std::size_t axis, int steps) const
{
    using enum OperatorKind;
    if (steps > kMostStepsToCut || m_isOutput[index(columns)] || usersOf(columns).empty())
        return std::nullopt;
    const Shape &shape = shapeOf(columns);
    const auto inParts = [](std::int64_t parts) -> std::optional<Parting> {
        if (parts < 2 || parts > std::numeric_limits<std::int32_t>::max())
            return std::nullopt;
        Parting parting;
        parting.parts = static_cast<std::int32_t>(parts);
        return parting;
    };
    const Operator &first = at(usersOf(columns).front());
    if (first.kind == Split || first.kind == Slice) {
        std::int64_t length = 0;
        for (const std::int32_t user : usersOf(columns)) {
            const auto cut = cutOf(m_graph, at(user), axis);
            if (!cut)
                return std::nullopt;
            for (std::size_t i = 0; i < cut->lengths.size(); ++i) {
                if (length == 0)
                    length = cut->lengths[i];
                if (length < 2 || cut->lengths[i] != length || cut->begins[i] % length != 0)
                    return std::nullopt;
            }
        }
        return shape[axis] % length == 0 ? inParts(shape[axis] / length) : std::nullopt;
    }
    if (usersOf(columns).size() != 1)
        return std::nullopt;
    const TensorId next = first.outputs.empty() ? TensorId{} : first.outputs[0];
    switch (first.kind) {
    case Transpose:
        return partedBy(next, transposedAxis(first, axis), steps + 1);
    case Reshape: {
        const Shape &out = shapeOf(next);
        if (const auto to = keptBy(shape, out, axis))
            return partedBy(next, *to, steps + 1);
        const auto to = dividedBy(shape, out, axis);
        if (!to)
            return std::nullopt;
        // Heads of all parts in one dimension, [b s 3*heads d]; else the parts themselves.
        if (auto parting = partedBy(next, *to, steps + 1))
            return parting;
        return isTakenApart(next, *to, steps + 1) ? inParts(out[*to]) : std::nullopt;
    }
    default:
        return passesColumns(first.kind) && isAlone(first, columns) && shapeOf(next) == shape
            ? partedBy(next, axis, steps + 1)
            : std::nullopt;
    }
}

std::optional<Parting> ProjectionParter::partingOf(std::int32_t product) const
{
    const Operator &op = at(product);
    if (!isProjection(op))
        return std::nullopt;
    const auto isStored = [this](TensorId id) {
        const TensorRole role = m_graph.at(id).role;
        return role == TensorRole::Weight || role == TensorRole::Buffer;
    };
    // What is computed (a bias of several, joined) has the shape that its operator makes.
    const bool hasBias = op.inputs.size() > 2 && op.inputs[2];
    if (!isStored(op.inputs[1]) || (hasBias && !isStored(op.inputs[2])))
        return std::nullopt;
    const std::size_t axis = shapeOf(op.outputs[0]).size() - 1;
    auto parting = partedBy(op.outputs[0], axis, 0);
    if (!parting)
        return std::nullopt;
    parting->weight = op.inputs[1];
    if (hasBias)
        parting->bias = op.inputs[2];
    follow(*parting, op.outputs[0], axis);
    return parting;
}

/// Writes down what becomes of `tensor`, whose dimension `axis` is two now, and of what follows from it.
void ProjectionParter::follow(Parting &parting, TensorId tensor, std::size_t axis) const
{
    using enum OperatorKind;
    const Shape &old = shapeOf(tensor);
    const auto at64 = static_cast<std::ptrdiff_t>(axis);
    const std::int64_t length = old[axis] / parting.parts;
    Shape now = old;
    now[axis] = length;
    now.insert(now.begin() + at64, parting.parts);
    parting.shapes[tensor] = now;
    for (const std::int32_t user : usersOf(tensor)) {
        const Operator &op = at(user);
        Attributes attributes = op.attributes;
        switch (op.kind) {
        case Split:
            attributes.set("sizes", std::vector<std::int64_t>(op.outputs.size(), 1));
            break;
        case Slice: {
            auto starts = attributes.integers("starts");
            auto steps = attributes.integers("steps");
            starts.insert(starts.begin() + at64, starts[axis] / length);
            starts[axis + 1] = 0;
            steps.insert(steps.begin() + at64, 1);
            attributes.set("starts", std::move(starts));
            attributes.set("steps", std::move(steps));
            break;
        }
        case Transpose: {
            std::vector<std::int64_t> permutation;
            for (const std::int64_t from : attributes.integers("permutation")) {
                const auto place = static_cast<std::int64_t>(axis);
                permutation.push_back(from > place ? from + 1 : from);
                if (from == place)
                    permutation.push_back(from + 1);
            }
            attributes.set("permutation", std::move(permutation));
            parting.attributes[user] = std::move(attributes);
            follow(parting, op.outputs[0], transposedAxis(op, axis));
            continue;
        }
        case Reshape: {
            const Shape &out = shapeOf(op.outputs[0]);
            if (const auto to = keptBy(old, out, axis)) {
                follow(parting, op.outputs[0], *to);
            } else {
                const auto first = dividedBy(old, out, axis);
                if (out[*first] != parting.parts) // else the parts are apart already
                    follow(parting, op.outputs[0], *first);
            }
            continue;
        }
        default: // elementwise
            follow(parting, op.outputs[0], axis);
            continue;
        }
        parting.attributes[user] = std::move(attributes);
        for (const TensorId piece : op.outputs) {
            if (!piece)
                continue;
            Shape narrow = now;
            narrow[axis] = 1;
            parting.shapes[piece] = std::move(narrow);
            parting.narrowed.insert(piece);
        }
    }
}

void ProjectionParter::applyToParameter(TensorId id, std::int32_t parts, bool partsFirst)
{
    Tensor &tensor = m_graph.at(id);
    if (!tensor.fileShape.empty())
        return; // shared, and done already
    tensor.fileShape = tensor.type.shape;
    Shape &shape = tensor.type.shape;
    const std::size_t axis = partsFirst ? 0 : shape.size() - 1;
    shape[axis] /= parts;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), parts);
    if (tensor.data) {
        auto data = std::make_shared<TensorData>(*tensor.data);
        data->type.shape = shape;
        tensor.data = std::move(data);
    }
}

/// Pieces [.. 1 h] that others than reshapes read as [.. h] get a reshape.
void ProjectionParter::widen(const Parting &parting, std::vector<std::vector<TensorId>> &narrowedBy)
{
    for (const auto &[op, attributes] : parting.attributes) {
        for (const TensorId piece : m_graph.operators[static_cast<std::size_t>(op)].outputs) {
            if (!piece || !parting.narrowed.contains(piece))
                continue;
            const bool reshaped = !m_isOutput[index(piece)]
                && std::all_of(usersOf(piece).begin(), usersOf(piece).end(),
                    [&](std::int32_t user) { return at(user).kind == OperatorKind::Reshape; });
            if (!reshaped)
                narrowedBy[static_cast<std::size_t>(op)].push_back(piece);
        }
    }
}

void ProjectionParter::apply()
{
    std::vector<std::vector<TensorId>> narrowedBy(m_graph.operators.size());
    for (const auto &[product, parting] : m_partings)
        widen(parting, narrowedBy);
    UniqueNames tensorNames = UniqueNames::ofTensors(m_graph);
    UniqueNames operatorNames = UniqueNames::ofOperators(m_graph);
    std::vector<Shape> wide(m_graph.tensors.size()); // of pieces, before
    for (const auto &[product, parting] : m_partings) {
        const bool transposed = at(product).attributes.integer("transposed") != 0;
        applyToParameter(parting.weight, parting.parts, transposed);
        if (parting.bias)
            applyToParameter(parting.bias, parting.parts, true);
        for (const auto &[tensor, shape] : parting.shapes)
            wide[index(tensor)] = std::exchange(m_graph.at(tensor).type.shape, shape);
        for (const auto &[op, attributes] : parting.attributes)
            m_graph.operators[static_cast<std::size_t>(op)].attributes = attributes;
    }
    std::vector<Operator> operators;
    operators.reserve(m_graph.operators.size());
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        const std::size_t cutter = operators.size();
        operators.push_back(std::move(m_graph.operators[i]));
        // A piece keeps its id for those who read it; what is cut off gets a new one.
        for (const TensorId piece : narrowedBy[i]) {
            Tensor narrow = m_graph.at(piece);
            narrow.name = tensorNames.take(narrow.name + ".part");
            m_graph.at(piece).type.shape = wide[index(piece)];
            const TensorId made{static_cast<std::int32_t>(m_graph.tensors.size())};
            m_graph.tensors.push_back(std::move(narrow));
            std::vector<TensorId> &pieces = operators[cutter].outputs;
            std::replace(pieces.begin(), pieces.end(), piece, made);
            Operator reshape;
            reshape.name = operatorNames.take(operators[cutter].name + ".part");
            reshape.kind = OperatorKind::Reshape;
            reshape.inputs = {made};
            reshape.outputs = {piece};
            reshape.scope = operators[cutter].scope;
            reshape.sources = operators[cutter].sources;
            operators.push_back(std::move(reshape));
        }
    }
    m_graph.operators = std::move(operators);
}

std::int32_t ProjectionParter::run()
{
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        if (auto parting = partingOf(static_cast<std::int32_t>(i)))
            m_partings.emplace(static_cast<std::int32_t>(i), *std::move(parting));
    }
    // A weight that several products share, or a bias, has one shape for all of them.
    keepAgreed(
        m_partings, [](const Parting &other, const Parting &own, bool) { return other.parts == own.parts; });
    if (m_partings.empty())
        return 0;
    std::set<TensorId> weights;
    for (const auto &[product, parting] : m_partings)
        weights.insert(parting.weight);
    apply();
    return static_cast<std::int32_t>(weights.size());
}

} // namespace

std::int32_t partProjections(Graph &graph)
{
    const std::int32_t divided = divideProjections(graph);
    return divided + ProjectionParter(graph).run();
}

} // namespace planloom
