#pragma once

#include "engine/simulate/simulate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace planloom {

/// The most bytes of a kind at any time.
inline std::int64_t most(const MemoryCurve &curve, MemoryKind kind)
{
    std::int64_t result = 0;
    for (const auto &bytes : curve.bytes)
        result = std::max(result, bytes[static_cast<std::size_t>(kind)]);
    return result;
}

} // namespace planloom
