#pragma once

#include "engine/graph/annotation/combination.h"
#include "engine/graph/operators/mask.h"
#include "engine/graph/shape.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace planloom {

/// Copies `region` from a dense row-major box to another. All masks are in the coordinates of one pTensor;
/// both boxes contain `region`, and do not overlap in memory. O(elements of `region`).
void copyBox(const std::byte *from, const IndexMask &fromBox, std::byte *to, const IndexMask &toBox,
    const IndexMask &region, std::int64_t elementSize);

/// As `copyBox`, adding to what is there. Floating and integer types; false for others (bool).
bool addBox(const std::byte *from, const IndexMask &fromBox, std::byte *to, const IndexMask &toBox,
    const IndexMask &region, DataType type);

/// to[i] = sum over `from` of from[k][i], added in the order of `from`, for `count` elements. `to` may be one
/// of `from`. Narrow floats are added as floats, and rounded once. False for types that cannot be added.
bool sumInto(std::byte *to, std::span<const std::byte *const> from, std::size_t count, DataType type);

/// As `sumInto`, for any combination: log-sum-exp is that of floats alone. A log-sum-exp of nothing but minus
/// infinities is minus infinity; a NaN stays one in all of them.
bool combineInto(std::byte *to, std::span<const std::byte *const> from, std::size_t count, DataType type,
    Combination combination);

/// `rows` rows of `width` elements: to = from * exp(own - all), with one `own` and one `all` for each row,
/// both of type `weightType`. 0 where `own` is minus infinity. False for types other than floats.
bool weighInto(std::byte *to, const std::byte *from, DataType type, const std::byte *own,
    const std::byte *all, DataType weightType, std::size_t rows, std::size_t width);

/// Means under a softmax over two sets of elements, one for each of `rows` rows of `width` elements, with the
/// sets' log-sum-exps: that over both, and its log-sum-exp in `logarithms`. A set of weight 0 (minus
/// infinity) adds nothing. `to` may be `from[0]`. False for types other than floats.
bool mergeInto(std::byte *to, std::byte *logarithms, const std::array<const std::byte *, 2> &from,
    const std::array<const std::byte *, 2> &own, DataType type, DataType weightType, std::size_t rows,
    std::size_t width);

/// to[i] += from[i]. False for types that cannot be added.
bool addInto(std::byte *to, const std::byte *from, std::size_t count, DataType type);

/// to[i] += from[i] for floats of another type, such as narrow ones that add up in Float32. False for other
/// types.
bool addConverted(
    std::byte *to, DataType toType, const std::byte *from, DataType fromType, std::size_t count);

/// True for the types `sumInto` takes.
bool canAdd(DataType type);
/// True for the types `combineInto` takes.
bool canCombine(DataType type, Combination combination);

/// Elements in a box; 1 for a scalar.
std::int64_t elementCount(const IndexMask &box);

} // namespace planloom
