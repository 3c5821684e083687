#pragma once

// Private to the graph room: how rules of annotations (`SplitRule::annotate`) put them together.

#include "engine/graph/annotation/annotation.h"
#include "engine/graph/attributes.h"
#include "engine/graph/operators/operator_kind.h"
#include "engine/graph/tensor.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// True for a dimension that only stands for its size, by which it is named.
bool isLiteral(const Dimension &dimension);

/// The arguments of `annotate`, passed on to the rule of the kind. Inputs that the kind requires are present,
/// and there is an output.
struct AnnotateCall {
    OperatorKind kind;
    const Attributes &attributes;
    const std::vector<TensorType> &inputs;
    const std::vector<bool> &present;
    const std::vector<TensorType> &outputs;

    bool has(std::size_t slot) const
    {
        return slot < inputs.size() && (slot >= present.size() || present[slot]);
    }
    const Shape &in(std::size_t slot) const { return inputs[slot].shape; }
    const Shape &out(std::size_t slot) const { return outputs[slot].shape; }
    std::size_t inRank(std::size_t slot) const { return inputs[slot].shape.size(); }
    std::size_t outRank(std::size_t slot) const { return outputs[slot].shape.size(); }
};

/// Why nothing is annotated where a tensor is absent.
inline std::string missing(const AnnotateCall &call)
{
    return std::string(nameOf(call.kind)) + " lacks an input or an output that it needs";
}

inline std::string misshapen(const AnnotateCall &call)
{
    return std::string(nameOf(call.kind)) + "'s tensors do not have the ranks it needs";
}

inline bool isFloatingCall(const AnnotateCall &call)
{
    return isFloating(call.inputs[0].dataType);
}

constexpr auto kReduce = DimensionMark::Reduce;
constexpr auto kFrozen = DimensionMark::Frozen;

/// Of the dimensions that windows move along, by how many there are.
constexpr std::string_view kSpatialNames[4][3] = {{}, {"l"}, {"h", "w"}, {"d", "h", "w"}};

/// Identifiers of consecutive dimensions, by index into the builder's.
using DimensionList = std::vector<std::int32_t>;

/// Puts one annotation together. Extents of 1 (and 0) are always literals; inputs and outputs that are never
/// set are opaque.
class AnnotationBuilder
{
public:
    /// @param reserved  letters that `fresh` must not use, since the caller names them itself
    AnnotationBuilder(const AnnotateCall &call, std::string_view reserved = {});

    /// A new identifier with the next free letter.
    std::int32_t fresh(std::int64_t size, DimensionMark mark = DimensionMark::Spatial);
    /// The identifier called `name`, made at first use (later uses keep its size and mark).
    std::int32_t named(std::string_view name, std::int64_t size, DimensionMark mark = DimensionMark::Spatial);
    /// The same, Frozen for another reason than the kind's own (`SplitRule::lock`).
    std::int32_t locked(std::string_view name, std::int64_t size, DimensionLock lock);
    /// A literal size.
    std::int32_t literal(std::int64_t size);

    DimensionList freshAll(const Shape &shape, DimensionMark mark = DimensionMark::Spatial);
    DimensionList literals(const Shape &shape);

    /// What an input of extents `shape`, aligned to the right with `dimensions`, has of them: where extents
    /// differ (1 for broadcasting), a literal.
    DimensionList broadcast(const DimensionList &dimensions, const Shape &shape);

    /// A product; factors of size 1 are left out.
    Term compound(const DimensionList &factors);

    void input(std::size_t slot, const DimensionList &dimensions);
    void input(std::size_t slot, std::vector<Term> terms);
    void output(std::size_t slot, const DimensionList &dimensions);
    void output(std::size_t slot, std::vector<Term> terms);
    /// A new identifier called `name` (the next free letter, if empty) that counts `count` windows, if they
    /// can be split; else a literal, and so are the elements.
    struct WindowTerms {
        Term elements{}; ///< Windows of the elements: what a part reads.
        Term windows{};
    };
    WindowTerms windows(std::string_view name, std::int64_t count, Window window);
    void linear(std::vector<std::int32_t> slots) { m_annotation.linearInputs = std::move(slots); }
    /// Parts of output `slot` are combined otherwise than by summing.
    void combines(std::size_t slot, Combination combination)
    {
        m_annotation.combinations.resize(m_annotation.outputs.size(), Combination::Sum);
        m_annotation.combinations[slot] = combination;
    }

    std::int64_t sizeOf(std::int32_t dimension) const
    {
        return m_annotation.dimensions[static_cast<std::size_t>(dimension)].size;
    }

    /// The annotation, identifiers in order of first appearance, those never used dropped.
    /// `problem` says so if a tensor's terms do not multiply up to its shape.
    Annotation finish(const AnnotateCall &call, std::string &problem);

private:
    std::string freeName();
    std::int32_t add(std::string name, std::int64_t size, DimensionMark mark);
    bool nameUsed(std::string_view name) const;

    Annotation m_annotation;
    std::string_view m_reserved;
    int m_nextLetter = 0;
};

/// A term for each of `dimensions`.
std::vector<Term> termsOf(const DimensionList &dimensions);

/// An identifier for each dimension of `shape`, but literals where `isWhole(i)` says so.
template<typename Predicate>
DimensionList literalsWhere(AnnotationBuilder &builder, const Shape &shape, Predicate &&isWhole)
{
    DimensionList list;
    for (std::size_t i = 0; i < shape.size(); ++i)
        list.push_back(isWhole(i) ? builder.literal(shape[i]) : builder.fresh(shape[i]));
    return list;
}

/// An identifier for each dimension of `shape`, with `mark` where `marked(i)` says so.
template<typename Predicate>
DimensionList dimensionsWith(
    AnnotationBuilder &builder, const Shape &shape, DimensionMark mark, Predicate &&marked)
{
    DimensionList list;
    list.reserve(shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i)
        list.push_back(builder.fresh(shape[i], marked(i) ? mark : DimensionMark::Spatial));
    return list;
}

} // namespace planloom
