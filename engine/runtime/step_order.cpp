#include "engine/runtime/step_order.h"

#include <algorithm>
#include <array>
#include <map>

namespace planloom {

namespace {

/// The last event of each queue that touched something; -1: none.
using LastEvents = std::array<EventId, kQueueCount>;

constexpr LastEvents noEvents()
{
    LastEvents none{};
    for (EventId &event : none)
        event = -1;
    return none;
}

/// Who touched which stretch of an arena last.
class Arena
{
public:
    /// Raises `needed` to what an access by `queue` has to wait for, and notes the access.
    void touch(std::int64_t begin, std::int64_t end, std::size_t queue, EventId event, bool writes,
        LastEvents &needed)
    {
        if (begin >= end)
            return;
        cutAt(begin);
        cutAt(end);
        for (auto cell = m_cells.lower_bound(begin); cell != m_cells.end() && cell->first < end; ++cell) {
            for (std::size_t q = 0; q < needed.size(); ++q) {
                needed[q] = std::max(needed[q], cell->second.written[q]);
                if (writes)
                    needed[q] = std::max(needed[q], cell->second.read[q]);
            }
            (writes ? cell->second.written : cell->second.read)[queue] = event;
        }
    }

private:
    struct Cell {
        LastEvents read = noEvents();
        LastEvents written = noEvents();
    };
    /// Makes a cell begin at `offset`.
    void cutAt(std::int64_t offset)
    {
        const auto after = m_cells.upper_bound(offset);
        const auto cell = std::prev(after);
        if (cell->first != offset)
            m_cells.emplace_hint(after, offset, cell->second);
    }

    std::map<std::int64_t, Cell> m_cells{{0, {}}}; ///< By where they begin; each ends where the next does.
};

} // namespace

std::vector<std::vector<EventId>> stepOrder(const DeviceProgram &program, const MemoryPlan &memory)
{
    std::array<Arena, 2> arenas;
    LastEvents issued = noEvents();
    std::array<LastEvents, kQueueCount> known; // by queue: up to where it has waited for others
    known.fill(noEvents());
    std::vector<std::vector<EventId>> waits(memory.instructions.size());
    for (std::size_t step = 0; step < waits.size(); ++step) {
        const StepInstruction &at = memory.instructions[step];
        const Instruction &instruction = program.segments[static_cast<std::size_t>(at.segment)]
                                             .instructions[static_cast<std::size_t>(at.instruction)];
        const auto queue = static_cast<std::size_t>(queueOf(instruction));
        const auto event = static_cast<EventId>(step);
        LastEvents needed = noEvents();
        for (const StepOperand &operand : memory.operandsOf(step)) {
            if (operand.block < 0)
                continue;
            const PlannedBlock &block = memory.blocks[static_cast<std::size_t>(operand.block)];
            arenas[static_cast<std::size_t>(block.place)].touch(block.offset, block.offset + block.bytes,
                queue, event, operand.use != OperandUse::Reads, needed);
        }
        if (instruction.waits) {
            const auto compute = static_cast<std::size_t>(QueueKind::Compute);
            needed[compute] = std::max(needed[compute], issued[compute]);
        }
        for (std::size_t q = 0; q < needed.size(); ++q) {
            if (q == queue || needed[q] <= known[queue][q])
                continue;
            known[queue][q] = needed[q];
            waits[step].push_back(needed[q]);
        }
        issued[queue] = event;
    }
    return waits;
}

} // namespace planloom
