#pragma once

#include "engine/search/memory/operator_memory.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// Stages for which there is room, of a partition for which with other stages there is not on every rank.
class StageRoom
{
public:
    /// @param held  of `problem`: the moments at which the ranks are fullest, and the stages so far; prices
    /// do not count @param choice  by forward operator
    StageRoom(const PartitionProblem &problem, const HeldPricing &held,
        const std::vector<std::int32_t> &choice, const OperatorTimes &times, std::int32_t ranks);

    /// Consecutive stages, balanced by time as far as `room` lets them be: bytes of each rank for what its
    /// operators hold.
    /// @return nothing where there are none with so much room
    std::optional<StagePlan> within(const std::vector<double> &room) const;

private:
    const PartitionProblem &m_problem;
    const StagePlan &m_before;
    const std::size_t m_ranks;
    std::vector<std::int64_t> m_nanoseconds{}; ///< By operator, both passes.
    std::vector<std::int64_t> m_bytes{}; ///< By operator, in the mean of all stages.
    std::vector<double> m_ofStages{}; ///< By stage: bytes of all operators if they were there.
    double m_bytesOfAll = 0; ///< In that mean.
};

} // namespace planloom
