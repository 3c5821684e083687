#include "engine/verify/kernel_rules.h"

#include "engine/base/words.h"
#include "engine/graph/operators/gradient_flow.h"

#include <algorithm>

namespace planloom {

namespace {

/// `content` is what a kernel may read or write in a slot whose view `shard` shares out.
bool isShard(const Content &content, const ShardSpecification &shard)
{
    return content.share
        == (shard.partial             ? UnitShare::Partial
                : shard.dimension < 0 ? UnitShare::Same
                                      : UnitShare::Shard)
        && content.shardDimension == shard.dimension
        && (shard.dimension < 0
            || content.shardEnd
                == content.box->ranges[static_cast<std::size_t>(shard.dimension)].begin + shard.extent);
}

/// What a kernel with these outputs has to do of a backward operator.
Operator madeOf(const Graph &graph, const Operator &backward, const std::vector<Content> &outputs)
{
    std::vector<bool> made;
    for (const Content &output : outputs)
        made.push_back(output.box != nullptr);
    return partOfBackward(graph, backward, made);
}

/// A kernel that names a part of an operator, with slots for all of the operator's.
class KernelRules : RuleContext
{
public:
    KernelRules(const ExecutionPlan &of, const Specification &by, const Side &side)
        : RuleContext{of, by}
        , m_side(side)
        , m_op(of.graph->at(side.instruction->op))
        , m_own(by.at(side.instruction->op))
        , m_part(by.part(side.instruction->op, side.instruction->part))
        , m_keepsProbabilities(attentionOf(of, side.instruction->op) == AttentionMode::Plain)
    {
    }

    std::string check() const
    {
        for (std::size_t slot = 0; slot < m_op.inputs.size(); ++slot)
            if (std::string reason = checkInput(slot); !reason.empty())
                return reason;
        bool makesAny = false;
        for (std::size_t slot = 0; slot < m_op.outputs.size(); ++slot) {
            const bool isMade = m_side.outputs[slot].box != nullptr;
            const bool probabilities = static_cast<std::int32_t>(slot) == probabilitiesOutput(m_op);
            if (!isMade && probabilities && m_keepsProbabilities)
                return m_op.name + " keeps its probabilities, but has no buffer for them";
            if (!isMade)
                continue; // not wanted; what is read must have been written by somebody
            makesAny = true;
            if (!m_op.outputs[slot] || (probabilities && !m_keepsProbabilities))
                return "output " + std::to_string(slot) + " of " + m_op.name + " should be absent";
            if (std::string reason = checkOutput(slot, m_side.outputs[slot]); !reason.empty())
                return reason;
        }
        return makesAny || m_op.outputs.empty() ? std::string{} : m_op.name + " makes nothing";
    }

private:
    std::string checkInput(std::size_t slot) const
    {
        const Content &input = m_side.inputs[slot];
        const bool leftOut =
            static_cast<std::int32_t>(slot) == probabilitiesInput(m_op) && !m_keepsProbabilities;
        if (!m_op.inputs[slot] || leftOut) {
            if (input.box)
                return "input " + std::to_string(slot) + " of " + m_op.name + " should be absent";
            return {};
        }
        if (!input.box && m_op.direction == Direction::Backward
            && !madeOf(*plan.graph, m_op, m_side.outputs).inputs[slot])
            return {}; // this half of it does without
        if (!input.box)
            return "input " + std::to_string(slot) + " of " + m_op.name + " is missing";
        const SlotSpecification &own = m_own.inputs[slot];
        const TensorView &view = m_part.inputs[slot];
        // Which share of a divided value this is, is held against those of the other parts (value_parts.h).
        const bool whole = input.summands->empty() && input.valuePart.complete();
        if (input.tensor != view.tensor || *input.box != view.index || (view.value.complete() && !whole)
            || !isShard(input, own.shard))
            return m_op.name + " needs " + toString(view) + " of " + nameOfTensor(view.tensor) + ", found "
                + textOf(input);
        if (input.staleness != own.staleness)
            return m_op.name + " reads " + nameOfTensor(view.tensor) + " as it was "
                + counted(own.staleness, "update") + " ago, found that of "
                + counted(input.staleness, "update") + " ago";
        if (m_own.oncePerStep && input.perMicroBatch)
            return m_op.name + " runs once per step, but reads one micro-batch of "
                + nameOfTensor(view.tensor);
        if (!m_own.oncePerStep && !input.perMicroBatch && (own.moves || differs(view.tensor)))
            return m_op.name + " would read the same slice of " + nameOfTensor(view.tensor)
                + " in every micro-batch";
        return {};
    }

    std::string checkOutput(std::size_t slot, const Content &output) const
    {
        const SlotSpecification &own = m_own.outputs[slot];
        const TensorView &view = m_part.outputs[slot];
        const std::int32_t count = specification.at(view.tensor).summandCount;
        SummandSet summands;
        if (count > 1)
            summands.push_back(own.summandBase + view.value.index);
        const bool inPlace = (output.persistent || output.inPlace) && m_op.direction == Direction::Optimizer
            && specification.at(output.tensor).update == view.tensor;
        if ((output.tensor != view.tensor && !inPlace) || *output.box != view.index
            || !(specification.holdsAs(view.tensor, view.index, summands, *output.summands)
                || specification.isSame(view.tensor, *output.summands, summands, view.index))
            || !output.valuePart.complete() || output.staleness != 0
            || output.unweighed
                != (!output.summands->empty() && specification.at(view.tensor).weightTensor.valid())
            || !isShard(output, own.shard))
            return m_op.name + " makes " + toString(view) + " of " + nameOfTensor(view.tensor)
                + ", its buffer is " + textOf(output);
        if (output.persistent && !inPlace)
            return m_op.name + " writes into a persistent buffer";
        if (output.perMicroBatch == m_own.oncePerStep)
            return m_op.name
                + (m_own.oncePerStep ? " runs once per step, its output does not"
                                     : " runs in every micro-batch, its output does not");
        return {};
    }

    const Side &m_side;
    const Operator &m_op;
    const OperatorSpecification &m_own;
    const PartSpecification &m_part;
    bool m_keepsProbabilities;
};

} // namespace

std::string checkKernel(const ExecutionPlan &plan, const Specification &specification, const Side &side)
{
    const Instruction &instruction = *side.instruction;
    const Graph &graph = *plan.graph;
    if (!instruction.op || instruction.op.index >= static_cast<std::int32_t>(graph.operators.size()))
        return "the kernel names no operator of the graph";
    const Operator &op = graph.at(instruction.op);
    if (instruction.part < 0 || instruction.part >= specification.partCount(instruction.op))
        return op.name + " has no part " + std::to_string(instruction.part);
    const DeviceId placed = plan.placement[static_cast<std::size_t>(instruction.op.index)]
                                          [static_cast<std::size_t>(instruction.part)];
    if (placed != side.device)
        return "part " + std::to_string(instruction.part) + " of " + op.name + " belongs on device "
            + std::to_string(placed.index);
    if (instruction.recompute && op.direction != Direction::Forward)
        return op.name + " is not a forward operator and cannot be recomputed";
    if (instruction.inputs.size() != op.inputs.size() || instruction.outputs.size() != op.outputs.size())
        return op.name + " has " + std::to_string(op.inputs.size()) + " inputs and "
            + std::to_string(op.outputs.size()) + " outputs";
    return KernelRules(plan, specification, side).check();
}

} // namespace planloom
