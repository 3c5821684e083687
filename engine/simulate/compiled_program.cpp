#include "engine/simulate/compiled_program.h"

#include <cmath>

namespace planloom {

namespace {

void append(std::string &key, std::int64_t value)
{
    key.append(
        reinterpret_cast<const char *>(&value), sizeof value); // The key is only compared in this process.
}

/// All that the duration of a local instruction depends on.
void writeKey(const DeviceProgram &program, const Instruction &instruction, std::string &key)
{
    key.clear();
    append(key, static_cast<std::int64_t>(instruction.kind));
    append(key, instruction.kind == InstructionKind::Kernel ? instruction.op.index : -1);
    for (const auto *list : {&instruction.inputs, &instruction.outputs}) {
        append(key, static_cast<std::int64_t>(list->size()));
        for (const std::int32_t buffer : *list) {
            if (buffer < 0) { // The shape then follows from the part.
                append(key, -1 - instruction.part);
                continue;
            }
            const BufferInfo &info = program.buffers[static_cast<std::size_t>(buffer)];
            append(key, info.valuePart.index);
            append(key, static_cast<std::int64_t>(info.dataType));
            if (instruction.kind != InstructionKind::Kernel)
                append(key, info.tensor.index);
            for (const Range &range : info.index.ranges)
                append(key, range.size());
            append(key, -1);
        }
    }
    bool renames = false;
    for (const std::int32_t buffer : instruction.deaths)
        renames = renames || (!instruction.inputs.empty() && buffer == instruction.inputs.front());
    append(key, renames ? 1 : 0);
}

} // namespace

std::int64_t ProgramCompiler::collectiveNanoseconds(CollectiveKind kind, Bytes bytes, const Channel &channel)
{
    const GroupShape shape{static_cast<std::int32_t>(channel.members.size()), channel.nodes};
    if (shape.ranks < 2)
        return 0;
    std::string key;
    append(key, static_cast<std::int64_t>(kind));
    append(key, bytes.count);
    append(key, shape.ranks);
    append(key, shape.nodes);
    const auto [found, isNew] = m_collective.emplace(std::move(key), 0);
    if (isNew)
        found->second = std::llround(m_costs.collective(kind, bytes, shape) * 1e9);
    return found->second;
}

CompiledProgram ProgramCompiler::compile(const Symmetry &symmetry, std::int32_t device)
{
    const DeviceProgram &program = m_plan.devices[static_cast<std::size_t>(device)];
    CompiledProgram compiled;
    compiled.schedule = program.schedule;

    compiled.buffers.reserve(program.buffers.size());
    compiled.bufferBytes.reserve(program.buffers.size());
    compiled.bufferKind.reserve(program.buffers.size());
    std::size_t instructions = 0;
    std::size_t operands = 0;
    for (const Segment &segment : program.segments) {
        instructions += segment.instructions.size();
        for (const Instruction &instruction : segment.instructions)
            operands += instruction.inputs.size() + instruction.outputs.size() + instruction.deaths.size();
    }
    compiled.instructions.reserve(instructions);
    compiled.operands.reserve(operands);
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        const BufferInfo &buffer = program.buffers[b];
        const bool perMicroBatch = buffer.perMicroBatch && !buffer.persistent;
        std::int32_t &count = perMicroBatch ? compiled.perMicroBatchCount : compiled.singleCount;
        compiled.buffers.push_back({count++, perMicroBatch});
        compiled.bufferBytes.push_back(sizeOf(buffer).count);
        compiled.bufferKind.push_back(buffer.memory);
        if (buffer.persistent)
            compiled.persistent.push_back(static_cast<std::int32_t>(b));
    }

    std::unordered_map<std::int32_t, std::int32_t> slotOfGroup, slotOfTag;
    const auto &slots = symmetry.slots[static_cast<std::size_t>(device)];
    for (std::size_t s = 0; s < slots.size(); ++s) {
        const Channel &channel = symmetry.channels[static_cast<std::size_t>(slots[s])];
        (channel.group >= 0 ? slotOfGroup[channel.group] : slotOfTag[channel.tag]) =
            static_cast<std::int32_t>(s);
    }

    const auto appendOperands = [&](const BufferList &buffers) {
        for (const std::int32_t buffer : buffers) {
            if (buffer >= 0)
                compiled.operands.push_back(buffer);
        }
    };
    std::vector<std::int64_t> communications;
    std::string key; // of the instruction at hand
    compiled.segmentBegin.push_back(0);
    for (const Segment &segment : program.segments) {
        communications.push_back(0);
        const std::vector<std::int32_t> hidden = hiddenStores(segment);
        for (std::size_t i = 0, nextHidden = 0; i < segment.instructions.size(); ++i) {
            const Instruction &instruction = segment.instructions[i];
            if (nextHidden < hidden.size() && static_cast<std::size_t>(hidden[nextHidden]) == i) {
                // What it stores dies with the instruction before it, whose deaths are the last operands.
                ++nextHidden;
                appendOperands(instruction.deaths);
                compiled.instructions.back().deathEnd = static_cast<std::int32_t>(compiled.operands.size());
                continue;
            }
            CompiledInstruction &entry = compiled.instructions.emplace_back();
            entry.origin = static_cast<std::int32_t>(i);
            entry.kind = instruction.kind;
            entry.stream = streamOf(instruction.kind);
            entry.paired =
                instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv;
            entry.inputBegin = static_cast<std::int32_t>(compiled.operands.size());
            appendOperands(instruction.inputs);
            entry.outputBegin = static_cast<std::int32_t>(compiled.operands.size());
            appendOperands(instruction.outputs);
            entry.deathBegin = static_cast<std::int32_t>(compiled.operands.size());
            appendOperands(instruction.deaths);
            entry.deathEnd = static_cast<std::int32_t>(compiled.operands.size());
            if (const auto kind = collectiveOf(instruction.kind)) {
                ++communications.back();
                entry.slot = entry.paired ? slotOfTag.at(instruction.tag) : slotOfGroup.at(instruction.group);
                const auto channel = static_cast<std::size_t>(slots[static_cast<std::size_t>(entry.slot)]);
                entry.channel = symmetry.channelClass[channel];
                const Bytes bytes = collectiveBytes(program, instruction);
                entry.bytes = bytes.count;
                entry.duration = collectiveNanoseconds(*kind, bytes, symmetry.channels[channel]);
                continue;
            }
            writeKey(program, instruction, key);
            auto found = m_local.find(key);
            if (found == m_local.end())
                found = m_local.emplace(key, localDuration(m_plan, program, instruction, m_costs)).first;
            entry.duration = found->second.usual.count();
            entry.firstDuration = found->second.first.count();
        }
        compiled.segmentBegin.push_back(static_cast<std::int32_t>(compiled.instructions.size()));
    }
    for (const ScheduleEntry &entry : compiled.schedule) {
        const auto segment = static_cast<std::size_t>(entry.segment);
        const std::int64_t all = compiled.segmentBegin[segment + 1] - compiled.segmentBegin[segment];
        compiled.communicationCount += communications[segment];
        compiled.computeCount += all - communications[segment];
    }
    return compiled;
}

} // namespace planloom
