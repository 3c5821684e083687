#pragma once

#include "engine/frontend/passes/fuse/fuse_editor.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace planloom {

/// True if the last two dimensions of both are alike: a reshape of one to the other regroups leading ones.
bool keepsMatrices(const Shape &a, const Shape &b);

/// Puts the operators together that stand for attention as exporters write it.
class AttentionWriter
{
public:
    explicit AttentionWriter(FuseEditor &editor)
        : m_editor(editor)
    {
    }

    /// The same elements in another shape, without the reshapes before.
    TensorId reshaped(TensorId id, const Shape &shape);
    /// With the last two dimensions exchanged: what a transpose before has read, if there is one.
    TensorId turned(TensorId id);
    /// A mask that is true where `id` is false.
    TensorId negated(TensorId id);

    /// How many copies of each place stand beside one another along dimension `axis`: [.. G r ..], expanded
    /// from [.. G 1 ..], in one dimension, before or after a transpose or a rotation of all places alike.
    std::int64_t copiesAlong(TensorId id, std::size_t axis) const;
    /// `id`, in which `copiesAlong` found that many copies, as it is before they are made.
    TensorId beforeCopies(TensorId id, std::size_t axis, std::int64_t copies);

    /// An operator of one input, whose output has the input's data type.
    TensorId make(OperatorKind kind, TensorId from, Shape shape, const char *suffix);
    void add(Operator op) { m_made.push_back(std::move(op)); }
    /// All that was made, in order.
    std::vector<Operator> take() { return std::move(m_made); }

private:
    /// The operator that makes `id`, here or in the graph.
    const Operator *maker(TensorId id) const;
    /// The Expand that makes the elements of `id`, in another shape perhaps.
    const Operator *expandBefore(TensorId id) const;

    FuseEditor &m_editor;
    std::vector<Operator> m_made{};
};

} // namespace planloom
