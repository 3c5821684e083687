#pragma once

#include "engine/base/result.h"
#include "engine/plan/plan.h"
#include "engine/search/recompute_choice.h"
#include "engine/search/schedule/block_options.h"
#include "engine/search/schedule/stage_blocks.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// The blocks of a plan that recomputes, beside those of the same plan that does not.
struct RecomputedStages {
    RecomputeWord word = RecomputeWord::Full;
    StagePlacement stages{};
    std::vector<std::int64_t> saved{}; ///< By device of the placement: by one stage, of a micro-batch.
};

/// Gives every stage's forward block an option for each of these, where it saves memory: its backward block
/// takes longer by what that plan's does. Stages in lanes or slices get none, as rows recompute in all of
/// these alike.
/// @return by option of the placement: what it recomputes
std::vector<RecomputeWord> offerRecomputation(
    StagePlacement &stages, const std::vector<RecomputedStages> &recomputed);

/// The rows that recompute in the stages whose options are taken, and there alone: see `recomputeChoice`.
/// @param rows   that are there already
/// @param plan   with the stages of the blocks
/// @param words  by option
Result<std::vector<Row>> rowsOfOptions(const Model &model, const ConstraintTable &rows, const Plan &plan,
    const StagePlacement &stages, const OptionChoices &choices, const std::vector<RecomputeWord> &words);

} // namespace planloom
