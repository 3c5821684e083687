#pragma once

#include "engine/table/selector_index.h"

#include <string>
#include <vector>

namespace planloom {

/// Why a selector that is well formed names no operator, and what there is instead, for people: "no operator
/// is of kind 'Conv': there are Add, Embedding, ...". O(operators x parts of the selector)
std::string whyNothingSelected(const Selector &selector, const Graph &graph, const SelectorIndex &index);

/// "none of the 5 operators it selects can take this rule: it has no dimension 'q', did you mean 'k'?": or
/// the dimensions that these operators have.
/// @param dimension  that the rule names; may be empty
std::string whyNothingBound(
    const std::string &dimension, const std::vector<OperatorId> &selected, const Graph &graph);

} // namespace planloom
