#pragma once

#include "engine/gesture/row_edits.h"

#include <vector>

namespace planloom {

/// Takes the weights that forward operators read out of a row about optimizer sharding; it then names what is
/// left.
void freeSharding(const GestureContext &context, RowEdits &edits, std::int32_t line, const Row &row,
    const std::vector<OperatorId> &operators);

} // namespace planloom
