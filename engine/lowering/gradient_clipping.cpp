#include "engine/lowering/gradient_clipping.h"

#include <algorithm>

namespace planloom {

GradientClipping::GradientClipping(LoweringWork &work, UpdateInputs &inputs, std::int32_t last)
    : m_work(work)
    , m_inputs(inputs)
    , m_last(last)
{
}

/// The squares of a gradient, where its update reads it.
Result<void> GradientClipping::emitSquares(OperatorId id, std::int32_t block)
{
    const auto &parts = m_work.partsOf(id);
    const TensorId sum = m_work.graph.at(id).outputs.front();
    const bool sharedOut = m_work.unitShardOf(id).has_value();
    TRY(const auto inputs, m_inputs.of(id, block));
    for (std::size_t p = 0; p < parts.size(); ++p) {
        const TensorView &made = parts[p].outputs.front();
        SummandSet summand{m_work.summandOf(id, 0, made)};
        SummedSquares &ofDevice = m_squares[parts[p].device];
        SummedSquares::Share &own = sharedOut ? ofDevice.ofUnit : ofDevice.ofAll;
        own.summands.push_back(summand.front());
        if (m_work.transformed.summands.complete(sum, summand, made.index))
            summand.clear();
        own.buffers.push_back(m_work.builder.make(parts[p].device, block,
            {.tensor = sum,
                .dataType = m_work.types.made(id, 0),
                .index = made.index,
                .summands = std::move(summand),
                .perMicroBatch = false,
                .memory = m_work.memoryOf(sum),
                .share = sharedOut ? UnitShare::Partial : UnitShare::Same},
            {.kind = InstructionKind::Kernel,
                .op = id,
                .part = static_cast<std::int32_t>(p),
                .inputs = inputs[p]}));
    }
    return {};
}

/// One sum of several, as they are shared, in the last block.
Holding GradientClipping::sumSquares(
    OperatorId op, TensorId sum, DeviceId device, BufferList buffers, SummandSet summands)
{
    std::sort(summands.begin(), summands.end());
    Holding made{device, wholeMask(m_work.graph.at(sum).type.shape), std::move(summands), buffers.front()};
    if (buffers.size() == 1)
        return made;
    BufferInfo info = m_work.builder.buffer(device, buffers.front());
    info.summands =
        m_work.transformed.summands.complete(sum, made.summands, made.box) ? SummandSet{} : made.summands;
    made.buffer = m_work.builder.make(device, m_last, std::move(info),
        {.kind = InstructionKind::Sum, .op = op, .inputs = std::move(buffers)});
    return made;
}

/// On every device that updates a weight.
Result<void> GradientClipping::emitFactor(OperatorId id)
{
    const TensorId factor = m_work.graph.at(id).outputs.front();
    const auto &parts = m_work.partsOf(id);
    TRY(const auto inputs, m_inputs.of(id, m_last));
    for (std::size_t p = 0; p < parts.size(); ++p) {
        Holding made{parts[p].device, parts[p].outputs.front().index, {}, -1};
        made.buffer = m_work.builder.make(made.device, m_last,
            {.tensor = factor,
                .dataType = m_work.types.made(id, 0),
                .index = made.box,
                .perMicroBatch = false,
                .memory = m_work.memoryOf(factor)},
            {.kind = InstructionKind::Kernel,
                .op = id,
                .part = static_cast<std::int32_t>(p),
                .inputs = inputs[p]});
        m_work.materializer.made(factor, m_last, std::move(made), parts.size());
    }
    return {};
}

/// What a device found, of all units, where it is asked for.
void GradientClipping::emitSum(DeviceId device, SummedSquares own, TensorId sum, OperatorId op)
{
    auto &[ofUnit, ofAll] = own;
    if (!ofUnit.buffers.empty()) {
        const Holding part = sumSquares(op, sum, device, std::move(ofUnit.buffers), ofUnit.summands);
        BufferInfo info = m_work.builder.buffer(device, part.buffer);
        info.share = UnitShare::Same;
        ofAll.summands.insert(ofAll.summands.end(), ofUnit.summands.begin(), ofUnit.summands.end());
        ofAll.buffers.push_back(m_work.builder.make(device, m_last, std::move(info),
            {.kind = InstructionKind::AllReduce, .op = op, .acrossUnits = true, .inputs = {part.buffer}}));
    }
    m_work.materializer.made(sum, m_last,
        sumSquares(op, sum, device, std::move(ofAll.buffers), std::move(ofAll.summands)), m_squares.size());
}

Result<void> GradientClipping::emit(const OperatorsByBucket &squares, const OperatorsByBucket &factors)
{
    TensorId sum;
    OperatorId asks;
    for (const auto &[block, byBucket] : squares)
        for (const auto &[bucket, operators] : byBucket)
            for (const OperatorId id : operators) {
                TRY_VOID(m_work.goesOn());
                TRY_VOID(emitSquares(id, block));
                sum = m_work.graph.at(id).outputs.front();
                asks = id;
            }
    for (auto &[device, own] : m_squares)
        emitSum(device, std::move(own), sum, asks);
    for (const auto &[block, byBucket] : factors)
        for (const auto &[bucket, operators] : byBucket)
            for (const OperatorId id : operators)
                TRY_VOID(emitFactor(id));
    return {};
}

} // namespace planloom
