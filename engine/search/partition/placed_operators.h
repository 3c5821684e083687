#pragma once

#include "engine/base/result.h"
#include "engine/binding/bound_table.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace planloom {

/// What rows that say where operators run leave to the search, with one mesh.
struct PlacedOperators {
    /// By forward operator: rows put it elsewhere than on the devices of one rank, so that the search decides
    /// nothing of it. Bounds leave it out, which keeps them below what any plan with it takes; estimates have
    /// what it takes, and what is sent to it and back (aside_times.h). Empty if there are none.
    std::vector<bool> aside{};
    /// By forward operator: the rank whose devices rows put it on, or -1. Empty if there are none, and
    /// without ranks.
    std::vector<std::int32_t> ranks{};
    /// By forward operator: rows say where it runs, wherever that is. Empty if there are none.
    std::vector<bool> placed{};

    bool isAside(std::size_t op) const { return op < aside.size() && aside[op]; }
    bool isPlaced(std::size_t op) const { return op < placed.size() && placed[op]; }
};

/// @param bound  with the mesh; @param rankAxis  of it, if it has one
/// @return InvalidInput where rows want an operator on all devices, which no stage of a pipeline is, and
/// where they leave nothing to decide
Result<PlacedOperators> placedOperators(const BoundTable &bound, std::string_view rankAxis);

} // namespace planloom
