#include "engine/verify/instruction_rules.h"

#include "engine/verify/combination_rules.h"
#include "engine/verify/kernel_rules.h"

#include <algorithm>

namespace planloom {

namespace {

/// What is computed for the step must not come from one micro-batch.
bool outlives(const Content &input, const Content &output)
{
    return input.perMicroBatch && !output.perMicroBatch;
}

bool isPresent(const Content &content)
{
    return content.box != nullptr;
}

/// What moves between one device and the host.
struct HostRules : RuleContext {
    std::string checkLoad(const Content &output) const
    {
        const std::string name = nameOfTensor(output.tensor);
        const TensorRole role = plan.graph->at(output.tensor).role;
        if (specification.at(output.tensor).isMade)
            return name + " is made by an operator and cannot be loaded";
        if (role == TensorRole::Activation)
            return name + " is not on the host and cannot be loaded";
        if (!output.summands->empty() || !output.valuePart.complete())
            return "load gives complete values, its buffer is " + textOf(output);
        // The host has what a weight was before the first step.
        if ((role == TensorRole::Weight || role == TensorRole::OptimizerState) && !output.persistent)
            return name + " lives across steps, its buffer does not";
        if (!output.perMicroBatch && differs(output.tensor))
            return name + " is fed anew to every micro-batch, its buffer is one for the step";
        return {};
    }

    std::string checkStore(const Content &input) const
    {
        if (!input.summands->empty() || !input.valuePart.complete() || input.share != UnitShare::Same)
            return "store expects a complete value, found " + textOf(input);
        const auto &outputs = plan.graph->outputs;
        if (std::find(outputs.begin(), outputs.end(), input.tensor) == outputs.end())
            return nameOfTensor(input.tensor) + " is not an output of the graph";
        const BatchRole role = roleOf(input.tensor);
        if (role == BatchRole::Step && !plan.units.isOne())
            return nameOfTensor(input.tensor) + " is of the step: every unit would store it";
        if (role != BatchRole::Same && input.perMicroBatch != (role != BatchRole::Step))
            return nameOfTensor(input.tensor)
                + (role == BatchRole::Step ? " is of the step, what is stored is of a micro-batch"
                                           : " is of every micro-batch, what is stored is of the step");
        return {};
    }
};

/// An instruction that makes one buffer of others: one input, or several where it joins.
class LocalRules : RuleContext
{
public:
    LocalRules(const ExecutionPlan &of, const Specification &by, const Side &side)
        : RuleContext{of, by}
        , m_side(side)
        , m_kind(side.instruction->kind)
        , m_input(side.inputs.front())
        , m_output(side.outputs.front())
        , m_updates(m_kind == InstructionKind::Update
              || (m_kind == InstructionKind::Offload && side.outputs.front().persistent))
    {
    }

    std::string check() const
    {
        if (m_output.persistent && !m_updates)
            return std::string(nameOf(m_kind)) + " writes into a persistent buffer";
        for (const Content &input : m_side.inputs)
            if (std::string reason = checkInput(input); !reason.empty())
                return reason;
        const bool reshares = m_kind == InstructionKind::Accumulate || m_kind == InstructionKind::Select;
        for (const Content &input : m_side.inputs)
            if (!reshares && !sharedAlike(input, m_output))
                return wrong(input);
        switch (m_kind) {
        case InstructionKind::Accumulate:
            return checkAccumulate();
        case InstructionKind::Select:
            return checkSelect();
        case InstructionKind::Concat:
            return checkConcat();
        case InstructionKind::Sum:
            return checkSum();
        case InstructionKind::Offload:
        case InstructionKind::Fetch:
        case InstructionKind::Cast:
            return onlyIf(*m_input.box == *m_output.box && *m_input.summands == *m_output.summands
                && m_input.perMicroBatch == m_output.perMicroBatch);
        case InstructionKind::ValueSelect:
            // Parts of a value add up to it, and so do its own summands only where it is their sum.
            return onlyIf(contains(*m_input.box, *m_output.box) && *m_input.summands == *m_output.summands
                && (m_input.summands->empty()
                    || onceWeighed(specification.at(m_input.tensor).combination) == Combination::Sum)
                && m_input.valuePart.complete() && !m_output.valuePart.complete()
                && m_output.valuePart.index >= 0 && m_output.valuePart.index < m_output.valuePart.count);
        case InstructionKind::Update:
            return onlyIf(*m_input.box == *m_output.box && m_input.summands->empty() && m_output.persistent
                && !m_input.persistent);
        default:
            return std::string(nameOf(m_kind)) + " is out of place";
        }
    }

private:
    std::string checkInput(const Content &input) const
    {
        const bool sameTensor = m_updates ? specification.at(m_output.tensor).update == input.tensor
                                          : input.tensor == m_output.tensor;
        if (!sameTensor || input.staleness != m_output.staleness
            || (m_kind != InstructionKind::ValueSelect && input.valuePart != m_output.valuePart))
            return std::string(nameOf(m_kind)) + " turns " + textOf(input) + " into " + textOf(m_output);
        if (outlives(input, m_output) && m_kind != InstructionKind::Accumulate)
            return std::string(nameOf(m_kind)) + " keeps one micro-batch of " + nameOfTensor(input.tensor)
                + " for the whole step";
        // A select moves in its source; nothing else follows the micro-batch out of one that stays.
        if (!input.perMicroBatch && m_output.perMicroBatch
            && (differs(input.tensor) || (moves(input.tensor) && m_kind != InstructionKind::Select)))
            return std::string(nameOf(m_kind)) + " gives every micro-batch the " + nameOfTensor(input.tensor)
                + " of the step";
        return {};
    }

