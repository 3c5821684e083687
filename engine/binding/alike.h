#pragma once

#include "engine/binding/bound_table.h"

#include <optional>

namespace planloom {

/// A split of operator `from` as `to`, which is cut alike, has it: along its identifier of the same name.
/// Nothing if it has none that may be cut.
std::optional<Split> splitAlike(const Graph &graph, OperatorId from, OperatorId to, const Split &split);

/// Finds who is cut alike (`alikeWith`), and has what rows say of one operator's splits over mesh axes, and
/// of its parts, hold for all that are cut alike with it. Fails rows that then contradict each other.
/// O(operators in such rows x what is said of them).
void joinAlikes(BoundTable &bound, const ConstraintTable &table);

} // namespace planloom
