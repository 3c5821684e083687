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

/// One input or output of an operator.
struct SlotSpecification {
    bool moves = false; ///< Its view moves with the micro-batch, as buffers of its tensor do.
    ShardSpecification shard{}; ///< How scale units share out its view.
    /// Of an input: by how many updates what is read is older than the newest version (`stalenessOf`).
    std::int32_t staleness = 0;
    std::int32_t summandBase = 0; ///< Of an output: number of the first summand that it makes.
};

struct OperatorSpecification {
    bool oncePerStep = false; ///< It runs once per step, not once per micro-batch.
    std::vector<PartSpecification> parts{};
    std::vector<SlotSpecification> inputs{};
    std::vector<SlotSpecification> outputs{};
};

struct TensorSpecification {
    std::int32_t summandCount = 0; ///< Of its value; 1 if it has one producer that makes it whole, or none.
    Combination combination = Combination::Sum; ///< How the summands make up the value.
    TensorId weightTensor{}; ///< By whose logarithms parts are weighed; invalid where they are not.
    bool isMade = false; ///< Somebody makes it in the step.
    TensorId update{}; ///< What an optimizer operator makes of this weight or state; invalid if none does.
    TensorId replaced{}; ///< The weight or state whose new value this is; invalid for other tensors.
    /// By summand: the boxes it is made of, where it does not reach all that others do.
    std::map<std::int32_t, std::vector<IndexMask>> reach{};
    std::map<std::int32_t, std::vector<IndexMask>> empty{}; ///< By summand: boxes to which it adds nothing.
};

/// The step that an execution plan has to carry out.
class Specification
{
public:
    explicit Specification(const ExecutionPlan &plan);

    const OperatorSpecification &at(OperatorId op) const
    {
        return m_operators[static_cast<std::size_t>(op.index)];
    }
    const TensorSpecification &at(TensorId tensor) const
    {
        return m_tensors[static_cast<std::size_t>(tensor.index)];
    }
    const PartSpecification &part(OperatorId op, std::int32_t part) const
    {
        return at(op).parts[static_cast<std::size_t>(part)];
    }
    std::int32_t partCount(OperatorId op) const { return static_cast<std::int32_t>(at(op).parts.size()); }

    /// Whether `summands`, empty for all, make up the value of `box`: those that are missing are zero there,
    /// since no part that makes them reaches it (a slice of a causal Attention, of keys that it does not
    /// see).
    bool isComplete(TensorId tensor, const SummandSet &summands, const IndexMask &box) const;
    /// Whether two sets of summands hold the same of `box`.
    bool isSame(TensorId tensor, const SummandSet &a, const SummandSet &b, const IndexMask &box) const
    {
        return a == b || (isComplete(tensor, a, box) && isComplete(tensor, b, box));
    }
    /// Whether what makes the summands `made` of `box` (ascending; empty: all of them) may say that it holds
    /// `said`: the same, and any that add nothing. Each then counts as added: nobody else may make it.
    bool holdsAs(TensorId tensor, const IndexMask &box, const SummandSet &made, const SummandSet &said) const;
    /// Whether a part of an operator makes only summands that add nothing.
    bool needNotRun(OperatorId op, std::int32_t part) const { return m_seesNothing.count({op, part}) > 0; }

    /// The types that values lie in memory in.
    const StorageTypes &types() const { return m_types; }

    /// A sentence if micro-batches of some operator do not go with those of its tensors; empty if all do.
    const std::string &problem() const { return m_problem; }

private:
    void describe(const ExecutionPlan &plan, OperatorId id);
    void noteOutputs(const ExecutionPlan &plan, OperatorId id);
    void noteProblem(const std::string &problem);
    void findEmptyParts(const ExecutionPlan &plan);
    bool addsNothing(TensorId tensor, const IndexMask &box, std::int32_t summand) const;

    std::vector<OperatorSpecification> m_operators{};
    std::vector<TensorSpecification> m_tensors{};
    std::set<std::pair<OperatorId, std::int32_t>> m_seesNothing{}; ///< Operator and part.
    StorageTypes m_types;
    std::string m_problem{};
};

} // namespace planloom
