#pragma once

#include "engine/base/ids.h"
#include "engine/base/inline_vector.h"
#include "engine/graph/shape.h"

#include <compare>
#include <optional>
#include <string>

namespace planloom {

/// Half-open interval [begin, end) along one dimension.
struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;

    std::int64_t size() const { return end - begin; }
    friend auto operator<=>(const Range &, const Range &) = default;
};

/// Index mask of a vTensor: which box of its pTensor it is, one range per dimension, in the pTensor's
/// coordinates. Empty for a scalar. (nnScaler, OSDI '24, section 3.1)
struct IndexMask {
    InlineVector<Range, 4> ranges{};

    friend auto operator<=>(const IndexMask &, const IndexMask &) = default;
};

/// The mask that covers all of `shape`.
IndexMask wholeMask(const Shape &shape);

/// Extents of the box.
Shape shapeOf(const IndexMask &mask);

/// Common part of two boxes of one pTensor; nothing if they are disjoint (a scalar meets itself).
std::optional<IndexMask> intersection(const IndexMask &a, const IndexMask &b);

/// True if `outer` covers all of `inner`.
bool contains(const IndexMask &outer, const IndexMask &inner);

/// Value mask of a vTensor: it is summand `index` out of `count` that together make the value; {0, 1} is
/// the complete value. (nnScaler, OSDI '24, section 3.1)
struct ValueMask {
    std::int32_t index = 0;
    std::int32_t count = 1;

    bool complete() const { return count == 1; }
    friend auto operator<=>(const ValueMask &, const ValueMask &) = default;
};

/// The paper's vTensor: one operator's view of a pTensor.
struct TensorView {
    TensorId tensor{};
    IndexMask index{};
    ValueMask value{};

    friend auto operator<=>(const TensorView &, const TensorView &) = default;
};

/// "[0:8 0:64] 1/2" (the value mask only where it is not complete).
std::string toString(const IndexMask &mask);
std::string toString(const TensorView &view);

} // namespace planloom
