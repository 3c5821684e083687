#pragma once

#include "engine/search/time/stage_figures.h"
#include "engine/table/model.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// By forward operator: how often a backward pass runs it again, as lowering does: not what no backward
/// operator reads (a layer's last product), and twice what a region makes for others of what is dropped with
/// it, and reads itself in its turns.
/// @param plan  what is recomputed, and in which regions; stages do not count
/// O(operators x their tensors).
std::vector<std::int32_t> runsAgain(const Model &model, const StagePlan &plan);

} // namespace planloom
