#include "engine/simulate/program_reading.h"

#include "engine/lowering/program/instruction_cost.h"
#include "engine/simulate/symmetry.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

bool buffersInRange(const BufferList &buffers, std::size_t count, bool absentAllowed)
{
    return std::all_of(buffers.begin(), buffers.end(),
        [&](std::int32_t buffer) { return isIndexOf(buffer, count) || (absentAllowed && buffer == -1); });
}

class ProgramReader
{
public:
    ProgramReader(const ExecutionPlan &plan, const Cluster &cluster, std::int32_t device)
        : m_plan(plan)
        , m_device(device)
        , m_program(plan.devices[static_cast<std::size_t>(device)])
    {
        m_read.colour.add(cluster.classOf(DeviceId{device}));
    }

    Result<ProgramReading> read()
    {
        TRY_VOID(readBuffers());
        m_read.hidden.reserve(m_program.segments.size());
        for (std::size_t s = 0; s < m_program.segments.size(); ++s)
            TRY_VOID(readSegment(static_cast<std::int32_t>(s), m_read.hidden.emplace_back()));
        return std::move(m_read);
    }

private:
    Result<void> readBuffers()
    {
        const Graph &graph = *m_plan.graph;
        Colour &colour = m_read.colour;
        colour.add(static_cast<std::uint64_t>(m_program.buffers.size()));
        for (const BufferInfo &buffer : m_program.buffers) {
            if (!isIndexOf(buffer.tensor.index, graph.tensors.size()))
                return Error{ErrorCode::InvalidInput, "a buffer is of a tensor that does not exist", {},
                    "device:" + std::to_string(m_device)};
            colour.add(static_cast<std::int32_t>(buffer.dataType) * 64
                + static_cast<std::int32_t>(buffer.memory) * 8 + (buffer.perMicroBatch ? 4 : 0)
                + (buffer.persistent ? 2 : 0) + (buffer.valuePart.index != 0 ? 1 : 0)
                + (buffer.place == MemoryPlace::Host ? 1 << 20 : 0));
            for (const Range &range : buffer.index.ranges)
                colour.add(range.size());
        }
        return {};
    }

    Result<void> readSegment(std::int32_t s, std::vector<std::int32_t> &hidden)
    {
        const Segment &segment = m_program.segments[static_cast<std::size_t>(s)];
        Colour &colour = m_read.colour;
        colour.add(static_cast<std::int32_t>(segment.kind));
        hidden = hiddenStores(segment);
        m_read.hidesStores = m_read.hidesStores || !hidden.empty();
        std::size_t nextHidden = 0;
        std::uint64_t deaths = 0; // Of one instruction and the stores hidden behind it, in any order.
        for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
            const Instruction &instruction = segment.instructions[i];
            TRY_VOID(check(s, static_cast<std::int32_t>(i), instruction));
            if (nextHidden < hidden.size() && static_cast<std::size_t>(hidden[nextHidden]) == i) {
                ++nextHidden;
            } else {
                colour.add(deaths);
                deaths = 0;
                TRY_VOID(colourInstruction(s, static_cast<std::int32_t>(i), instruction));
            }
            for (const std::int32_t buffer : instruction.deaths)
                deaths += Colour::mixed(static_cast<std::uint64_t>(buffer));
        }
        colour.add(deaths);
        colour.add(static_cast<std::uint64_t>(segment.instructions.size() - hidden.size()));
        return {};
    }

    Result<void> check(std::int32_t s, std::int32_t i, const Instruction &instruction) const
    {
        const std::size_t buffers = m_program.buffers.size();
        if (!buffersInRange(instruction.inputs, buffers, true)
            || !buffersInRange(instruction.outputs, buffers, true)
            || !buffersInRange(instruction.deaths, buffers, false))
            return wrongInstruction(m_device, s, i, "the instruction names a buffer that does not exist");
        if (instruction.kind == InstructionKind::Kernel
            && !isIndexOf(instruction.op.index, m_plan.graph->operators.size()))
            return wrongInstruction(m_device, s, i, "the kernel runs an operator that does not exist");
        return {};
    }

    Result<void> colourInstruction(std::int32_t s, std::int32_t i, const Instruction &instruction)
    {
        Colour &colour = m_read.colour;
        if (instruction.kind == InstructionKind::Kernel) {
            colour.add(instruction.op.index);
            // Parts of a causal attention take longer the more they see.
            colour.add(std::bit_cast<std::uint64_t>(seenKeysOf(m_plan, instruction)));
        }
        colour.add(static_cast<std::int32_t>(instruction.kind) * 128 + (instruction.waits ? 64 : 0)
            + (instruction.overlaps ? 32 : 0) + (instruction.acrossUnits ? 16 : 0)
            + static_cast<std::int32_t>(queueOf(instruction)) * 2 + (instruction.joined ? 1 : 0)
            + static_cast<std::int32_t>(instruction.combination) * 4096);
        colour.add(instruction.inputs);
        colour.add(instruction.outputs);
        if (!isCommunication(instruction.kind))
            return {};
        const bool paired =
            instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv;
        TRY(const std::int32_t slot,
            paired ? tagSlot(s, i, instruction)
                : instruction.acrossUnits
                ? Result<std::int32_t>(slotOf(m_slotOfUnits, {.segment = s, .instruction = i}))
                : groupSlot(s, i, instruction));
        colour.add(slot);
        return {};
    }

    /// `known`, or that of a new slot for `use`.
    std::int32_t slotOf(std::int32_t &known, const ChannelUse &use)
    {
        if (known < 0) {
            known = static_cast<std::int32_t>(m_read.uses.size());
            m_read.uses.push_back(use);
        }
        return known;
    }

    Result<std::int32_t> groupSlot(std::int32_t s, std::int32_t i, const Instruction &instruction)
    {
        if (!isIndexOf(instruction.group, m_plan.groups.size()))
            return wrongInstruction(m_device, s, i, "the collective is of a group that does not exist");
        return slotOf(m_slotOfGroup.try_emplace(instruction.group, -1).first->second,
            {.group = instruction.group, .segment = s, .instruction = i});
    }

    Result<std::int32_t> tagSlot(std::int32_t s, std::int32_t i, const Instruction &instruction)
    {
        if (instruction.tag < 0 || !isIndexOf(instruction.peer.index, m_plan.devices.size()))
            return wrongInstruction(m_device, s, i, "the send or receive has no tag or no peer");
        const auto [slot, isNew] = m_slotOfTag.try_emplace(instruction.tag, -1);
        if (!isNew)
            return wrongInstruction(m_device, s, i,
                "the tag " + std::to_string(instruction.tag) + " is used twice on one device");
        return slotOf(slot->second,
            {.tag = instruction.tag,
                .peer = instruction.peer.index,
                .sends = instruction.kind == InstructionKind::Send,
                .segment = s,
                .instruction = i});
    }

    const ExecutionPlan &m_plan;
    std::int32_t m_device;
    const DeviceProgram &m_program;
    ProgramReading m_read{};
    std::unordered_map<std::int32_t, std::int32_t> m_slotOfGroup{};
    std::unordered_map<std::int32_t, std::int32_t> m_slotOfTag{};
    std::int32_t m_slotOfUnits = -1;
};

} // namespace

