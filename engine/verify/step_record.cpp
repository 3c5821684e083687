#include "engine/verify/step_record.h"

#include "engine/base/ids.h"
#include "engine/graph/operators/gradient_flow.h"

#include <algorithm>

namespace planloom {

StepRecord::StepRecord(const ExecutionPlan &plan, const Specification &specification)
    : m_plan(plan)
    , m_graph(*plan.graph)
    , m_specification(specification)
    , m_ofWeights(gradientsOfWeights(*plan.graph))
{
    for (const auto &parts : plan.placement)
        m_ran.emplace_back(parts.size() * at(plan.microBatches), std::uint64_t{0});
}

std::string StepRecord::noteParts(const Side &side)
{
    const Instruction &instruction = *side.instruction;
    const PartSpecification &part = m_specification.part(instruction.op, instruction.part);
    for (std::size_t slot = 0; slot < part.inputs.size(); ++slot) {
        const Content &input = side.inputs[slot];
        if (!input.box || part.inputs[slot].value.complete())
            continue;
        if (auto reason = m_valueParts.note(m_plan, instruction.op, slot, *input.box, part.inputs[slot].value,
                *input.summands, input.valuePart);
            !reason.empty())
            return reason;
    }
    return {};
}

std::string StepRecord::noteKernel(const Instruction &instruction, std::int32_t microBatch)
{
    if (instruction.recompute)
        return {};
    const Operator &op = m_graph.at(instruction.op);
    const std::string when = " in micro-batch " + std::to_string(microBatch);
    const bool updates = op.direction == Direction::Optimizer;
    if (m_specification.at(instruction.op).oncePerStep
        && microBatch % (updates ? microBatchesPerUpdate(m_plan) : m_plan.microBatches) != 0)
        return op.name + " runs once per " + (updates ? "update" : "step") + ", not" + when;
    std::uint64_t &made =
        m_ran[at(instruction.op)][at(instruction.part) * at(m_plan.microBatches) + at(microBatch)];
    const std::string part = op.name + " part " + std::to_string(instruction.part);
    // A backward operator may run in two halves: gradients of inputs, then those of weights.
    std::uint64_t now = ~std::uint64_t{0};
    if (op.direction == Direction::Backward && op.outputs.size() < 64) {
        now = 0;
        bool ofWeights = true;
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
            if (op.outputs[slot] && instruction.outputs[slot] >= 0) {
                now |= std::uint64_t{1} << slot;
                ofWeights = ofWeights && m_ofWeights[at(op.outputs[slot])];
            }
        if (made != 0 && !ofWeights && (made & now) == 0)
            return part + " makes gradients of inputs behind those of its weights" + when;
    }
    if ((made & now) != 0)
        return part + " runs twice" + when;
    made |= now;
    return {};
}

std::string StepRecord::noteStore(const BufferInfo &buffer, std::int32_t microBatch, bool updated)
{
    const std::string name = "'" + m_graph.at(buffer.tensor).name + "'";
    if (m_plan.batch.tensorRole[at(buffer.tensor)] == BatchRole::Step && microBatch != 0)
        return "an output of the step is stored in a later micro-batch";
    if (updated)
        return name + " is stored after its update";
    auto &boxes = m_stored[{buffer.tensor.index, microBatch}];
    const IndexMask box = boxOf(m_plan, buffer, microBatch);
    for (const IndexMask &other : boxes)
        if (const auto both = intersection(box, other); both && elementCount(shapeOf(*both)) > 0)
            return name + " reaches the host twice";
    boxes.push_back(box);
    return {};
}

std::optional<VerifyFailure> StepRecord::checkRan() const
{
    if (std::string reason = m_valueParts.problem(m_plan, m_specification); !reason.empty())
        return VerifyFailure{.device = DeviceId{-1}, .reason = std::move(reason)};
    for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
        const OperatorId id{static_cast<std::int32_t>(o)};
        const std::int32_t every = !m_specification.at(id).oncePerStep ? 1
            : m_graph.at(id).direction == Direction::Optimizer         ? microBatchesPerUpdate(m_plan)
                                                                       : m_plan.microBatches;
        for (std::int32_t part = 0; part < m_specification.partCount(id); ++part)
            for (std::int32_t i = 0; i < m_plan.microBatches; i += every)
                if (m_ran[o][at(part) * at(m_plan.microBatches) + at(i)] == 0
                    && !m_specification.needNotRun(id, part))
                    return VerifyFailure{.device = m_plan.placement[o][at(part)],
                        .reason = m_graph.at(id).name + " part " + std::to_string(part)
                            + " does not run in micro-batch " + std::to_string(i)};
    }
    return std::nullopt;
}

std::string StepRecord::checkStored() const
{
    for (const TensorId output : m_graph.outputs) {
        const BatchRole role = m_plan.batch.tensorRole[at(output)];
        // Values of the step are stored once; others in every micro-batch, which cut them only if they are
        // Split.
        const std::int32_t times = role == BatchRole::Step ? 1 : m_plan.microBatches;
        std::int64_t expected = elementCount(m_graph.at(output).type.shape);
        if (role == BatchRole::Split)
            expected /= batchCuts(m_plan);
        for (std::int32_t i = 0; i < times; ++i) {
            const auto stored = m_stored.find({output.index, i});
            std::int64_t volume = 0;
            if (stored != m_stored.end())
                for (const IndexMask &box : stored->second)
                    volume += elementCount(shapeOf(box));
            if (volume != expected || stored == m_stored.end())
                return "'" + m_graph.at(output).name + "' does not reach the host whole in micro-batch "
                    + std::to_string(i);
        }
    }
    return {};
}

} // namespace planloom
