#pragma once

#include "engine/search/bounds/least_stages.h"
#include "engine/search/time/reductions.h"

#include <array>
#include <vector>

namespace planloom {

/// What a stage's weights take at least, whatever the partition: of every micro-batch with ZeRO-2 and 3,
/// else once.
struct LeastReductions {
    double reduction = 0; ///< With gathering again.
    double update = 0;
    double gather = 0; ///< Of what was updated.
    /// Likewise by how it is bounded, `AsOne` but for `leastLaunch`; 0 with ZeRO-2 and 3.
    std::array<double, kReducedAs> reduced{};
    double last = 0; ///< Of that, what begins when the last gradient is complete.
    double shared = 0; ///< Likewise, when it is in all stages; once a rank.
    double ahead = 0; ///< Of gathering all of them as the step begins,
    double aheadOfAll = 0; ///< and of those that are read before anything can be computed.
};
/// @param stages  of all; @param number  of the one asked for
LeastReductions leastReductions(
    const Reductions &reductions, const std::vector<LeastStage> &stages, std::size_t number);
/// What is left of the reductions of a rank at least when it has computed its last gradient.
double leastBehind(const Reductions &reductions, const std::vector<LeastStage> &stages, std::size_t rank);

} // namespace planloom