Result<ProgramReading> readProgram(const ExecutionPlan &plan, const Cluster &cluster, std::int32_t device)
{
    return ProgramReader(plan, cluster, device).read();
}

Result<Colour> colourWithSchedule(
    const ExecutionPlan &plan, std::int32_t device, const ProgramReading &reading)
{
    const DeviceProgram &program = plan.devices[static_cast<std::size_t>(device)];
    Colour colour = reading.colour;
    for (const ScheduleEntry &entry : program.schedule) {
        if (!isIndexOf(entry.segment, program.segments.size()) || entry.microBatch < 0
            || entry.microBatch >= plan.microBatches)
            return Error{ErrorCode::InvalidInput,
                "the schedule names a segment or micro-batch that does not exist", {},
                "device:" + std::to_string(device)};
        const auto all = program.segments[static_cast<std::size_t>(entry.segment)].instructions.size();
        if (entry.begin < 0 || entry.end < -1 || static_cast<std::size_t>(entry.begin) > all
            || (entry.end >= 0 && (entry.end < entry.begin || static_cast<std::size_t>(entry.end) > all)))
            return Error{ErrorCode::InvalidInput, "the schedule names instructions that do not exist", {},
                "device:" + std::to_string(device)};
        colour.add(entry.segment);
        colour.add(entry.microBatch);
        if (entry.begin == 0 && entry.end < 0)
            continue;
        // In instructions that are not hidden, so that a store makes no difference.
        const auto &hidden = reading.hidden[static_cast<std::size_t>(entry.segment)];
        const auto [begin, end] = indicesOf(program, entry);
        for (const std::size_t index : {begin, end})
            colour.add(static_cast<std::uint64_t>(index)
                - static_cast<std::uint64_t>(
                    std::lower_bound(hidden.begin(), hidden.end(), static_cast<std::int32_t>(index))
                    - hidden.begin()));
    }
    return colour;
}

Error wrongInstruction(
    std::int32_t device, std::int32_t segment, std::int32_t instruction, std::string message)
{
    return {ErrorCode::InvalidInput, std::move(message), {}, placeOf(device, segment, instruction)};
}

} // namespace planloom
