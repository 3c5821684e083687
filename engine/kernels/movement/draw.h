#pragma once

#include "engine/kernels/elements/vector_math.h"

#include <algorithm>
#include <cstdint>

namespace planloom {

/// Mixes all bits of `x` (the finaliser of the SplitMix64 generator).
PLANLOOM_INLINE std::uint64_t mixed(std::uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/// Which elements of a whole pTensor a dropout keeps: drawn by their index, so that every plan draws the
/// same.
struct DropoutDraw {
    std::uint64_t key = 0;
    std::uint64_t bound = 0;

    /// @param runSeed  `KernelCall::seed`; @param ownSeed  the operator's
    DropoutDraw(std::uint64_t runSeed, std::int64_t ownSeed, double ratio)
        : key(mixed(runSeed ^ mixed(static_cast<std::uint64_t>(ownSeed))))
        // Kept if the top 53 bits of the draw, as a fraction, are at least `ratio`.
        , bound(static_cast<std::uint64_t>(std::min(ratio, 1.0) * 0x1p53))
    {
    }
};

/// True if element `index` is kept.
PLANLOOM_INLINE bool keeps(std::uint64_t key, std::uint64_t bound, std::uint64_t index)
{
    return mixed(key ^ mixed(index)) >> 11 >= bound;
}

} // namespace planloom
