#include "engine/cuda/nccl/nccl_order.h"

#include "engine/runtime/communication/collective_work.h"
#include "engine/runtime/devices/box_copy.h"

#include <algorithm>
#include <array>
#include <string>

namespace planloom {

namespace {

/// One device on its way through its step.
struct Walker {
    struct Stop {
        const Instruction *instruction = nullptr;
        std::int32_t microBatch = 0;
    };
    std::vector<Stop> stops{}; ///< Its communication.
    std::size_t at = 0;

    bool ended() const { return at == stops.size(); }
    const Stop &stop() const { return stops[at]; }
};

bool isMessage(const Instruction &instruction)
{
    return instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv;
}

Walker walkerOf(const DeviceProgram &program)
{
    Walker walker;
    for (const ScheduleEntry &entry : program.schedule) {
        const auto &instructions = program.segments[static_cast<std::size_t>(entry.segment)].instructions;
        const std::size_t end = entry.end < 0 ? instructions.size() : static_cast<std::size_t>(entry.end);
        for (auto i = static_cast<std::size_t>(entry.begin); i < end; ++i)
            if (isCommunication(instructions[i].kind))
                walker.stops.push_back({&instructions[i], entry.microBatch});
    }
    return walker;
}

class Walk
{
public:
    Walk(const ExecutionPlan &plan, DeviceId device)
        : m_plan(plan)
        , m_device(device)
    {
        m_order.groups.resize(plan.groups.size());
        for (const DeviceProgram &program : plan.devices)
            m_walkers.push_back(walkerOf(program));
    }

    Result<NcclOrder> run()
    {
        for (std::size_t d = 0; d < m_walkers.size(); ++d)
            m_arrived.push_back(d);
        while (!m_arrived.empty()) {
            const std::size_t d = m_arrived.back();
            m_arrived.pop_back();
            if (m_walkers[d].ended())
                continue;
            if (isMessage(*m_walkers[d].stop().instruction))
                TRY_VOID(message(d));
            else
                TRY_VOID(collective(d));
        }
        return end();
    }

private:
    void goOn(std::size_t d)
    {
        ++m_walkers[d].at;
        m_arrived.push_back(d);
    }

    Result<void> message(std::size_t d)
    {
        const Walker::Stop &mine = m_walkers[d].stop();
        const auto peer = static_cast<std::size_t>(mine.instruction->peer.index);
        if (peer >= m_walkers.size() || peer == d)
            return damagedPlan(
                "device " + std::to_string(d) + " exchanges with device " + std::to_string(peer));
        if (m_walkers[peer].ended())
            return {};
        const Walker::Stop &theirs = m_walkers[peer].stop();
        if (!isMessage(*theirs.instruction) || theirs.instruction->kind == mine.instruction->kind
            || theirs.instruction->peer.index != static_cast<std::int32_t>(d)
            || theirs.instruction->tag != mine.instruction->tag || theirs.microBatch != mine.microBatch)
            return {};
        if (bytesOf(d) != bytesOf(peer))
            return damagedPlan("devices " + std::to_string(d) + " and " + std::to_string(peer) + " exchange "
                + std::to_string(bytesOf(d)) + " and " + std::to_string(bytesOf(peer)) + " bytes");
        const QueueKind queue = queueOf(*mine.instruction);
        if (const QueueKind other = queueOf(*theirs.instruction); queue != other)
            return damagedPlan("devices " + std::to_string(d) + " and " + std::to_string(peer)
                + " exchange a message in their " + nameOf(queue) + " and " + nameOf(other) + " queues");
        m_order.messageQueues.insert(queue);
        goOn(d);
        goOn(peer);
        return {};
    }

    std::int64_t bytesOf(std::size_t d) const
    {
        const Instruction &instruction = *m_walkers[d].stop().instruction;
        const BufferInfo &buffer = bufferOf(
            d, instruction.kind == InstructionKind::Send ? instruction.inputs[0] : instruction.outputs[0]);
        return elementCount(buffer.index) * sizeOf(buffer.dataType);
    }
    const BufferInfo &bufferOf(std::size_t d, std::int32_t buffer) const
    {
        return m_plan.devices[d].buffers[static_cast<std::size_t>(buffer)];
    }

