#pragma once

#include "engine/graph/graph.h"
#include "engine/graph/operators/storage_types.h"
#include "engine/graph/precision.h"
#include "engine/hardware/cost_model.h"

#include <cstdint>

namespace planloom {

/// What whole operators take on one device, in the number formats of a plan in which no row says otherwise.
class OperatorCosts
{
public:
    /// `graph` and `costs` must outlive it.
    OperatorCosts(
        const Graph &graph, const CostModel &costs, PrecisionPreset precision = PrecisionPreset::Float32);

    const CostModel &model() const { return m_costs; }
    /// Nanoseconds of a forward operator with its backward one, rounded up, on a device of this class.
    std::int64_t nanosecondsOf(OperatorId forward, std::int32_t deviceClass = 0) const;

private:
    double secondsOf(OperatorId id, std::int32_t deviceClass) const;

    const Graph &m_graph;
    const CostModel &m_costs;
    Precision m_precision{};
    StorageTypes m_types;
};

} // namespace planloom
