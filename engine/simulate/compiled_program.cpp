#include "engine/simulate/compiled_program.h"

#include "engine/graph/operator_files/custom_operator.h"
#include "engine/lowering/program/program_builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace planloom {

namespace {

void append(std::string &key, std::int64_t value)
{
    key.append(
        reinterpret_cast<const char *>(&value), sizeof value); // The key is only compared in this process.
}

/// All that the duration of a local instruction depends on.
void writeKey(const ExecutionPlan &plan, const DeviceProgram &program, const Instruction &instruction,
    Bytes spared, std::int32_t deviceClass, std::string &key)
{
    key.clear();
    append(key, deviceClass);
    append(key, std::bit_cast<std::int64_t>(seenKeysOf(plan, instruction)));
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
    append(key, (renames ? 1 : 0) + (instruction.joined ? 2 : 0));
    append(key, spared.count);
}

/// Bytes that an operator of a file needs only while it runs; 0 for all others.
std::int64_t workspaceIn(
    const ExecutionPlan &plan, const DeviceProgram &program, const Instruction &instruction)
{
    if (instruction.kind != InstructionKind::Kernel
        || plan.graph->at(instruction.op).kind != OperatorKind::Custom)
        return 0;
    const auto typesOf = [&program](const BufferList &buffers) {
        std::vector<TensorType> types;
        for (const std::int32_t buffer : buffers) {
            TensorType &type = types.emplace_back();
            if (buffer >= 0) {
                const BufferInfo &info = program.buffers[static_cast<std::size_t>(buffer)];
                type = {info.dataType, shapeOf(info.index)};
            }
        }
        return types;
    };
    return workspaceOf(
        plan.graph->at(instruction.op), typesOf(instruction.inputs), typesOf(instruction.outputs));
}

} // namespace

ProgramCompiler::Priced ProgramCompiler::priced(CollectiveKind kind, Bytes bytes, const Channel &channel)
{
    const GroupShape &shape = channel.shape;
    if (shape.ranks < 2)
        return {};
    std::string key;
    append(key, static_cast<std::int64_t>(kind));
    append(key, bytes.count);
    append(key, shape.ranks);
    append(key, shape.nodes);
    for (const std::int32_t groups : shape.outer)
        append(key, groups);
    append(key, static_cast<std::int64_t>(shape.classes));
    const auto [found, isNew] = m_collective.emplace(std::move(key), Priced{});
    if (isNew) {
        found->second.nanoseconds = std::llround(m_costs.collective(kind, bytes, shape) * 1e9);
        if (m_costs.load) {
            found->second.load = static_cast<std::int32_t>(m_loads.size());
            m_loads.push_back(m_costs.load(kind, bytes, shape));
        }
    }
    return found->second;
}

/// What is left of a collective of `duration` behind the product that it runs with, chunk by chunk: both take
/// as long as the longer one and one chunk of the other.
std::int64_t ProgramCompiler::exposedBesideProduct(const DeviceProgram &program,
    const std::vector<Instruction> &instructions, std::size_t index, std::int64_t duration,
    std::int32_t deviceClass)
{
    constexpr std::int64_t kChunks = 4; // as Transformer Engine's overlap cuts a product by default
    const auto partner = overlapPartner(*m_plan.graph, instructions, index);
    if (!partner)
        return duration;
    const std::int64_t product =
        localDuration(m_plan, program, instructions[*partner], m_costs, {}, deviceClass).usual.count();
    return std::max(duration - product, std::int64_t{0}) + std::min(duration, product) / kChunks;
}