    Result<void> collective(std::size_t d)
    {
        const Instruction &instruction = *m_walkers[d].stop().instruction;
        const auto g = static_cast<std::size_t>(instruction.group);
        if (instruction.group < 0 || g >= m_plan.groups.size())
            return damagedPlan("there is no group " + std::to_string(instruction.group));
        const std::vector<DeviceId> &members = m_plan.groups[g];
        if (std::find(members.begin(), members.end(), DeviceId{static_cast<std::int32_t>(d)})
            == members.end())
            return damagedPlan(
                "device " + std::to_string(d) + " is not in group " + std::to_string(instruction.group));
        const bool all = std::all_of(members.begin(), members.end(), [&](DeviceId member) {
            const Walker &walker = m_walkers[static_cast<std::size_t>(member.index)];
            return !walker.ended() && !isMessage(*walker.stop().instruction)
                && walker.stop().instruction->group == instruction.group;
        });
        if (!all)
            return {}; // the last one to come goes on for all
        std::vector<CollectiveCall> calls;
        for (const DeviceId member : members)
            calls.push_back(callOf(static_cast<std::size_t>(member.index)));
        if (const std::string problem = misfit(calls); !problem.empty())
            return damagedPlan(std::string{nameOf(instruction.kind)} + " in group "
                + std::to_string(instruction.group) + ": " + problem);
        if (std::find(members.begin(), members.end(), m_device) != members.end())
            m_order.groups[g].push_back(piecesOf(calls));
        for (const DeviceId member : members)
            goOn(static_cast<std::size_t>(member.index));
        return {};
    }

    /// As the executor's, of buffers that are nowhere.
    CollectiveCall callOf(std::size_t d)
    {
        const Instruction &instruction = *m_walkers[d].stop().instruction;
        CollectiveCall call;
        call.kind = instruction.kind;
        call.group = instruction.group;
        call.dimension = instruction.dimension;
        call.gatherDimension = instruction.gatherDimension;
        call.combination = instruction.combination;
        const auto described = [&](std::int32_t buffer, std::byte &at) -> CollectiveBuffer {
            const BufferInfo &info = bufferOf(d, buffer);
            return {&at, info.dataType, shapeOf(info.index)};
        };
        if (!instruction.inputs.empty() && instruction.inputs[0] >= 0)
            call.in = described(instruction.inputs[0], m_places[0]);
        if (!instruction.outputs.empty() && instruction.outputs[0] >= 0)
            call.out = described(instruction.outputs[0], m_places[1]);
        return call;
    }

    static NcclPieces piecesOf(const std::vector<CollectiveCall> &calls)
    {
        NcclPieces pieces;
        const auto cut = static_cast<std::size_t>(calls.front().dimension);
        const auto join = static_cast<std::size_t>(calls.front().gatherDimension);
        for (const CollectiveCall &call : calls) {
            if (call.kind == InstructionKind::AllGather)
                pieces.cut.push_back(call.in.shape[cut]);
            if (call.kind == InstructionKind::ReduceScatter || call.kind == InstructionKind::AllToAll)
                pieces.cut.push_back(call.out.shape[cut]);
            if (call.kind == InstructionKind::AllToAll)
                pieces.joined.push_back(call.in.shape[join]);
        }
        return pieces;
    }

    Result<NcclOrder> end()
    {
        std::string stuck;
        for (std::size_t d = 0; d < m_walkers.size(); ++d) {
            if (m_walkers[d].ended())
                continue;
            const Instruction &instruction = *m_walkers[d].stop().instruction;
            stuck += (stuck.empty() ? "device " : ", device ") + std::to_string(d) + " at "
                + nameOf(instruction.kind)
                + (isMessage(instruction) ? " with device " + std::to_string(instruction.peer.index)
                                          : " in group " + std::to_string(instruction.group));
        }
        if (stuck.empty())
            return std::move(m_order);
        return Error{ErrorCode::NotSupported,
            "with NCCL the devices of this plan would wait for each other for ever: " + stuck,
            "run it with --backend cuda-emulated or cpu", {}};
    }

    const ExecutionPlan &m_plan;
    DeviceId m_device;
    std::vector<Walker> m_walkers{};
    std::vector<std::size_t> m_arrived{}; ///< Devices that have gone on, and were not looked at since.
    std::array<std::byte, 2> m_places{};
    NcclOrder m_order{};
};

} // namespace

Result<NcclOrder> ncclOrder(const ExecutionPlan &plan, DeviceId device)
{
    return Walk{plan, device}.run();
}

} // namespace planloom
