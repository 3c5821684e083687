#pragma once

#include "engine/lowering/pass_emitter.h"

namespace planloom {

/// The first half of lowering at work on one plan; used once. Between the parts of operators, on their
/// devices, it puts what the materializer finds (materialize.h), and sorts all of it by block.
class Lowering
{
public:
    /// @param versioned, costs  must outlive this
    Lowering(const VersionedPlan &versioned, const Cluster &cluster, const CostModel &costs,
        TransformedGraph transformed, std::shared_ptr<PathMemory> paths, std::stop_token stop);

    Result<MaterializedPlan> run();

private:
    Result<void> emitPasses();
    Result<void> emitBlock(std::int32_t block);
    Result<void> storeOutputs();
    Result<void> storeOutput(TensorId tensor);
    Result<void> store(TensorId tensor, const std::vector<Need> &needs, std::int32_t block);
    void reserveRoom();
    void forgetPasses();
    Result<MaterializedPlan> takeResult();

    LoweringWork m_work;
    LoweredBlocks m_blocks;
    KeptWeights m_kept;
    ShardedWeights m_sharded;
    GradientBuckets m_gradients;
    CutGradients m_cut;
    TurnSums m_sums;
    BlockInputs m_inputs;
    OperatorEmitter m_operators;
    PassEmitter m_passes;
};

} // namespace planloom
