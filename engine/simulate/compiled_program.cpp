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

/// One program at work.
class ProgramCompiler::OneProgram
{
public:
    OneProgram(ProgramCompiler &compiler, const Symmetry &symmetry, std::int32_t device)
        : m_compiler(compiler)
        , m_plan(compiler.m_plan)
        , m_program(m_plan.devices[static_cast<std::size_t>(device)])
        , m_deviceClass(compiler.m_costs.classOf(m_plan.units.deviceOf(0, DeviceId{device})))
        , m_channels(symmetry.channels)
        , m_slots(symmetry.slots[static_cast<std::size_t>(device)])
    {
        m_compiled.microBatchesPerUpdate = microBatchesPerUpdate(m_plan);
        for (std::size_t s = 0; s < m_slots.size(); ++s) {
            const Channel &channel = channelOf(s);
            std::int32_t &slot = channel.group >= 0 ? m_slotOfGroup[channel.group]
                : channel.tag >= 0                  ? m_slotOfTag[channel.tag]
                                                    : m_slotOfUnits;
            slot = static_cast<std::int32_t>(s);
        }
    }

    CompiledProgram compile()
    {
        reserve();
        addBuffers();
        m_compiled.segmentBegin.push_back(0);
        for (const Segment &segment : m_program.segments) {
            addSegment(segment);
            m_compiled.segmentBegin.push_back(static_cast<std::int32_t>(m_compiled.instructions.size()));
        }
        return std::move(m_compiled);
    }

private:
    const Channel &channelOf(std::size_t slot) const
    {
        return m_channels[static_cast<std::size_t>(m_slots[slot])];
    }

    void reserve()
    {
        std::size_t instructions = 0;
        std::size_t operands = 0;
        for (const Segment &segment : m_program.segments) {
            instructions += segment.instructions.size();
            for (const Instruction &instruction : segment.instructions)
                operands +=
                    instruction.inputs.size() + instruction.outputs.size() + instruction.deaths.size();
        }
        m_compiled.instructions.reserve(instructions);
        m_compiled.operands.reserve(operands);
        m_compiled.buffers.reserve(m_program.buffers.size());
        m_compiled.bufferBytes.reserve(m_program.buffers.size());
        m_compiled.bufferKind.reserve(m_program.buffers.size());
    }

    void addBuffers()
    {
        for (std::size_t b = 0; b < m_program.buffers.size(); ++b) {
            const BufferInfo &buffer = m_program.buffers[b];
            const bool perMicroBatch = buffer.perMicroBatch && !buffer.persistent;
            std::int32_t &count = perMicroBatch ? m_compiled.perMicroBatchCount : m_compiled.singleCount;
            m_compiled.buffers.push_back({count++, perMicroBatch, buffer.staleness,
                buffer.persistent ? buffer.versions : std::int16_t{1}});
            m_compiled.bufferBytes.push_back(sizeOf(buffer).count);
            m_compiled.bufferKind.push_back(buffer.memory);
            m_compiled.onHost.push_back(buffer.place == MemoryPlace::Host);
            if (buffer.persistent)
                m_compiled.persistent.push_back(static_cast<std::int32_t>(b));
        }
    }

    /// @return where they end
    std::int32_t addOperands(const BufferList &buffers)
    {
        for (const std::int32_t buffer : buffers)
            if (buffer >= 0)
                m_compiled.operands.push_back(buffer);
        return static_cast<std::int32_t>(m_compiled.operands.size());
    }

    void addSegment(const Segment &segment)
    {
        const std::vector<std::int32_t> hidden = hiddenStores(segment);
        const std::vector<Bytes> spared = sparedBytes(m_program, segment.instructions);
        m_buckets = {};
        for (std::size_t i = 0, nextHidden = 0; i < segment.instructions.size(); ++i) {
            const Instruction &instruction = segment.instructions[i];
            if (nextHidden < hidden.size() && static_cast<std::size_t>(hidden[nextHidden]) == i) {
                // What it stores dies with the instruction before it, whose deaths are the last operands.
                ++nextHidden;
                m_compiled.instructions.back().deathEnd = addOperands(instruction.deaths);
                continue;
            }
            CompiledInstruction &entry = addInstruction(instruction, i);
            if (const auto kind = collectiveOf(instruction.kind))
                price(entry, *kind, segment.instructions);
            else
                price(entry, instruction, spared[i]);
        }
    }

