#pragma once

#include "engine/lowering/block_inputs.h"
#include "engine/lowering/turn_sums.h"

#include <vector>

namespace planloom {

/// Outputs of an operator whose parts have to be weighed (`Combination::Weighted`), by slot.
struct Weighing {
    std::vector<std::int32_t> by{}; ///< The slot of the log-sum-exps; -1 where there is nothing to weigh.
    std::vector<bool> weighs{}; ///< Another output is weighed by it.
    std::vector<std::vector<Holding>> made{}; ///< What the parts made of both, in one order.
};

/// Runs operators of the passes, part by part, and hands over what they make.
class OperatorEmitter
{
public:
    /// All of the same work, and must outlive this.
    OperatorEmitter(LoweringWork &work, const LoweredBlocks &blocks, BlockInputs &inputs,
        GradientBuckets &gradients, CutGradients &cut, TurnSums &sums);

    /// @param recompute  it runs a second time
    /// @param turn  of its region, whose parts alone are to run; -1 for all
    Result<void> emit(OperatorId id, std::int32_t block, bool recompute, std::int32_t turn = -1);

private:
    friend class RingTurns; // runs the parts of an operator in an order of its own

    BufferList emitPart(OperatorId id, std::int32_t block, bool recompute, std::size_t number,
        const BufferList &inputs, const Weighing &weighing, const std::vector<SummandSet> &besides = {});
    void handOver(OperatorId id, std::int32_t block, std::size_t slot, std::int32_t summand, Holding made,
        std::size_t expected = 1);
    Result<Weighing> weighingOf(OperatorId id) const;
    Result<void> weighParts(OperatorId id, std::int32_t block, const Weighing &weighing);

    LoweringWork &m_work;
    const LoweredBlocks &m_blocks;
    BlockInputs &m_inputs;
    GradientBuckets &m_gradients;
    CutGradients &m_cut;
    TurnSums &m_sums;
};

} // namespace planloom
