#include "engine/frontend/passes/fuse/attention_writer.h"

#include <algorithm>

namespace planloom {

namespace {

/// Where dimension `axis` of a Transpose's output is in its input.
std::size_t axisBefore(const Operator &transpose, std::size_t axis)
{
    return static_cast<std::size_t>(transpose.attributes.integers("permutation")[axis]);
}

} // namespace

bool keepsMatrices(const Shape &a, const Shape &b)
{
    return a.size() >= 3 && b.size() >= 3 && a.back() == b.back() && a[a.size() - 2] == b[b.size() - 2];
}

TensorId AttentionWriter::reshaped(TensorId id, const Shape &shape)
{
    for (;;) {
        if (m_editor.shape(id) == shape)
            return id;
        const Operator *made = m_editor.madeBy(id, OperatorKind::Reshape);
        if (made == nullptr)
            return make(OperatorKind::Reshape, id, shape, "shaped");
        id = made->inputs[0];
    }
}

TensorId AttentionWriter::turned(TensorId id)
{
    Shape shape = m_editor.shape(id);
    const std::size_t rank = shape.size();
    std::swap(shape[rank - 1], shape[rank - 2]);
    const Operator *made = m_editor.maker(id);
    const bool through = made != nullptr && made->kind == OperatorKind::Reshape
        && keepsMatrices(m_editor.shape(made->inputs[0]), m_editor.shape(id))
        && m_editor.madeBy(made->inputs[0], OperatorKind::Transpose) != nullptr;
    if (through)
        return reshaped(turned(made->inputs[0]), shape);
    std::vector<std::int64_t> permutation;
    for (std::size_t i = 0; i < rank; ++i)
        permutation.push_back(static_cast<std::int64_t>(i));
    TensorId from = id;
    if (made != nullptr && made->kind == OperatorKind::Transpose) {
        permutation = made->attributes.integers("permutation");
        from = made->inputs[0];
    }
    std::swap(permutation[rank - 1], permutation[rank - 2]);
    if (std::is_sorted(permutation.begin(), permutation.end()))
        return from;
    const TensorId to = make(OperatorKind::Transpose, from, shape, "turned");
    m_made.back().attributes.set("permutation", permutation);
    return to;
}

TensorId AttentionWriter::negated(TensorId id)
{
    if (const Operator *made = m_editor.madeBy(id, OperatorKind::Not))
        return made->inputs[0];
    return make(OperatorKind::Not, id, Shape(m_editor.shape(id)), "shown");
}

std::int64_t AttentionWriter::copiesAlong(TensorId id, std::size_t axis) const
{
    const Operator *made = maker(id);
    const Shape &shape = m_editor.shape(id);
    if (made == nullptr)
        return 1;
    if (made->kind == OperatorKind::Transpose)
        return copiesAlong(made->inputs[0], axisBefore(*made, axis));
    if (made->kind == OperatorKind::Rotary) {
        const auto alike = [&](TensorId angles) {
            const Shape &own = m_editor.shape(angles);
            const std::size_t left = shape.size() - own.size();
            return axis < left || own[axis - left] == 1;
        };
        return alike(made->inputs[1]) && alike(made->inputs[2]) ? copiesAlong(made->inputs[0], axis) : 1;
    }
    const Operator *expand = expandBefore(id);
    if (expand == nullptr)
        return 1;
    const Shape &in = m_editor.shape(expand->inputs[0]);
    const Shape &out = m_editor.shape(expand->outputs[0]);
    if (in.size() != out.size())
        return 1;
    const auto differs =
        std::mismatch(in.begin(), in.end(), out.begin()).first - in.begin(); // the first that does
    const auto at = static_cast<std::size_t>(differs);
    const std::size_t behind = shape.size() - axis - 1;
    if (at == out.size() || !std::equal(in.begin() + differs + 1, in.end(), out.begin() + differs + 1)
        || out.size() - at - 1 != behind
        || !std::equal(out.end() - static_cast<std::ptrdiff_t>(behind), out.end(),
            shape.end() - static_cast<std::ptrdiff_t>(behind))
        || out[at] < 1 || shape[axis] % out[at] != 0)
        return 1;
    return out[at];
}

TensorId AttentionWriter::beforeCopies(TensorId id, std::size_t axis, std::int64_t copies)
{
    Shape shape = m_editor.shape(id);
    shape[axis] /= copies;
    const Operator *last = maker(id);
    if (last->kind != OperatorKind::Transpose && last->kind != OperatorKind::Rotary)
        return reshaped(expandBefore(id)->inputs[0], shape);
    Operator made = *last;
    const bool turns = made.kind == OperatorKind::Transpose;
    made.inputs[0] = beforeCopies(made.inputs[0], turns ? axisBefore(made, axis) : axis, copies);
    const TensorType type{m_editor.tensor(id).type.dataType, std::move(shape)};
    made.name.clear();
    made.sources.clear();
    made.outputs = {m_editor.addTensor(type, id, "once")};
    m_made.push_back(std::move(made));
    return m_made.back().outputs.front();
}

TensorId AttentionWriter::make(OperatorKind kind, TensorId from, Shape shape, const char *suffix)
{
    const TensorType type{m_editor.tensor(from).type.dataType, std::move(shape)};
    Operator op;
    op.kind = kind;
    op.inputs = {from};
    op.outputs = {m_editor.addTensor(type, from, suffix)};
    m_made.push_back(std::move(op));
    return m_made.back().outputs.front();
}

const Operator *AttentionWriter::maker(TensorId id) const
{
    const auto found = std::find_if(
        m_made.begin(), m_made.end(), [id](const Operator &op) { return op.outputs.front() == id; });
    return found != m_made.end() ? &*found : m_editor.maker(id);
}

const Operator *AttentionWriter::expandBefore(TensorId id) const
{
    const Operator *made = maker(id);
    while (made != nullptr && made->kind == OperatorKind::Reshape)
        made = maker(made->inputs[0]);
    return made != nullptr && made->kind == OperatorKind::Expand ? made : nullptr;
}

} // namespace planloom