    std::string checkAccumulate() const
    {
        // Parts add up within a micro-batch, or once per step. Else what a unit adds up is its own
        // micro-batches' share, or a shard of what all units' come to.
        const bool within = m_output.perMicroBatch == m_input.perMicroBatch;
        const UnitShare expected = within || m_input.share == UnitShare::Shard ? m_input.share
            : plan.units.isOne()                                               ? UnitShare::Same
                                                                               : UnitShare::Partial;
        if (*m_input.box != *m_output.box || (!within && !m_input.perMicroBatch)
            || (!within && m_input.share == UnitShare::Partial) || m_output.share != expected
            || (m_input.share == UnitShare::Shard && !sharedAlike(m_input, m_output)))
            return wrong();
        if ((!within && roleOf(m_input.tensor) != BatchRole::Summand)
            || onceWeighed(specification.at(m_input.tensor).combination) != Combination::Sum)
            return nameOfTensor(m_input.tensor)
                + " is not a sum over micro-batches, and cannot be accumulated";
        // The accumulator's set must name every summand that is added to it.
        const SummandSet &added = *m_input.summands; // empty: all of them
        if (!m_output.summands->empty()
            && (added.empty()
                || !std::includes(
                    m_output.summands->begin(), m_output.summands->end(), added.begin(), added.end())))
            return wrong();
        return {};
    }

    std::string checkSelect() const
    {
        if (!specification.isSame(m_output.tensor, *m_input.summands, *m_output.summands, *m_output.box)
            || !contains(*m_input.box, *m_output.box))
            return wrong();
        if (!sharedAlike(m_input, m_output)) { // each unit may take its own share of what all have
            if (m_input.share != UnitShare::Same || m_output.share != UnitShare::Shard
                || m_input.perMicroBatch || !contains(*m_input.box, ofAllUnits(m_output)))
                return wrong();
        } else if (m_input.share == UnitShare::Shard && *m_input.box != *m_output.box) {
            return wrong();
        }
        if (m_output.perMicroBatch && !m_input.perMicroBatch) {
            // The slice moves while its source does not.
            BufferInfo moved;
            moved.tensor = m_output.tensor;
            moved.index = *m_output.box;
            if (!contains(*m_input.box, boxOf(plan, moved, plan.microBatches - 1, plan.units.count - 1)))
                return wrong();
        }
        return {};
    }

    std::string checkConcat() const
    {
        std::vector<const IndexMask *> boxes;
        for (const Content &piece : m_side.inputs) {
            boxes.push_back(piece.box);
            if (!specification.isSame(m_output.tensor, *piece.summands, *m_output.summands, *piece.box))
                return wrong();
            if (piece.perMicroBatch != m_output.perMicroBatch && !stays(piece))
                return "concat joins pieces of the step and of a micro-batch";
        }
        return tiles(boxes, *m_output.box) ? std::string{}
                                           : "concat's pieces do not tile " + textOf(m_output);
    }

    std::string checkSum() const
    {
        std::vector<const SummandSet *> sets;
        for (const Content &piece : m_side.inputs) {
            sets.push_back(piece.summands);
            if (*piece.box != *m_output.box || piece.perMicroBatch != m_output.perMicroBatch)
                return wrong();
        }
        const auto all = unionOf(sets, specification.at(m_output.tensor).summandCount);
        return all && specification.isSame(m_output.tensor, *all, *m_output.summands, *m_output.box)
            ? std::string{}
            : "sum's inputs do not add up to " + textOf(m_output);
    }

    std::string onlyIf(bool right) const { return right ? std::string{} : wrong(); }
    std::string wrong() const { return wrong(m_input); }
    std::string wrong(const Content &input) const
    {
        return std::string(nameOf(m_kind)) + " cannot make " + textOf(m_output) + " of " + textOf(input);
    }

    const Side &m_side;
    InstructionKind m_kind;
    const Content &m_input; ///< The first.
    const Content &m_output;
    bool m_updates; ///< It writes what an optimizer made over what it made it of.
};

} // namespace

std::string checkLocal(const ExecutionPlan &plan, const Specification &specification, const Side &side)
{
    const InstructionKind kind = side.instruction->kind;
    const auto count = [&](std::size_t inputs, std::size_t outputs) {
        return side.inputs.size() == inputs && side.outputs.size() == outputs
            && std::all_of(side.inputs.begin(), side.inputs.end(), isPresent)
            && std::all_of(side.outputs.begin(), side.outputs.end(), isPresent);
    };
    if (auto reason = checkCombination(plan, specification, side); !reason.empty())
        return reason;
    switch (kind) {
    case InstructionKind::Weigh:
        return checkWeigh(plan, specification, side);
    case InstructionKind::Merge:
        return checkMerge(plan, specification, side);
    case InstructionKind::Kernel:
        return checkKernel(plan, specification, side);
    case InstructionKind::Load:
        return count(0, 1) ? HostRules{{plan, specification}}.checkLoad(side.outputs[0])
                           : "load expects one output";
    case InstructionKind::Store:
        return count(1, 0) ? HostRules{{plan, specification}}.checkStore(side.inputs[0])
                           : "store expects one input";
    default:
        break;
    }
    const bool joins = kind == InstructionKind::Concat || kind == InstructionKind::Sum;
    if (!count(joins ? std::max<std::size_t>(side.inputs.size(), 1) : 1, 1))
        return std::string(nameOf(kind))
            + (joins ? " expects inputs and one output" : " expects one input and one output");
    return LocalRules(plan, specification, side).check();
}

} // namespace planloom
