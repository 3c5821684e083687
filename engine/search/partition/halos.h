#pragma once

#include "engine/graph/operators/mask.h"
#include "engine/hardware/cost_model.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// What devices take, each with a piece of a tensor along one dimension, until each has the piece it wants:
/// where operators read through windows, those at the rim of others' pieces (halos), or others than even
/// ones.
struct HaloTime {
    double sent = 0; ///< Seconds between devices, beside what they compute.
    double copied = 0; ///< On each of them.
};

/// As lowering does it (lowering/layout/materialize_within.cpp): everyone fetches what it lacks from who has
/// it, or all is gathered and each takes its piece, whatever takes less. Nothing where everybody has just
/// what it wants.
/// @param held       by device; pieces that overlap are summands, which the one that wants them adds up
/// @param wanted     by device, likewise
/// @param lineBytes  of one index of the dimension
HaloTime haloTime(const std::vector<Range> &held, const std::vector<Range> &wanted, std::int64_t lineBytes,
    const CostModel &costs, const GroupShape &group, std::int32_t deviceClass);

} // namespace planloom
