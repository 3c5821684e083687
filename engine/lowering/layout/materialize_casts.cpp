// Weights of parts, and types: what is cast, where the cast stands, and in which type a tensor travels.

#include "engine/lowering/layout/materialize.h"

#include <algorithm>
#include <cassert>

namespace planloom {

DataType Materializer::typeOf(const Holding &holding) const
{
    return m_builder.buffer(holding.device, holding.buffer).dataType;
}

/// The type in which `tensor` is communicated for readers that want `wanted`.
///
///     made fp32 --cast--> bf16 ==send==> bf16              narrowing comes before,
///     made bf16 ==send==> bf16 --cast--> fp32              widening behind,
///     added up fp32 --cast--> bf16 ==all-reduce==> bf16 --cast--> fp32    a gradient has its own type
DataType Materializer::wireType(TensorId tensor, DataType wanted) const
{
    if (memoryOf(tensor) == MemoryKind::Gradient)
        return m_types.reduced(tensor);
    const DataType made = m_types.accumulated(tensor);
    return sizeOf(wanted) < sizeOf(made) ? wanted : made;
}

/// `from` in the type of `task`, by an instruction in its block.
Holding Materializer::cast(const Holding &from, const Task &task)
{
    if (typeOf(from) == task.dataType)
        return from;
    Holding result{from.device, from.box, from.summands,
        newBuffer(task, from.device, from.box, from.summands, memoryOf(task.tensor))};
    m_builder.emit(from.device, task.block,
        {.kind = InstructionKind::Cast, .op = task.op, .inputs = {from.buffer}, .outputs = {result.buffer}});
    return result;
}

/// Meets all needs from what their own devices hold, of the wanted type or of the one that was made; changes
/// nothing where some need cannot be.
bool Materializer::castLocally(
    const std::vector<Need> &needs, const Task &task, std::vector<std::int32_t> &buffers)
{
    auto &available = m_tensors[static_cast<std::size_t>(task.tensor.index)].available;
    const DataType made = m_types.accumulated(task.tensor);
    const auto found = [&](const Need &need, DataType type) {
        return findLocal(task.tensor, need, type, task.block);
    };
    if (!std::all_of(needs.begin(), needs.end(),
            [&](const Need &need) { return found(need, task.dataType) || found(need, made); }))
        return false;
    for (std::size_t i = 0; i < needs.size(); ++i) {
        const Available *own = found(needs[i], task.dataType);
        const Available source = own ? *own : *found(needs[i], made); // what it lies in grows
        if (own) {
            const Holding cut = select(source.holding, needs[i].box, task);
            if (cut.buffer != source.holding.buffer)
                available.add({cut, task.block});
            buffers[i] = cut.buffer;
            continue;
        }
        Task casting = task;
        const bool whole = source.holding.box == needs[i].box;
        // A narrower copy is made at once, so that it alone has to be kept.
        if (whole && sizeOf(task.dataType) < sizeOf(made))
            casting.block = source.block;
        Task cutting = task;
        cutting.dataType = made;
        const Holding copy = cast(select(source.holding, needs[i].box, cutting), casting);
        available.add({copy, casting.block});
        buffers[i] = copy.buffer;
    }
    return true;
}

/// What was made of the task's tensor, cast to the task's type by the blocks that made it.
std::vector<Materializer::Made> &Materializer::versionsOf(const Task &task)
{
    TensorState &state = m_tensors[static_cast<std::size_t>(task.tensor.index)];
    auto &versions = state.versions[task.dataType];
    for (Made &made : state.made) {
        if (isOtherTurns(made) || std::any_of(versions.begin(), versions.end(), [&](const Made &version) {
                return version.block == made.block && version.turn == made.turn;
            }))
            continue;
        Task merging = task;
        merging.dataType = m_types.accumulated(task.tensor);
        merging.whole = wholeBox(task.tensor);
        Task casting = task;
        casting.block = made.block;
        Made version{.block = made.block, .turn = made.turn};
        for (const Holding &holding : merge(made, merging)) {
            version.merged.push_back(cast(holding, casting));
            if (holding.summands.empty())
                state.available.add({version.merged.back(), made.block});
        }
        version.raw = made.raw;
        versions.push_back(std::move(version));
    }
    return versions;
}

/// What operators made, in the task's type.
const std::vector<Holding> &Materializer::castRaw(Made &made, const Task &task)
{
    Task casting = task;
    casting.block = made.block;
    for (Holding &holding : made.raw) {
        // Often a device made just one, which is what it has merged.
        const auto merged = std::find_if(made.merged.begin(), made.merged.end(), [&](const Holding &other) {
            return other.device == holding.device && other.box == holding.box
                && other.summands == holding.summands;
        });
        holding = merged != made.merged.end() ? *merged : cast(holding, casting);
    }
    return made.raw;
}

Result<std::vector<Holding>> Materializer::weigh(TensorId tensor, const std::vector<Holding> &parts,
    TensorId by, const std::vector<Holding> &weights, std::int32_t block, OperatorId op)
{
    assert(parts.size() == weights.size());
    std::vector<Need> needs;
    for (const Holding &own : weights)
        needs.push_back({own.device, own.box});
    TRY(const auto all, ensure(by, needs, m_types.accumulated(by), block, op));
    const Task task{.tensor = tensor,
        .op = op,
        .block = block,
        .dataType = m_types.accumulated(tensor),
        .whole = wholeBox(tensor)};
    std::vector<Holding> weighed;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        Holding summand = parts[i];
        summand.buffer = newBuffer(task, summand.device, summand.box, summand.summands, memoryOf(tensor));
        m_builder.emit(summand.device, block,
            {.kind = InstructionKind::Weigh,
                .op = op,
                .inputs = {parts[i].buffer, weights[i].buffer, all[i]},
                .outputs = {summand.buffer}});
        weighed.push_back(std::move(summand));
    }
    return weighed;
}

} // namespace planloom