    CompiledInstruction &addInstruction(const Instruction &instruction, std::size_t origin)
    {
        CompiledInstruction &entry = m_compiled.instructions.emplace_back();
        entry.origin = static_cast<std::int32_t>(origin);
        entry.kind = instruction.kind;
        entry.queue = queueOf(instruction);
        entry.waits = instruction.waits;
        entry.paired = instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv;
        entry.inputBegin = static_cast<std::int32_t>(m_compiled.operands.size());
        entry.outputBegin = addOperands(instruction.inputs);
        entry.deathBegin = addOperands(instruction.outputs);
        entry.deathEnd = addOperands(instruction.deaths);
        if (const std::int64_t bytes = workspaceIn(m_plan, m_program, instruction); bytes > 0)
            m_compiled.workspaces.emplace(
                static_cast<std::int32_t>(m_compiled.instructions.size()) - 1, bytes);
        return entry;
    }

    /// Of communication.
    void price(CompiledInstruction &entry, CollectiveKind kind, const std::vector<Instruction> &instructions)
    {
        const auto index = static_cast<std::size_t>(entry.origin);
        const Instruction &instruction = instructions[index];
        entry.slot = entry.paired     ? m_slotOfTag.at(instruction.tag)
            : instruction.acrossUnits ? m_slotOfUnits
                                      : m_slotOfGroup.at(instruction.group);
        const Channel &channel = channelOf(static_cast<std::size_t>(entry.slot));
        const Bytes bytes = collectiveBytes(m_program, instruction);
        entry.bytes = bytes.count * timesSent(instruction);
        // Joined ones are one launch: each takes what it adds to the whole.
        Bytes &bucket = m_buckets[static_cast<std::size_t>(entry.queue)];
        const Bytes before = instruction.joined ? bucket : Bytes{};
        bucket = before + bytes;
        // Both ways of a log-sum-exp: the largest first.
        const auto takes = [&](Bytes all) {
            std::int64_t nanoseconds = m_compiler.priced(kind, all, channel).nanoseconds;
            if (needsLargestFirst(instruction))
                nanoseconds += m_compiler.priced(CollectiveKind::AllReduce, all, channel).nanoseconds;
            return nanoseconds;
        };
        entry.duration = takes(bucket);
        entry.load = m_compiler.priced(kind, bucket, channel).load;
        if (instruction.joined)
            entry.duration = std::max<std::int64_t>(0, entry.duration - takes(before));
        else if (entry.load >= 0)
            entry.latency =
                std::llround(m_compiler.m_loads[static_cast<std::size_t>(entry.load)].latency * 1e9);
        if (instruction.overlaps)
            entry.duration = m_compiler.exposedBesideProduct(
                m_program, instructions, index, entry.duration, m_deviceClass);
        entry.latency = std::min(entry.latency, entry.duration);
    }

    /// Of what a device does alone.
    void price(CompiledInstruction &entry, const Instruction &instruction, Bytes spared)
    {
        writeKey(m_plan, m_program, instruction, spared, m_deviceClass, m_key);
        auto found = m_compiler.m_local.find(m_key);
        if (found == m_compiler.m_local.end())
            found = m_compiler.m_local
                        .emplace(m_key,
                            localDuration(
                                m_plan, m_program, instruction, m_compiler.m_costs, spared, m_deviceClass))
                        .first;
        entry.duration = found->second.usual.count();
        entry.firstDuration = found->second.first.count();
    }

    ProgramCompiler &m_compiler;
    const ExecutionPlan &m_plan;
    const DeviceProgram &m_program;
    std::int32_t m_deviceClass;
    const std::vector<Channel> &m_channels;
    const std::vector<std::int32_t> &m_slots; ///< Of the device: its channels.
    std::unordered_map<std::int32_t, std::int32_t> m_slotOfGroup{};
    std::unordered_map<std::int32_t, std::int32_t> m_slotOfTag{};
    std::int32_t m_slotOfUnits = -1;
    std::array<Bytes, kQueueCount> m_buckets{}; ///< Of the collectives joined so far, by queue.
    std::string m_key{}; ///< Of the instruction at hand.
    CompiledProgram m_compiled{};
};

CompiledProgram ProgramCompiler::compile(const Symmetry &symmetry, std::int32_t device)
{
    return OneProgram(*this, symmetry, device).compile();
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
