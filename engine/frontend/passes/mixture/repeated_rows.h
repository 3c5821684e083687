#pragma once

#include "engine/graph/tensor.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace planloom {

/// The distinct ones of the rows that a tensor consists of, and which of them is at each place.
struct RepeatedRows {
    /// Along which the elements of one row lie; as many as there are dimensions: rows of one element.
    std::size_t axis = 0;
    std::vector<std::byte> table{}; ///< One row behind the other, by their first places.
    std::vector<std::int64_t> places{}; ///< In the order of the other dimensions.
    std::int64_t count = 0;
};

/// O(elements).
RepeatedRows rowsAlong(const TensorData &data, std::size_t axis);

/// Leaves one of several equal slices along a dimension.
/// @return false if they are not equal, or there is only one
bool keepEqualSlice(TensorData &data, std::size_t axis);

/// True if single elements may well be equal by accident: numbers of few digits, such as those of bfloat16.
bool isCoarse(const TensorData &data);

} // namespace planloom
