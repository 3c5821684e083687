#pragma once

#include "engine/graph/operators/mask.h"
#include "engine/graph/operators/storage_types.h"
#include "engine/lowering/program/execution_plan.h"

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace planloom {

/// What the graph, the partitions and the micro-batches ask of one part of one operator, derived anew from
/// annotations: the measure that instructions are held against.
struct PartSpecification {
    std::vector<TensorView> inputs{}; ///< In micro-batch 0.
    std::vector<TensorView> outputs{};
};

/// How scale units share out a view: unit u has the piece that begins u times unit 0's extent behind it.
struct ShardSpecification {
    std::int32_t dimension = -1; ///< -1: all units have the same.
    std::int64_t extent = 0; ///< Of all pieces together.
    bool partial = false; ///< Units make summands of it, each one.
};

/// The step that an execution plan has to carry out.
class Specification
{
public:
    explicit Specification(const ExecutionPlan &plan);

    const PartSpecification &part(OperatorId op, std::int32_t part) const
    {
        return m_parts[static_cast<std::size_t>(op.index)][static_cast<std::size_t>(part)];
    }
    std::int32_t partCount(OperatorId op) const
    {
        return static_cast<std::int32_t>(m_parts[static_cast<std::size_t>(op.index)].size());
    }

    /// The operator runs once per step, not once per micro-batch.
    bool oncePerStep(OperatorId op) const { return m_once[static_cast<std::size_t>(op.index)]; }

    /// Number of summands of a tensor's value; 1 if it has one producer that makes it whole.
    std::int32_t summandCount(TensorId tensor) const
    {
        return m_summandCount[static_cast<std::size_t>(tensor.index)];
    }
    /// Whether `summands`, empty for all, make up the value of `box`: those that are missing are zero there,
    /// since no part that makes them reaches it (a slice of a causal Attention, of keys that it does not
    /// see).
    bool isComplete(TensorId tensor, const SummandSet &summands, const IndexMask &box) const;
    /// Whether two sets of summands hold the same of `box`.
    bool isSame(TensorId tensor, const SummandSet &a, const SummandSet &b, const IndexMask &box) const
    {
        return a == b || (isComplete(tensor, a, box) && isComplete(tensor, b, box));
    }
    /// Number of the first summand that output `slot` of `op` makes.
    std::int32_t summandBase(OperatorId op, std::size_t slot) const
    {
        return m_summandBase[static_cast<std::size_t>(op.index)][slot];
    }

    /// How the summands of a tensor make up its value.
    Combination combination(TensorId tensor) const
    {
        return m_combination[static_cast<std::size_t>(tensor.index)];
    }

    /// Whether summand `summand` of a tensor adds nothing to `box` of it (micro-batch 0): a part of an
    /// attention that sees no key makes it, and need not run.
    bool addsNothing(TensorId tensor, const IndexMask &box, std::int32_t summand) const;
    /// Whether what makes the summands `made` of `box` (ascending; empty: all of them) may say that it holds
    /// `said`: the same, and any that add nothing. Each then counts as added: nobody else may make it.
    bool holdsAs(TensorId tensor, const IndexMask &box, const SummandSet &made, const SummandSet &said) const;
    /// Whether a part of an operator makes only summands that add nothing.
    bool needNotRun(OperatorId op, std::int32_t part) const { return m_seesNothing.count({op, part}) > 0; }

    /// By whose logarithms parts of a tensor are weighed; invalid where they are not.
    TensorId weightTensor(TensorId tensor) const
    {
        return m_weightTensor[static_cast<std::size_t>(tensor.index)];
    }

    /// Somebody makes this tensor in the step.
    bool isMade(TensorId tensor) const { return m_made[static_cast<std::size_t>(tensor.index)]; }
    /// The tensor that an optimizer operator makes of this weight or state; invalid if none does.
    TensorId updateOf(TensorId tensor) const { return m_update[static_cast<std::size_t>(tensor.index)]; }

    /// The weight or state whose new value `tensor` is; invalid for other tensors.
    TensorId replacedBy(TensorId tensor) const { return m_replaced[static_cast<std::size_t>(tensor.index)]; }

    /// True if the view of input (or output) `slot` moves with the micro-batch, as buffers of its tensor do.
    bool inputMoves(OperatorId op, std::size_t slot) const
    {
        return m_inputMoves[static_cast<std::size_t>(op.index)][slot];
    }
    bool outputMoves(OperatorId op, std::size_t slot) const
    {
        return m_outputMoves[static_cast<std::size_t>(op.index)][slot];
    }

    /// By how many updates what input `slot` of `op` reads is older than the newest version: `stalenessOf`.
    std::int32_t staleness(OperatorId op, std::size_t slot) const
    {
        return m_staleness[static_cast<std::size_t>(op.index)][slot];
    }

    /// How scale units share out the view of input (or output) `slot`.
    const ShardSpecification &inputShard(OperatorId op, std::size_t slot) const
    {
        return m_inputShards[static_cast<std::size_t>(op.index)][slot];
    }
    const ShardSpecification &outputShard(OperatorId op, std::size_t slot) const
    {
        return m_outputShards[static_cast<std::size_t>(op.index)][slot];
    }

    /// The types that values lie in memory in.
    const StorageTypes &types() const { return m_types; }

    /// A sentence if micro-batches of some operator do not go with those of its tensors; empty if all do.
    const std::string &problem() const { return m_problem; }

private:
    void findEmptyParts(const ExecutionPlan &plan);
    void noteReach(TensorId tensor, OperatorId op, std::size_t slot);

    std::vector<std::vector<PartSpecification>> m_parts{};
    std::vector<bool> m_once{};
    std::vector<std::int32_t> m_summandCount{};
    /// By tensor and summand: the boxes it is made of, where it does not reach all that others do.
    std::map<TensorId, std::map<std::int32_t, std::vector<IndexMask>>> m_reach{};
    std::vector<Combination> m_combination{};
    std::vector<TensorId> m_weightTensor{};
    std::vector<std::vector<std::int32_t>> m_summandBase{};
    std::vector<bool> m_made{};
    std::vector<TensorId> m_update{};
    std::vector<TensorId> m_replaced{};
    std::set<std::pair<OperatorId, std::int32_t>> m_seesNothing{}; ///< Operator and part.
    std::map<std::pair<TensorId, std::int32_t>, std::vector<IndexMask>> m_empty{}; ///< By tensor and summand.
    std::vector<std::vector<bool>> m_inputMoves{};
    std::vector<std::vector<bool>> m_outputMoves{};
    std::vector<std::vector<ShardSpecification>> m_inputShards{};
    std::vector<std::vector<ShardSpecification>> m_outputShards{};
    std::vector<std::vector<std::int32_t>> m_staleness{};
    StorageTypes m_types;
    std::string m_problem{};
};

} // namespace planloom
