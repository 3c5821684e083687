#include "engine/lowering/block_inputs.h"

namespace planloom {

BlockInputs::BlockInputs(
    LoweringWork &work, const LoweredBlocks &blocks, KeptWeights &kept, ShardedWeights &sharded)
    : m_work(work)
    , m_blocks(blocks)
    , m_kept(kept)
    , m_sharded(sharded)
{
}

Result<std::vector<std::int32_t>> BlockInputs::of(
    TensorId tensor, const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op)
{
    if (m_work.isPersistent(tensor)) {
        if (const ShardedWeight *sharded = m_sharded.of(tensor, 3))
            m_sharded.gather(*sharded, tensor, needs, type, block, op);
        else
            for (const Need &need : needs)
                m_kept.buffer(tensor, need.device, need.box, type);
    } else if (m_work.uses.producers[at(tensor)].empty()) {
        std::vector<std::int32_t> buffers;
        for (const Need &need : needs)
            buffers.push_back(load(tensor, need, type, block, op));
        return buffers;
    }
    return m_work.materializer.ensure(tensor, needs, type, block, op);
}

/// Fed from the host: every block loads what it reads, so that nothing is held in between.
std::int32_t BlockInputs::load(
    TensorId tensor, const Need &need, DataType type, std::int32_t block, OperatorId op)
{
    auto &loaded = m_loaded[tensor];
    for (const KeptBox &box : loaded)
        if (box.device == need.device && box.box == need.box && box.dataType == type)
            return box.buffer;
    BufferInfo info{.tensor = tensor, .dataType = type, .index = need.box, .memory = MemoryKind::Input};
    info.perMicroBatch = m_work.runsInMicroBatches(block);
    const std::int32_t buffer =
        m_work.builder.make(need.device, block, std::move(info), {.kind = InstructionKind::Load, .op = op});
    loaded.push_back({need.device, need.box, buffer, type});
    return buffer;
}

Result<std::vector<BufferList>> BlockInputs::ofParts(OperatorId id, std::int32_t block,
    const std::vector<std::size_t> &numbers, const std::vector<bool> &passed)
{
    const auto &all = m_work.partsOf(id);
    std::vector<const TransformedPart *> parts;
    parts.reserve(numbers.size());
    for (const std::size_t p : numbers)
        parts.push_back(&all[p]);
    const Operator &op = m_blocks.shareOf(id, block);
    std::vector<BufferList> inputs(parts.size());
    for (BufferList &list : inputs)
        list.resize(op.inputs.size(), -1);
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        if (!op.inputs[slot] || m_work.isLeftOut(id, false, slot) || (slot < passed.size() && passed[slot]))
            continue;
        TRY(const auto buffers, ofSlot(id, block, slot, parts));
        for (std::size_t p = 0; p < parts.size(); ++p)
            inputs[p][slot] = buffers[p];
    }
    return inputs;
}

Result<std::vector<std::int32_t>> BlockInputs::ofSlot(
    OperatorId id, std::int32_t block, std::size_t slot, const std::vector<const TransformedPart *> &parts)
{
    const TensorId tensor = m_work.graph.at(id).inputs[slot];
    std::vector<Need> needs;
    needs.reserve(parts.size());
    bool divided = false;
    for (const TransformedPart *part : parts) {
        needs.push_back({part->device, part->inputs[slot].index, part->inputs[slot].value});
        divided = divided || !needs.back().value.complete();
    }
    const DataType type = m_work.types.read(id, slot);
    // What is sent as it was made can be divided as it was made.
    if (divided && type == m_work.types.accumulated(tensor))
        if (auto found = m_work.materializer.ensureParts(tensor, needs, block, id))
            return *std::move(found);
    for (Need &need : needs)
        need.value = {};
    TRY(auto buffers, of(tensor, needs, type, block, id));
    for (std::size_t p = 0; p < parts.size() && divided; ++p) {
        const TensorView &view = parts[p]->inputs[slot];
        if (view.value.complete())
            continue;
        BufferInfo info{.tensor = tensor, .dataType = type, .index = view.index, .valuePart = view.value};
        info.perMicroBatch = m_work.runsInMicroBatches(block);
        buffers[p] = m_work.builder.make(parts[p]->device, block, std::move(info),
            {.kind = InstructionKind::ValueSelect, .op = id, .inputs = {buffers[p]}});
    }
    return buffers;
}

} // namespace planloom
