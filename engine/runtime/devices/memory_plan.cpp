#include "engine/runtime/devices/memory_plan.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/kernels/kernel.h"
#include "engine/runtime/devices/prepared_kernel.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

/// Beyond so many blocks the quadratic placement is left out.
constexpr std::size_t kMostForBySize = 4096;

std::int64_t alignedUp(std::int64_t bytes, std::int64_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

/// Large blocks first, each into the tightest gap among those already placed that live beside it.
std::int64_t placeBySize(std::vector<PlannedBlock *> blocks, std::int64_t alignment)
{
    std::stable_sort(blocks.begin(), blocks.end(),
        [](const PlannedBlock *a, const PlannedBlock *b) { return a->bytes > b->bytes; });
    std::vector<const PlannedBlock *> placed; // by offset
    std::int64_t total = 0;
    for (PlannedBlock *const block : blocks) {
        const std::int64_t need = alignedUp(block->bytes, alignment);
        std::int64_t end = 0;
        std::int64_t best = -1;
        std::int64_t bestGap = std::numeric_limits<std::int64_t>::max();
        for (const PlannedBlock *const other : placed) {
            if (other->last < block->first || other->first > block->last)
                continue;
            const std::int64_t gap = other->offset - end;
            if (gap >= need && gap < bestGap) {
                best = end;
                bestGap = gap;
            }
            end = std::max(end, other->offset + alignedUp(other->bytes, alignment));
        }
        block->offset = best >= 0 ? best : end;
        total = std::max(total, block->offset + need);
        placed.insert(std::upper_bound(placed.begin(), placed.end(), block,
                          [](const PlannedBlock *a, const PlannedBlock *b) { return a->offset < b->offset; }),
            block);
    }
    return total;
}

/// Free stretches of an arena that grows as it has to.
class Holes
{
public:
    /// The tightest hole that has room; at the end of the arena, behind what is free there, if none has.
    std::int64_t take(std::int64_t need)
    {
        const auto found = m_bySize.lower_bound({need, 0});
        if (found == m_bySize.end()) {
            std::int64_t begin = m_end;
            if (!m_byBegin.empty()) {
                const auto last = std::prev(m_byBegin.end());
                if (last->first + last->second == m_end) {
                    begin = last->first;
                    remove(last->first, last->second);
                }
            }
            m_end = begin + need;
            return begin;
        }
        const auto [size, begin] = *found;
        remove(begin, size);
        if (size > need)
            add(begin + need, size - need);
        return begin;
    }

    void give(std::int64_t begin, std::int64_t size)
    {
        const auto next = m_byBegin.lower_bound(begin);
        if (next != m_byBegin.end() && next->first == begin + size) {
            const std::int64_t more = next->second;
            remove(begin + size, more);
            size += more;
        }
        const auto after = m_byBegin.lower_bound(begin);
        if (after != m_byBegin.begin()) {
            const auto before = std::prev(after);
            if (before->first + before->second == begin) {
                const auto [start, more] = *before;
                remove(start, more);
                begin = start;
                size += more;
            }
        }
        add(begin, size);
    }

    std::int64_t end() const { return m_end; }

private:
    void add(std::int64_t begin, std::int64_t size)
    {
        m_byBegin.emplace(begin, size);
        m_bySize.emplace(size, begin);
    }
    void remove(std::int64_t begin, std::int64_t size)
    {
        m_byBegin.erase(begin);
        m_bySize.erase({size, begin});
    }

    std::map<std::int64_t, std::int64_t> m_byBegin;
    std::set<std::pair<std::int64_t, std::int64_t>> m_bySize; ///< (size, begin)
    std::int64_t m_end = 0;
};

std::int64_t placeByTime(std::vector<PlannedBlock *> blocks, std::int64_t alignment)
{
    std::stable_sort(blocks.begin(), blocks.end(), [](const PlannedBlock *a, const PlannedBlock *b) {
        return a->first != b->first ? a->first < b->first : a->bytes > b->bytes;
    });
    Holes holes;
    std::set<std::tuple<std::int32_t, std::int64_t, std::int64_t>> live; ///< (last, offset, size)
    for (PlannedBlock *const block : blocks) {
        while (!live.empty() && std::get<0>(*live.begin()) < block->first) {
            const auto [last, offset, size] = *live.begin();
            holes.give(offset, size);
            live.erase(live.begin());
        }
        const std::int64_t need = alignedUp(block->bytes, alignment);
        block->offset = holes.take(need);
        live.emplace(block->last, block->offset, need);
    }
    return holes.end();
}

/// Follows a step and gives its buffers blocks.
class Planner
{
public:
    Planner(const ExecutionPlan &plan, std::int32_t device, std::int64_t firstUpdate, bool addsInPlace)
        : m_plan(plan)
        , m_device(device)
        , m_program(plan.devices[static_cast<std::size_t>(device)])
        , m_firstUpdate(firstUpdate)
        , m_addsInPlace(addsInPlace)
    {
        std::size_t instances = 0;
        for (const BufferInfo &buffer : m_program.buffers) {
            m_first.push_back(instances);
            instances += buffer.perMicroBatch ? static_cast<std::size_t>(m_plan.microBatches) : 1;
            m_bytes.push_back(sizeOf(buffer).count);
        }
        m_current.assign(instances, -1);
        m_isThere.assign(instances, false);
    }

    Result<MemoryPlan> run(std::int64_t alignment)
    {
        layPersistent();
        m_made.firstOperand.push_back(0);
        for (const ScheduleEntry &entry : m_program.schedule) {
            const Segment &segment = m_program.segments[static_cast<std::size_t>(entry.segment)];
            const auto [begin, end] = indicesOf(m_program, entry);
            m_update = m_firstUpdate + updateOf(m_plan, entry.microBatch);
            for (std::size_t i = begin; i < end; ++i) {
                m_made.instructions.push_back(
                    {entry.segment, static_cast<std::int32_t>(i), entry.microBatch});
                TRY_VOID(step(segment, i, entry.microBatch));
                m_made.firstOperand.push_back(m_made.operands.size());
            }
        }
        const auto last = std::max<std::int32_t>(0, now());
        for (const std::int32_t block : m_made.persistent)
            if (block >= 0)
                m_made.blocks[static_cast<std::size_t>(block)].last = last;
        // What no instruction buries lives to the end of the step.
        for (std::size_t b = 0; b < m_program.buffers.size(); ++b)
            if (!m_program.buffers[b].persistent)
                for (std::int32_t m = 0; m < instancesOf(b); ++m)
                    die(static_cast<std::int32_t>(b), m);
        layOut(m_made, alignment);
        return std::move(m_made);
    }

private:
    const BufferInfo &info(std::int32_t buffer) const
    {
        return m_program.buffers[static_cast<std::size_t>(buffer)];
    }
    std::int64_t bytes(std::int32_t buffer) const { return m_bytes[static_cast<std::size_t>(buffer)]; }
    std::int32_t instancesOf(std::size_t buffer) const
    {
        return m_program.buffers[buffer].perMicroBatch ? m_plan.microBatches : 1;
    }
    std::int32_t now() const { return static_cast<std::int32_t>(m_made.instructions.size()) - 1; }

    /// The buffer that stands for `buffer` at this update, and its instance.
    std::int32_t versionOf(std::int32_t buffer) const
    {
        return bufferOfVersion(info(buffer), buffer, m_update);
    }
    std::size_t instance(std::int32_t buffer, std::int32_t microBatch) const
    {
        return m_first[static_cast<std::size_t>(versionOf(buffer))]
            + (info(buffer).perMicroBatch ? static_cast<std::size_t>(microBatch) : 0);
    }
    std::int32_t &current(std::int32_t buffer, std::int32_t microBatch)
    {
        return m_current[instance(buffer, microBatch)];
    }

    void account(std::int32_t buffer, std::int32_t at, bool isBirth, bool before)
    {
        m_made.changes.push_back({buffer, at, isBirth, before});
        const auto place = static_cast<std::size_t>(info(buffer).place);
        m_live[place] += isBirth ? bytes(buffer) : -bytes(buffer);
        m_made.peak[place] = std::max(m_made.peak[place], m_live[place]);
    }

    void layPersistent()
    {
        m_made.persistent.assign(m_program.buffers.size(), -1);
        for (std::size_t b = 0; b < m_program.buffers.size(); ++b) {
            const BufferInfo &buffer = m_program.buffers[b];
            if (!buffer.persistent)
                continue;
            m_made.persistent[b] = static_cast<std::int32_t>(m_made.blocks.size());
            m_current[m_first[b]] = m_made.persistent[b];
            m_made.blocks.push_back({buffer.place, m_bytes[b], 0, 0, 0});
        }
        for (const Instruction &instruction : m_program.setup)
            for (const std::int32_t out : instruction.outputs)
                arrive(out, m_first[static_cast<std::size_t>(out)], -1);
    }

    void arrive(std::int32_t buffer, std::size_t instance, std::int32_t at)
    {
        if (!m_isThere[instance])
            account(buffer, at, true, true);
        m_isThere[instance] = true;
    }

    void die(std::int32_t buffer, std::int32_t microBatch)
    {
        const std::size_t at = instance(buffer, microBatch);
        if (!m_isThere[at])
            return;
        m_isThere[at] = false;
        if (m_borrowed.erase(at) > 0) {
            m_current[at] = -1;
            return;
        }
        if (m_added.erase(at) > 0) { // its memory is the sum's
            account(buffer, now(), false, false);
            m_current[at] = -1;
            return;
        }
        PlannedBlock &block = m_made.blocks[static_cast<std::size_t>(m_current[at])];
        block.last = std::max({block.last, block.first, now()});
        account(buffer, now(), false, false);
        m_current[at] = -1;
    }

    bool diesIn(const Instruction &instruction, std::int32_t buffer) const
    {
        return !info(buffer).persistent
            && std::find(instruction.deaths.begin(), instruction.deaths.end(), buffer)
            != instruction.deaths.end();
    }

    /// Same size, type and place, so that one can lie where the other does.
    bool isAlike(std::int32_t a, std::int32_t b) const
    {
        return bytes(a) == bytes(b) && info(a).dataType == info(b).dataType && info(a).place == info(b).place
            && info(a).perMicroBatch == info(b).perMicroBatch;
    }

    /// Output 0 can be made where input 0, which dies here, lies.
    bool takesInput(const Instruction &instruction, std::int32_t microBatch)
    {
        if (instruction.inputs.empty() || instruction.outputs.empty())
            return false;
        const std::int32_t input = instruction.inputs[0];
        const std::int32_t output = instruction.outputs[0];
        if (input < 0 || output < 0 || !diesIn(instruction, input) || info(output).persistent
            || m_isThere[instance(output, microBatch)])
            return false;
        // Micro-batches share a buffer that is not theirs alone: it may take over the first one's memory.
        const bool sameTime = info(input).perMicroBatch == info(output).perMicroBatch
            || instruction.kind == InstructionKind::Accumulate;
        const bool alike = sameTime && bytes(input) == bytes(output)
            && info(input).dataType == info(output).dataType && info(input).place == info(output).place;
        const bool sameBox = alike && info(input).index == info(output).index;
        const bool once = std::count(instruction.inputs.begin(), instruction.inputs.end(), input) == 1;
        switch (instruction.kind) {
        case InstructionKind::Kernel:
            return alike && isView(m_plan.graph->at(instruction.op)) && instruction.outputs.size() == 1
                && once;
        case InstructionKind::Select:
        case InstructionKind::AllReduce:
        case InstructionKind::Broadcast:
        case InstructionKind::Weigh:
        case InstructionKind::Merge:
            return sameBox;
        case InstructionKind::Concat:
            return sameBox && instruction.inputs.size() == 1;
        case InstructionKind::Sum:
            return sameBox && once;
        case InstructionKind::ValueSelect:
            return sameBox && info(output).valuePart.index == 0;
        case InstructionKind::Accumulate:
            return alike; // the first time in a step it takes, later ones add
        default:
            return false;
        }
    }

    /// What an Update that follows in the segment moves `output` to: the persistent buffer's block, if
    /// `output` may be made there at once. Until then nobody else may read what is there. An optimizer
    /// operator reads each element before it writes it.
    std::int32_t destinationOf(
        const Segment &segment, std::size_t at, std::int32_t output, std::int32_t microBatch)
    {
        if (info(output).persistent || info(output).perMicroBatch)
            return -1;
        const Instruction &maker = segment.instructions[at];
        const bool elementWise = maker.kind == InstructionKind::Kernel
            && m_plan.graph->at(maker.op).direction == Direction::Optimizer;
        constexpr std::size_t kFar = 64; // an Update stands near by
        const std::size_t end = std::min(segment.instructions.size(), at + 1 + kFar);
        for (std::size_t i = at + 1; i < end; ++i) {
            const Instruction &next = segment.instructions[i];
            if (next.kind == InstructionKind::Update && next.inputs[0] == output) {
                const std::int32_t target = next.outputs[0];
                if (!info(target).persistent || !diesIn(next, output) || !isAlike(output, target))
                    return -1;
                const std::int32_t version = versionOf(target);
                const auto touches = [&](const BufferList &list) {
                    return std::any_of(list.begin(), list.end(), [&](std::int32_t buffer) {
                        return buffer >= 0 && info(buffer).persistent && versionOf(buffer) == version;
                    });
                };
                if (!elementWise && touches(maker.inputs))
                    return -1;
                for (std::size_t j = at + 1; j < i; ++j)
                    if (touches(segment.instructions[j].inputs) || touches(segment.instructions[j].outputs))
                        return -1;
                return m_isThere[instance(target, microBatch)] ? current(target, microBatch) : -1;
            }
            if (std::find(next.deaths.begin(), next.deaths.end(), output) != next.deaths.end())
                return -1;
        }
        return -1;
    }

    /// The block of the sum that output `slot` of a kernel is for, if the kernel may add to it at once: an
    /// Accumulate that follows in the segment, to what is there, of what nobody else looks at.
    std::int32_t sumOf(const Segment &segment, std::size_t at, std::size_t slot, std::int32_t microBatch)
    {
        const Instruction &maker = segment.instructions[at];
        if (!m_addsInPlace || maker.kind != InstructionKind::Kernel
            || !canAddTo(m_plan.graph->at(maker.op), slot))
            return -1;
        const std::int32_t output = maker.outputs[slot];
        const auto has = [](const BufferList &list, std::int32_t buffer) {
            return std::find(list.begin(), list.end(), buffer) != list.end();
        };
        constexpr std::size_t kFar = 64; // it stands near by
        const std::size_t end = std::min(segment.instructions.size(), at + 1 + kFar);
        for (std::size_t i = at + 1; i < end; ++i) {
            const Instruction &next = segment.instructions[i];
            if (!has(next.inputs, output) && !has(next.outputs, output) && !has(next.deaths, output))
                continue;
            if (next.kind != InstructionKind::Accumulate || next.inputs[0] != output)
                return -1;
            const std::int32_t sum = next.outputs[0];
            if (sum < 0 || !diesIn(next, output) || info(sum).perMicroBatch || info(sum).persistent
                || info(sum).dataType != info(output).dataType || info(sum).place != info(output).place
                || bytes(sum) != bytes(output) || !m_isThere[instance(sum, microBatch)])
                return -1;
            for (std::size_t j = at; j < i; ++j) {
                const Instruction &between = segment.instructions[j];
                if (has(between.inputs, sum) || has(between.outputs, sum) || has(between.deaths, sum))
                    return -1;
            }
            if (prepareKernel(m_plan, m_program, maker).rounding)
                return -1; // it works on copies
            return current(sum, microBatch);
        }
        return -1;
    }

    Result<void> step(const Segment &segment, std::size_t at, std::int32_t microBatch)
    {
        const Instruction &instruction = segment.instructions[at];
        for (const std::int32_t input : instruction.inputs) {
            if (input < 0) {
                m_made.operands.emplace_back();
                continue;
            }
            const std::size_t place = instance(input, microBatch);
            if (!m_isThere[place]) {
                return Error{ErrorCode::InvalidInput,
                    "the plan reads " + m_plan.graph->at(info(input).tensor).name + " on device "
                        + std::to_string(m_device) + " before it is there",
                    "verify the plan",
                    instruction.op.valid() ? "operator:" + std::to_string(instruction.op.index)
                                           : std::string{}};
            }
            m_made.operands.push_back({m_current[place], OperandUse::Reads});
        }
        const bool takes = takesInput(instruction, microBatch);
        for (std::size_t o = 0; o < instruction.outputs.size(); ++o) {
            const std::int32_t output = instruction.outputs[o];
            if (output < 0) {
                m_made.operands.emplace_back();
                continue;
            }
            m_made.operands.push_back(place(segment, at, o, microBatch, takes && o == 0));
        }
        for (const std::int32_t buffer : instruction.deaths)
            if (!info(buffer).persistent)
                die(buffer, microBatch);
        return {};
    }

    StepOperand place(
        const Segment &segment, std::size_t at, std::size_t slot, std::int32_t microBatch, bool takes)
    {
        const Instruction &instruction = segment.instructions[at];
        const std::int32_t output = instruction.outputs[slot];
        const std::size_t where = instance(output, microBatch);
        if (instruction.kind == InstructionKind::Update && info(output).persistent) {
            // Where its input was made there already, there is nothing to move.
            const std::int32_t input = current(instruction.inputs[0], microBatch);
            arrive(output, where, now());
            return {m_current[where], input == m_current[where] ? OperandUse::Takes : OperandUse::Changes};
        }
        if (instruction.kind == InstructionKind::Accumulate && m_isThere[where]
            && m_added.contains(instance(instruction.inputs[0], microBatch)))
            return {m_current[where], OperandUse::Takes}; // it was added when it was made
        if (info(output).persistent || m_isThere[where]) {
            const bool isThere = m_isThere[where];
            arrive(output, where, now());
            return {m_current[where], isThere ? OperandUse::Changes : OperandUse::Makes};
        }
        if (takes) {
            m_current[where] = current(instruction.inputs[0], microBatch);
            account(instruction.inputs[0], now(), false, true); // the two are never there at once
            arrive(output, where, now());
            m_isThere[instance(instruction.inputs[0], microBatch)] = false;
            return {m_current[where], OperandUse::Takes};
        }
        if (const std::int32_t target = destinationOf(segment, at, output, microBatch); target >= 0) {
            m_current[where] = target;
            m_isThere[where] = true;
            m_borrowed.insert(where);
            return {target, OperandUse::Changes};
        }
        if (const std::int32_t sum = sumOf(segment, at, slot, microBatch); sum >= 0) {
            m_current[where] = sum;
            m_added.insert(where);
            arrive(output, where, now());
            return {sum, OperandUse::Adds};
        }
        m_current[where] = static_cast<std::int32_t>(m_made.blocks.size());
        m_made.blocks.push_back({info(output).place, bytes(output), now(), now(), 0});
        arrive(output, where, now());
        return {m_current[where], OperandUse::Makes};
    }

    const ExecutionPlan &m_plan;
    std::int32_t m_device;
    const DeviceProgram &m_program;
    std::int64_t m_firstUpdate;
    bool m_addsInPlace;
    std::int64_t m_update = 0;
    std::vector<std::size_t> m_first{}; ///< By buffer: its first instance.
    std::vector<std::int64_t> m_bytes{};
    std::vector<std::int32_t> m_current{}; ///< By instance: its block.
    std::vector<bool> m_isThere{}; ///< By instance.
    std::set<std::size_t> m_added{}; ///< Instances that were added to the sum they are for at once.
    std::set<std::size_t> m_borrowed{}; ///< Instances in the block of a persistent buffer: not counted.
    std::array<std::int64_t, 2> m_live{};
    MemoryPlan m_made{};
};

} // namespace

