#include "engine/simulate/compute_chain.h"

#include "engine/base/ids.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

constexpr std::int64_t kAnyTime = ComputeChain::kAnyTime;

/// Follows a chain's buffers from instruction to instruction.
class ChainMaker
{
public:
    ChainMaker(const CompiledProgram &program, const std::vector<bool> &shared, BufferStates &states,
        std::int32_t microBatch)
        : m_program(program)
        , m_shared(shared)
        , m_states(states)
        , m_microBatch(microBatch)
    {
    }

    std::optional<ComputeChain> make(
        std::int32_t begin, std::int32_t end, std::int32_t segment, std::int64_t free)
    {
        m_chain.begin = begin;
        m_start = std::max(free, readyAt(begin));
        for (m_chain.end = begin; m_chain.end < end; ++m_chain.end) {
            if (readyAt(m_chain.end) > m_start + m_chain.length)
                break;
            if (!add(m_chain.end))
                return {};
            m_chain.instruction.push_back(m_chain.end - m_program.segmentBegin[at(segment)]);
        }
        for (std::size_t b = 0; b < m_order.size(); ++b)
            close(m_order[b]);
        m_chain.memory = m_memory.inOrder();
        return std::move(m_chain);
    }

private:
    /// A buffer on its way through the chain.
    struct Followed {
        ComputeChain::Need need{};
        bool there = false; ///< Now.
        std::int64_t written = kAnyTime; ///< Not by the chain.
        std::int64_t read = kAnyTime;
    };

    Followed &followed(std::int32_t buffer)
    {
        const auto [found, isNew] = m_buffers.try_emplace(buffer);
        if (isNew) {
            m_order.push_back(buffer);
            const bool there = m_states.of(buffer, m_microBatch).isThere();
            found->second = {.need = {buffer, there}, .there = there};
        }
        return found->second;
    }

    /// When what other queues do with its buffers, before the chain, is done.
    std::int64_t readyAt(std::int32_t index)
    {
        const CompiledInstruction &instruction = m_program.instructions[at(index)];
        std::int64_t ready = 0;
        for (std::int32_t k = instruction.inputBegin; k < instruction.deathBegin; ++k) {
            const std::int32_t buffer = m_program.operands[at(k)];
            const auto known = m_buffers.find(buffer);
            if (!m_shared[at(buffer)] || (known != m_buffers.end() && known->second.written != kAnyTime))
                continue;
            const BufferState &state = m_states.of(buffer, m_microBatch);
            ready = std::max(ready, k < instruction.outputBegin ? state.there : std::max(state.there, state.read));
        }
        return ready;
    }

    /// `buffer` was written and read by then, by whatever came before the chain.
    void needBy(Followed &buffer, std::int64_t written, std::int64_t read)
    {
        if (!m_shared[at(buffer.need.buffer)])
            return; // by the same queue: it is done
        if (buffer.written == kAnyTime)
            buffer.need.thereBy = std::min(buffer.need.thereBy, written);
        buffer.need.readBy = std::min(buffer.need.readBy, read);
    }

    bool note(std::int32_t buffer, std::int64_t time, std::int64_t bytes)
    {
        m_memory.add({time, bytes, m_program.bufferKind[at(buffer)]});
        return !m_program.onHost[at(buffer)];
    }

    bool add(std::int32_t index)
    {
        const CompiledInstruction &instruction = m_program.instructions[at(index)];
        const std::int64_t start = m_chain.length;
        for (std::int32_t k = instruction.inputBegin; k < instruction.outputBegin; ++k) {
            Followed &input = followed(m_program.operands[at(k)]);
            if (!input.there)
                return false;
            if (index == m_chain.begin)
                input.need.awaitsThere = true;
            needBy(input, start, kAnyTime);
        }
        bool first = true;
        for (std::int32_t k = instruction.outputBegin; k < instruction.deathBegin; ++k) {
            Followed &output = followed(m_program.operands[at(k)]);
            first = !output.there;
            if (index == m_chain.begin)
                output.need.awaitsThere = output.need.awaitsRead = true;
            needBy(output, start, start);
        }
        const bool copies = first && instruction.kind == InstructionKind::Accumulate;
        const std::int64_t duration = copies ? instruction.firstDuration : instruction.duration;
        const std::int64_t end = start + duration;
        m_chain.start.push_back(start);
        m_chain.duration.push_back(duration);
        m_chain.length = end;
        for (std::int32_t k = instruction.inputBegin; k < instruction.outputBegin; ++k)
            followed(m_program.operands[at(k)]).read = end;
        for (std::int32_t k = instruction.outputBegin; k < instruction.deathBegin; ++k) {
            const std::int32_t buffer = m_program.operands[at(k)];
            Followed &output = followed(buffer);
            if (!output.there && !note(buffer, start, m_program.bufferBytes[at(buffer)]))
                return false;
            output.there = true;
            output.written = end;
        }
        if (const auto workspace = m_program.workspaces.find(index); workspace != m_program.workspaces.end()) {
            m_memory.add({start, workspace->second, MemoryKind::Activation});
            m_memory.add({end, -workspace->second, MemoryKind::Activation});
        }
        for (std::int32_t k = instruction.deathBegin; k < instruction.deathEnd; ++k) {
            const std::int32_t buffer = m_program.operands[at(k)];
            Followed &dead = followed(buffer);
            if (!dead.there)
                continue;
            needBy(dead, end, end);
            if (!note(buffer, end, -m_program.bufferBytes[at(buffer)]))
                return false;
            dead.there = false;
        }
        return true;
    }

