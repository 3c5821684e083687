#pragma once

#include "engine/base/result.h"
#include "engine/graph/annotation/partition.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// In which blocks of its stage every operator runs: one for each lane and slice.
///
/// Slices (TeraPipe, arXiv:2102.07988): slice rows cut operators of a stage along the sequence, all of them
/// into as many parts; forward slice i runs behind slice i - 1 of the same micro-batch, backward slice i
/// behind slice i + 1:
///
///     stage 0   F0.0 F0.1 F0.2             B0.2 B0.1 B0.0
///     stage 1        F0.0 F0.1 F0.2 B0.2 B0.1 B0.0
///
/// Lanes (Chimera, arXiv:2107.06925, section 3): lanes rows share every micro-batch out evenly, each share on
/// devices of its own. Lanes of a stage run beside one another; only what no lane can do alone ties them.
///
/// What is not cut runs in one of them: in the first, or where it reads what the stage made slice by slice or
/// lane by lane, in the last. A backward operator runs where its forward one does; that of replicas in every
/// lane, which adds up what all of them gave, in the first lane, behind the others.
struct BlockPlaces {
    std::vector<std::int32_t> slices{}; ///< By stage; 1 where nothing is sliced.
    std::vector<std::int32_t> lanes{}; ///< By stage; 1 where nothing runs in lanes.
    /// By operator: the slice it runs in; -1 for one that is cut into them, and for those of no stage.
    std::vector<std::int32_t> sliceOf{};
    /// By operator: the lane it runs in; -1 for one that is in all of them, and for those of no stage.
    std::vector<std::int32_t> laneOf{};
};

/// @return InvalidInput naming an operator of which a slice needs what a later slice makes (attention that is
///   not causal, a normalisation along the sequence), a lane what all lanes make, or one that is cut
///   otherwise than its stage
Result<BlockPlaces> placeBlocks(const Plan &plan);

} // namespace planloom
