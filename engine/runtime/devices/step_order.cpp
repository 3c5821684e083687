#include "engine/runtime/devices/step_order.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

namespace planloom {

namespace {

/// The last event of each queue that did something. Few queues do the same.
class LastEvents
{
public:
    void raise(std::size_t queue, EventId event)
    {
        for (auto &[each, last] : m_events) {
            if (each == queue) {
                last = std::max(last, event);
                return;
            }
        }
        m_events.emplace_back(queue, event);
    }
    void raise(const LastEvents &others)
    {
        for (const auto &[queue, event] : others.m_events)
            raise(queue, event);
    }
    EventId of(std::size_t queue) const
    {
        for (const auto &[each, last] : m_events)
            if (each == queue)
                return last;
        return -1;
    }
    auto begin() const { return m_events.begin(); }
    auto end() const { return m_events.end(); }

private:
    std::vector<std::pair<std::size_t, EventId>> m_events{};
};

/// Who touched which stretch of an arena last.
class Arena
{
public:
    /// What an access has to wait for.
    void need(std::int64_t begin, std::int64_t end, bool writes, LastEvents &needed)
    {
        forEachCell(begin, end, [&](const Cell &cell) {
            needed.raise(cell.written);
            if (writes)
                needed.raise(cell.read);
        });
    }
    void note(std::int64_t begin, std::int64_t end, bool writes, std::size_t queue, EventId event)
    {
        forEachCell(begin, end, [&](Cell &cell) { (writes ? cell.written : cell.read).raise(queue, event); });
    }

private:
    struct Cell {
        LastEvents read{};
        LastEvents written{};
    };
    template<typename Work> void forEachCell(std::int64_t begin, std::int64_t end, const Work &work)
    {
        if (begin >= end)
            return;
        cutAt(begin);
        cutAt(end);
        for (auto cell = m_cells.lower_bound(begin); cell != m_cells.end() && cell->first < end; ++cell)
            work(cell->second);
    }
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

/// Follows the accesses of instructions as they come. Queue q of device d is number d x `kQueueCount` + q.
class WaitFinder
{
public:
    explicit WaitFinder(std::size_t devices)
        : m_arenas(devices)
        , m_known(devices * kQueueCount)
    {
    }

    struct Access {
        std::size_t device = 0;
        EventId event = 0;
        const Instruction *instruction = nullptr;
        const MemoryPlan *memory = nullptr;
        std::span<const StepOperand> operands{};
    };

    /// What `access` has to wait for and does not wait for already. Before `note`.
    template<typename Take> void waits(const Access &access, const Take &take)
    {
        LastEvents needed;
        forEachOperand(access, [&](Arena &arena, const PlannedBlock &block, bool writes) {
            arena.need(block.offset, block.offset + block.bytes, writes, needed);
        });
        const std::size_t queue = queueAt(access);
        if (access.instruction->waits) {
            const auto compute = access.device * kQueueCount + static_cast<std::size_t>(QueueKind::Compute);
            if (const EventId last = m_issued.of(compute); last >= 0)
                needed.raise(compute, last);
        }
        for (const auto &[each, event] : needed) {
            if (each == queue || event <= m_known[queue].of(each))
                continue;
            m_known[queue].raise(each, event);
            take(each / kQueueCount, event);
        }
    }

    void note(const Access &access)
    {
        const std::size_t queue = queueAt(access);
        forEachOperand(access, [&](Arena &arena, const PlannedBlock &block, bool writes) {
            arena.note(block.offset, block.offset + block.bytes, writes, queue, access.event);
        });
        m_issued.raise(queue, access.event);
    }

private:
    static std::size_t queueAt(const Access &access)
    {
        return access.device * kQueueCount + static_cast<std::size_t>(queueOf(*access.instruction));
    }
    template<typename Work> void forEachOperand(const Access &access, const Work &work)
    {
        for (const StepOperand &operand : access.operands) {
            if (operand.block < 0)
                continue;
            const PlannedBlock &block = access.memory->blocks[static_cast<std::size_t>(operand.block)];
            const std::size_t owner = block.owner < 0 ? access.device : static_cast<std::size_t>(block.owner);
            work(m_arenas[owner][static_cast<std::size_t>(block.place)], block,
                operand.use != OperandUse::Reads && operand.use != OperandUse::Shared);
        }
    }

