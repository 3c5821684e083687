#pragma once

#include "engine/search/memory/turn_units.h"
#include "engine/search/partition/partition_problem.h"
#include "engine/search/time/stage_figures.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

/// Has layers of a partitioned model take turns where what they hold for a moment would not fit else, and
/// says what they take and hold then. For one thread.
///
///     at once     | again: norm, q k v, attention, norm, up, act |            the most gradients of an
///     operator in turns    | again: norm, norm | q k v, attention of a turn | gradients at both ends, whole
///     | one of a turn
class TurnPlanner
{
public:
    /// Both must outlive it.
    TurnPlanner(const PartitionProblem &problem, const TurnUnits &units);

    /// Units in as few turns as there is room for, stage by stage; in those that hold least where there is
    /// not enough.
    /// @param choice  by forward operator @param plan  without turns @param room  bytes, by stage
    StagePlan within(
        const std::vector<std::int32_t> &choice, const StagePlan &plan, const std::vector<double> &room);

    /// By stage: bytes held for a moment, as `StageFigures::passingBytes`. A layer's are held alone.
    std::vector<std::int64_t> passing(const std::vector<std::int32_t> &choice, const StagePlan &plan);

    /// What operators take in the turns of `plan`. @param times  all at once
    OperatorTimes timesOf(
        const std::vector<std::int32_t> &choice, const StagePlan &plan, OperatorTimes times);

private:
    struct Again { ///< What is computed again, and read by backward operators.
        std::int64_t bytes = 0;
        std::size_t maker = 0;
        std::vector<std::pair<std::size_t, std::size_t>> readers{}; ///< Forward operator, and slot of `kept`.
    };
    struct Layer { ///< Of one stage, or an operator outside of all.
        std::int32_t stage = 0;
        std::vector<std::size_t> operators{};
        /// By operator: bytes of gradients that others have made meanwhile, and that are not read yet.
        std::vector<std::int64_t> waiting{};
        std::vector<Again> again{};
    };
    struct Moment {
        double bytes = 0;
        std::int32_t unit = -1; ///< Whose operator it is of; -1: another's.
        std::int32_t largest = -1; ///< The unit of most that is there all at once; -1: none.
    };

    const OperatorInTurns *inTurns(std::size_t op, std::int32_t choice, std::int32_t turns);
    /// Whether no operator of a unit reads what another makes in another layout: turns would send it piece by
    /// piece.
    bool staysInPlace(const std::vector<std::int32_t> &choice, std::int32_t unit) const;
    /// The next number of turns that all operators of a unit divide into; nothing where there is none,
    /// or they communicate.
    std::optional<std::int32_t> moreTurns(
        const std::vector<std::int32_t> &choice, std::int32_t unit, std::int32_t turns);
    std::vector<Layer> layersOf(const std::vector<std::int32_t> &choice, const StagePlan &plan) const;
    /// By forward operator: bytes of gradients that other operators of its stage have made, each reader of a
    /// tensor its own, and that are not read yet when its backward operator runs: beside a branch those of
    /// the way around it. Without those that stay in a region.
    std::vector<std::int64_t> gradientsWaiting(
        const std::vector<std::int32_t> &choice, const StagePlan &plan) const;
    /// When a layer holds most. @param turns  by unit
    Moment fullest(
        const std::vector<std::int32_t> &choice, const Layer &layer, const std::vector<std::int32_t> &turns);
    void addRegion(const std::vector<std::int32_t> &choice, const Layer &layer, std::int32_t region,
        const std::vector<std::int32_t> &turns, double whole, Moment &most);
    std::vector<std::int32_t> turnsOf(const StagePlan &plan) const;
    std::int32_t unitOf(std::size_t op) const { return m_units.unitOf[op]; }
    /// The region that an operator takes turns in; -1: none.
    std::int32_t regionOf(std::size_t op, const std::vector<std::int32_t> &turns) const
    {
        return unitOf(op) >= 0 && turns[at(unitOf(op))] > 1 ? m_units.regionOf[op] : -1;
    }

    const PartitionProblem &m_problem;
    const TurnUnits &m_units;
    const Graph &m_graph;
    /// By kind of operator, choice, dimension and turns.
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>,
        std::optional<OperatorInTurns>>
        m_known{};
};

} // namespace planloom
