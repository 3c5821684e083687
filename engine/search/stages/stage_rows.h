#pragma once

#include "engine/base/result.h"
#include "engine/binding/bound_table.h"
#include "engine/gallery/gallery_pipeline.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// What rows say of the stages that the search makes.
struct StageRows {
    std::vector<std::int32_t> byRow{}; ///< By forward operator: its stage, or -1; empty without such rows.
    std::vector<BoundTable::Sharing> sharings{};

    bool isEmpty() const { return byRow.empty() && sharings.empty(); }
};

StageRows stageRowsOf(const BoundTable &bound);

/// By forward operator: its stage, of as many as `measure` has kinds of, one after another and not empty, as
/// rows say. They are cut as `pipelineStages` cuts where nothing is said: a row that repeats what would be
/// anyway changes nothing. Operators computed from inputs and constants alone go with their consumers. Who is
/// kept apart has a cut between; where several stages are on a rank, that is not enough: see `brokenSharing`.
/// @param measure  by kind of stage; its room is not looked at
/// @return InvalidInput if there are none with the rows. As `balancedCuts`, as often as there are cuts to
/// choose from for those kept apart
Result<std::vector<std::int32_t>> stagesWithin(
    const SelectorIndex &index, std::int32_t ranks, const StageMeasure &measure, const StageRows &rows);

/// By forward operator, as `stageOf`: stages of a chain of which one begins a layer later or earlier, and
/// which the data still pass in order; those at the ends of the chain first, where embeddings and heads make
/// layers unlike. A stage may be left with nothing but an embedding or a head. Of a model without layers
/// there are none. O(operators x stages).
std::vector<std::vector<std::int32_t>> stagesMoved(
    const SelectorIndex &index, const std::vector<std::int32_t> &stageOf, std::int32_t stages);

/// Why rows that keep operators together or apart do not hold with these stages, which go round the ranks;
/// nothing if they do.
std::optional<Error> brokenSharing(const Graph &graph, const std::vector<BoundTable::Sharing> &sharings,
    const std::vector<std::int32_t> &stageOf, std::int32_t ranks);

} // namespace planloom