    std::vector<std::array<Arena, 2>> m_arenas; ///< By device and place.
    std::vector<LastEvents> m_known; ///< By queue: up to where it has waited for others.
    LastEvents m_issued{};
};

const Instruction &instructionAt(const DeviceProgram &program, const StepInstruction &at)
{
    return program.segments[static_cast<std::size_t>(at.segment)]
        .instructions[static_cast<std::size_t>(at.instruction)];
}

} // namespace

std::vector<std::vector<EventId>> stepOrder(const DeviceProgram &program, const MemoryPlan &memory)
{
    WaitFinder finder{1};
    std::vector<std::vector<EventId>> waits(memory.instructions.size());
    for (std::size_t step = 0; step < waits.size(); ++step) {
        const WaitFinder::Access access{0, static_cast<EventId>(step),
            &instructionAt(program, memory.instructions[step]), &memory, memory.operandsOf(step)};
        finder.waits(access, [&](std::size_t, EventId event) { waits[step].push_back(event); });
        finder.note(access);
    }
    return waits;
}

std::vector<std::vector<std::int32_t>> endingBlocks(const DeviceProgram &program, const MemoryPlan &memory)
{
    struct Use {
        std::size_t last = 0;
        std::optional<QueueKind> queue{};
        bool ends = true;
    };
    std::vector<Use> uses(memory.blocks.size());
    for (const std::int32_t block : memory.persistent)
        if (block >= 0)
            uses[static_cast<std::size_t>(block)].ends = false;
    for (std::size_t step = 0; step < memory.instructions.size(); ++step) {
        const QueueKind queue = queueOf(instructionAt(program, memory.instructions[step]));
        for (const StepOperand &operand : memory.operandsOf(step)) {
            if (operand.block < 0)
                continue;
            Use &use = uses[static_cast<std::size_t>(operand.block)];
            use.ends = use.ends && use.queue.value_or(queue) == queue;
            use.queue = queue;
            use.last = step;
        }
    }
    std::vector<std::vector<std::int32_t>> ending(memory.instructions.size());
    for (std::size_t block = 0; block < uses.size(); ++block)
        if (uses[block].ends && uses[block].queue && memory.blocks[block].owner < 0)
            ending[uses[block].last].push_back(static_cast<std::int32_t>(block));
    return ending;
}

std::vector<StepWaits> jointWaits(
    const ExecutionPlan &plan, std::span<const MemoryPlan> memory, const JointOrder &order)
{
    WaitFinder finder{memory.size()};
    std::vector<StepWaits> waits(memory.size());
    for (std::size_t d = 0; d < memory.size(); ++d) {
        waits[d].own.resize(memory[d].instructions.size());
        waits[d].elsewhere.resize(memory[d].instructions.size());
    }
    for (const auto &[begin, end] : order.meetings) {
        std::vector<WaitFinder::Access> accesses;
        for (std::size_t at = begin; at < end; ++at) {
            const auto &[device, step] = order.turns[at];
            const auto d = static_cast<std::size_t>(device);
            const auto s = static_cast<std::size_t>(step);
            accesses.push_back({d, step, &instructionAt(plan.devices[d], memory[d].instructions[s]),
                &memory[d], memory[d].operandsOf(s)});
        }
        // Those that meet do not wait for each other.
        for (const WaitFinder::Access &access : accesses) {
            StepWaits &of = waits[access.device];
            const auto at = static_cast<std::size_t>(access.event);
            finder.waits(access, [&](std::size_t device, EventId event) {
                if (device == access.device)
                    of.own[at].push_back(event);
                else
                    of.elsewhere[at].push_back({static_cast<std::int32_t>(device), event});
            });
        }
        for (const WaitFinder::Access &access : accesses)
            finder.note(access);
    }
    return waits;
}

} // namespace planloom