CompiledProgram ProgramCompiler::compile(const Symmetry &symmetry, std::int32_t device)
{
    const DeviceProgram &program = m_plan.devices[static_cast<std::size_t>(device)];
    const std::int32_t deviceClass = m_costs.classOf(m_plan.units.deviceOf(0, DeviceId{device}));
    CompiledProgram compiled;
    compiled.microBatchesPerUpdate = microBatchesPerUpdate(m_plan);
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
        compiled.buffers.push_back({count++, perMicroBatch, buffer.staleness,
            buffer.persistent ? buffer.versions : std::int16_t{1}});
        compiled.bufferBytes.push_back(sizeOf(buffer).count);
        compiled.bufferKind.push_back(buffer.memory);
        compiled.onHost.push_back(buffer.place == MemoryPlace::Host);
        if (buffer.persistent)
            compiled.persistent.push_back(static_cast<std::int32_t>(b));
    }

    std::unordered_map<std::int32_t, std::int32_t> slotOfGroup, slotOfTag;
    std::int32_t slotOfUnits = -1;
    const auto &slots = symmetry.slots[static_cast<std::size_t>(device)];
    for (std::size_t s = 0; s < slots.size(); ++s) {
        const Channel &channel = symmetry.channels[static_cast<std::size_t>(slots[s])];
        std::int32_t &slot = channel.group >= 0 ? slotOfGroup[channel.group]
            : channel.tag >= 0                  ? slotOfTag[channel.tag]
                                                : slotOfUnits;
        slot = static_cast<std::int32_t>(s);
    }

    const auto appendOperands = [&](const BufferList &buffers) {
        for (const std::int32_t buffer : buffers) {
            if (buffer >= 0)
                compiled.operands.push_back(buffer);
        }
    };
    std::string key; // of the instruction at hand
    compiled.segmentBegin.push_back(0);
    for (const Segment &segment : program.segments) {
        const std::vector<std::int32_t> hidden = hiddenStores(segment);
        const std::vector<Bytes> spared = sparedBytes(program, segment.instructions);
        std::array<Bytes, kQueueCount> buckets{}; // of the collectives joined so far
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
            entry.queue = queueOf(instruction);
            entry.waits = instruction.waits;
            entry.paired =
                instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv;
            entry.inputBegin = static_cast<std::int32_t>(compiled.operands.size());
            appendOperands(instruction.inputs);
            entry.outputBegin = static_cast<std::int32_t>(compiled.operands.size());
            appendOperands(instruction.outputs);
            entry.deathBegin = static_cast<std::int32_t>(compiled.operands.size());
            appendOperands(instruction.deaths);
            entry.deathEnd = static_cast<std::int32_t>(compiled.operands.size());
            if (const std::int64_t bytes = workspaceIn(m_plan, program, instruction); bytes > 0)
                compiled.workspaces.emplace(
                    static_cast<std::int32_t>(compiled.instructions.size()) - 1, bytes);
            if (const auto kind = collectiveOf(instruction.kind)) {
                entry.slot = entry.paired     ? slotOfTag.at(instruction.tag)
                    : instruction.acrossUnits ? slotOfUnits
                                              : slotOfGroup.at(instruction.group);
                const auto channel = static_cast<std::size_t>(slots[static_cast<std::size_t>(entry.slot)]);
                const Bytes bytes = collectiveBytes(program, instruction);
                entry.bytes = bytes.count * timesSent(instruction);
                // Joined ones are one launch: each takes what it adds to the whole.
                Bytes &bucket = buckets[static_cast<std::size_t>(entry.queue)];
                const Bytes before = instruction.joined ? bucket : Bytes{};
                bucket = before + bytes;
                // Both ways of a log-sum-exp: the largest first.
                const auto takes = [&](Bytes all) {
                    std::int64_t nanoseconds = priced(*kind, all, symmetry.channels[channel]).nanoseconds;
                    if (needsLargestFirst(instruction))
                        nanoseconds +=
                            priced(CollectiveKind::AllReduce, all, symmetry.channels[channel]).nanoseconds;
                    return nanoseconds;
                };
                entry.duration = takes(bucket);
                entry.load = priced(*kind, bucket, symmetry.channels[channel]).load;
                if (instruction.joined)
                    entry.duration = std::max<std::int64_t>(0, entry.duration - takes(before));
                else if (entry.load >= 0)
                    entry.latency = std::llround(m_loads[static_cast<std::size_t>(entry.load)].latency * 1e9);
                if (instruction.overlaps)
                    entry.duration =
                        exposedBesideProduct(program, segment.instructions, i, entry.duration, deviceClass);
                entry.latency = std::min(entry.latency, entry.duration);
                continue;
            }
            writeKey(m_plan, program, instruction, spared[i], deviceClass, key);
            auto found = m_local.find(key);
            if (found == m_local.end())
                found = m_local
                            .emplace(key,
                                localDuration(m_plan, program, instruction, m_costs, spared[i], deviceClass))
                            .first;
            entry.duration = found->second.usual.count();
            entry.firstDuration = found->second.first.count();
        }
        compiled.segmentBegin.push_back(static_cast<std::int32_t>(compiled.instructions.size()));
    }
    return compiled;
}

void addSchedule(
    CompiledProgram &compiled, const ExecutionPlan &plan, const Symmetry &symmetry, std::int32_t device)
{
    const DeviceProgram &program = plan.devices[static_cast<std::size_t>(device)];
    const auto &slots = symmetry.slots[static_cast<std::size_t>(device)];
    for (CompiledInstruction &instruction : compiled.instructions)
        if (instruction.slot >= 0)
            instruction.channel = symmetry.channelClass[static_cast<std::size_t>(
                slots[static_cast<std::size_t>(instruction.slot)])];
    // Hidden stores are left out: the first compiled instruction at or behind an instruction of a segment.
    const auto compiledIndex = [&](std::int32_t segment, std::size_t instruction) {
        const auto begin =
            compiled.instructions.begin() + compiled.segmentBegin[static_cast<std::size_t>(segment)];
        const auto end =
            compiled.instructions.begin() + compiled.segmentBegin[static_cast<std::size_t>(segment) + 1];
        const auto found = std::partition_point(begin, end, [instruction](const CompiledInstruction &entry) {
            return static_cast<std::size_t>(entry.origin) < instruction;
        });
        return static_cast<std::int32_t>(found - compiled.instructions.begin());
    };
    compiled.schedule.reserve(program.schedule.size());
    for (const ScheduleEntry &entry : program.schedule) {
        const auto [begin, end] = indicesOf(program, entry);
        compiled.schedule.push_back({entry.segment, entry.microBatch, compiledIndex(entry.segment, begin),
            compiledIndex(entry.segment, end)});
    }
    std::vector<std::int64_t> runs(compiled.instructions.size() + 1, 0); // differences
    for (const CompiledEntry &entry : compiled.schedule) {
        ++runs[static_cast<std::size_t>(entry.begin)];
        --runs[static_cast<std::size_t>(entry.end)];
    }
    std::partial_sum(runs.begin(), runs.end(), runs.begin());
    for (std::size_t i = 0; i < compiled.instructions.size(); ++i)
        compiled.counts[static_cast<std::size_t>(compiled.instructions[i].queue)] += runs[i];
    compiled.runs = std::move(runs);
}

} // namespace planloom
