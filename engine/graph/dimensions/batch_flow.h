#pragma once

// Where the samples of a mini-batch lie in tensors and operators, wherever they can be followed.

#include "engine/graph/graph.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// Where a tensor has the samples of the mini-batch: dimension `dimension` counts, from the outside to the
/// inside, `before` other things, `count` samples, and whatever is left. A [length*batch width] has {0,
/// length, batch}. Only with `before` 1 are the samples of one part of the batch a box of the tensor.
struct BatchPlace {
    std::int32_t dimension = -1; ///< -1: it has none.
    std::int64_t before = 1;
    std::int64_t count = 1;
    bool valid() const { return dimension >= 0; }
    friend bool operator==(const BatchPlace &, const BatchPlace &) = default;
};

/// An operator that cannot work on a part of the batch by itself.
struct BatchObstacle {
    OperatorId op{};
    std::string reason{}; ///< "needs dimension 0 of 'loss', which holds the batch, whole"
    bool joins = false; ///< A Reshape that joins another dimension with the batch, outside of it.
    friend bool operator==(const BatchObstacle &, const BatchObstacle &) = default;
};

/// The batch, followed through the forward operators, and from them to their backward ones.
struct BatchFlow {
    std::vector<BatchPlace> places{}; ///< By tensor.
    /// By operator: the identifier of its annotation along which it may be cut to cut the batch; -1 where
    /// none.
    std::vector<std::int32_t> operatorDimension{};
    std::vector<BatchObstacle> obstacles{}; ///< In the order of the operators.
};

/// Follows the batch from dimension `inputDimensions[i]` of input i (-1: it has none of it). Behind an
/// operator that needs the whole batch it goes on where an output has as many elements along the same
/// dimension.
///
/// What is found is where a partition may cut: any cut of an operator's identifier is right, so nothing here
/// says that micro-batches leave the result as it is (`analyseBatch` does). O(operators + tensors).
BatchFlow followBatch(const Graph &graph, const std::vector<std::int32_t> &inputDimensions);

} // namespace planloom
