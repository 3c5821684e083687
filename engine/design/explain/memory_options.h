#pragma once

#include "engine/base/result.h"
#include "engine/plan/plan.h"
#include "engine/schedule/search/block_options.h"
#include "engine/schedule/search/stage_blocks.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <array>
#include <cstdint>
#include <vector>

namespace planloom {

/// What a stage can do to hold less between its passes.
enum class MemorySaving : std::uint8_t { RecomputeSelective, RecomputeFull, OffloadActivations };
inline constexpr std::array kAllMemorySavings{
    MemorySaving::RecomputeSelective, MemorySaving::RecomputeFull, MemorySaving::OffloadActivations};

/// The rows by which `among` save memory so, and no other operators; none where rows say otherwise of them.
/// Where some leave it to the search, they are for those alone (`recomputeChoice`).
/// @param among  by operator; empty for all
Result<std::vector<Row>> savingRows(const Model &model, const ConstraintTable &rows, MemorySaving saving,
    const std::vector<bool> &among = {});

/// The blocks of a plan that saves memory, beside those of the same plan that does not.
struct LighterStages {
    MemorySaving saving = MemorySaving::RecomputeFull;
    StagePlacement stages{};
    /// By block of the placement: nanoseconds of copies between devices and hosts; of offloads.
    std::vector<std::int64_t> copies{};
    std::vector<std::int64_t> saved{}; ///< By device of the placement: by one stage, of a micro-batch.
};

/// Gives every stage's forward block an option for each of these, where it saves memory: what is recomputed
/// makes its backward block take longer, by what that plan's does; what is offloaded is copied on a queue of
/// its own. Stages in lanes or slices get none, as rows save memory in all of these alike.
/// @param copyQueue  of the placement
/// @return by option of the placement: what it does
std::vector<MemorySaving> offerSavings(
    StagePlacement &stages, const std::vector<LighterStages> &lighter, std::int32_t copyQueue);

/// The rows that save memory in the stages whose options are taken, and there alone.
/// @param rows     that are there already
/// @param plan     with the stages of the blocks
/// @param savings  by option
Result<std::vector<Row>> rowsOfOptions(const Model &model, const ConstraintTable &rows, const Plan &plan,
    const StagePlacement &stages, const OptionChoices &choices, const std::vector<MemorySaving> &savings);

} // namespace planloom
