#pragma once

#include "engine/lowering/operator_emitter.h"

#include <set>
#include <tuple>
#include <vector>

namespace planloom {

/// Runs the operators of a block in their order: those of a coshard region turn by turn, and before those of
/// the backward pass what they read that was dropped.
class PassEmitter
{
public:
    /// All of the same work, and must outlive this.
    PassEmitter(LoweringWork &work, const LoweredBlocks &blocks, BlockInputs &inputs,
        OperatorEmitter &operators, TurnSums &sums);

    /// Those of a region stand together.
    Result<void> emit(const std::vector<OperatorId> &operators, std::int32_t block, bool recompute);
    /// Where the operators that are emitted together with the one at `begin` end: those of its region.
    std::size_t regionEnd(const std::vector<OperatorId> &operators, std::size_t begin) const;

private:
    Result<void> emitRegion(const std::vector<OperatorId> &members, std::int32_t block, bool recompute);
    Result<std::vector<OperatorId>> prepareAgain(const std::vector<OperatorId> &members, std::int32_t block);
    Result<void> bringToRegion(const std::vector<OperatorId> &operators, std::int32_t block);
    bool comesFromElsewhere(TensorId tensor, StageId stage) const;
    std::vector<OperatorId> readAgain(const std::vector<OperatorId> &members, std::int32_t block) const;
    Result<void> recomputeFor(OperatorId backward, std::int32_t block);
    Result<void> recomputeGroup(std::int32_t group, std::int32_t block);

    LoweringWork &m_work;
    const LoweredBlocks &m_blocks;
    BlockInputs &m_inputs;
    OperatorEmitter &m_operators;
    TurnSums &m_sums;
    std::set<std::tuple<std::int32_t, std::int32_t, std::int32_t>> m_recomputed{}; ///< (group, stage, lane)
};

} // namespace planloom
