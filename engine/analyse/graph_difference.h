#pragma once

#include "engine/table/selector_index.h"

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// How an operator that both models have differs in them.
struct ChangedOperator {
    OperatorId a{};
    OperatorId b{};
    bool renamed = false;
    bool kind = false; ///< It computes something else at the same place, or under the same name.
    bool shapes = false; ///< Of what it reads or makes: extents or number formats.
    bool attributes = false; ///< Seeds, which are numbered through a model, are none.
    /// It reads what another operator makes that both models have. What reads a new operator, or read one
    /// that is gone, has not changed itself.
    bool wiring = false;
    friend bool operator==(const ChangedOperator &, const ChangedOperator &) = default;
};

/// One model against another: their forward passes, which the rest of a training step follows from.
struct GraphDifference {
    std::vector<OperatorId> removed{}; ///< Of the first model, ascending.
    std::vector<OperatorId> added{}; ///< Of the second model, ascending.
    std::vector<ChangedOperator> changed{}; ///< By the first model's operators.
    std::int32_t same = 0; ///< Operators that both have alike, names included.
    bool empty() const { return removed.empty() && added.empty() && changed.empty(); }
    friend bool operator==(const GraphDifference &, const GraphDifference &) = default;
};

/// Finds counterparts as `matchOperators` does; of those that it leaves over, two of one name, and two that
/// stand between the same neighbours, are one operator of another kind.
/// O((operators + edges) log operators); stops early, with operators that it did not get to as removed and
/// added, if asked to.
GraphDifference differenceOf(
    const SelectorIndex &a, const SelectorIndex &b, const std::stop_token &stop = {});

/// "kind Relu, was Gelu; output 0 float32 [8 32], was float32 [8 16]; attribute axis 1, was 0": everything
/// that differs but for the names.
std::string wordsOf(const ChangedOperator &change, const Graph &a, const Graph &b);

} // namespace planloom
