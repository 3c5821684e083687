#pragma once

#include "engine/lowering/lowering_work.h"

#include <map>
#include <utility>
#include <vector>

namespace planloom {

/// The blocks of a plan, and which operators run in which of them.
class LoweredBlocks
{
public:
    using BlocksByStage = std::vector<std::vector<std::int32_t>>; ///< And lane and slice of it.

    explicit LoweredBlocks(LoweringWork &work); ///< Adds the blocks.

    /// Puts operators into their blocks, in an order that data flow, rows and coshard regions allow.
    /// @return InvalidInput naming a row if there is none
    Result<void> assign();
    /// Gives the blocks durations, from their operators alone.
    void estimate();

    std::int32_t prologue() const { return m_prologue; }
    const BlocksByStage &forward() const { return m_forward; }
    const BlocksByStage &backward() const { return m_backward; } ///< Of split passes: of input gradients.
    /// None of a stage whose backward pass is not split.
    const BlocksByStage &weightGradient() const { return m_weightGradient; }
    /// By stage, and one for weights of several stages.
    const std::vector<std::int32_t> &optimizers() const { return m_optimizer; }

    /// Operators of a block, in order.
    const std::vector<OperatorId> &sequence(std::int32_t block) const { return m_sequence[at(block)]; }
    /// Where an operator runs, in order: of one in two halves, those of the gradients of inputs.
    const std::vector<std::int32_t> &of(OperatorId id) const { return m_blocksOf[at(id)]; }
    /// The operator, with invalid ids for what `block` neither reads nor makes of it.
    const Operator &shareOf(OperatorId id, std::int32_t block) const;
    /// The last block that an operator makes gradients of weights in.
    std::int32_t weightBlockOf(OperatorId id) const;
    /// The forward operators of the stage and lane of `block`, of all slices, in an order that runs them.
    std::vector<OperatorId> forwardOperators(std::int32_t block) const;
    /// Runs in a pass of the stage, not once per step.
    bool isInStage(OperatorId id, Direction direction, StageId stage) const;
    /// Whether a part runs in this turn of its region (-1: in any), and in this block: those of its lane and
    /// slice, but of all slices where they are run again, which is before the first slice that reads them.
    bool isDue(OperatorId id, std::int32_t part, std::int32_t block, bool recompute, std::int32_t turn) const;

    std::int32_t regionOf(OperatorId id) const { return m_regionOf[at(id)]; } ///< Coshard region, or -1.
    bool takesTurns(std::int32_t recomputeGroup) const ///< The group is one coshard region.
    {
        return m_takesTurns[at(recomputeGroup)];
    }
    /// By operator: what one part of it takes.
    const std::vector<double> &kernelSeconds() const { return m_seconds; }

    /// Adds the orders between blocks, and hands over what is in them; nothing may be asked any more.
    void handOver(MaterializedPlan &materialized);

private:
    void addBlocks();
    std::int32_t addBlockOf(SegmentKind kind, std::int32_t stage, std::int32_t cell, double rank);
    std::size_t cellOf(std::int32_t block) const;
    std::vector<std::size_t> cellsOf(OperatorId id) const;
    std::vector<bool> readByTurns(const std::vector<bool> &areOfWeights) const;
    void splitBackwardPasses();
    void findTurns();
    void addSliceOrder(MaterializedPlan &materialized) const;

    LoweringWork &m_work;
    std::int32_t m_prologue = -1;
    BlocksByStage m_forward{};
    BlocksByStage m_backward{};
    BlocksByStage m_weightGradient{};
    std::vector<bool> m_inWeightGradient{}; ///< By operator: it runs there, or one half of it.
    /// By operator that runs in two halves: what it makes with the gradients of inputs, and of weights.
    std::map<std::int32_t, std::pair<Operator, Operator>> m_halves{};
    std::vector<std::int32_t> m_optimizer{};
    std::vector<std::vector<OperatorId>> m_sequence{}; ///< By block.
    std::vector<std::vector<std::int32_t>> m_blocksOf; ///< By operator.
    std::vector<std::int32_t> m_regionOf{}; ///< By operator.
    std::vector<bool> m_takesTurns{}; ///< By recompute group.
    std::vector<std::vector<OrderConstraint>> m_ordersInside{}; ///< By block, of rows.
    std::vector<double> m_seconds{}; ///< By operator.
};

} // namespace planloom
