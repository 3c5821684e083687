#pragma once

#include "engine/base/result.h"
#include "engine/graph/partition.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// In which slices of its stage every operator runs (TeraPipe, arXiv:2102.07988). Slice rows cut operators of
/// a stage along the sequence, all of them into as many parts; forward slice i runs behind slice i - 1 of the
/// same micro-batch, backward slice i behind slice i + 1:
///
///     stage 0   F0.0 F0.1 F0.2             B0.2 B0.1 B0.0
///     stage 1        F0.0 F0.1 F0.2 B0.2 B0.1 B0.0
///
/// What no row cuts runs in one of them: in the first, or where it reads what the stage made slice by slice,
/// in the last.
struct SlicePlacement {
    std::vector<std::int32_t> count{}; ///< By stage; 1 where nothing is sliced.
    /// By operator: the slice it runs in; -1 for one that is cut into them, and for those of no stage.
    std::vector<std::int32_t> sliceOf{};

    /// Some stage runs in slices.
    bool any() const;
};

/// @return InvalidInput naming an operator of which a slice needs what a later slice makes (attention that is
///   not causal, a normalisation along the sequence), or one that is cut otherwise than its stage
Result<SlicePlacement> placeSlices(const Plan &plan);

} // namespace planloom
