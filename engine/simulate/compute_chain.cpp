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
    ChainMaker(const CompiledProgram &program, const BufferStates &states, std::int32_t microBatch)
        : m_program(program)
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
        for (const std::int32_t buffer : m_order)
            close(buffer);
        m_chain.memory = m_memory.own(); // all of them: none is late
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
            const bool there = m_states.isThere(buffer, m_microBatch);
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
            if (!m_states.isShared(buffer) || (known != m_buffers.end() && known->second.written != kAnyTime))
                continue;
            const BufferTimes &times = m_states.timesOf(buffer, m_microBatch);
            ready = std::max(
                ready, k < instruction.outputBegin ? times.there : std::max(times.there, times.read));
        }
        return ready;
    }

    /// `buffer` was written and read by then, by whatever came before the chain.
    void needBy(Followed &buffer, std::int64_t written, std::int64_t read)
    {
        if (!m_states.isShared(buffer.need.buffer))
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
        if (const auto workspace = m_program.workspaces.find(index);
            workspace != m_program.workspaces.end()) {
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
        if (!m_states.isShared(index)) {
            const BufferStates::BitPlace place = m_states.placeOf(index, m_microBatch);
            auto word = std::find_if(m_chain.words.begin(), m_chain.words.end(), [&](const auto &each) {
                return each.place.perMicroBatch == place.perMicroBatch && each.place.word == place.word;
            });
            if (word == m_chain.words.end())
                word = m_chain.words.insert(word, {{place.perMicroBatch, place.word, 0}, 0, 0});
            word->place.bit |= place.bit;
            word->before |= buffer.need.there ? place.bit : 0;
            word->behind |= buffer.there ? place.bit : 0;
            return;
        }
        m_chain.needs.push_back(buffer.need);
        const bool dies = buffer.need.there && !buffer.there;
        m_chain.effects.push_back({index, dies, buffer.there ? buffer.written : kAnyTime, buffer.read});
    }

    const CompiledProgram &m_program;
    const BufferStates &m_states;
    std::int32_t m_microBatch = 0;
    std::int64_t m_start = 0; ///< Of the chain, as it is made.
    ComputeChain m_chain{};
    std::map<std::int32_t, Followed> m_buffers{};
    std::vector<std::int32_t> m_order{}; ///< Buffers, as they come.
    MemoryLog m_memory{};
};

} // namespace

std::optional<ComputeChain> makeChain(const CompiledProgram &program, std::int32_t begin, std::int32_t end,
    std::int32_t segment, const BufferStates &states, std::int32_t microBatch, std::int64_t free)
{
    return ChainMaker(program, states, microBatch).make(begin, end, segment, free);
}

std::optional<std::int64_t> startOf(
    const ComputeChain &chain, BufferStates &states, std::int32_t microBatch, std::int64_t free)
{
    for (const ComputeChain::Word &word : chain.words)
        if ((states.thereWord(word.place, microBatch) & word.place.bit) != word.before)
            return {};
    std::int64_t start = free;
    for (const ComputeChain::Need &need : chain.needs) {
        if (states.isThere(need.buffer, microBatch) != need.there)
            return {};
        const BufferTimes &times = states.timesOf(need.buffer, microBatch);
        if (need.awaitsThere)
            start = std::max(start, times.there);
        if (need.awaitsRead)
            start = std::max(start, times.read);
        if ((need.thereBy != kAnyTime && times.there > start + need.thereBy)
            || (need.readBy != kAnyTime && times.read > start + need.readBy))
            return {};
    }
    return start;
}

void applyEffects(
    const ComputeChain &chain, BufferStates &states, std::int32_t microBatch, std::int64_t start)
{
    for (const ComputeChain::Word &word : chain.words) {
        std::uint64_t &there = states.thereWord(word.place, microBatch);
        there = (there & ~word.place.bit) | word.behind;
    }
    for (const ComputeChain::Effect &effect : chain.effects) {
        if (effect.dies)
            states.drop(effect.buffer, microBatch);
        else if (effect.written != kAnyTime)
            states.write(effect.buffer, microBatch, start + effect.written);
        if (effect.read != kAnyTime)
            states.read(effect.buffer, microBatch, start + effect.read);
    }
}

} // namespace planloom