std::int64_t placeBlocks(std::vector<PlannedBlock *> blocks, std::int64_t alignment)
{
    std::erase_if(blocks, [](const PlannedBlock *block) { return block->bytes == 0; });
    const std::int64_t byTime = placeByTime(blocks, alignment);
    if (blocks.size() > kMostForBySize)
        return byTime;
    std::vector<std::int64_t> offsets;
    for (const PlannedBlock *const block : blocks)
        offsets.push_back(block->offset);
    const std::int64_t bySize = placeBySize(blocks, alignment);
    if (bySize <= byTime)
        return bySize;
    for (std::size_t i = 0; i < blocks.size(); ++i)
        blocks[i]->offset = offsets[i];
    return byTime;
}

void layOut(MemoryPlan &memory, std::int64_t alignment)
{
    std::vector<bool> persists(memory.blocks.size(), false);
    for (std::size_t place = 0; place < memory.arenaBytes.size(); ++place) {
        std::int64_t persistentEnd = 0; // these keep their places from step to step: they lie in front
        for (const std::int32_t at : memory.persistent) {
            if (at < 0)
                continue;
            persists[static_cast<std::size_t>(at)] = true;
            PlannedBlock &block = memory.blocks[static_cast<std::size_t>(at)];
            if (static_cast<std::size_t>(block.place) != place)
                continue;
            block.offset = persistentEnd;
            persistentEnd += alignedUp(block.bytes, alignment);
        }
        std::vector<PlannedBlock *> blocks;
        for (std::size_t at = 0; at < memory.blocks.size(); ++at)
            if (!persists[at] && static_cast<std::size_t>(memory.blocks[at].place) == place)
                blocks.push_back(&memory.blocks[at]);
        memory.arenaBytes[place] = persistentEnd + placeBlocks(blocks, alignment);
        for (PlannedBlock *const block : blocks)
            block->offset += persistentEnd;
    }
}

std::int32_t versionCycle(const DeviceProgram &program)
{
    std::int32_t cycle = 1;
    for (const BufferInfo &buffer : program.buffers)
        if (buffer.persistent)
            cycle = std::lcm(cycle, std::max<std::int32_t>(buffer.versions, 1));
    return cycle;
}

std::int32_t stepCycle(const ExecutionPlan &plan, const DeviceProgram &program)
{
    const std::int32_t cycle = versionCycle(program);
    return cycle / std::gcd(cycle, std::max(plan.updates, 1));
}

std::int32_t stepCycle(const ExecutionPlan &plan)
{
    std::int32_t cycle = 1;
    for (const DeviceProgram &program : plan.devices)
        cycle = std::lcm(cycle, stepCycle(plan, program));
    return cycle;
}

Result<MemoryPlan> planMemory(const ExecutionPlan &plan, std::int32_t device, std::int64_t alignment,
    std::int64_t firstUpdate, bool addsInPlace)
{
    assert(alignment > 0);
    return Planner(plan, device, firstUpdate, addsInPlace).run(alignment);
}

} // namespace planloom
