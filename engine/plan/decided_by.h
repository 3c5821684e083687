#pragma once

#include "engine/plan/plan.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// Who decides an operator's place, splits and order, from the least to the most.
enum class DecidedBy : std::uint8_t {
    Default, ///< No row: it is as in a plan without rows, whole and on every device.
    Implied, ///< No row of its own, but it follows operators that rows decide.
    Row, ///< A row that selects it: it is held, whatever a solver does with the rest.
};

/// By operator index. A row that orders an operator holds it as much as one that places it. O(parts of all
/// operators + orders)
/// @param plan  complete
std::vector<DecidedBy> decidedBy(const Plan &plan);

} // namespace planloom