    /// What remains to be said of a buffer at the end.
    void close(std::int32_t index)
    {
        const Followed &buffer = m_buffers.at(index);
        m_chain.needs.push_back(buffer.need);
        ComputeChain::Effect effect{index, buffer.need.there && !buffer.there};
        if (buffer.there)
            effect.there = buffer.written;
        if (m_shared[at(index)])
            effect.read = buffer.read;
        if (effect.dies || effect.there != kAnyTime || effect.read != kAnyTime)
            m_chain.effects.push_back(effect);
    }

    const CompiledProgram &m_program;
    const std::vector<bool> &m_shared;
    BufferStates &m_states;
    std::int32_t m_microBatch = 0;
    std::int64_t m_start = 0; ///< Of the chain, as it is made.
    ComputeChain m_chain{};
    std::map<std::int32_t, Followed> m_buffers{};
    std::vector<std::int32_t> m_order{}; ///< Buffers, as they come.
    MemoryLog m_memory{};
};

} // namespace

BufferStates::BufferStates(const CompiledProgram &program, std::int32_t microBatches)
    : m_program(&program)
    , m_single(static_cast<std::size_t>(program.singleCount))
    , m_perMicroBatch(
          static_cast<std::size_t>(program.perMicroBatchCount) * static_cast<std::size_t>(microBatches))
{
}

std::vector<bool> touchedByOthers(const CompiledProgram &program)
{
    std::vector<bool> touched(program.buffers.size(), false);
    for (const CompiledInstruction &instruction : program.instructions) {
        if (instruction.queue == QueueKind::Compute && instruction.channel < 0)
            continue;
        for (std::int32_t k = instruction.inputBegin; k < instruction.deathEnd; ++k)
            touched[at(program.operands[at(k)])] = true;
    }
    return touched;
}

std::optional<ComputeChain> makeChain(const CompiledProgram &program, const std::vector<bool> &shared,
    std::int32_t begin, std::int32_t end, std::int32_t segment, BufferStates &states, std::int32_t microBatch,
    std::int64_t free)
{
    return ChainMaker(program, shared, states, microBatch).make(begin, end, segment, free);
}

std::optional<std::int64_t> startOf(
    const ComputeChain &chain, BufferStates &states, std::int32_t microBatch, std::int64_t free)
{
    std::int64_t start = free;
    for (const ComputeChain::Need &need : chain.needs) {
        const BufferState &state = states.of(need.buffer, microBatch);
        if (state.isThere() != need.there)
            return {};
        if (need.awaitsThere)
            start = std::max(start, state.there);
        if (need.awaitsRead)
            start = std::max(start, state.read);
        if ((need.thereBy != kAnyTime && state.there > start + need.thereBy)
            || (need.readBy != kAnyTime && state.read > start + need.readBy))
            return {};
    }
    return start;
}

void applyEffects(
    const ComputeChain &chain, BufferStates &states, std::int32_t microBatch, std::int64_t start)
{
    for (const ComputeChain::Effect &effect : chain.effects) {
        BufferState &state = states.of(effect.buffer, microBatch);
        if (effect.dies)
            state.there = BufferState::kAbsent;
        else if (effect.there != kAnyTime)
            state.there = start + effect.there;
        if (effect.read != kAnyTime)
            state.read = std::max(state.read, start + effect.read);
    }
}

} // namespace planloom
