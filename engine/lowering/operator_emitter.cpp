#include "engine/lowering/operator_emitter.h"

#include "engine/graph/operators/attention.h"
#include "engine/lowering/layout/box_algebra.h"
#include "engine/lowering/ring_turns.h"

#include <algorithm>

namespace planloom {

OperatorEmitter::OperatorEmitter(LoweringWork &work, const LoweredBlocks &blocks, BlockInputs &inputs,
    GradientBuckets &gradients, CutGradients &cut, TurnSums &sums)
    : m_work(work)
    , m_blocks(blocks)
    , m_inputs(inputs)
    , m_gradients(gradients)
    , m_cut(cut)
    , m_sums(sums)
{
}

/// Runs one part, on buffers for its inputs by slot.
/// @param besides  by slot: summands of other parts, which add nothing to it and do not run; may be empty
/// @return buffers of its outputs by slot; -1 where nobody wants one
BufferList OperatorEmitter::emitPart(OperatorId id, std::int32_t block, bool recompute, std::size_t number,
    const BufferList &inputs, const Weighing &weighing, const std::vector<SummandSet> &besides)
{
    const Operator &op = m_blocks.shareOf(id, block);
    const TransformedPart &part = m_work.partsOf(id)[number];
    const bool noneWanted = std::none_of(op.outputs.begin(), op.outputs.end(),
        [this](TensorId tensor) { return tensor && m_work.isWanted(tensor); });
    Instruction kernel{.kind = InstructionKind::Kernel,
        .op = id,
        .part = static_cast<std::int32_t>(number),
        .recompute = recompute,
        .inputs = inputs};
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        const TensorView &view = part.outputs[slot];
        // Plain attention has its probabilities in memory even where nobody reads them again.
        const bool kept = (op.outputs[slot] && m_work.isWanted(view.tensor)) || weighing.weighs[slot]
            || static_cast<std::int32_t>(slot) == probabilitiesOutput(op) || noneWanted;
        if (!op.outputs[slot] || !kept || m_work.isLeftOut(id, true, slot)) {
            kernel.outputs.push_back(-1);
            continue;
        }
        BufferInfo info{.tensor = view.tensor,
            .dataType = m_work.types.made(id, slot),
            .index = view.index,
            .memory = m_work.memoryOf(view.tensor)};
        info.perMicroBatch = m_work.runsInMicroBatches(block);
        if (m_work.isInParts(view.tensor)) {
            info.summands = {m_work.summandOf(id, slot, view)};
            if (slot < besides.size())
                info.summands = unionOf(info.summands, besides[slot]);
            if (m_work.transformed.summands.complete(view.tensor, info.summands, view.index))
                info.summands.clear(); // no other part reaches this box
        }
        info.unweighed = weighing.by[slot] >= 0 && !info.summands.empty();
        kernel.outputs.push_back(m_work.builder.addBuffer(part.device, std::move(info)));
    }
    const BufferList outputs = kernel.outputs;
    m_work.builder.emit(part.device, block, std::move(kernel));
    return outputs;
}

/// Hands over what a part made of output `slot`, which needs no weighing, to those who read it.
/// @param summand  its own number
/// @param expected  as of `Materializer::made`
void OperatorEmitter::handOver(OperatorId id, std::int32_t block, std::size_t slot, std::int32_t summand,
    Holding made, std::size_t expected)
{
    const TensorId tensor = m_work.graph.at(id).outputs[slot];
    const DataType type = m_work.builder.buffer(made.device, made.buffer).dataType;
    const DataType kept = m_work.types.accumulated(tensor);
    const TensorView view{tensor, made.box};
    if (m_work.isWeightGradient(tensor)) { // adding widens by itself
        if (type != kept && sizeOf(type) >= sizeOf(kept))
            made.buffer = m_work.castBuffer(made.device, block, id, made.buffer, kept);
        if (!m_cut.isCut(tensor))
            m_gradients.accumulate(tensor, made.device, block, id, made.box, summand, made.buffer);
        else if (!m_sums.add(view, made.device, block, id, slot, summand, made.buffer))
            m_cut.add(tensor, made.device, block, id, made.box, summand, made.buffer);
        return;
    }
    if (m_sums.add(view, made.device, block, id, slot, summand, made.buffer))
        return;
    if (type != kept) // another operator makes summands of it in another type
        made.buffer = m_work.castBuffer(made.device, block, id, made.buffer, kept);
    m_work.materializer.made(tensor, block, std::move(made), expected);
}

Result<void> OperatorEmitter::emit(OperatorId id, std::int32_t block, bool recompute, std::int32_t turn)
{
    if (m_work.decisionOf(id).ringSplit >= 0)
        return RingTurns(*this, id, block, recompute).run();
    const auto &parts = m_work.partsOf(id);
    std::vector<std::size_t> numbers;
    numbers.reserve(parts.size());
    for (std::size_t p = 0; p < parts.size(); ++p)
        if (m_blocks.isDue(id, static_cast<std::int32_t>(p), block, recompute, turn))
            numbers.push_back(p);
    TRY(const auto inputs, m_inputs.ofParts(id, block, numbers));
    TRY(auto weighing, weighingOf(id));
    m_work.builder.noteOperator(block, id);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const TransformedPart &part = parts[numbers[i]];
        const BufferList outputs = emitPart(id, block, recompute, numbers[i], inputs[i], weighing);
        for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
            if (outputs[slot] < 0)
                continue;
            const TensorView &view = part.outputs[slot];
            const std::int32_t summand = m_work.summandOf(id, slot, view);
            Holding made{part.device, view.index, {summand}, outputs[slot]};
            if (weighing.by[slot] >= 0 || weighing.weighs[slot])
                weighing.made[slot].push_back(made);
            if (weighing.by[slot] < 0)
                handOver(id, block, slot, summand, std::move(made), numbers.size());
        }
    }
    return weighParts(id, block, weighing);
}

/// @return NotSupported where what is kept of one part would not be that of the whole
Result<Weighing> OperatorEmitter::weighingOf(OperatorId id) const
{
    const Operator &op = m_work.graph.at(id);
    const std::size_t slots = op.outputs.size();
    Weighing weighing{std::vector<std::int32_t>(slots, -1), std::vector<bool>(slots, false),
        std::vector<std::vector<Holding>>(slots)};
    for (std::size_t slot = 0; slot < slots; ++slot) {
        const std::int32_t by = weightsOf(op.annotation, slot);
        if (by < 0 || !m_work.isInParts(op.outputs[slot]))
            continue;
        weighing.by[slot] = by;
        weighing.weighs[static_cast<std::size_t>(by)] = true;
        // They would be those of one part alone.
        if (probabilitiesOutput(op) >= 0 && m_work.decisionOf(id).attention == AttentionMode::Plain)
            return Error{ErrorCode::NotSupported,
                "'" + op.name + "' keeps its probabilities, which parts of the keys do not make",
                "make it fused, or cut another dimension", "operator:" + op.name};
    }
    return weighing;
}

Result<void> OperatorEmitter::weighParts(OperatorId id, std::int32_t block, const Weighing &weighing)
{
    const Operator &op = m_work.graph.at(id);
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        const auto &made = weighing.made[slot];
        if (weighing.by[slot] < 0 || made.empty())
            continue;
        const auto by = static_cast<std::size_t>(weighing.by[slot]);
        TRY(auto weighed,
            m_work.materializer.weigh(op.outputs[slot], made, op.outputs[by], weighing.made[by], block, id));
        for (Holding &summand : weighed)
            m_work.materializer.made(op.outputs[slot], block, std::move(summand), made.size());
    }
    return {};
}

} // namespace planloom
