#pragma once

#include "engine/base/result.h"
#include "engine/search/search_space.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <vector>

namespace planloom {

/// Whether rows leave it to the search what else is recomputed: none has parts take turns, which decides it,
/// or some leave it to the search.
bool leavesRecomputation(const ConstraintTable &rows);
/// Whether they name operators that are recomputed, and leave none to the search by name.
bool namesRecomputation(const ConstraintTable &rows);

/// What the search adds where it chooses `word`: its rows, but for operators that `rows` recompute or keep,
/// and where rows leave some to the search, for those alone. Empty if nothing is left.
/// @param among  by operator: those that it may be for; empty for all
Result<ConstraintTable> recomputeChoice(
    const Model &model, const ConstraintTable &rows, RecomputeWord word, const std::vector<bool> &among = {});

} // namespace planloom
