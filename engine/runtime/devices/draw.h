#pragma once

#include "engine/graph/graph.h"
#include "engine/graph/operators/mask.h"

#include <cstddef>
#include <cstdint>

namespace planloom {

/// How values for a tensor are drawn where there are none.
struct DrawRule {
    double low = 0; ///< Floating tensors: uniform in [low, high).
    double high = 0;
    std::int64_t count = 1; ///< Integer tensors: uniform in [first, first + count).
    std::int64_t first = 0;
};

/// A rule under which the model computes something sensible: scales and variances of norms are 1, other
/// weights are uniform in [-0.05, 0.05), float inputs in [-1, 1); integers that index a table, or name a
/// class, stay below its extent; other integers (masks) are 1.
/// @param uses  of `graph`
/// O(operators that the tensor reaches through movements).
DrawRule drawRule(const Graph &graph, const Uses &uses, TensorId tensor);

/// The seed that batch `batch` of a run of this seed is drawn from; that of the first is the run's own.
std::uint64_t seedOfBatch(std::uint64_t seed, std::int64_t batch);

/// Fills `box` of `tensor` with values that depend on seed, name and index in the whole tensor alone (those
/// by which files know it), so that every plan draws the same.
void draw(
    const Tensor &tensor, const DrawRule &rule, std::uint64_t seed, const IndexMask &box, std::byte *to);

} // namespace planloom
