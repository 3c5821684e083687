#pragma once

#include "engine/search/memory/operator_memory.h"
#include "engine/search/time/pipeline_time.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace planloom {

/// What the ranks of a pipeline may hold, as limits that each choice of each operator has its own part in: at
/// some moment, with what some operator passes on and what is computed again at a time. What a rank holds at
/// its fullest is the most of these, and there are too many to have them all: they are added as partitions
/// are met that do not keep to them. Operators that pass on as much as one another are in one limit, in the
/// mean: layers that are alike would all have the same price.
class HeldLimits
{
public:
    struct Room { ///< Bytes.
        double limit = 0; ///< Of each device.
        std::vector<double> beside{}; ///< By stage: what passes at least beside what operators pass on.
        std::vector<double> mostPassing{}; ///< By rank: as `HeldPricing::Stage::mostPassing`.
    };
    /// @param held  without stages @param gradients  how much of a gradient is held by a replica
    HeldLimits(
        const PartitionProblem &problem, HeldPricing held, double gradients, std::int32_t ranks, Room room);

    /// Adds the limit of a rank that a partition comes nearest to, or is furthest beyond.
    /// @param heldBy  by stage: as the rank was fullest
    /// @return whether it is a new one
    bool add(std::size_t rank, const std::vector<std::int32_t> &choice, const std::vector<StageHeld> &heldBy);

    std::size_t count() const { return m_limits.size(); }
    /// Bytes that a partition surely holds beyond a limit; negative where there is room for more.
    double beyond(std::size_t limit, const std::vector<std::int32_t> &choice) const;

    /// What is held costs seconds.
    struct Prices {
        HeldPricing held{};
        std::vector<double> passing{}; ///< Seconds of a byte, by operator.
        std::map<std::pair<std::int32_t, std::int32_t>, double> again{}; ///< By stage and `groupOf`.
        double room = 0; ///< Of all that there is room for.
    };
    /// @param prices  seconds of a byte, by limit
    Prices at(const std::vector<double> &prices) const;
    /// What a choice costs; infinite where too much passes.
    double seconds(std::size_t op, const OperatorChoice &choice, const Prices &prices) const;

private:
    struct Limit {
        std::size_t rank = 0;
        std::vector<MixedHeld> held{}; ///< By stage of the rank.
        std::map<std::int32_t, double> passing{}; ///< How much counts of what operators pass on,
        std::map<std::pair<std::int32_t, std::int32_t>, double> again{}; ///< and of what stages' groups do,
        double beside = 0; ///< and bytes that pass beside.
        friend bool operator==(const Limit &, const Limit &) = default;
    };
    std::int32_t groupOf(TensorId storage) const;
    /// Bytes that a choice keeps of what is computed again, by group.
    void addAgain(std::size_t op, const OperatorChoice &choice, std::map<std::int32_t, double> &bytes) const;
    std::int32_t stageOf(std::size_t op) const { return m_held.plan->stageOf[op]; }

    const PartitionProblem &m_problem;
    const HeldPricing m_held;
    const double m_gradients;
    const std::size_t m_ranks;
    Room m_room;
    /// By where it lies, and stage: operators' inputs and outputs that are computed again and kept there.
    std::map<std::pair<TensorId, std::int32_t>, std::int32_t> m_keptAgain{};
    std::vector<Limit> m_limits{};
};

} // namespace planloom
