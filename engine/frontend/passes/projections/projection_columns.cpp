#include "engine/frontend/passes/projections/projection_columns.h"

#include <functional>
#include <numeric>

namespace planloom {

namespace {

std::int64_t elementsBefore(const Shape &shape, std::size_t axis)
{
    return std::accumulate(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis), std::int64_t{1},
        std::multiplies<>());
}

/// The first dimension of `out` other than of extent 1 with `before` elements before it.
std::optional<std::size_t> dimensionAfter(const Shape &out, std::int64_t before)
{
    std::int64_t passed = 1;
    for (std::size_t d = 0; d < out.size() && passed <= before; ++d) {
        if (passed == before && out[d] != 1)
            return d;
        passed *= out[d];
    }
    return std::nullopt;
}

} // namespace

bool passesColumns(OperatorKind kind)
{
    return isElementwise(kind) || kind == OperatorKind::Cast;
}

std::optional<std::size_t> keptBy(const Shape &in, const Shape &out, std::size_t axis)
{
    const auto to = dimensionAfter(out, elementsBefore(in, axis));
    return to && out[*to] == in[axis] ? to : std::nullopt;
}

std::optional<std::size_t> dividedBy(const Shape &in, const Shape &out, std::size_t axis)
{
    const auto to = dimensionAfter(out, elementsBefore(in, axis));
    return to && in[axis] % out[*to] == 0 ? to : std::nullopt;
}

std::optional<Cut> cutOf(const Graph &graph, const Operator &op, std::size_t axis)
{
    const Shape &in = graph.at(op.inputs[0]).type.shape;
    Cut cut;
    if (op.kind == OperatorKind::Split) {
        if (op.attributes.integer("axis") != static_cast<std::int64_t>(axis))
            return std::nullopt;
        cut.lengths = op.attributes.integers("sizes");
        cut.begins.assign(cut.lengths.size(), 0);
        std::partial_sum(cut.lengths.begin(), cut.lengths.end() - 1, cut.begins.begin() + 1);
        return cut;
    }
    if (op.kind != OperatorKind::Slice)
        return std::nullopt;
    const auto starts = op.attributes.integers("starts");
    const auto steps = op.attributes.integers("steps");
    const Shape &out = graph.at(op.outputs[0]).type.shape;
    for (std::size_t d = 0; d < in.size(); ++d) {
        if (steps[d] != 1 || (d != axis && (starts[d] != 0 || out[d] != in[d])))
            return std::nullopt;
    }
    return Cut{{starts[axis]}, {out[axis]}};
}

ProjectionPass::ProjectionPass(Graph &graph)
    : m_graph(graph)
    , m_users(graph.tensors.size())
    , m_isOutput(graph.tensors.size(), false)
{
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        for (const TensorId id : graph.operators[i].inputs) {
            if (id && (usersOf(id).empty() || usersOf(id).back() != static_cast<std::int32_t>(i)))
                m_users[index(id)].push_back(static_cast<std::int32_t>(i));
        }
    }
    for (const TensorId id : graph.outputs)
        m_isOutput[index(id)] = true;
    if (graph.loss)
        m_isOutput[index(graph.loss)] = true;
}

bool ProjectionPass::isProjection(const Operator &op) const
{
    return op.kind == OperatorKind::Linear && op.inputs.size() >= 2 && op.inputs[1]
        && shapeOf(op.inputs[1]).size() == 2;
}

bool ProjectionPass::isAlone(const Operator &op, TensorId columns) const
{
    return std::all_of(op.inputs.begin(), op.inputs.end(), [&](TensorId id) {
        return !id || id == columns || (shapeOf(id).size() <= 1 && elementCount(shapeOf(id)) == 1);
    });
}

std::size_t transposedAxis(const Operator &transpose, std::size_t axis)
{
    const auto permutation = transpose.attributes.integers("permutation");
    const auto to = std::find(permutation.begin(), permutation.end(), static_cast<std::int64_t>(axis));
    return static_cast<std::size_t>(to - permutation.begin());
}

} // namespace planloom
