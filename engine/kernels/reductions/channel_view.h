#pragma once

#include "engine/kernels/elements/vector_math.h"

#include <cstddef>
#include <cstdint>

namespace planloom {

/// x [n c ..] as [n, c, rest], and the statistics [c], or [n g] of groups of channels.
struct ChannelView {
    std::int64_t n = 1;
    std::int64_t c = 1;
    std::int64_t rest = 1;
    std::int64_t groups = 0; ///< 0: the statistics are of channels, over all samples.

    std::size_t statistics() const { return static_cast<std::size_t>(groups == 0 ? c : n * groups); }
    PLANLOOM_INLINE std::int64_t statisticOf(std::int64_t sample, std::int64_t channel) const
    {
        return groups == 0 ? channel : sample * groups + channel * groups / c;
    }
};

} // namespace planloom
