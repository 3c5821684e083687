#pragma once

#include "engine/table/selector_index.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace planloom {

/// The producer an operator takes its place and, as far as it can, its splits from: that of its largest
/// activation input.
struct Leader {
    OperatorId op{}; ///< A forward operator; invalid if none makes an input.
    std::size_t output = 0; ///< Slot of the producer.
    std::size_t input = 0; ///< Slot of the operator.
};
Leader leaderOf(const SelectorIndex &index, OperatorId op);

/// Forward operators that use what `op` makes; in the order of its outputs, an operator once for each use.
std::vector<OperatorId> forwardConsumers(const SelectorIndex &index, OperatorId op);
/// Forward operators that make what `op` uses; likewise.
std::vector<OperatorId> forwardProducers(const SelectorIndex &index, OperatorId op);

/// Where operators run that no row places: where their leader runs; those without one where the first of
/// their consumers that has a place runs; others at place 0.
///
/// @param place  by operator: the number of the place a row gives it, or -1; filled in for all forward
/// operators, and -1
///   for others
/// O(operators + edges).
void followPlaces(const SelectorIndex &index, std::vector<std::int32_t> &place);

} // namespace planloom
