#pragma once

#include "engine/table/selector_index.h"

#include <stop_token>
#include <vector>

namespace planloom {

/// Which operators of two models are the same ones.
struct GraphMatch {
    std::vector<OperatorId>
        after{}; ///< By operator of the first model: its counterpart; invalid if it is gone.
    std::vector<OperatorId> before{}; ///< By operator of the second model; invalid if it is new.
    std::vector<TensorId>
        weights{}; ///< By tensor of the first model: the weight's counterpart; invalid for others.
};

/// Finds the operators of `before` in `after`, a changed version of it.
///
/// By structure and by name: an operator is known by what computes its inputs and what its outputs become, as
/// far as that goes on either side; among equals, and where both sides changed, by its name and its weights'
/// names (unless names have moved on with their numbers, as automatic ones do); then by its neighbours, then
/// by its place between those found. First operators are matched that agree in kind, shapes and attributes,
/// then those that agree in kind. Where less than a quarter is found so, it is another model, and only
/// operators of the same name and kind count. Backward and optimizer operators follow their forward ones.
/// Each operator has at most one counterpart, of its own kind and direction; the outcome is the same on every
/// machine. O((operators + edges) log operators). Stops early, with what it has, if asked to.
GraphMatch matchOperators(const SelectorIndex &before, const SelectorIndex &after, std::stop_token stop = {});

} // namespace planloom
