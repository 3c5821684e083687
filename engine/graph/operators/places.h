#pragma once

#include "engine/graph/attributes.h"

#include <cstdint>

namespace planloom {

// Places in tensors that are found from data while a model runs: which tokens go to an expert. Their number
// is not known before, so they have room for so many (a *capacity*), and what is left of it is no place at
// all:
//
//   mask   1 0 1 | 0 0 0 | 1 1 1      a NonZero with room for six in three groups
//   places 0 2   | - -   | 6 7        the ninth element is dropped: its group has no room for it
//
// Gather and GatherND with attribute `groups` pick ones where there is no place (zeros of integers), and
// ScatterND with it writes nothing there: an operator that works row by row in between computes with these
// rows in vain, and neither results nor gradients depend on them. Groups let such operators be cut as the
// batch is: what stands in group g of the places is about group g of the tensor.

/// What stands for no place. So far from all places that adding, multiplying or dividing by sizes leaves it
/// no place.
constexpr std::int64_t kNoPlace = -(std::int64_t{1} << 40);

/// True if an index into something of `extent` elements is no place, rather than wrong.
constexpr bool isNoPlace(std::int64_t index, std::int64_t extent)
{
    return index < -extent && index < -(std::int64_t{1} << 31);
}

/// True if the operator's indices may be no places.
inline bool hasPlaces(const Attributes &attributes)
{
    return attributes.has("groups");
}

} // namespace planloom
