#pragma once

#include "engine/graph/operators/storage_types.h"
#include "engine/plan/plan.h"
#include "engine/table/model.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// Which operators share a launch with the one before.
class LaunchNeighbours
{
public:
    explicit LaunchNeighbours(const Graph &graph); ///< Must outlive it.
    /// The kernel that runs just before an operator; invalid for the first.
    OperatorId before(OperatorId op) const { return m_before[at(op)]; }
    bool joins(OperatorId op) const;

private:
    const Graph &m_graph;
    std::vector<OperatorId> m_before{};
};

/// Numbers forward operators that are alike (repeated layers): same kind, attributes, annotation, types, and
/// neighbours to share a launch with; -1 for others. O(operators).
/// @param types  of `plan`
std::vector<std::int32_t> alikeOperators(const Model &model, const Plan &plan, const StorageTypes &types);

} // namespace planloom
