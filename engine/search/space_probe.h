#pragma once

#include "engine/hardware/cost_model.h"
#include "engine/search/search_space.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace planloom {

/// Whether searches of a model have a plan to find: quick, where `searchPlan` looks for the best. For one
/// thread.
class SpaceProbe
{
public:
    SpaceProbe(const Model &model, const Cluster &cluster, std::int32_t deviceCount, CostModel costs,
        PrecisionPreset precision); ///< `model` and `cluster` must outlive it.

    /// Whether some configuration that `rows` leave can be planned with them: there are partitions and stages
    /// as they say, and the rows that make these hold beside them. Of memory nothing is asked.
    ///
    /// @param isOver  asked between configurations
    /// @return InvalidInput where there is none, as the search says it of the first, at the operator if it is
    /// about one, and where the search has nothing to decide (`nothingToSearch`); Cancelled if it was over
    /// before one was found
    Result<void> findsPlan(const ConstraintTable &rows, const std::function<bool()> &isOver) const;

    /// What configurations of the space have of a degree without rows, ascending; empty for those of
    /// operators.
    std::vector<std::int32_t> valuesOf(Degree degree) const;

private:
    const Model &m_model;
    const Cluster &m_cluster;
    std::int32_t m_deviceCount = 1;
    CostModel m_costs{};
    PrecisionPreset m_precision = PrecisionPreset::Float32;
    mutable std::optional<std::vector<Configuration>> m_all{}; ///< Without rows, once they were asked for.
};

} // namespace planloom
