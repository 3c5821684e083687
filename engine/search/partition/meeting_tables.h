#pragma once

#include "engine/search/partition/partition_problem.h"

#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

/// Costs of what tensors communicate, by the choices of the operators that meet there; one table for those
/// that are alike.
class MeetingTables
{
public:
    explicit MeetingTables(const PartitionProblem &problem); ///< Must outlive it.

    /// Of one of the problem's meetings, factors over operators' numbers; none where nothing costs anything.
    const std::vector<CostFactor> &of(std::size_t meeting, CountedPasses passes);

    /// A factor without the variables that are not `inside`: the least over them.
    CostFactor leastOver(const CostFactor &factor, const std::vector<bool> &inside);
    /// A factor so many times.
    CostFactor scaled(const CostFactor &factor, double times);

private:
    using Entry = std::vector<const OperatorChoice *>; ///< By operator of the scope.
    std::vector<CostFactor> make(const Meeting &meeting, CountedPasses passes);
    template<typename Cost>
    CostTable table(std::vector<std::int64_t> key, const std::vector<std::int32_t> &scope, const Cost &cost);

    const PartitionProblem &m_problem;
    std::vector<std::array<std::optional<std::vector<CostFactor>>, 3>>
        m_factors{}; ///< By meeting and passes.
    std::map<std::vector<std::int64_t>, CostTable> m_known{};
    std::map<std::pair<CostTable, double>, CostTable> m_scaled{};
    std::map<std::pair<const void *, std::vector<std::int64_t>>, CostTable> m_least{};
};

} // namespace planloom
