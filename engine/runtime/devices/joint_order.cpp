#include "engine/runtime/devices/joint_order.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace planloom {

namespace {

class Joiner
{
public:
    Joiner(const ExecutionPlan &plan, std::span<const MemoryPlan> memory)
        : m_plan(plan)
        , m_memory(memory)
        , m_next(memory.size(), 0)
        , m_waits(memory.size(), false)
        , m_sequences(memory.size())
    {
    }

    std::optional<JointOrder> run()
    {
        for (;;) {
            bool moved = false;
            bool left = false;
            for (std::size_t d = 0; d < m_memory.size(); ++d) {
                left = left || m_next[d] < m_memory[d].instructions.size();
                moved = advance(d) || moved;
            }
            if (!left)
                return std::move(m_order);
            if (!moved)
                return std::nullopt;
        }
    }

private:
    using Group = std::pair<std::int32_t, std::int64_t>; ///< And which of its collectives.
    /// Receiver, sender, tag, micro-batch.
    using Message = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>;

    /// @return whether the device, or those that it meets, went on, or it has come to a meeting
    bool advance(std::size_t device)
    {
        if (m_waits[device] || m_next[device] >= m_memory[device].instructions.size())
            return false;
        const StepInstruction &at = m_memory[device].instructions[m_next[device]];
        const Instruction &instruction = m_plan.devices[device]
                                             .segments[static_cast<std::size_t>(at.segment)]
                                             .instructions[static_cast<std::size_t>(at.instruction)];
        const auto d = static_cast<std::int32_t>(device);
        if (!isCommunication(instruction.kind)) {
            emit({d});
            return true;
        }
        if (instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv) {
            const bool sends = instruction.kind == InstructionKind::Send;
            const std::int32_t peer = instruction.peer.index;
            const Message message{sends ? peer : d, sends ? d : peer, instruction.tag, at.microBatch};
            const auto [found, isFirst] = m_messages.try_emplace(message, d);
            if (isFirst) {
                m_waits[device] = true;
                return true;
            }
            const std::int32_t other = found->second;
            m_messages.erase(found);
            emit(sends ? std::vector{d, other} : std::vector{other, d});
            return true;
        }
        const auto g = static_cast<std::size_t>(instruction.group);
        if (instruction.group < 0 || g >= m_plan.groups.size())
            return false;
        std::int32_t &arrived = m_arrived[{instruction.group, m_sequences[device][instruction.group]++}];
        m_waits[device] = true;
        if (static_cast<std::size_t>(++arrived) < m_plan.groups[g].size())
            return true;
        std::vector<std::int32_t> members;
        for (const DeviceId member : m_plan.groups[g])
            members.push_back(member.index);
        emit(members);
        return true;
    }

    void emit(const std::vector<std::int32_t> &devices)
    {
        const std::size_t begin = m_order.turns.size();
        for (const std::int32_t device : devices) {
            const auto d = static_cast<std::size_t>(device);
            m_order.turns.push_back({device, static_cast<std::int32_t>(m_next[d]++)});
            m_waits[d] = false;
        }
        m_order.meetings.emplace_back(begin, m_order.turns.size());
    }

    const ExecutionPlan &m_plan;
    std::span<const MemoryPlan> m_memory;
    std::vector<std::size_t> m_next; ///< By device: its next instruction.
    std::vector<bool> m_waits; ///< For others.
    std::vector<std::map<std::int32_t, std::int64_t>> m_sequences; ///< By device and group.
    std::map<Group, std::int32_t> m_arrived{};
    std::map<Message, std::int32_t> m_messages{}; ///< Who is there.
    JointOrder m_order{};
};

} // namespace

std::optional<JointOrder> jointOrder(const ExecutionPlan &plan, std::span<const MemoryPlan> memory)
{
    return Joiner{plan, memory}.run();
}

} // namespace planloom
