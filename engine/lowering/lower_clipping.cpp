// Gradients are clipped by their global norm (training.h):
//
//     stage's block     squares of each gradient that the device is to count, bucket by bucket
//     last block        their sum on each device; that of all units; one all-reduce; the factor; all updates
//
// Each box of a gradient is one summand of the sum, whoever adds its squares up: verify holds it against all
// of them, as it does for the gradient of a weight that several operators read.

#include "engine/lowering/lowering.h"

#include <algorithm>

namespace planloom {

/// The squares of a gradient, where its update reads it.
Result<void> Lowering::emitSquares(
    OperatorId id, std::int32_t block, std::map<DeviceId, SummedSquares> &squares)
{
    const auto o = static_cast<std::size_t>(id.index);
    const auto &parts = m_transformed.operators[o];
    const TensorId sum = m_graph.at(id).outputs.front();
    const bool sharedOut = unitShardOf(id).has_value();
    TRY(const auto inputs, optimizerInputs(id, block));
    for (std::size_t p = 0; p < parts.size(); ++p) {
        const TensorView &made = parts[p].outputs.front();
        SummandSet summand{m_transformed.summandBase[o].front() + made.value.index};
        SummedSquares &ofDevice = squares[parts[p].device];
        SummedSquares::Share &own = sharedOut ? ofDevice.ofUnit : ofDevice.ofAll;
        own.summands.push_back(summand.front());
        if (m_transformed.summands.complete(sum, summand, made.index))
            summand.clear();
        own.buffers.push_back(m_builder.addBuffer(parts[p].device,
            {.tensor = sum,
                .dataType = m_types.made(id, 0),
                .index = made.index,
                .summands = std::move(summand),
                .perMicroBatch = false,
                .memory = memoryOf(sum),
                .share = sharedOut ? UnitShare::Partial : UnitShare::Same}));
        m_builder.emit(parts[p].device, block,
            {.kind = InstructionKind::Kernel,
                .op = id,
                .part = static_cast<std::int32_t>(p),
                .inputs = inputs[p],
                .outputs = {own.buffers.back()}});
    }
    return {};
}

/// One sum of several, as they are shared, in the last block.
Holding Lowering::sumSquares(
    OperatorId op, TensorId sum, DeviceId device, BufferList buffers, SummandSet summands)
{
    std::sort(summands.begin(), summands.end());
    Holding made{device, wholeMask(m_graph.at(sum).type.shape), std::move(summands), buffers.front()};
    if (buffers.size() == 1)
        return made;
    BufferInfo info = m_builder.buffer(device, buffers.front());
    info.summands =
        m_transformed.summands.complete(sum, made.summands, made.box) ? SummandSet{} : made.summands;
    made.buffer = m_builder.addBuffer(device, std::move(info));
    m_builder.emit(device, m_optimizer.back(),
        {.kind = InstructionKind::Sum, .op = op, .inputs = std::move(buffers), .outputs = {made.buffer}});
    return made;
}

/// On every device that updates a weight.
Result<void> Lowering::emitClipFactor(OperatorId id)
{
    const Operator &op = m_graph.at(id);
    const auto &parts = m_transformed.operators[static_cast<std::size_t>(id.index)];
    const std::int32_t block = m_optimizer.back();
    std::vector<Need> needs;
    for (const TransformedPart &part : parts)
        needs.push_back({part.device, part.inputs.front().index});
    TRY(const auto sums, inputBuffers(op.inputs.front(), needs, m_types.read(id, 0), block, id));
    for (std::size_t p = 0; p < parts.size(); ++p) {
        Holding made{parts[p].device, parts[p].outputs.front().index, {}, -1};
        made.buffer = m_builder.addBuffer(made.device,
            {.tensor = op.outputs.front(),
                .dataType = m_types.made(id, 0),
                .index = made.box,
                .perMicroBatch = false,
                .memory = memoryOf(op.outputs.front())});
        m_builder.emit(made.device, block,
            {.kind = InstructionKind::Kernel,
                .op = id,
                .part = static_cast<std::int32_t>(p),
                .inputs = {sums[p]},
                .outputs = {made.buffer}});
        m_materializer.made(op.outputs.front(), block, std::move(made), parts.size());
    }
    return {};
}

Result<void> Lowering::emitClipping()
{
    const auto isSquareSum = [](const Operator &op) { return op.kind == OperatorKind::SquareSum; };
    const auto isClipFactor = [](const Operator &op) { return op.kind == OperatorKind::ClipFactor; };
    std::map<DeviceId, SummedSquares> squares;
    TensorId sum;
    OperatorId asks;
    for (const auto &[block, byBucket] : byBlockAndBucket(isSquareSum))
        for (const auto &[bucket, operators] : byBucket)
            for (const OperatorId id : operators) {
                if (m_stop.stop_requested())
                    return cancelled("lowering was stopped");
                TRY_VOID(emitSquares(id, block, squares));
                sum = m_graph.at(id).outputs.front();
                asks = id;
            }
    const std::int32_t last = m_optimizer.back();
    for (auto &[device, own] : squares) {
        auto &[ofUnit, ofAll] = own;
        if (!ofUnit.buffers.empty()) {
            const Holding part = sumSquares(asks, sum, device, std::move(ofUnit.buffers), ofUnit.summands);
            BufferInfo info = m_builder.buffer(device, part.buffer);
            info.share = UnitShare::Same;
            ofAll.buffers.push_back(m_builder.addBuffer(device, std::move(info)));
            ofAll.summands.insert(ofAll.summands.end(), ofUnit.summands.begin(), ofUnit.summands.end());
            m_builder.emit(device, last,
                {.kind = InstructionKind::AllReduce,
                    .op = asks,
                    .acrossUnits = true,
                    .inputs = {part.buffer},
                    .outputs = {ofAll.buffers.back()}});
        }
        m_materializer.made(sum, last,
            sumSquares(asks, sum, device, std::move(ofAll.buffers), std::move(ofAll.summands)),
            squares.size());
    }
    for (const auto &[block, byBucket] : byBlockAndBucket(isClipFactor))
        for (const auto &[bucket, operators] : byBucket)
            for (const OperatorId id : operators)
                TRY_VOID(emitClipFactor(id));
    return {};
}

} // namespace planloom
