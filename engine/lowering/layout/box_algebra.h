#pragma once

#include "engine/graph/operators/mask.h"
#include "engine/lowering/layout/layout.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// True if two ascending sets of summands have none in common.
bool disjointSets(const SummandSet &a, const SummandSet &b);

/// Union of two ascending sets of summands, ascending.
SummandSet unionOf(const SummandSet &a, const SummandSet &b);

/// The summands of all of `holdings`, ascending.
SummandSet summandsOf(const std::vector<Holding> &holdings);

/// Number of elements in a box.
std::int64_t volumeOf(const IndexMask &box);

/// The smallest box that holds those of `holdings`, of which there is one at least.
IndexMask boundingBox(const std::vector<Holding> &holdings);

/// The bounding box of `boxes` if they tile it: pairwise disjoint, volumes adding up. O(boxes^2).
std::optional<IndexMask> tiledBox(const std::vector<IndexMask> &boxes);

/// Appends what remains of `box` without `hole` (which lies inside it) to `rest`, as disjoint boxes.
void subtract(const IndexMask &box, const IndexMask &hole, std::vector<IndexMask> &rest);

/// Orders holdings by device.
bool byDevice(const Holding &a, const Holding &b);

} // namespace planloom
