#pragma once

#include "engine/kernels/elements/vector_math.h"

#include <cstdint>

namespace planloom {

/// How the rows of a norm lie, and which scale and bias belong to each: element i of row r has those at
/// affineOffset(r) + i affineStep().
struct NormRows {
    std::int64_t rows = 1;
    std::int64_t width = 1;
    std::int64_t channels = 0; ///< InstanceNorm: scale and bias of row r are those of channel r % channels.
    bool centred = true;
    double epsilon = 1e-5;

    PLANLOOM_INLINE std::int64_t affineSize() const { return channels != 0 ? channels : width; }
    PLANLOOM_INLINE std::int64_t affineOffset(std::int64_t row) const
    {
        return channels != 0 ? row % channels : 0;
    }
    PLANLOOM_INLINE std::int64_t affineStep() const { return channels != 0 ? 0 : 1; }
};

} // namespace planloom
